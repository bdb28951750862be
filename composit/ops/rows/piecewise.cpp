// Activations that are made of pieces, at whose ends their derivatives are LibTorch's; each with
// the operation its backward pass has there.
#include <algorithm>

#include "composit/op/promotion.h"
#include "composit/ops/functions.h"

namespace composit {

static const LazyTensor& cotangent(const Vjp& v) { return v.cotangents[0]; }

static Expr floating(const Expr& x) {
  expect_floating(x.dtype());
  return x;
}

static void add_relus(OperationTable& rows) {
  rows.add({.schema = "aten::relu(Tensor self) -> Tensor",
            .scalar =
                [](Expr x) {
                  if (x.dtype() == DType::bool_) throw UserError("expected numbers, received bool");
                  return select(x < 0, 0, x);
                },
            .vjp =
                [](Vjp v) {
                  return apply("aten::threshold_backward", {cotangent(v), v.results[0], 0});
                },
            .samples = "f32[2,3] | f32[3]=[0,-1,2] | i64[3] | f32[3]=nan | f32[]",
            .bad = "bool[2]: received bool"});
  rows.add({.schema = "aten::threshold(Tensor self, Scalar threshold, Scalar value) -> Tensor",
            .wide_numbers = true,
            .scalar = [](Expr x, Coefficient threshold,
                         Coefficient value) { return select(x <= threshold, value, x); },
            .vjp =
                [](Vjp v, LazyTensor x, Scalar threshold) {
                  return apply("aten::threshold_backward", {cotangent(v), x, threshold});
                },
            .samples = "f32[2,3] 0.5 -3 | i64[4] 1 2 | f32[3]=nan 0 0"});
  rows.add(
      {.schema = "aten::threshold_backward(Tensor grad_output, Tensor self, Scalar threshold) "
                 "-> Tensor",
       .scalar = [](Expr g, Expr x, Coefficient threshold) { return select(x <= threshold, 0, g); },
       .samples = "f32[2,3] f32[2,3] 0.5 | f32[3] f32[3]=[-1,0,1] 0 | f32[3] f32[3]=nan 0"});
  rows.add(
      {.schema = "aten::leaky_relu(Tensor self, Scalar negative_slope=0.01) -> Tensor",
       .wide_numbers = true,
       .scalar = [](Expr x, Coefficient slope) { return select(floating(x) > 0, x, x * slope); },
       .vjp =
           [](Vjp v, LazyTensor x, Scalar slope) {
             return apply("aten::leaky_relu_backward", {cotangent(v), x, slope, false});
           },
       .samples = "f32[2,3] | f32[2,3] 0.2 | f32[3]=[0,-1,2] -1 | f32[3]=nan",
       .bad = "i64[2] 1: floating point"});
  rows.add({.schema = "aten::leaky_relu_backward(Tensor grad_output, Tensor self, Scalar "
                      "negative_slope, bool self_is_result) -> Tensor",
            .wide_numbers = true,
            .scalar = [](Expr g, Expr x, Coefficient slope) { return select(x > 0, g, g * slope); },
            .samples = "f32[2,3] f32[2,3] 0.2 False | f32[3] f32[3]=[0,-1,2] 0.2 True"});
  rows.add({.schema = "aten::rrelu(Tensor self, Scalar lower=0.125, Scalar "
                      "upper=0.33333333333333331, bool training=False, Generator? "
                      "generator=None) -> Tensor",
            .scalar =
                [](Expr x, Coefficient lower, Coefficient upper, bool training) {
                  if (training)
                    throw UserError("training draws random slopes, which a formula does not");
                  return select(floating(x) > 0, x, x * ((lower + upper) / 2));
                },
            .samples = "f32[2,3] | f32[2,3] 0.1 0.5 | f32[3]=[0,-1,2]",
            .bad = "f32[2] 0.1 0.5 True: random"});
}

// The slope of each channel (axis 1), or one for all, with the axes of x.
static LazyTensor channel_slopes(const LazyTensor& x, const LazyTensor& weight) {
  const int64_t channels = x.rank() > 1 ? x.size(1) : 1;
  if (weight.rank() > 1 || (weight.numel() != 1 && weight.numel() != channels))
    throw UserError("expected a weight of 1 or " + std::to_string(channels) +
                    " elements, received sizes " + str(weight.sizes()));
  Ints sizes(static_cast<size_t>(x.rank()), 1);
  if (x.rank() > 1) sizes[1] = weight.numel();
  return reshape(weight, sizes);
}

static Loops prelu_back(const In& g, const In& x, const In& weight) {
  Nest nest;
  const Index at = nest.parallel(broadcast_sizes({g.sizes(), x.sizes(), weight.sizes()}));
  const Expr dy = g.broadcast(at), y = x.broadcast(at);
  nest.store(select(y > 0, dy, weight.broadcast(at) * dy));
  return nest.store(select(y > 0, 0, y * dy)).loops();
}

static void add_prelu(OperationTable& rows) {
  rows.add(
      {.schema = "aten::prelu(Tensor self, Tensor weight) -> Tensor",
       .decompose =
           [](LazyTensor x, LazyTensor weight) {
             return LazyTensors{apply_one("aten::_prelu_kernel", {x, channel_slopes(x, weight)})};
           },
       .samples = "f32[2,3,2] f32[3] | f32[2,3] f32[1] | f32[4] f32[1] | f32[2,3] f32[] | "
                  "f32[] f32[1]",
       .bad = "f32[2,3] f32[2]: weight of 1 or 3 | f32[2,3] f32[1,3]: weight of 1 or 3"});
  rows.add(
      {.schema = "aten::_prelu_kernel(Tensor self, Tensor weight) -> Tensor",
       .scalar = [](Expr x, Expr weight) { return select(floating(x) > 0, x, weight * x); },
       .vjp =
           [](Vjp v, LazyTensor x, LazyTensor weight) {
             const LazyTensors d = apply("aten::_prelu_kernel_backward", {cotangent(v), x, weight});
             return Gradients{sum_to_size(d[0], x.sizes()), sum_to_size(d[1], weight.sizes())};
           },
       .samples = "f32[2,3] f32[1,3] | f32[2,3] f32[2,3]",
       .bad = "i64[2] i64[2]: floating point"});
  rows.add({.schema = "aten::_prelu_kernel_backward(Tensor grad_output, Tensor self, Tensor "
                      "weight) -> (Tensor, Tensor)",
            .loops = [](In g, In x, In weight) { return prelu_back(g, x, weight); },
            .samples = "f32[2,3] f32[2,3] f32[1,3] | f32[2,3] f32[2,3] f32[2,3]"});
}

// Exponential below zero.
static Expr elu(const Expr& x, const Expr& alpha, const Expr& scale, const Expr& input_scale) {
  return select(floating(x) <= 0, expm1(x * input_scale) * (alpha * scale), x * scale);
}

static void add_elus(OperationTable& rows) {
  rows.add({.schema = "aten::elu(Tensor self, Scalar alpha=1, Scalar scale=1, Scalar "
                      "input_scale=1) -> Tensor",
            .wide_numbers = true,
            .scalar = [](Expr x, Coefficient alpha, Coefficient scale,
                         Coefficient input_scale) { return elu(x, alpha, scale, input_scale); },
            .vjp =
                [](Vjp v, LazyTensor x, Scalar alpha, Scalar scale, Scalar input_scale) {
                  return apply("aten::elu_backward",
                               {cotangent(v), alpha, scale, input_scale, false, x});
                },
            .samples = "f32[2,3] | f32[2,3] 0.5 2 0.3 | f32[5]=-120..120 | f32[3]=nan",
            .bad = "i64[2]: floating point"});
  rows.add({.schema = "aten::elu_backward(Tensor grad_output, Scalar alpha, Scalar scale, Scalar "
                      "input_scale, bool is_result, Tensor self_or_result) -> Tensor",
            .wide_numbers = true,
            .scalar =
                [](Expr g, Coefficient alpha, Coefficient scale, Coefficient input_scale,
                   bool is_result, Expr x) {
                  const Expr below = alpha * scale;
                  const Expr slope = is_result ? x + below : below * exp(x * input_scale);
                  return select(x <= 0, g * input_scale * slope, g * scale);
                },
            .samples = "f32[2,3] 1 1 1 False f32[2,3] | f32[2,3] 0.5 2 0.3 False f32[2,3] | "
                       "f32[2,3] 0.5 2 1 True f32[2,3]=-0.9..2"});
  rows.add({.schema = "aten::selu(Tensor self) -> Tensor",
            .decompose =
                [](LazyTensor x) {
                  return apply("aten::elu", {x, 1.6732632423543772, 1.0507009873554805});
                },
            .samples = "f32[2,3] | f32[5]=-120..120"});
  rows.add({.schema = "aten::celu(Tensor self, Scalar alpha=1.) -> Tensor",
            .wide_numbers = true,
            .scalar =
                [](Expr x, Coefficient alpha) {
                  if (is_literal(alpha, 0)) throw UserError("expected an alpha other than 0");
                  return elu(x, alpha, 1, 1 / alpha);
                },
            .samples = "f32[2,3] | f32[2,3] 0.5 | f32[5]=-120..120",
            .bad = "f32[2] 0: other than 0 | i64[2] 1: floating point"});
}

static void add_hard_limits(OperationTable& rows) {
  rows.add(
      {.schema = "aten::hardtanh(Tensor self, Scalar min_val=-1, Scalar max_val=1) -> Tensor",
       .scalar =
           [](Expr x, Scalar least, Scalar greatest) {
             if (x.dtype() == DType::bool_) throw UserError("expected numbers, received bool");
             const Expr low = cast(Expr(least), x.dtype());
             const Expr high = cast(Expr(greatest), x.dtype());
             return select(x <= low, low, select(x >= high, high, x));
           },
       .vjp =
           [](Vjp v, LazyTensor x, Scalar low, Scalar high) {
             return apply("aten::hardtanh_backward", {cotangent(v), x, low, high});
           },
       .samples =
           "f32[2,3] | f32[2,3] -0.5 0.7 | i64[4] | i64[4] -0.5 2.5 | f32[3]=[-1,1,0] | f32[3]=nan",
       .bad = "bool[2]: received bool"});
  rows.add({.schema = "aten::hardtanh_backward(Tensor grad_output, Tensor self, Scalar min_val, "
                      "Scalar max_val) -> Tensor",
            .scalar = [](Expr g, Expr x, Coefficient low,
                         Coefficient high) { return select(x <= low || x >= high, 0, g); },
            .samples = "f32[2,3] f32[2,3] -0.5 0.7 | f32[3] f32[3]=[-1,1,0] -1 1"});
  rows.add({.schema = "aten::relu6(Tensor self) -> Tensor",
            .decompose =
                [](LazyTensor x) {
                  return apply("aten::hardtanh", {x, 0, 6});
                },
            .samples = "f32[2,3] | f32[4]=[0,6,7,-1] | i64[3]"});
  rows.add({.schema = "aten::hardsigmoid(Tensor self) -> Tensor",
            .scalar =
                [](Expr x) { return select(floating(x) <= -3, 0, select(x >= 3, 1, (x + 3) / 6)); },
            .vjp =
                [](Vjp v, LazyTensor x) {
                  return apply("aten::hardsigmoid_backward", {cotangent(v), x});
                },
            .samples = "f32[2,3] | f32[6]=-5..5 | f32[3]=nan | f32[2]=[-3,3]",
            .bad = "i64[2]: floating point"});
  rows.add({.schema = "aten::hardsigmoid_backward(Tensor grad_output, Tensor self) -> Tensor",
            .scalar = [](Expr g, Expr x) { return select(x > -3 && x < 3, g / 6, 0); },
            .samples = "f32[2,3] f32[2,3] | f32[6] f32[6]=-5..5 | f32[2] f32[2]=[-3,3]"});
  rows.add(
      {.schema = "aten::hardswish(Tensor self) -> Tensor",
       .scalar =
           [](Expr x) { return x * select(floating(x) <= -3, 0, select(x >= 3, 6, x + 3)) / 6; },
       .vjp =
           [](Vjp v, LazyTensor x) {
             return apply("aten::hardswish_backward", {cotangent(v), x});
           },
       .samples = "f32[2,3] | f32[6]=-5..5 | f32[4]=[-3,3,inf,-inf] | f32[3]=nan",
       .bad = "i64[2]: floating point"});
  rows.add(
      {.schema = "aten::hardswish_backward(Tensor grad_output, Tensor self) -> Tensor",
       .scalar = [](Expr g,
                    Expr x) { return select(x <= -3, 0, select(x < 3, g * (x / 3 + 0.5), g)); },
       .samples = "f32[2,3] f32[2,3] | f32[6] f32[6]=-5..5 | f32[2] f32[2]=[-3,3]"});
}

// True if x is shrunk to zero.
static Expr is_small(const Expr& x, const Expr& lambda) { return x >= -lambda && x <= lambda; }

static void add_shrinks(OperationTable& rows) {
  rows.add({.schema = "aten::softshrink(Tensor self, Scalar lambd=0.5) -> Tensor",
            .wide_numbers = true,
            .scalar =
                [](Expr x, Coefficient lambda) {
                  expect_floating(x.dtype());
                  if (is_complex(x.dtype())) throw UserError("expected a real number");
                  if (std::get<double>(lambda.value()) < 0)
                    throw UserError("expected a lambd of at least 0");
                  const Expr moved = select(x > lambda, x - lambda, x + lambda);
                  return select(is_small(x, lambda), 0, moved);
                },
            .vjp =
                [](Vjp v, LazyTensor x, Scalar lambda) {
                  return apply("aten::softshrink_backward", {cotangent(v), x, lambda});
                },
            .samples = "f32[2,3] | f32[2,3] 1.1 | f32[3]=[0.5,-0.5,0] | f32[3]=nan",
            .bad = "f32[2] -1: at least 0 | i64[2] 1: floating point"});
  rows.add(
      {.schema = "aten::hardshrink(Tensor self, Scalar lambd=0.5) -> Tensor",
       .scalar = [](Expr x,
                    Coefficient lambda) { return select(is_small(floating(x), lambda), 0, x); },
       .vjp =
           [](Vjp v, LazyTensor x, Scalar lambda) {
             return apply("aten::hardshrink_backward", {cotangent(v), x, lambda});
           },
       .samples = "f32[2,3] | f32[2,3] 1.1 | f32[3]=[0.5,-0.5,0] | f32[3]=nan",
       .bad = "i64[2] 1: floating point"});
  rows.add({.schema = "aten::softshrink_backward(Tensor grad_output, Tensor self, Scalar lambd) -> "
                      "Tensor",
            .scalar = [](Expr g, Expr x,
                         Coefficient lambda) { return select(is_small(x, lambda), 0, g); },
            .samples = "f32[2,3] f32[2,3] 0.5 | f32[3] f32[3]=[0.5,-0.5,0] 0.5"});
  rows.add({.schema = "aten::hardshrink_backward(Tensor grad_out, Tensor self, Scalar lambd) -> "
                      "Tensor",
            .scalar = [](Expr g, Expr x,
                         Coefficient lambda) { return select(is_small(x, lambda), 0, g); },
            .samples = "f32[2,3] f32[2,3] 0.5 | f32[3] f32[3]=[0.5,-0.5,0] 0.5"});
}

void add_piecewise_rows(OperationTable& rows) {
  add_relus(rows);
  add_prelu(rows);
  add_elus(rows);
  add_hard_limits(rows);
  add_shrinks(rows);
}

}  // namespace composit
