// Losses of classes: negative log likelihood and cross entropy.
#include "composit/op/promotion.h"
#include "composit/ops/functions.h"

namespace composit {

// The axis of the classes: the second, or the only one of a single sample.
static int64_t class_axis(int64_t rank) { return rank > 1 ? 1 : 0; }

static Ints without(Ints sizes, int64_t axis) {
  sizes.erase(sizes.begin() + axis);
  return sizes;
}

static void expect_classes(const In& x, const In& target, const std::optional<In>& weight) {
  expect_floating(x.dtype());
  const int64_t axis = class_axis(x.rank());
  if (x.rank() == 0) throw UserError("expected an axis of classes, received a number");
  if (category(target.dtype()) != DTypeCategory::integer)
    throw UserError("expected a target of classes of int64, received " +
                    std::string(name(target.dtype())));
  if (target.sizes() != without(x.sizes(), axis))
    throw UserError("expected a target of sizes " + str(without(x.sizes(), axis)) + ", received " +
                    str(target.sizes()));
  if (weight && weight->sizes() != Ints{x.size(axis)})
    throw UserError("expected a weight for each of " + std::to_string(x.size(axis)) +
                    " classes, received sizes " + str(weight->sizes()));
}

static std::vector<Expr> add_both(const std::vector<Expr>& left, const std::vector<Expr>& right) {
  return {left[0] + right[0], left[1] + right[1]};
}

enum Reduction : int64_t { kNone, kMean, kSum };

// The loss and the sum of the weights of what was not ignored.
static Loops nll_loss(const In& x, const In& target, const std::optional<In>& weight,
                      int64_t reduction, int64_t ignored) {
  expect_classes(x, target, weight);
  const bool each = reduction == kNone && x.rank() > 1;
  Nest nest;
  Index at;
  for (int64_t size : target.sizes())
    at.push_back(each ? nest.parallel(size) : nest.reduction(size));
  if (at.empty()) nest.reduction(1);
  const Expr index = cast(target(at), DType::int64), counts = ne(index, ignored);
  Index place = at;
  place.insert(place.begin() + class_axis(x.rank()), index);
  const Expr share = weight ? (*weight)(index) : Expr::literal(1.0, x.dtype());
  const Expr loss = select(counts, -(share * x(place)), 0);
  if (each) {
    Nest total;
    return sequence({nest.store(loss), total.store(Expr::literal(0.0, x.dtype()))});
  }
  const auto sums = nest.fold({0, 0}, {loss, select(counts, share, 0)}, add_both);
  nest.store(reduction == kMean ? sums[0] / sums[1] : sums[0]);
  return nest.store(sums[1]).loops();
}

static Loops nll_loss_back(const In& g, const In& x, const In& target,
                           const std::optional<In>& weight, int64_t reduction, int64_t ignored,
                           const In& total) {
  expect_classes(x, target, weight);
  const auto axis = class_axis(x.rank());
  Nest nest;
  Index at = nest.parallel(x.sizes());
  const Expr here = at[static_cast<size_t>(axis)];
  Index sample = at;
  sample.erase(sample.begin() + axis);
  const Expr index = cast(target(sample), DType::int64);
  Expr slope = g.rank() == 0 ? g(Index{}) : g(sample);
  if (weight) slope = slope * (*weight)(here);
  if (reduction == kMean) slope = slope / total(Index{});
  return nest.store(select(eq(index, here) && ne(index, ignored), -slope, 0)).loops();
}

// clang-format off
// The operation for a batch of samples, and that for a batch of images.
#define COMPOSIT_NLL_LOSS(name, forward_samples, bad_samples, backward_samples)                   \
  rows.add({.schema = "aten::" name "_forward(Tensor self, Tensor target, Tensor? weight, int "   \
                      "reduction, SymInt ignore_index) -> (Tensor output, Tensor total_weight)",  \
            .kind = OpKind::reduction,                                                            \
            .loops = [](In x, In target, std::optional<In> weight, int64_t reduction,             \
                        int64_t ignored) {                                                        \
              return nll_loss(x, target, weight, reduction, ignored);                             \
            },                                                                                    \
            .vjp = [](Vjp v, LazyTensor x, LazyTensor target, std::optional<LazyTensor> weight,               \
                      int64_t reduction, int64_t ignored) {                                       \
              if (!v.cotangents[0].defined()) return Gradients(1);                                \
              return apply("aten::" name "_backward", {v.cotangents[0], x, target, weight,        \
                                                       reduction, ignored, v.results[1]});        \
            },                                                                                    \
            .samples = forward_samples,                                                           \
            .bad = bad_samples,                                                                   \
            .nondifferentiable = "weight"});                                                      \
  rows.add({.schema = "aten::" name "_backward(Tensor grad_output, Tensor self, Tensor target, "  \
                      "Tensor? weight, int reduction, SymInt ignore_index, Tensor "               \
                      "total_weight) -> Tensor",                                                  \
            .kind = OpKind::reduction,                                                            \
            .loops = [](In g, In x, In target, std::optional<In> weight, int64_t reduction,       \
                        int64_t ignored, In total) {                                              \
              return nll_loss_back(g, x, target, weight, reduction, ignored, total);              \
            },                                                                                    \
            .vjp = [](Vjp v, LazyTensor, LazyTensor, LazyTensor target, std::optional<LazyTensor> weight,         \
                      int64_t reduction, int64_t ignored) {                                       \
              return Gradients{apply("aten::" name "_forward", {v.cotangents[0], target, weight,  \
                                                                reduction, ignored})[0]};         \
            },                                                                                    \
            .samples = backward_samples,                                                          \
            .nondifferentiable = "weight total_weight"});                                         \
  rows.add({.schema = "aten::" name "(Tensor self, Tensor target, Tensor? weight=None, int "      \
                      "reduction=1, SymInt ignore_index=-100) -> Tensor",                         \
            .decompose = [](LazyTensor x, LazyTensor target, std::optional<LazyTensor> weight,                \
                            int64_t reduction, int64_t ignored) {                                 \
              return LazyTensors{apply("aten::" name "_forward",                                      \
                                   {x, target, weight, reduction, ignored})[0]};                  \
            },                                                                                    \
            .samples = forward_samples,                                                           \
            .nondifferentiable = "weight"});
// clang-format on

static void add_nll_losses(OperationTable& rows) {
  COMPOSIT_NLL_LOSS(
      "nll_loss",
      "f32[3,4] i64[3]<4 None 1 -100 | f32[3,4] i64[3]=[0,-100,2] f32[4]=0.5..2 1 -100 | f32[3,4] "
      "i64[3]=[0,1,2] None 0 1 | f32[3,4] i64[3]<4 f32[4]=0.5..2 2 -100 | f32[4] i64[]=[2] "
      "f32[4]=0.5..2 0 -100 | f32[0,3] i64[0] None 2 -100",
      "f32[3,4] i64[2] None 1 -100: target of sizes | f32[3,4] i64[3] f32[3] 1 -100: a weight for "
      "each | f32[3,4] f32[3] None 1 -100: classes of int64",
      "f32[] f32[3,4] i64[3]<4 None 1 -100 f32[]=[3] | f32[3] f32[3,4] i64[3]=[0,-100,2] f32[4] 0 "
      "-100 f32[] | f32[] f32[4] i64[]=[2] None 2 -100 f32[]")
  COMPOSIT_NLL_LOSS(
      "nll_loss2d",
      "f32[2,3,2,2] i64[2,2,2]<3 None 1 -100 | f32[2,3,1,2] i64[2,1,2]<3 f32[3]=0.5..2 0 1 | "
      "f32[2,3,1,2] i64[2,1,2]<3 f32[3]=0.5..2 2 0",
      "f32[2,3,2,2] i64[2,2] None 1 -100: target of sizes",
      "f32[] f32[2,3,2,2] i64[2,2,2]<3 None 1 -100 f32[]=[8] | f32[2,1,2] f32[2,3,1,2] "
      "i64[2,1,2]<3 f32[3]=0.5..2 0 1 f32[]")
}
#undef COMPOSIT_NLL_LOSS

// For any number of axes after that of the classes, of which at most two are axes of images.
static LazyTensors nll_loss_forward(const LazyTensor& x, const LazyTensor& target,
                                    const std::optional<LazyTensor>& weight, int64_t reduction,
                                    int64_t ignored) {
  if (x.rank() < 3) return apply("aten::nll_loss_forward", {x, target, weight, reduction, ignored});
  if (x.rank() == 4)
    return apply("aten::nll_loss2d_forward", {x, target, weight, reduction, ignored});
  if (target.sizes() != without(x.sizes(), 1))
    throw UserError("expected a target of sizes " + str(without(x.sizes(), 1)) + ", received " +
                    str(target.sizes()));
  const int64_t pixels = target.numel() / std::max<int64_t>(1, x.size(0));
  LazyTensors results =
      apply("aten::nll_loss2d_forward",
            {reshape(x, {x.size(0), x.size(1), 1, pixels}), reshape(target, {x.size(0), 1, pixels}),
             weight, reduction, ignored});
  if (reduction == kNone) results[0] = reshape(results[0], target.sizes());
  return results;
}

// ---- cross entropy ------------------------------------------------------------------------------

static LazyTensor channels(const LazyTensor& weight, int64_t rank) {
  Ints sizes(static_cast<size_t>(rank), 1);
  sizes[static_cast<size_t>(class_axis(rank))] = weight.numel();
  return reshape(weight, sizes);
}

// The sum of `terms` over the classes, negated.
static LazyTensor over_classes(const LazyTensor& terms) {
  return -sum(terms, {class_axis(terms.rank())});
}

// `target`: the probability of each class. The mean is that over samples.
static LazyTensor of_probabilities(const LazyTensor& log_p, LazyTensor target,
                                   const std::optional<LazyTensor>& weight, int64_t reduction,
                                   double smoothing) {
  expect_floating(target.dtype());
  const auto classes = static_cast<double>(log_p.size(class_axis(log_p.rank())));
  if (smoothing > 0) target = target * (1 - smoothing) + smoothing / classes;
  LazyTensor terms = log_p * target;
  if (weight) terms = terms * channels(*weight, log_p.rank());
  const LazyTensor loss = over_classes(terms);
  if (reduction != kMean) return reduced(loss, reduction);
  return sum(loss) / (static_cast<double>(log_p.numel()) / classes);
}

// For each sample, its class has the weight 1 - smoothing, and all classes share the rest.
static LazyTensor smoothed(const LazyTensor& log_p, const LazyTensor& target,
                           const std::optional<LazyTensor>& weight, int64_t reduction,
                           int64_t ignored, double smoothing) {
  const LazyTensors nll = nll_loss_forward(log_p, target, weight, reduction, ignored);
  const LazyTensor terms = weight ? log_p * channels(*weight, log_p.rank()) : log_p;
  LazyTensor uniform = where(eq(target, ignored), 0, over_classes(terms));
  if (reduction != kNone) uniform = sum(uniform);
  if (reduction == kMean) uniform = uniform / nll[1];
  const auto classes = static_cast<double>(log_p.size(class_axis(log_p.rank())));
  return nll[0] * (1 - smoothing) + uniform * (smoothing / classes);
}

static LazyTensor cross_entropy(const LazyTensor& x, const LazyTensor& target,
                                const std::optional<LazyTensor>& weight, int64_t reduction,
                                int64_t ignored, double smoothing) {
  if (smoothing < 0 || smoothing > 1)
    throw UserError("expected a label_smoothing from 0 to 1, received " +
                    std::to_string(smoothing));
  if (x.rank() == 0) throw UserError("expected an axis of classes, received a number");
  const LazyTensor log_p = apply_one("aten::_log_softmax", {x, class_axis(x.rank()), false});
  if (x.sizes() == target.sizes())
    return of_probabilities(log_p, target, weight, reduction, smoothing);
  if (smoothing > 0) return smoothed(log_p, target, weight, reduction, ignored, smoothing);
  return nll_loss_forward(log_p, target, weight, reduction, ignored)[0];
}

void add_classification_rows(OperationTable& rows) {
  add_nll_losses(rows);
  rows.add({.schema = "aten::nll_loss_nd(Tensor self, Tensor target, Tensor? weight=None, int "
                      "reduction=1, SymInt ignore_index=-100) -> Tensor",
            .decompose =
                [](LazyTensor x, LazyTensor target, std::optional<LazyTensor> weight,
                   int64_t reduction, int64_t ignored) {
                  return LazyTensors{nll_loss_forward(x, target, weight, reduction, ignored)[0]};
                },
            .samples = "f32[3,4] i64[3]<4 | f32[4] i64[]=[1] | f32[2,3,4] i64[2,4]<3 f32[3] 0 | "
                       "f32[2,3,2,2] i64[2,2,2]<3 | f32[2,3,1,2,2] i64[2,1,2,2]<3 None 2 1",
            .bad = "f32[2,3,4] i64[2,3]: target of sizes",
            .nondifferentiable = "weight"});
  rows.add({.schema = "aten::cross_entropy_loss(Tensor self, Tensor target, Tensor? weight=None, "
                      "int reduction=1, SymInt ignore_index=-100, float label_smoothing=0.) -> "
                      "Tensor",
            .kind = OpKind::reduction,
            .decompose =
                [](LazyTensor x, LazyTensor target, std::optional<LazyTensor> weight,
                   int64_t reduction, int64_t ignored, double smoothing) {
                  return LazyTensors{
                      cross_entropy(x, target, weight, reduction, ignored, smoothing)};
                },
            .samples =
                "f32[3,4] i64[3]<4 | f32[3,4] i64[3]=[0,-100,2] f32[4]=0.5..2 | f32[3,4] i64[3]<4 "
                "None 0 | f32[3,4] i64[3]<4 f32[4]=0.5..2 2 1 | f32[4] i64[]=[1] | f32[2,3,4] "
                "i64[2,4]<3 | f32[3,4] f32[3,4]=0..1 | f32[3,4] f32[3,4]=0..1 f32[4]=0.5..2 1 -100 "
                "0.1 | f32[2,3,2] f32[2,3,2]=0..1 None 0 | f32[3,4] i64[3]=[0,-100,2] None 1 -100 "
                "0.1 | f32[3,4] i64[3]=[0,-100,2] f32[4]=0.5..2 1 -100 0.1 | f32[2,3,2] i64[2,2]<3 "
                "f32[3]=0.5..2 0 -100 0.2 | f32[3,4] i64[3]<4 f32[4]=0.5..2 2 -100 0.2 | "
                "f32[2,3]=-120..120 i64[2]<3",
            .bad = "f32[2,3] i64[2] None 1 -100 1.5: from 0 to 1 | f32[2,3] i64[2,3]: floating "
                   "point | f32[2,3] i64[3]: target of sizes | f32[] i64[]: an axis of classes",
            .nondifferentiable = "weight"});
}

}  // namespace composit
