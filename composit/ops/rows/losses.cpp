// Losses between two tensors of the same sizes, and between pairs of samples. Those of classes are
// in classification.cpp.
#include <cmath>

#include "composit/ops/functions.h"

namespace composit {

// The gradients of both sides of a loss of x - target, given the gradient of x.
static Gradients opposite(const Vjp& v, const LazyTensor& x, const LazyTensor& target,
                          const LazyTensor& dx) {
  return {v.wanted[0] ? sum_to_size(dx, x.sizes()) : LazyTensor(),
          v.wanted[1] ? sum_to_size(-dx, target.sizes()) : LazyTensor()};
}

static LazyTensor clamp(const LazyTensor& x, double low, double high) {
  return apply_one("aten::clamp", {x, low, high});
}
static LazyTensor clamp_min(const LazyTensor& x, double low) {
  return apply_one("aten::clamp_min", {x, low});
}

static void add_squares(OperationTable& rows) {
  rows.add(
      {.schema = "aten::mse_loss(Tensor self, Tensor target, int reduction=1) -> Tensor",
       .kind = OpKind::reduction,
       .decompose =
           [](LazyTensor x, LazyTensor target, int64_t reduction) {
             expect_floating(x.dtype());
             return LazyTensors{reduced(square(x - target), reduction)};
           },
       .vjp =
           [](Vjp v, LazyTensor x, LazyTensor target, int64_t reduction) {
             return opposite(
                 v, x, target,
                 apply_one("aten::mse_loss_backward", {v.cotangents[0], x, target, reduction}));
           },
       .samples = "f32[2,3] f32[2,3] | f32[2,3] f32[2,3] 0 | f32[2,3] f32[2,3] 2 | f32[] f32[]",
       .bad = "f32[2] f32[2] 3: expected reduction | i64[2] i64[2]: floating point"});
  rows.add({.schema = "aten::mse_loss_backward(Tensor grad_output, Tensor self, Tensor target, int "
                      "reduction) -> Tensor",
            .kind = OpKind::reduction,
            .decompose =
                [](LazyTensor g, LazyTensor x, LazyTensor target, int64_t reduction) {
                  const LazyTensor d = x - target;
                  return LazyTensors{d * (spread(g, d, reduction) * 2)};
                },
            .samples = "f32[] f32[2,3] f32[2,3] 1 | f32[2,3] f32[2,3] f32[2,3] 0 | f32[] f32[2] "
                       "f32[2] 2"});
  rows.add({.schema = "aten::l1_loss(Tensor self, Tensor target, int reduction=1) -> Tensor",
            .decompose =
                [](LazyTensor x, LazyTensor target, int64_t reduction) {
                  return LazyTensors{reduced(abs(x - target), reduction)};
                },
            .samples = "f32[2,3] f32[2,3] | f32[2,3] f32[2,3] 0 | f32[3] f32[2,3] 2",
            .bad = "f32[2] f32[2] -1: expected reduction"});
}

// Quadratic up to `width`, and straight beyond: smooth L1.
static LazyTensor smooth_l1(const LazyTensor& d, double width) {
  const LazyTensor distance = abs(d);
  if (width < 0) throw UserError("expected a beta of at least 0");
  if (width == 0) return distance;
  return where(distance < width, square(d) * (0.5 / width), distance - 0.5 * width);
}

static LazyTensor huber(const LazyTensor& d, double width) {
  if (width <= 0) throw UserError("expected a delta above 0");
  const LazyTensor distance = abs(d);
  return where(distance <= width, square(d) * 0.5, (distance - 0.5 * width) * width);
}

// The slope of each.
static LazyTensor smooth_l1_back(const LazyTensor& d, double width) {
  return width == 0 ? sign(d) : clamp(d / width, -1, 1);
}
static LazyTensor huber_back(const LazyTensor& d, double width) { return clamp(d, -width, width); }

using RobustLoss = LazyTensor (*)(const LazyTensor& difference, double width);

template <RobustLoss kLoss, RobustLoss kSlope>
static void add_robust_loss(OperationTable& rows, std::string_view schema,
                            std::string_view backward, std::string_view samples,
                            std::string_view bad) {
  static const std::string backward_name(backward.substr(0, backward.find('(')));
  rows.add({.schema = schema,
            .decompose =
                [](LazyTensor x, LazyTensor target, int64_t reduction, double width) {
                  return LazyTensors{reduced(kLoss(x - target, width), reduction)};
                },
            .vjp =
                [](Vjp v, LazyTensor x, LazyTensor target, int64_t reduction, double width) {
                  return opposite(
                      v, x, target,
                      apply_one(backward_name, {v.cotangents[0], x, target, reduction, width}));
                },
            .samples = samples,
            .bad = bad});
  rows.add({.schema = backward,
            .decompose =
                [](LazyTensor g, LazyTensor x, LazyTensor target, int64_t reduction, double width) {
                  const LazyTensor d = x - target;
                  return LazyTensors{kSlope(d, width) * spread(g, d, reduction)};
                },
            .samples = "f32[] f32[2,3] f32[2,3] 1 0.4 | f32[2,3] f32[2,3] f32[2,3] 0 1.0"});
}

static void add_robust_losses(OperationTable& rows) {
  add_robust_loss<smooth_l1, smooth_l1_back>(
      rows,
      "aten::smooth_l1_loss(Tensor self, Tensor target, int reduction=1, float beta=1.) -> Tensor",
      "aten::smooth_l1_loss_backward(Tensor grad_output, Tensor self, Tensor target, int "
      "reduction, float beta) -> Tensor",
      "f32[2,3] f32[2,3] | f32[2,3] f32[2,3] 0 0.4 | f32[2,3] f32[2,3] 2 2.5 | f32[2,3] f32[2,3] 1 "
      "0",
      "f32[2] f32[2] 1 -1.0: at least 0");
  add_robust_loss<huber, huber_back>(
      rows,
      "aten::huber_loss(Tensor self, Tensor target, int reduction=1, float delta=1.) -> Tensor",
      "aten::huber_loss_backward(Tensor grad_output, Tensor self, Tensor target, int reduction, "
      "float delta) -> Tensor",
      "f32[2,3] f32[2,3] | f32[2,3] f32[2,3] 0 0.4 | f32[2,3] f32[2,3] 2 2.5",
      "f32[2] f32[2] 1 0: above 0");
}

// ---- probabilities ------------------------------------------------------------------------------

static LazyTensor weighted(const LazyTensor& loss, const std::optional<LazyTensor>& weight) {
  return weight ? loss * *weight : loss;
}

// Logarithms are cut off at -100, as in torch.
static LazyTensor binary_cross_entropy(const LazyTensor& x, const LazyTensor& target) {
  const LazyTensor log_x = clamp_min(log(x), -100), log_rest = clamp_min(log1p(-x), -100);
  return (target - 1) * log_rest - target * log_x;
}

static void add_binary_losses(OperationTable& rows) {
  rows.add({.schema = "aten::binary_cross_entropy(Tensor self, Tensor target, Tensor? weight=None, "
                      "int reduction=1) -> Tensor",
            .decompose =
                [](LazyTensor x, LazyTensor target, std::optional<LazyTensor> weight,
                   int64_t reduction) {
                  return LazyTensors{
                      reduced(weighted(binary_cross_entropy(x, target), weight), reduction)};
                },
            .vjp =
                [](Vjp v, LazyTensor x, LazyTensor target, std::optional<LazyTensor> weight,
                   int64_t reduction) {
                  const LazyTensor& g = v.cotangents[0];
                  Gradients d(2);
                  if (v.wanted[0])
                    d[0] = apply_one("aten::binary_cross_entropy_backward",
                                     {g, x, target, weight, reduction});
                  if (v.wanted[1])
                    d[1] = weighted((log1p(-x) - log(x)) * spread(g, x, reduction), weight);
                  return d;
                },
            .samples = "f32[2,3]=0.1..0.9 f32[2,3]=0..1 | f32[2,3]=0.1..0.9 f32[2,3]=0..1 f32[3] 0 "
                       "| f32[4]=[0,1,0,1] f32[4]=[0,1,1,0] None 2",
            .nondifferentiable = "weight"});
  rows.add({.schema = "aten::binary_cross_entropy_backward(Tensor grad_output, Tensor self, Tensor "
                      "target, Tensor? weight=None, int reduction=1) -> Tensor",
            .decompose =
                [](LazyTensor g, LazyTensor x, LazyTensor target, std::optional<LazyTensor> weight,
                   int64_t reduction) {
                  const LazyTensor slope = (x - target) / clamp_min((1 - x) * x, 1e-12);
                  return LazyTensors{weighted(slope * spread(g, x, reduction), weight)};
                },
            .samples = "f32[] f32[2,3]=0.1..0.9 f32[2,3]=0..1 None 1 | f32[2,3] f32[2,3]=0.1..0.9 "
                       "f32[2,3]=0..1 f32[3] 0",
            .nondifferentiable = "weight"});
  rows.add({.schema = "aten::binary_cross_entropy_with_logits(Tensor self, Tensor target, Tensor? "
                      "weight=None, Tensor? pos_weight=None, int reduction=1) -> Tensor",
            .decompose =
                [](LazyTensor x, LazyTensor target, std::optional<LazyTensor> weight,
                   std::optional<LazyTensor> pos_weight, int64_t reduction) {
                  LazyTensor log_s = apply_one("aten::log_sigmoid", {x});
                  if (pos_weight) log_s = ((*pos_weight - 1) * target + 1) * log_s;
                  return LazyTensors{
                      reduced(weighted((1 - target) * x - log_s, weight), reduction)};
                },
            .samples = "f32[2,3] f32[2,3]=0..1 | f32[2,3] f32[2,3]=0..1 f32[3] f32[3]=0.5..3 0 | "
                       "f32[4]=-120..120 f32[4]=0..1 None None 2",
            .nondifferentiable = "weight pos_weight"});
  rows.add({.schema = "aten::soft_margin_loss(Tensor self, Tensor target, int reduction=1) -> "
                      "Tensor",
            .decompose =
                [](LazyTensor x, LazyTensor target, int64_t reduction) {
                  return LazyTensors{reduced(log1p(exp(-target * x)), reduction)};
                },
            .samples = "f32[2,3] f32[2,3] | f32[2,3] f32[2,3] 0",
            .nondifferentiable = "target"});
  rows.add({.schema = "aten::kl_div(Tensor self, Tensor target, int reduction=1, *, bool "
                      "log_target=False) -> Tensor",
            .decompose =
                [](LazyTensor x, LazyTensor target, int64_t reduction, bool log_target) {
                  expect_floating(x.dtype());
                  expect_floating(target.dtype());
                  const LazyTensor loss =
                      log_target ? exp(target) * (target - x)
                                 : apply_one("aten::xlogy.Tensor", {target, target}) - target * x;
                  return LazyTensors{reduced(loss, reduction)};
                },
            .samples =
                "f32[2,3] f32[2,3]=0.1..1 | f32[2,3] f32[2,3] 0 True | f32[3] f32[3]=[0.5,1,2] "
                "2",
            .bad = "f32[2] i64[2]: floating point"});
}

// ---- pairs of samples ---------------------------------------------------------------------------

static LazyTensor dot(const LazyTensor& x, const LazyTensor& y, int64_t dim) {
  return sum(x * y, {dim});
}

// Each side is divided by its own length, which is at least eps.
static LazyTensor cosine_similarity(LazyTensor x, LazyTensor y, int64_t dim, double eps) {
  const Ints sizes = broadcast_sizes({x.sizes(), y.sizes()});
  x = expand(x, sizes);
  y = expand(y, sizes);
  const auto unit = [&](const LazyTensor& side) {
    const LazyTensor wide = widened(side);
    const LazyTensor length = sqrt(clamp_min(sum(square(wide), {dim}, true), eps * eps));
    return narrowed(wide / length, side.dtype());
  };
  return dot(unit(x), unit(y), dim);
}

static LazyTensor cosine_embedding_loss(const LazyTensor& x, const LazyTensor& y,
                                        const LazyTensor& target, double margin) {
  const int64_t dim = target.rank();
  if (dim > 1 || x.rank() != dim + 1 || y.rank() != dim + 1)
    throw UserError(
        "expected a target of at most one axis and inputs of one more, received sizes " +
        str(x.sizes()) + ", " + str(y.sizes()) + " and " + str(target.sizes()));
  constexpr double kEpsilon = 1e-12;
  const LazyTensor lengths = (dot(x, x, dim) + kEpsilon) * (dot(y, y, dim) + kEpsilon);
  const LazyTensor cosine = dot(x, y, dim) / sqrt(lengths);
  return where(eq(target, 1), 1 - cosine, 0) +
         where(eq(target, -1), clamp_min(cosine - margin, 0), 0);
}

static LazyTensor distance(const LazyTensor& x, const LazyTensor& y, double p, double eps) {
  const LazyTensor offset = x - y + eps, d = is_complex(offset.dtype()) ? abs(offset) : offset;
  if (p == 1) return sum(abs(d), {-1});
  if (p == 2) return sqrt(sum(square(d), {-1}));
  return pow(sum(pow(abs(d), p), {-1}), 1 / p);
}

static LazyTensor triplet_loss(const LazyTensor& anchor, const LazyTensor& positive,
                               const LazyTensor& negative, double margin, double p, double eps,
                               bool swap) {
  LazyTensor far = distance(anchor, negative, p, eps);
  if (swap) far = minimum(far, distance(positive, negative, p, eps));
  return clamp_min(distance(anchor, positive, p, eps) - far + margin, 0);
}

static void add_pair_losses(OperationTable& rows) {
  rows.add({.schema = "aten::cosine_similarity(Tensor x1, Tensor x2, int dim=1, float eps=1e-08) "
                      "-> Tensor",
            .decompose = [](LazyTensor x, LazyTensor y, int64_t dim,
                            double eps) { return LazyTensors{cosine_similarity(x, y, dim, eps)}; },
            .samples = "f32[2,3] f32[2,3] | f32[2,3,4] f32[3,4] -1 | f32[2,3] f32[2,3] 0 0.1"});
  rows.add(
      {.schema = "aten::cosine_embedding_loss(Tensor input1, Tensor input2, Tensor target, "
                 "float margin=0., int reduction=1) -> Tensor",
       .decompose =
           [](LazyTensor x, LazyTensor y, LazyTensor target, double margin, int64_t reduction) {
             return LazyTensors{reduced(cosine_embedding_loss(x, y, target, margin), reduction)};
           },
       .samples = "f32[2,3] f32[2,3] i64[2]=[1,-1] | f32[3,4] f32[3,4] i64[3]=[-1,1,-1] -0.5 0 "
                  "| f32[3] f32[3] i64[]=[1]",
       .bad = "f32[2] f32[2] i64[2]: one more"});
  rows.add(
      {.schema = "aten::margin_ranking_loss(Tensor input1, Tensor input2, Tensor target, "
                 "float margin=0., int reduction=1) -> Tensor",
       .decompose =
           [](LazyTensor x, LazyTensor y, LazyTensor target, double margin, int64_t reduction) {
             return LazyTensors{reduced(clamp_min(-target * (x - y) + margin, 0), reduction)};
           },
       .samples = "f32[4] f32[4] i64[4]=[1,-1,1,-1] | f32[2,2] f32[2,2] i64[2]=[1,-1] 0.5 0"});
  rows.add({.schema = "aten::hinge_embedding_loss(Tensor self, Tensor target, float margin=1., int "
                      "reduction=1) -> Tensor",
            .decompose =
                [](LazyTensor x, LazyTensor target, double margin, int64_t reduction) {
                  const LazyTensor far = where(ne(target, 1), clamp_min(margin - x, 0), 0);
                  return LazyTensors{reduced(far + where(ne(target, -1), x, 0), reduction)};
                },
            .samples = "f32[4] i64[4]=[1,-1,1,-1] | f32[4] i64[4]=[1,-1,1,-1] 0.3 0"});
  rows.add({.schema = "aten::triplet_margin_loss(Tensor anchor, Tensor positive, Tensor negative, "
                      "float margin=1., float p=2., float eps=9.9999999999999995e-07, bool "
                      "swap=False, int reduction=1) -> Tensor",
            .decompose =
                [](LazyTensor anchor, LazyTensor positive, LazyTensor negative, double margin,
                   double p, double eps, bool swap, int64_t reduction) {
                  return LazyTensors{reduced(
                      triplet_loss(anchor, positive, negative, margin, p, eps, swap), reduction)};
                },
            .samples = "f32[2,3] f32[2,3] f32[2,3] | f32[2,3] f32[2,3] f32[2,3] 2.0 1.0 1e-06 True "
                       "0 | f32[2,3] f32[2,3] f32[2,3] 3.0 3.0"});
}

void add_losses_rows(OperationTable& rows) {
  add_squares(rows);
  add_robust_losses(rows);
  add_binary_losses(rows);
  add_pair_losses(rows);
}

}  // namespace composit
