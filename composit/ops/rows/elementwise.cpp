// Functions of one element each: powers, exponentials, trigonometry, rounding, activations.
#include <cmath>
#include <numbers>

#include "composit/ops/functions.h"

namespace composit {

// clang-format off
#define COMPOSIT_UNARY(name, expression, samples_)                   \
  rows.add({.schema = "aten::" #name "(Tensor self) -> Tensor",      \
            .scalar = [](Expr x) { return expression; },             \
            .samples = samples_});
#define COMPOSIT_FLOAT_UNARY(name, expression, samples_)             \
  rows.add({.schema = "aten::" #name "(Tensor self) -> Tensor",      \
            .promote = Promote::to_float,                            \
            .scalar = [](Expr x) { return expression; },             \
            .samples = samples_});

static void add_exponentials(OperationTable& rows) {
  COMPOSIT_FLOAT_UNARY(exp, exp(x), "f32[2,3] | f32[7]=-110..90 | i64[3] | c64[3]")
  COMPOSIT_FLOAT_UNARY(exp2, exp2(x), "f32[2,3] | i64[3]")
  COMPOSIT_FLOAT_UNARY(expm1, expm1(x), "f32[2,3] | f64[5]=-0.001..0.001 | i64[3]")
  COMPOSIT_FLOAT_UNARY(log, log(x), "f32[2,3]=0.1..5 | f32[5]=-1..1 | i64[3]=1..9")
  COMPOSIT_FLOAT_UNARY(log2, log2(x), "f32[2,3]=0.1..5 | i64[3]=1..9")
  COMPOSIT_FLOAT_UNARY(log10, log10(x), "f32[2,3]=0.1..5 | i64[3]=1..9")
  COMPOSIT_FLOAT_UNARY(log1p, log1p(x), "f32[2,3]=-0.5..5 | f64[5]=-0.001..0.001 | i64[3]=1..9")
  COMPOSIT_FLOAT_UNARY(sqrt, sqrt(x), "f32[2,3]=0.1..5 | f32[5]=-1..1 | i64[3]=1..9 | c64[3]")
  COMPOSIT_FLOAT_UNARY(rsqrt, rsqrt(x), "f32[2,3]=0.1..5 | i64[3]=1..9")
  COMPOSIT_FLOAT_UNARY(reciprocal, 1 / x, "f32[2,3]=0.1..5 | i64[3]=1..9 | c64[3]")
  COMPOSIT_FLOAT_UNARY(erf, erf(x), "f32[2,3] | f32[5]=-9..9 | i64[3]")
  COMPOSIT_FLOAT_UNARY(erfc, erfc(x), "f32[2,3] | f64[5]=-9..9")
  COMPOSIT_FLOAT_UNARY(erfinv, erfinv(x), "f64[5]=-0.9..0.9")
  COMPOSIT_FLOAT_UNARY(lgamma, lgamma(x), "f64[5]=0.2..9")
  COMPOSIT_FLOAT_UNARY(digamma, digamma(x), "f64[5]=0.2..9")
}

static void add_trigonometry(OperationTable& rows) {
  COMPOSIT_FLOAT_UNARY(sin, sin(x), "f32[2,3] | i64[3] | c64[3]")
  COMPOSIT_FLOAT_UNARY(cos, cos(x), "f32[2,3] | i64[3] | c64[3]")
  COMPOSIT_FLOAT_UNARY(tan, tan(x), "f32[2,3]=-1..1 | i64[3]")
  COMPOSIT_FLOAT_UNARY(asin, asin(x), "f32[2,3]=-0.9..0.9")
  COMPOSIT_FLOAT_UNARY(acos, acos(x), "f32[2,3]=-0.9..0.9")
  COMPOSIT_FLOAT_UNARY(atan, atan(x), "f32[2,3] | i64[3]")
  COMPOSIT_FLOAT_UNARY(sinh, sinh(x), "f32[2,3]")
  COMPOSIT_FLOAT_UNARY(cosh, cosh(x), "f32[2,3]")
  COMPOSIT_FLOAT_UNARY(tanh, tanh(x), "f32[2,3] | f32[5]=-120..120 | i64[3] | c64[3]")
  COMPOSIT_FLOAT_UNARY(asinh, asinh(x), "f32[2,3]")
  COMPOSIT_FLOAT_UNARY(acosh, acosh(x), "f32[2,3]=1.1..5")
  COMPOSIT_FLOAT_UNARY(atanh, atanh(x), "f32[2,3]=-0.9..0.9")
}

static void add_rounding(OperationTable& rows) {
  COMPOSIT_UNARY(abs, abs(x), "f32[2,3] | i64[3] | c64[3]")
  COMPOSIT_UNARY(sign, sign(x), "f32[2,3] | i64[3] | bool[2]")
  COMPOSIT_UNARY(floor, floor(x), "f32[2,3] | i64[3]")
  COMPOSIT_UNARY(ceil, ceil(x), "f32[2,3] | i64[3]")
  COMPOSIT_UNARY(round, round(x), "f32[2,3] | f32[5]=[0.5,1.5,2.5,-0.5,-1.5]")
  COMPOSIT_UNARY(trunc, trunc(x), "f32[2,3]")
  COMPOSIT_UNARY(isnan, isnan(x), "f32[2,3] | f32[3]=nan | i64[3]")
  COMPOSIT_UNARY(square, x * x, "f32[2,3] | i64[3]")
  COMPOSIT_UNARY(conj_physical, conj(x), "f32[2,3] | c64[3]")
  COMPOSIT_UNARY(logical_not, !x, "f32[2,3] | bool[3] | i64[3]<2")
  COMPOSIT_UNARY(bitwise_not, bitwise_not(x), "i64[3] | bool[3]")
}
// clang-format on

static Tensor cotangent(const Vjp& v) { return v.cotangents[0]; }

// Derivatives of these are better than what the expressions give: no infinity times zero.
static void add_activations(OperationTable& rows) {
  rows.add({.schema = "aten::sigmoid(Tensor self) -> Tensor",
            .promote = Promote::to_float,
            .scalar = [](Expr x) { return 1 / (1 + exp(-x)); },
            .vjp =
                [](Vjp v) {
                  const Tensor& y = v.results[0];
                  return Gradients{cotangent(v) * (1 - y) * y};
                },
            .samples = "f32[2,3] | f32[5]=-120..120 | i64[3]"});
  rows.add({.schema = "aten::relu(Tensor self) -> Tensor",
            .scalar = [](Expr x) { return select(x < 0, 0, x); },
            .vjp = [](Vjp v) { return Gradients{where(v.results[0] <= 0, 0, cotangent(v))}; },
            .samples = "f32[2,3] | f32[3]=[0,-1,2] | i64[3] | f32[3]=nan"});
  rows.add({.schema = "aten::gelu(Tensor self, *, str approximate='none') -> Tensor",
            .scalar =
                [](Expr x, std::string approximate) {
                  const double half = std::sqrt(0.5),
                               scale = std::numbers::inv_sqrtpi * std::sqrt(2);
                  if (approximate == "none") return 0.5 * x * (1 + erf(x * half));
                  if (approximate != "tanh")
                    throw UserError("expected approximate 'none' or 'tanh', received '" +
                                    approximate + "'");
                  return 0.5 * x * (1 + tanh(scale * (x + 0.044715 * x * x * x)));
                },
            .samples = "f32[2,3] | f32[2,3] 'tanh' | f64[5]=-12..12",
            .bad = "f32[2] 'exact': expected approximate"});
  rows.add({.schema = "aten::silu(Tensor self) -> Tensor",
            .scalar = [](Expr x) { return x / (1 + exp(-x)); },
            .vjp =
                [](Vjp v, Tensor x) {
                  const Tensor s = sigmoid(x);
                  return Gradients{cotangent(v) * (s * (1 + x * (1 - s)))};
                },
            .samples = "f32[2,3] | f32[5]=-120..120"});
}

static void add_powers(OperationTable& rows) {
  rows.add({.schema = "aten::pow.Tensor_Scalar(Tensor self, Scalar exponent) -> Tensor",
            .scalar =
                [](Expr x, Expr y) {
                  if (is_literal(y, 2)) return x * x;
                  return pow(x, y);
                },
            .samples =
                "f32[2,3] 2 | f32[2,3]=0.1..3 0.5 | f32[2,3]=0.5..2 -1 | i64[3] 3 | i64[3] 2.0 "
                "| f32[3]=[0,1,-1] 2"});
  rows.add({.schema = "aten::pow.Tensor_Tensor(Tensor self, Tensor exponent) -> Tensor",
            .scalar = [](Expr x, Expr y) { return pow(x, y); },
            .samples = "f32[2,3]=0.5..2 f32[3] | i64[3] i64[3]<4"});
  rows.add({.schema = "aten::clamp(Tensor self, Scalar? min=None, Scalar? max=None) -> Tensor",
            .scalar =
                [](Expr x, std::optional<Expr> low, std::optional<Expr> high) {
                  if (!low && !high) throw UserError("expected min, max or both, received none");
                  if (low) x = select(x < *low, *low, x);
                  return high ? select(x > *high, *high, x) : x;
                },
            .samples = "f32[2,3] -0.5 0.5 | f32[3] None 0 | i64[4] 1 | f32[3]=nan 0 1 | i64[3] 0.5",
            .bad = "f32[2]: expected min"});
}

static void add_logic(OperationTable& rows) {
  rows.add({.schema = "aten::logical_and(Tensor self, Tensor other) -> Tensor",
            .scalar = [](Expr x, Expr y) { return x && y; },
            .samples = "f32[2,3] bool[3] | i64[3]<2 i64[3]<2"});
  rows.add({.schema = "aten::logical_or(Tensor self, Tensor other) -> Tensor",
            .scalar = [](Expr x, Expr y) { return x || y; },
            .samples = "f32[2,3] bool[3] | i64[3]<2 i64[3]<2"});
}

static Loops converted(const In& x, DType dtype) {
  Nest nest;
  return nest.store(cast(x(nest.parallel(x.sizes())), dtype)).loops();
}

static void add_conversions(OperationTable& rows) {
  rows.add({.schema = "aten::to.dtype(Tensor(a) self, ScalarType dtype, bool non_blocking=False, "
                      "bool copy=False, MemoryFormat? memory_format=None) -> Tensor(a)",
            .loops = [](In x, DType dtype) { return converted(x, dtype); },
            .vjp = [](Vjp v, Tensor x) { return Gradients{to(cotangent(v), x.dtype())}; },
            .samples = "f32[2,3] float64 | f32[4]=-3..3 int64 | i64[3] float32 | f32[3] bool"});
  rows.add({.schema = "aten::clone(Tensor self, *, MemoryFormat? memory_format=None) -> Tensor",
            .loops = [](In x) { return converted(x, x.dtype()); },
            .vjp = [](Vjp v) { return Gradients{cotangent(v)}; },
            .samples = "f32[2,3] | i64[3]"});
  rows.add({.schema = "aten::contiguous(Tensor(a) self, *, MemoryFormat memory_format="
                      "contiguous_format) -> Tensor(a)",
            .loops = [](In x) { return converted(x, x.dtype()); },
            .vjp = [](Vjp v) { return Gradients{cotangent(v)}; },
            .samples = "f32[2,3] | i64[3]"});
}

void add_elementwise_rows(OperationTable& rows) {
  add_exponentials(rows);
  add_trigonometry(rows);
  add_rounding(rows);
  add_activations(rows);
  add_powers(rows);
  add_logic(rows);
  add_conversions(rows);
}

}  // namespace composit
