// Losses of classes whose scores shall stay a margin apart.
#include "composit/ops/functions.h"

namespace composit {
namespace {

// A batch of samples, also where one was given without the axis of samples or that of classes.
LazyTensor batch(const LazyTensor& x) { return x.rank() < 2 ? reshape(x, {1, x.numel()}) : x; }

LazyTensor clamp_min(const LazyTensor& x, int64_t low) {
  return apply_one("aten::clamp_min", {x, Scalar(low)});
}
LazyTensor gather(const LazyTensor& x, const LazyTensor& index) {
  return apply_one("aten::gather", {x, -1, index});
}

// The cotangent of each sample's loss, as a column.
LazyTensor column(const LazyTensor& g, const LazyTensor& samples, int64_t reduction) {
  const int64_t count = samples.size(0);
  const LazyTensor each = reduction == 1 ? g / static_cast<double>(count) : g;
  return expand(each.rank() == 1 ? unsqueeze(each, 1) : each, {count, 1});
}

// ---- one class per sample -----------------------------------------------------------------------

struct MultiMargin {
  LazyTensor samples, classes;       // [n, c], [n, 1]
  LazyTensor excess;                 // [n, c]: how far each score is above what it may be, or 0
  LazyTensor others;                 // [n, c]: whether it is that of another class
  std::optional<LazyTensor> weight;  // [n, 1]: of the class
};

MultiMargin multi_margin(const LazyTensor& x, const LazyTensor& target, const Scalar& margin,
                         const std::optional<LazyTensor>& weight) {
  expect_floating(x.dtype());
  if (x.rank() > 2 || target.rank() > 1 || target.dtype() != DType::int64 ||
      target.numel() != (x.rank() == 2 ? x.size(0) : 1))
    throw UserError("expected scores [n, c] or [c] and a class of int64 for each, received sizes " +
                    str(x.sizes()) + " and " + str(target.sizes()));
  MultiMargin m;
  m.samples = batch(x);
  m.classes = reshape(target, {target.numel(), 1});
  if (weight && weight->sizes() != Ints{m.samples.size(1)})
    throw UserError("expected a weight for each of " + std::to_string(m.samples.size(1)) +
                    " classes, received sizes " + str(weight->sizes()));
  m.others = ne(arange(m.samples.size(1)), m.classes);
  const LazyTensor above = m.samples - gather(m.samples, m.classes) + Number(margin);
  m.excess = where(m.others, clamp_min(above, 0), 0);
  if (weight)
    m.weight = unsqueeze(
        apply_one("aten::index_select", {*weight, 0, reshape(m.classes, {target.numel()})}), 1);
  return m;
}

bool is_squared(const Scalar& p) {
  const Expr power(p);
  if (!is_literal(power, 1) && !is_literal(power, 2)) throw UserError("expected p of 1 or 2");
  return is_literal(power, 2);
}

LazyTensor multi_margin_loss(const MultiMargin& m, bool squared) {
  const LazyTensor each = squared ? square(m.excess) : m.excess;
  return mean(m.weight ? each * *m.weight : each, {1});
}

LazyTensor multi_margin_back(const LazyTensor& g, const MultiMargin& m, bool squared,
                             int64_t reduction) {
  const DType dtype = m.samples.dtype();
  LazyTensor share = column(g, m.samples, reduction) / static_cast<double>(m.samples.size(1));
  if (m.weight) share = share * *m.weight;
  const LazyTensor slope = squared ? m.excess * 2 : to(m.excess > 0, dtype);
  const LazyTensor up = slope * share;
  return where(m.others, up, -sum(up, {1}, true));
}

void add_multi_margin(OperationTable& rows) {
  rows.add({.schema = "aten::multi_margin_loss(Tensor self, Tensor target, Scalar p=1, Scalar "
                      "margin=1, Tensor? weight=None, int reduction=1) -> Tensor",
            .decompose =
                [](LazyTensor x, LazyTensor target, Scalar p, Scalar margin,
                   std::optional<LazyTensor> weight, int64_t reduction) {
                  const LazyTensor loss =
                      multi_margin_loss(multi_margin(x, target, margin, weight), is_squared(p));
                  return LazyTensors{reduced(reshape(loss, target.sizes()), reduction)};
                },
            .vjp =
                [](Vjp v, LazyTensor x, LazyTensor target, Scalar p, Scalar margin,
                   std::optional<LazyTensor> weight, int64_t reduction) {
                  return apply("aten::multi_margin_loss_backward",
                               {v.cotangents[0], x, target, p, margin, weight, reduction});
                },
            .samples = "f32[3,4] i64[3]<4 | f32[3,4] i64[3]<4 2 0.5 f32[4]=0.5..2 0 | f32[3,4] "
                       "i64[3]<4 1 2 None 2 | f32[4] i64[]<4 | f32[4] i64[1]<4 1 1 None 0",
            .bad = "f32[3,4] i64[2]<4: a class of int64 | f32[3,4] i64[3]<4 3: p of 1 or 2 | "
                   "f32[3,4] i64[3]<4 1 1 f32[3]: a weight for | i64[3] i64[]: floating point",
            .nondifferentiable = "weight"});
  rows.add({.schema = "aten::multi_margin_loss_backward(Tensor grad_output, Tensor self, Tensor "
                      "target, Scalar p, Scalar margin, Tensor? weight=None, int reduction=1) -> "
                      "Tensor",
            .decompose =
                [](LazyTensor g, LazyTensor x, LazyTensor target, Scalar p, Scalar margin,
                   std::optional<LazyTensor> weight, int64_t reduction) {
                  const MultiMargin m = multi_margin(x, target, margin, weight);
                  return LazyTensors{
                      reshape(multi_margin_back(g, m, is_squared(p), reduction), x.sizes())};
                },
            .samples = "f32[] f32[3,4] i64[3]<4 1 1 | f32[3] f32[3,4] i64[3]<4 2 0.5 f32[4]=0.5..2 "
                       "0 | f32[] f32[4] i64[]<4 1 1",
            .nondifferentiable = "weight"});
}

// ---- several classes per sample -----------------------------------------------------------------

struct MultiLabel {
  LazyTensor samples, classes;  // [n, c]: scores, and the classes up to the first that is below 0
  LazyTensor is_target;         // [n, c]: whether the score is that of a given class
  // [n, c, c]: per given class (axis 1) and score of another class: whether that lies above the
  // class's less the margin of 1, and how far.
  LazyTensor above, excess;
};

MultiLabel multi_label(const LazyTensor& x, const LazyTensor& target) {
  expect_floating(x.dtype());
  if (x.rank() > 2 || target.sizes() != x.sizes() || target.dtype() != DType::int64)
    throw UserError("expected scores [n, c] or [c] and as many classes of int64, received sizes " +
                    str(x.sizes()) + " and " + str(target.sizes()));
  MultiLabel m;
  m.samples = batch(x);
  const LazyTensor classes = batch(target);
  const LazyTensor given = eq(cumsum(classes < 0, 1), 0);
  m.classes = clamp_min(classes, 0);
  const LazyTensor times = apply_one(
      "aten::scatter_add", {zeros_like(m.classes), 1, m.classes, to(given, DType::int64)});
  m.is_target = times > 0;
  const LazyTensor distance =
      unsqueeze(m.samples, 1) - unsqueeze(gather(m.samples, m.classes), 2) + 1;
  const LazyTensor pairs = logical_and(unsqueeze(given, 2), unsqueeze(logical_not(m.is_target), 1));
  m.above = logical_and(pairs, distance > 0);
  m.excess = where(m.above, distance, 0);
  return m;
}

LazyTensors multi_label_loss(const LazyTensor& x, const LazyTensor& target, int64_t reduction) {
  const MultiLabel m = multi_label(x, target);
  const LazyTensor loss = sum(m.excess, {1, 2}) / static_cast<double>(m.samples.size(1));
  return {reduced(x.rank() < 2 ? reshape(loss, {}) : loss, reduction),
          reshape(to(m.is_target, x.dtype()), target.sizes())};
}

LazyTensor multi_label_back(const LazyTensor& g, const MultiLabel& m, int64_t reduction) {
  const LazyTensor share = column(g, m.samples, reduction) / static_cast<double>(m.samples.size(1));
  const LazyTensor pairs = to(m.above, m.samples.dtype());
  return apply_one("aten::scatter_add",
                   {sum(pairs, {1}) * share, 1, m.classes, -sum(pairs, {2}) * share});
}

void add_multi_label(OperationTable& rows) {
  constexpr std::string_view kSamples =
      "f32[2,4] i64[2,4]<4 1 | f32[2,4] i64[2,4]=[1,3,-1,0,2,-1,1,-1] 0 | f32[4] i64[4]<4 2 | "
      "f32[3] i64[3]=[-1,0,1] 0";
  rows.add({.schema = "aten::multilabel_margin_loss_forward(Tensor self, Tensor target, int "
                      "reduction) -> (Tensor output, Tensor is_target)",
            .decompose = [](LazyTensor x, LazyTensor target,
                            int64_t reduction) { return multi_label_loss(x, target, reduction); },
            .vjp =
                [](Vjp v, LazyTensor x, LazyTensor target, int64_t reduction) {
                  if (!v.cotangents[0].defined()) return Gradients(2);
                  return apply("aten::multilabel_margin_loss_backward",
                               {v.cotangents[0], x, target, reduction, v.results[1]});
                },
            .samples = kSamples,
            .bad = "f32[2,4] i64[2,3] 1: as many classes | i64[2] i64[2] 1: floating point"});
  rows.add({.schema = "aten::multilabel_margin_loss(Tensor self, Tensor target, int reduction=1) "
                      "-> Tensor",
            .decompose =
                [](LazyTensor x, LazyTensor target, int64_t reduction) {
                  return LazyTensors{
                      apply("aten::multilabel_margin_loss_forward", {x, target, reduction})[0]};
                },
            .samples = kSamples});
  rows.add({.schema = "aten::multilabel_margin_loss_backward(Tensor grad_output, Tensor self, "
                      "Tensor target, int reduction, Tensor is_target) -> Tensor",
            .decompose =
                [](LazyTensor g, LazyTensor x, LazyTensor target, int64_t reduction) {
                  return LazyTensors{
                      reshape(multi_label_back(g, multi_label(x, target), reduction), x.sizes())};
                },
            .samples = "f32[] f32[2,4] i64[2,4]=[1,3,-1,0,2,-1,1,-1] 1 f32[2,4]=[0,1,0,1,0,0,1,0] "
                       "| f32[] f32[4] i64[4]=[2,-1,0,0] 2 f32[4]=[0,0,1,0]",
            .nondifferentiable = "is_target"});
}

}  // namespace

void add_margins_rows(OperationTable& rows) {
  add_multi_margin(rows);
  add_multi_label(rows);
}

}  // namespace composit
