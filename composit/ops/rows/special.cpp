// Special functions, and those that take care of their limits: erf and gamma with their kin,
// logarithms of sums, x log y, logit.
#include <cmath>
#include <limits>
#include <numbers>

#include "composit/op/promotion.h"
#include "composit/ops/functions.h"

namespace composit {

// sin(pi x) / (pi x); at 0 its parabola there, which has the derivatives.
static Expr sinc(const Expr& x) {
  constexpr double kPi = std::numbers::pi;
  return select(eq(x, 0), 1 - x * x * (kPi * kPi / 6), sin(x * kPi) / (x * kPi));
}

// clang-format off
// After the samples: other names of the operation.
#define COMPOSIT_SPECIAL(name, expression, samples_, ...)            \
  rows.add({.schema = "aten::" #name "(Tensor self) -> Tensor",      \
            .promote = Promote::to_float,                            \
            .scalar = [](Expr x) { return expression; },             \
            .samples = samples_,                                     \
            .also = {__VA_ARGS__}});

static void add_special_functions(OperationTable& rows) {
  COMPOSIT_SPECIAL(erf, erf(x), "f32[2,3] | f32[5]=-9..9 | i64[3]", "aten::special_erf")
  COMPOSIT_SPECIAL(erfc, erfc(x), "f32[2,3] | f64[5]=-9..9", "aten::special_erfc")
  COMPOSIT_SPECIAL(erfinv, erfinv(x), "f64[5]=-0.9..0.9", "aten::special_erfinv")
  COMPOSIT_SPECIAL(lgamma, lgamma(x), "f64[5]=0.2..9", "aten::special_gammaln")
  COMPOSIT_SPECIAL(digamma, digamma(x), "f64[5]=0.2..9", "aten::special_digamma",
                   "aten::special_psi")
  COMPOSIT_SPECIAL(special_ndtr, 0.5 * (1 + erf(x * std::sqrt(0.5))), "f32[2,3] | i64[3]")
  COMPOSIT_SPECIAL(sinc, sinc(x), "f32[2,3] | f32[2]=[1,-0.5] | i64[3]=[0,1,-2]", "aten::special_sinc")
  rows.add({.schema = "aten::polygamma(int n, Tensor self) -> Tensor",
            .promote = Promote::to_float,
            .scalar =
                [](int64_t n, Expr x) {
                  if (n < 0) throw UserError("expected n of at least 0, received " +
                                             std::to_string(n));
                  return n == 0 ? digamma(x) : polygamma(n, x);
                },
            .samples = "0 f64[5]=0.2..9 | 1 f64[5]=0.2..9 | 2 f64[5]=1..9 | 1 i64[3]=1..9",
            .bad = "-1 f32[2]: at least 0",
            .also = {"aten::special_polygamma"}});
}
// clang-format on

// log gamma of p dimensions: a sum over p of it.
static Expr mvlgamma(const Expr& x, int64_t p) {
  if (p < 1) throw UserError("expected p of at least 1, received " + std::to_string(p));
  Expr total = 0.25 * static_cast<double>(p * (p - 1)) * std::log(std::numbers::pi);
  for (int64_t j = 0; j < p; ++j) total = total + lgamma(x - 0.5 * static_cast<double>(j));
  return total;
}

static void add_gammas_and_entropy(OperationTable& rows) {
  rows.add({.schema = "aten::mvlgamma(Tensor self, int p) -> Tensor",
            .promote = Promote::to_float,
            .scalar = [](Expr x, int64_t p) { return mvlgamma(x, p); },
            .samples = "f64[5]=2..9 1 | f64[5]=2..9 3 | i64[3]=3..9 2",
            .bad = "f32[2] 0: at least 1",
            .also = {"aten::special_multigammaln"}});
  rows.add({.schema = "aten::special_zeta(Tensor self, Tensor other) -> Tensor",
            .promote = Promote::to_float,
            .scalar = [](Expr x, Expr q) { return zeta(x, q); },
            .samples = "f64[2,3]=1.5..9 f64[3]=0.5..9 | i64[3]=2..9 i64[3]=1..9",
            .nondifferentiable = "self"});
  rows.add({.schema = "aten::special_entr(Tensor self) -> Tensor",
            .promote = Promote::to_float,
            .scalar =
                [](Expr x) {
                  const Expr outside = select(eq(x, 0), cast(0, x.dtype()), -INFINITY);
                  return select(x > 0 || isnan(x), -x * log(x), outside);
                },
            .vjp = [](Vjp v, LazyTensor x) { return Gradients{v.cotangents[0] * (-log(x) - 1)}; },
            .samples = "f32[2,3]=0.1..5 | f32[4]=[0,-1,1,nan] | i64[3]=[-1,0,2]"});
}

// ---- logarithms of sums -------------------------------------------------------------------------

// log_b(b^x + b^y) from the larger and the distance: `small` is log_b(1 + b^-distance).
static Expr log_of_sum(const Expr& x, const Expr& y, Expr (*small)(const Expr& distance)) {
  expect_floating(x.dtype());
  const Expr equal_infinities = eq(x, y) && eq(abs(x), INFINITY);
  return select(equal_infinities, x, max(x, y) + small(abs(x - y)));
}

// For complex numbers, computed from the number with the larger real part.
static Expr complex_log_of_sum(const Expr& x, const Expr& y) {
  const Expr swapped = real(x) < real(y), larger = select(swapped, y, x);
  const Expr equal_infinities = eq(x, y) && eq(abs(real(x)), INFINITY);
  return select(equal_infinities, x, larger + log(1 + exp(select(swapped, x, y) - larger)));
}

// Each has its share of the sum; `ln_base` is log(b).
static Gradients share_of_sum(const Vjp& v, const LazyTensor& x, const LazyTensor& y,
                              double ln_base) {
  const LazyTensor& g = v.cotangents[0];
  const LazyTensor by = ln_base == 1 ? x - y : (x - y) * ln_base;
  return {sum_to_size(g * conj(sigmoid(by)), x.sizes()),
          sum_to_size(g * conj(sigmoid(-by)), y.sizes())};
}

static void add_logarithms_of_sums(OperationTable& rows) {
  rows.add({.schema = "aten::logaddexp(Tensor self, Tensor other) -> Tensor",
            .scalar =
                [](Expr x, Expr y) {
                  if (is_complex(x.dtype())) return complex_log_of_sum(x, y);
                  return log_of_sum(x, y, [](const Expr& d) { return log1p(exp(-d)); });
                },
            .vjp = [](Vjp v, LazyTensor x, LazyTensor y) { return share_of_sum(v, x, y, 1); },
            .samples = "f32[2,3] f32[3] | f32[4]=-120..120 f32[4]=-120..120 | f32[2]=[1,-2] "
                       "f32[2]=[1,-2] | c64[3] c64[3]",
            .bad = "i64[2] i64[2]: floating point"});
  rows.add({.schema = "aten::logaddexp2(Tensor self, Tensor other) -> Tensor",
            .scalar =
                [](Expr x, Expr y) {
                  return log_of_sum(
                      x, y, [](const Expr& d) { return log1p(exp2(-d)) / std::numbers::ln2; });
                },
            .vjp = [](Vjp v, LazyTensor x,
                      LazyTensor y) { return share_of_sum(v, x, y, std::numbers::ln2); },
            .samples = "f32[2,3] f32[3] | f32[4]=-120..120 f32[4]=-120..120 | f32[2]=[1,-2] "
                       "f32[2]=[1,-2]",
            .bad = "i64[2] i64[2]: floating point"});
}

// ---- x log y ------------------------------------------------------------------------------------

// 0 for x = 0 wherever the logarithm has no finite value, `least` being its pole; not where it has,
// since its derivative by x is the logarithm.
static Expr product_with_log(const Expr& x, const Expr& y, const Expr& log_y, int least) {
  return select(eq(x, 0) && (y <= least || y >= INFINITY), 0, x * log_y);
}

// clang-format off
#define COMPOSIT_XLOG(tensors, number_second, number_first, function, least, ...)                 \
  rows.add({.schema = "aten::" tensors "(Tensor self, Tensor other) -> Tensor",                   \
            .promote = Promote::to_float,                                                         \
            .scalar = [](Expr x, Expr y) { return product_with_log(x, y, function(y), least); },  \
            .samples = "f32[2,3] f32[3]=0.1..3 | i64[4]=[0,0,0,2] i64[4]=[2,-1,0,3] | "           \
                       "f32[3]=[0,0,2] f32[3]=[2,nan,nan]",                                       \
            .also = {__VA_OPT__("aten::" __VA_ARGS__)}});                                         \
  rows.add({.schema = "aten::" number_second "(Tensor self, Scalar other) -> Tensor",             \
            .promote = Promote::to_float,                                                         \
            .scalar = [](Expr x, Expr y) { return product_with_log(x, y, function(y), least); },  \
            .samples = "f32[2,3] 2.5 | i64[3] 3",                                                 \
            .also = {__VA_OPT__("aten::" __VA_ARGS__ ".other_scalar")}});                         \
  rows.add({.schema = "aten::" number_first "(Scalar self, Tensor other) -> Tensor",              \
            .promote = Promote::to_float,                                                         \
            .scalar = [](Expr x, Expr y) { return product_with_log(x, y, function(y), least); },  \
            .samples = "2.5 f32[3]=0.1..3 | 0 f32[2] | 2 i64[3]=1..5",                            \
            .also = {__VA_OPT__("aten::" __VA_ARGS__ ".self_scalar")}});
// clang-format on

static void add_products_with_logarithms(OperationTable& rows) {
  COMPOSIT_XLOG("xlogy.Tensor", "xlogy.Scalar_Other", "xlogy.Scalar_Self", log, 0, "special_xlogy")
  COMPOSIT_XLOG("special_xlog1py", "special_xlog1py.other_scalar", "special_xlog1py.self_scalar",
                log1p, -1)
}
#undef COMPOSIT_XLOG

// ---- logit --------------------------------------------------------------------------------------

static Expr logit(Expr x, std::optional<double> eps) {
  if (eps) x = select(x < *eps, *eps, select(x > 1 - *eps, 1 - *eps, x));
  return log(x / (1 - x));
}

static Expr logit_slope(const Expr& x, std::optional<double> eps) {
  const Expr slope = 1 / (x * (1 - x));
  const double low = eps.value_or(0);
  return select(x < low || x > 1 - low, eps ? 0.0 : NAN, slope);
}

static void add_logit(OperationTable& rows) {
  rows.add({.schema = "aten::logit(Tensor self, float? eps=None) -> Tensor",
            .promote = Promote::to_float,
            .scalar = [](Expr x, std::optional<double> eps) { return logit(x, eps); },
            .vjp =
                [](Vjp v, LazyTensor x, std::optional<double> eps) {
                  return apply("aten::logit_backward",
                               {v.cotangents[0], x, eps ? ArgumentValue(*eps) : ArgumentValue()});
                },
            .samples = "f32[2,3]=0.1..0.9 | f32[2,3]=-0.5..1.5 0.1 | f32[3]=-1..2",
            .also = {"aten::special_logit"}});
  rows.add(
      {.schema = "aten::logit_backward(Tensor grad_output, Tensor self, float? eps=None) -> "
                 "Tensor",
       .scalar = [](Expr g, Expr x, std::optional<double> eps) { return g * logit_slope(x, eps); },
       .samples = "f32[2,3] f32[2,3]=0.1..0.9 | f32[2,3] f32[2,3]=-0.5..1.5 0.1 | f32[3] "
                  "f32[3]=-1..2"});
}

// ---- nan_to_num ---------------------------------------------------------------------------------

static double greatest_of(DType dtype) {
  switch (dtype) {
    case DType::float16:
      return 65504;
    case DType::bfloat16:
      return 0x1.FEp127;
    case DType::float64:
      return std::numeric_limits<double>::max();
    default:
      return std::numeric_limits<float>::max();
  }
}

static Expr nan_to_num(const Expr& x, double nan, std::optional<double> above,
                       std::optional<double> below) {
  if (category(x.dtype()) < DTypeCategory::floating) return x;
  const Expr not_above =
      select(x <= -INFINITY, below.value_or(-greatest_of(x.dtype())), select(isnan(x), nan, x));
  return select(x >= INFINITY, above.value_or(greatest_of(x.dtype())), not_above);
}

void add_special_rows(OperationTable& rows) {
  add_special_functions(rows);
  add_gammas_and_entropy(rows);
  add_logarithms_of_sums(rows);
  add_products_with_logarithms(rows);
  add_logit(rows);
  rows.add(
      {.schema = "aten::nan_to_num(Tensor self, float? nan=None, float? posinf=None, float? "
                 "neginf=None) -> Tensor",
       .scalar =
           [](Expr x, std::optional<double> nan, std::optional<double> above,
              std::optional<double> below) { return nan_to_num(x, nan.value_or(0), above, below); },
       .samples = "f32[4]=[1,inf,-inf,nan] | f32[4]=[1,inf,-inf,nan] 1.5 2 -3 | i64[3] | "
                  "f32[2,3]",
       .bad = "c64[2]: real numbers"});
}

}  // namespace composit
