// Special functions by native code: Bessel's and Airy's functions, what is made of the normal
// distribution, incomplete gammas.
#include <cmath>
#include <numbers>

#include "composit/op/promotion.h"
#include "composit/ops/functions.h"
#include "composit/ops/native.h"
#include "composit/ops/operations.h"
#include "composit/shipped/classical_functions.h"

namespace composit {
namespace {

std::vector<Type> float_like(const LazyTensor& x) {
  if (is_complex(x.dtype()))
    throw UserError("expected real numbers, received " + std::string(name(x.dtype())));
  return {tensor_type(to_float(x.dtype()), x.type().sizes)};
}

template <double (*kFunction)(double)>
Array each(const Array& x) {
  std::vector<double> values = elements<double>(x);
  for (double& value : values) value = kFunction(value);
  return array_of(tensor_type(to_float(x.type().dtype), x.type().sizes), values);
}

LazyTensor f(std::string_view name, const LazyTensor& x) { return apply_one(name, {x}); }

// y / x, and 0 / 0 is its limit.
LazyTensor over(const LazyTensor& y, const LazyTensor& x, double limit) {
  return where(eq(x, 0), limit, y / x);
}

// `slope`: of x, and of y, its value.
// clang-format off
#define COMPOSIT_SPECIAL(op, argument, function, slope, samples_, ...)                             \
  rows.add({.schema = "aten::" op "(Tensor " argument ") -> Tensor",                               \
            .infer = [](LazyTensor x) { return float_like(x); },                                       \
            .native = [](Array x) { return std::vector<Array>{each<special_functions::function>(x)}; },\
            .runtime = "special::" #function,                                                      \
            .vjp =                                                                                 \
                [](Vjp v, [[maybe_unused]] LazyTensor x) {                                             \
                  [[maybe_unused]] const LazyTensor& y = v.results[0];                                 \
                  return Gradients{v.cotangents[0] * (slope)};                                     \
                },                                                                                 \
            .samples = samples_,                                                                   \
            .also = {__VA_ARGS__}});

void add_bessel_functions(OperationTable& rows) {
  COMPOSIT_SPECIAL("special_bessel_j0", "self", bessel_j0, -f("aten::special_bessel_j1", x),
                   "f64[6]=-9..9 | i64[2]")
  COMPOSIT_SPECIAL("special_bessel_j1", "self", bessel_j1,
                   f("aten::special_bessel_j0", x) - over(y, x, 0.5), "f64[6]=-9..9 | i64[2]")
  COMPOSIT_SPECIAL("special_bessel_y0", "self", bessel_y0, -f("aten::special_bessel_y1", x),
                   "f64[6]=0.1..9 | f64[2]=[0,-1]")
  COMPOSIT_SPECIAL("special_bessel_y1", "self", bessel_y1, f("aten::special_bessel_y0", x) - y / x,
                   "f64[6]=0.1..9 | f64[2]=[0,-1]")
  COMPOSIT_SPECIAL("i0", "self", i0, f("aten::special_i1", x),
                   "f64[6]=-9..9 | i64[3]=[0,800,-900]",
                   "aten::special_i0", "aten::special_modified_bessel_i0")
  COMPOSIT_SPECIAL("special_i1", "self", i1, f("aten::i0", x) - over(y, x, 0.5),
                   "f64[6]=-9..9 | i64[3]=[0,800,-900]", "aten::special_modified_bessel_i1")
  COMPOSIT_SPECIAL("special_i0e", "self", i0e, f("aten::special_i1e", x) - sign(x) * y,
                   "f64[6]=-9..9 | i64[2]")
  COMPOSIT_SPECIAL("special_i1e", "self", i1e,
                   f("aten::special_i0e", x) - y * sign(x) - over(y, x, 0.5),
                   "f64[6]=-9..9 | i64[2]")
  COMPOSIT_SPECIAL("special_modified_bessel_k0", "self", k0,
                   -f("aten::special_modified_bessel_k1", x), "f64[6]=0.5..9 | f64[2]=[0,-1]")
  COMPOSIT_SPECIAL("special_modified_bessel_k1", "self", k1,
                   -f("aten::special_modified_bessel_k0", x) - y / x,
                   "f64[6]=0.5..9 | f64[2]=[0,-1]")
  COMPOSIT_SPECIAL("special_scaled_modified_bessel_k0", "x", scaled_k0,
                   y - f("aten::special_scaled_modified_bessel_k1", x), "f64[6]=0.5..9")
  COMPOSIT_SPECIAL("special_scaled_modified_bessel_k1", "x", scaled_k1,
                   y - f("aten::special_scaled_modified_bessel_k0", x) - y / x, "f64[6]=0.5..9")
  COMPOSIT_SPECIAL("special_spherical_bessel_j0", "x", spherical_j0, over(cos(x) - y, x, 0),
                   "f64[6]=-9..9 | f64[1]=[0]")
}

void add_normal_distribution(OperationTable& rows) {
  COMPOSIT_SPECIAL("special_erfcx", "self", erfcx, 2 * x * y - 2 * std::numbers::inv_sqrtpi,
                   "f64[6]=-2..9 | f64[4]=9..90 | i64[2]")
  COMPOSIT_SPECIAL("special_log_ndtr", "self", log_ndtr,
                   exp(x * x * -0.5 - y) * std::sqrt(0.5 * std::numbers::inv_pi),
                   "f64[6]=-9..9 | f64[3]=-90..-20 | i64[2]")
  COMPOSIT_SPECIAL("special_ndtri", "self", ndtri,
                   exp(y * y * 0.5) * std::sqrt(2 * std::numbers::pi),
                   "f64[6]=0.1..0.9 | f64[4]=[0,1,-1,2]")
}
#undef COMPOSIT_SPECIAL
// clang-format on

// ---- incomplete gammas --------------------------------------------------------------------------

// ---- functions of two ---------------------------------------------------------------------------

Type broadcast_floats(const Type& x, const Type& y) {
  if (is_complex(x.dtype) || is_complex(y.dtype)) throw UserError("expected real numbers");
  const Ints both = broadcast_sizes({x.sizes, y.sizes});
  Promotion promotion;
  promotion.add(x);
  promotion.add(y);
  return tensor_type(to_float(promotion.result()), both);
}

// The elements of x, repeated to `sizes`.
std::vector<double> repeated(const Array& x, const Dims& sizes) {
  const Array plain = x.contiguous();
  Type type = tensor_type(plain.type().dtype, sizes);
  const size_t extra = sizes.size() - plain.type().rank();
  for (size_t i = 0; i < sizes.size(); ++i)
    if (i < extra || plain.type().sizes[i - extra] == 1)
      type.strides[i] = 0;
    else
      type.strides[i] = plain.type().strides[i - extra];
  return elements<double>(Array(type, plain.owner(), plain.data()));
}

template <double (*kFunction)(double, double)>
Array each_pair(const Array& x, const Array& y) {
  const Type type = broadcast_floats(x.type(), y.type());
  std::vector<double> a = repeated(x, type.sizes);
  const std::vector<double> b = repeated(y, type.sizes);
  for (size_t i = 0; i < a.size(); ++i) a[i] = kFunction(a[i], b[i]);
  return array_of(type, a);
}

template <double (*kFunction)(double, double)>
Row pair(std::string_view schema, std::string_view runtime, std::string_view samples,
         std::string_view nondifferentiable) {
  return {
      .schema = schema,
      .infer = [](LazyTensor x,
                  LazyTensor y) { return std::vector<Type>{broadcast_floats(x.type(), y.type())}; },
      .native = [](Array x, Array y) { return std::vector<Array>{each_pair<kFunction>(x, y)}; },
      .runtime = runtime,
      .samples = samples,
      .nondifferentiable = nondifferentiable};
}

template <double (*kFunction)(double, double)>
void add_polynomial(OperationTable& rows, std::string_view schema, std::string_view runtime) {
  rows.add(pair<kFunction>(schema, runtime, "f64[2,3] i64[3]=[-1,2,5]", "x n"));
}

void add_polynomials(OperationTable& rows) {
#define COMPOSIT_POLYNOMIAL(name, function)    \
  add_polynomial<special_functions::function>( \
      rows, "aten::special_" name "(Tensor x, Tensor n) -> Tensor", "special::" #function);
  COMPOSIT_POLYNOMIAL("chebyshev_polynomial_t", chebyshev_t)
  COMPOSIT_POLYNOMIAL("chebyshev_polynomial_u", chebyshev_u)
  COMPOSIT_POLYNOMIAL("chebyshev_polynomial_v", chebyshev_v)
  COMPOSIT_POLYNOMIAL("chebyshev_polynomial_w", chebyshev_w)
  COMPOSIT_POLYNOMIAL("shifted_chebyshev_polynomial_t", shifted_t)
  COMPOSIT_POLYNOMIAL("shifted_chebyshev_polynomial_u", shifted_u)
  COMPOSIT_POLYNOMIAL("shifted_chebyshev_polynomial_v", shifted_v)
  COMPOSIT_POLYNOMIAL("shifted_chebyshev_polynomial_w", shifted_w)
  COMPOSIT_POLYNOMIAL("hermite_polynomial_h", hermite_h)
  COMPOSIT_POLYNOMIAL("hermite_polynomial_he", hermite_he)
  COMPOSIT_POLYNOMIAL("laguerre_polynomial_l", laguerre_l)
  COMPOSIT_POLYNOMIAL("legendre_polynomial_p", legendre_p)
#undef COMPOSIT_POLYNOMIAL
}

// The integrand at x.
LazyTensor gamma_density(const LazyTensor& a, const LazyTensor& x) {
  return exp((a - 1) * log(x) - x - f("aten::lgamma", a));
}

void add_incomplete_gammas(OperationTable& rows) {
  constexpr std::string_view kSamples =
      "f64[2,3]=0.1..9 f64[3]=0.1..9 | f64[3]=[0,1,-1] f64[3]=[1,0,1]";
  Row lower = pair<special_functions::igamma>("aten::igamma(Tensor self, Tensor other) -> Tensor",
                                              "special::igamma", kSamples, "self");
  lower.vjp = [](Vjp v, LazyTensor a, LazyTensor x) {
    return Gradients{LazyTensor(), sum_to_size(v.cotangents[0] * gamma_density(a, x), x.sizes())};
  };
  lower.also = {"aten::special_gammainc"};
  rows.add(lower);
  Row upper = pair<special_functions::igammac>("aten::igammac(Tensor self, Tensor other) -> Tensor",
                                               "special::igammac", kSamples, "self");
  upper.vjp = [](Vjp v, LazyTensor a, LazyTensor x) {
    return Gradients{LazyTensor(), sum_to_size(-v.cotangents[0] * gamma_density(a, x), x.sizes())};
  };
  upper.also = {"aten::special_gammaincc"};
  rows.add(upper);
}

}  // namespace

void add_special_native_rows(OperationTable& rows) {
  add_bessel_functions(rows);
  add_normal_distribution(rows);
  rows.add({.schema = "aten::special_airy_ai(Tensor x) -> Tensor",
            .infer = [](LazyTensor x) { return float_like(x); },
            .native = [](Array x) { return std::vector<Array>{each<special_functions::airy>(x)}; },
            .runtime = "special::airy",
            .samples = "f64[6]=-9..9 | f64[1]=[0]",
            .nondifferentiable = "x"});
  add_polynomials(rows);
  add_incomplete_gammas(rows);
}

}  // namespace composit
