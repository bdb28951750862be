// Activations that are smooth, each with the operation its backward pass has in LibTorch. Those of
// straight pieces are in piecewise.cpp.
#include <cmath>
#include <numbers>

#include "composit/op/promotion.h"
#include "composit/ops/functions.h"

namespace composit {

static const LazyTensor& cotangent(const Vjp& v) { return v.cotangents[0]; }

static Expr conjugate(const Expr& x) { return is_complex(x.dtype()) ? conj(x) : x; }

// Their derivatives by the result are better than what the expressions give: no infinity times 0.
static void add_sigmoids(OperationTable& rows) {
  rows.add({.schema = "aten::sigmoid(Tensor self) -> Tensor",
            .promote = Promote::to_float,
            .scalar = [](Expr x) { return 1 / (1 + exp(-x)); },
            .vjp =
                [](Vjp v) {
                  return apply("aten::sigmoid_backward", {cotangent(v), v.results[0]});
                },
            .samples = "f32[2,3] | f32[5]=-120..120 | i64[3]",
            .also = {"aten::special_expit"}});
  rows.add({.schema = "aten::sigmoid_backward(Tensor grad_output, Tensor output) -> Tensor",
            .scalar = [](Expr g, Expr y) { return g * conjugate((1 - y) * y); },
            .samples = "f32[2,3] f32[2,3]=0..1 | f32[2] f32[2]=[0,1] | c64[2] c64[2]"});
  rows.add({.schema = "aten::tanh(Tensor self) -> Tensor",
            .promote = Promote::to_float,
            .scalar = [](Expr x) { return tanh(x); },
            .vjp =
                [](Vjp v) {
                  return apply("aten::tanh_backward", {cotangent(v), v.results[0]});
                },
            .samples = "f32[2,3] | f32[5]=-120..120 | i64[3] | c64[3]"});
  rows.add({.schema = "aten::tanh_backward(Tensor grad_output, Tensor output) -> Tensor",
            .scalar = [](Expr g, Expr y) { return g * conjugate(1 - y * y); },
            .samples = "f32[2,3] f32[2,3]=-1..1 | c64[2] c64[2]"});
}

static bool by_tanh(const std::string& approximate) {
  if (approximate != "none" && approximate != "tanh")
    throw UserError("expected approximate 'none' or 'tanh', received '" + approximate + "'");
  return approximate == "tanh";
}

// tanh of it is what the approximation of gelu has in place of erf(x / sqrt(2)).
static const double kTanhScale = std::numbers::inv_sqrtpi * std::numbers::sqrt2;
static Expr tanh_argument(const Expr& x) { return kTanhScale * (x + 0.044715 * x * x * x); }

static Expr gelu(const Expr& x, const std::string& approximate) {
  expect_floating(x.dtype());
  if (by_tanh(approximate)) return 0.5 * x * (1 + tanh(tanh_argument(x)));
  return 0.5 * x * (1 + erf(x * std::sqrt(0.5)));
}

static Expr gelu_slope(const Expr& x, const std::string& approximate) {
  if (by_tanh(approximate)) {
    const Expr t = tanh(tanh_argument(x)), inner = kTanhScale * (1 + 3 * 0.044715 * x * x);
    return 0.5 * (1 + t) + 0.5 * x * (1 - t * t) * inner;
  }
  const double density = std::numbers::inv_sqrtpi * std::sqrt(0.5);
  return 0.5 * (1 + erf(x * std::sqrt(0.5))) + x * (density * exp(-0.5 * (x * x)));
}

static void add_gelu(OperationTable& rows) {
  rows.add({.schema = "aten::gelu(Tensor self, *, str approximate='none') -> Tensor",
            .scalar = [](Expr x, std::string approximate) { return gelu(x, approximate); },
            .vjp =
                [](Vjp v, LazyTensor x, std::string approximate) {
                  return apply("aten::gelu_backward", {cotangent(v), x, approximate});
                },
            .samples = "f32[2,3] | f32[2,3] 'tanh' | f64[5]=-12..12 | f32[0]",
            .bad = "f32[2] 'exact': expected approximate | i64[2]: floating point"});
  rows.add({.schema = "aten::gelu_backward(Tensor grad_output, Tensor self, *, str "
                      "approximate='none') -> Tensor",
            .scalar = [](Expr g, Expr x,
                         std::string approximate) { return g * gelu_slope(x, approximate); },
            .samples = "f32[2,3] f32[2,3] | f32[2,3] f32[2,3] 'tanh' | f64[5] f64[5]=-12..12"});
}

// As compositions, so that no derivative of theirs meets 0 times infinity.
static void add_silu_and_mish(OperationTable& rows) {
  rows.add({.schema = "aten::silu(Tensor self) -> Tensor",
            .scalar =
                [](Expr x) {
                  expect_floating(x.dtype());
                  return x / (1 + exp(-x));
                },
            .vjp =
                [](Vjp v, LazyTensor x) {
                  return apply("aten::silu_backward", {cotangent(v), x});
                },
            .samples = "f32[2,3] | f32[5]=-120..120",
            .bad = "i64[2]: floating point"});
  rows.add({.schema = "aten::silu_backward(Tensor grad_output, Tensor self) -> Tensor",
            .decompose =
                [](LazyTensor g, LazyTensor x) {
                  const LazyTensor s = sigmoid(x);
                  return LazyTensors{g * (s * (1 + x * (1 - s)))};
                },
            .samples = "f32[2,3] f32[2,3] | f32[5] f32[5]=-120..120"});
  rows.add({.schema = "aten::mish(Tensor self) -> Tensor",
            .scalar =
                [](Expr x) {
                  expect_floating(x.dtype());
                  return x * tanh(log1p(exp(x)));
                },
            .vjp =
                [](Vjp v, LazyTensor x) {
                  return apply("aten::mish_backward", {cotangent(v), x});
                },
            .samples = "f32[2,3] | f32[5]=-120..120 | f32[3]=nan",
            .bad = "i64[2]: floating point"});
  rows.add({.schema = "aten::mish_backward(Tensor grad_output, Tensor self) -> Tensor",
            .decompose =
                [](LazyTensor g, LazyTensor x) {
                  const LazyTensor t = tanh(apply_one("aten::softplus", {x}));
                  return LazyTensors{g * (t + x * sigmoid(x) * (1 - square(t)))};
                },
            .samples = "f32[2,3] f32[2,3] | f32[5] f32[5]=-120..120"});
}

static void add_softplus(OperationTable& rows) {
  rows.add({.schema = "aten::softplus(Tensor self, Scalar beta=1, Scalar threshold=20) -> Tensor",
            .wide_numbers = true,
            .scalar =
                [](Expr x, Coefficient beta, Coefficient threshold) {
                  expect_floating(x.dtype());
                  return select(x * beta > threshold, x, log1p(exp(x * beta)) / beta);
                },
            .vjp =
                [](Vjp v, LazyTensor x, Scalar beta, Scalar threshold) {
                  return apply("aten::softplus_backward", {cotangent(v), x, beta, threshold});
                },
            .samples = "f32[2,3] | f32[5]=-120..120 | f32[2,3] 2.5 1.5 | f32[3]=nan",
            .bad = "i64[2]: floating point"});
  rows.add({.schema = "aten::softplus_backward(Tensor grad_output, Tensor self, Scalar beta, "
                      "Scalar threshold) -> Tensor",
            .wide_numbers = true,
            .scalar =
                [](Expr g, Expr x, Coefficient beta, Coefficient threshold) {
                  const Expr z = exp(x * beta);
                  return select(x * beta > threshold, g, g * z / (z + 1));
                },
            .samples = "f32[2,3] f32[2,3] 1 20 | f32[5] f32[5]=-120..120 1 20 | f32[2,3] f32[2,3] "
                       "2.5 1.5"});
}

static void add_log_sigmoid(OperationTable& rows) {
  rows.add(
      {.schema = "aten::log_sigmoid(Tensor self) -> Tensor",
       .decompose =
           [](LazyTensor x) { return LazyTensors{apply("aten::log_sigmoid_forward", {x})[0]}; },
       .samples = "f32[2,3] | f32[5]=-120..120"});
  rows.add({.schema = "aten::log_sigmoid_forward(Tensor self) -> (Tensor output, Tensor buffer)",
            .decompose =
                [](LazyTensor x) {
                  expect_floating(x.dtype());
                  const LazyTensor z = exp(-abs(x));
                  return LazyTensors{minimum(x, 0) - log1p(z), z};
                },
            .vjp =
                [](Vjp v, LazyTensor x) {
                  if (v.cotangents[1].defined()) return Gradients{};
                  return apply("aten::log_sigmoid_backward", {cotangent(v), x, v.results[1]});
                },
            .samples = "f32[2,3] | f32[5]=-120..120 | f32[3]=[0,inf,-1]",
            .bad = "i64[2]: floating point"});
  // The buffer holds what is known from self, and no derivative need go through it.
  rows.add({.schema = "aten::log_sigmoid_backward(Tensor grad_output, Tensor self, Tensor buffer) "
                      "-> Tensor",
            .decompose = [](LazyTensor g, LazyTensor x) { return LazyTensors{g * sigmoid(-x)}; },
            .samples = "f32[3] f32[3]=[-1,0.5,2] f32[3]=[0.36787944117144233,0.6065306597126334,"
                       "0.1353352832366127]",
            .nondifferentiable = "buffer"});
}

// The two halves of x along `dim`.
static std::pair<LazyTensor, LazyTensor> halves(const LazyTensor& x, int64_t dim) {
  if (x.rank() == 0) throw UserError("expected an axis to halve, received a number");
  const int64_t size = x.size(dim);
  if (size % 2 != 0)
    throw UserError("expected an even size along axis " + std::to_string(dim) + ", received " +
                    str(x.sizes()));
  return {slice(x, dim, 0, size / 2), slice(x, dim, size / 2, size)};
}

static void add_glu(OperationTable& rows) {
  rows.add({.schema = "aten::glu(Tensor self, int dim=-1) -> Tensor",
            .decompose =
                [](LazyTensor x, int64_t dim) {
                  const auto [value, gate] = halves(x, dim);
                  return LazyTensors{value * sigmoid(gate)};
                },
            .vjp =
                [](Vjp v, LazyTensor x, int64_t dim) {
                  return apply("aten::glu_backward", {cotangent(v), x, dim});
                },
            .samples = "f32[2,4] | f32[4,3] 0 | f32[2,4,3] -2 | f32[4]=-120..120",
            .bad = "f32[2,3]: expected an even size | f32[]: an axis to halve"});
  rows.add({.schema = "aten::glu_backward(Tensor grad_output, Tensor self, int dim) -> Tensor",
            .decompose =
                [](LazyTensor g, LazyTensor x, int64_t dim) {
                  const auto [value, gate] = halves(x, dim);
                  const LazyTensor s = sigmoid(gate), to_value = g * s;
                  return LazyTensors{cat({to_value, to_value * (1 - s) * value}, dim)};
                },
            .samples = "f32[2,2] f32[2,4] -1 | f32[2,3] f32[4,3] 0"});
}

void add_activations_rows(OperationTable& rows) {
  add_sigmoids(rows);
  add_gelu(rows);
  add_silu_and_mish(rows);
  add_softplus(rows);
  add_log_sigmoid(rows);
  add_glu(rows);
}

}  // namespace composit
