// Orthogonal polynomials, and what is made of the normal distribution: in float64, by the formulas
// of composit/shipped/classical_functions.h.
#include <cmath>

#include "composit/interchange/stablehlo/loops.h"
#include "composit/interchange/stablehlo/rows.h"
#include "composit/interchange/stablehlo/scalars.h"

namespace composit::stablehlo {
namespace {

using Types = std::vector<Type>;
using X = const LazyTensor&;

LazyTensor plus(X x, X y) { return binary("add", x, y); }
LazyTensor minus(X x, X y) { return binary("subtract", x, y); }
LazyTensor times(X x, X y) { return binary("multiply", x, y); }
LazyTensor over(X x, X y) { return binary("divide", x, y); }
LazyTensor real(double value) { return number(value, DType::float64); }

// ---- polynomials --------------------------------------------------------------------------------

// p(0) = 1, p(1), and p(k + 1) from the two before.
struct Polynomial {
  LazyTensor (*first)(X x);
  LazyTensor (*next)(X k, X x, X here, X before);
  bool is_shifted = false;  // of 2 x - 1
};

LazyTensor chebyshev(X, X x, X here, X before) { return minus(times(plus(x, x), here), before); }
LazyTensor twice(X x) { return plus(x, x); }
LazyTensor same(X x) { return x; }

// (2 k + 1) as the polynomials of Laguerre and Legendre have it.
LazyTensor odd(X k) { return plus(plus(k, k), real(1)); }

constexpr Polynomial kChebyshevT{same, chebyshev};
constexpr Polynomial kChebyshevU{twice, chebyshev};
constexpr Polynomial kChebyshevV{[](X x) { return minus(twice(x), real(1)); }, chebyshev};
constexpr Polynomial kChebyshevW{[](X x) { return plus(twice(x), real(1)); }, chebyshev};
constexpr Polynomial kShiftedT{kChebyshevT.first, chebyshev, true};
constexpr Polynomial kShiftedU{kChebyshevU.first, chebyshev, true};
constexpr Polynomial kShiftedV{kChebyshevV.first, chebyshev, true};
constexpr Polynomial kShiftedW{kChebyshevW.first, chebyshev, true};
constexpr Polynomial kHermiteH{twice, [](X k, X x, X here, X before) {
                                 return minus(times(twice(x), here), times(twice(k), before));
                               }};
constexpr Polynomial kHermiteHe{
    same, [](X k, X x, X here, X before) { return minus(times(x, here), times(k, before)); }};
constexpr Polynomial kLaguerre{[](X x) { return minus(real(1), x); },
                               [](X k, X x, X here, X before) {
                                 return over(minus(times(minus(odd(k), x), here), times(k, before)),
                                             plus(k, real(1)));
                               }};
constexpr Polynomial kLegendre{same, [](X k, X x, X here, X before) {
                                 return over(minus(times(times(odd(k), x), here), times(k, before)),
                                             plus(k, real(1)));
                               }};

// All elements at once, each up to its degree.
template <const Polynomial& polynomial>
LazyTensors value_of(const Call& call, const Types& results) {
  const Dims& sizes = results[0].sizes;
  LazyTensor x = broadcast_to(cast_to(call.tensors().at(0), DType::float64), sizes);
  if (polynomial.is_shifted) x = minus(twice(x), real(1));
  const LazyTensor degree = broadcast_to(
      apply(Function::trunc, {cast_to(call.tensors().at(1), DType::float64)}, DType::float64),
      sizes);
  const LazyTensor one = broadcast_to(real(1), sizes), first = polynomial.first(x);
  const LazyTensors end = while_loop(
      {real(1), first, one}, {x, degree},
      [](const LazyTensors& in) {
        return over_all("or", compare("LT", in[0], in[4]), number(0, DType::bool_));
      },
      [](const LazyTensors& in) {
        const LazyTensor &k = in[0], &here = in[1], &before = in[2];
        const LazyTensor goes_on = compare("LT", k, in[4]);
        const LazyTensor next = polynomial.next(k, in[3], here, before);
        return LazyTensors{plus(k, real(1)), select(goes_on, next, here),
                           select(goes_on, here, before)};
      });
  const LazyTensor value = select(compare("EQ", degree, real(0)), one, end[1]);
  const LazyTensor result = select(compare("LT", degree, real(0)), real(0), value);
  return {cast_to(result, results[0].dtype)};
}

// ---- of the normal distribution -----------------------------------------------------------------

// exp(x^2) erfc(x); by its continued fraction where erfc is small.
LazyTensor erfcx(X x) {
  constexpr double kInverseRootPi = 0.564189583547756286948;
  const LazyTensor plain = times(unary("exponential", times(x, x)), unary("erfc", x));
  LazyTensor tail = x;
  for (int k = 60; k > 0; --k) tail = plus(x, over(real(k / 2.0), tail));
  return select(compare("LT", x, real(10)), plain, over(real(kInverseRootPi), tail));
}

LazyTensor log_ndtr(X x) {
  const LazyTensor t = times(x, real(std::sqrt(0.5)));
  const LazyTensor low =
      minus(unary("log", times(erfcx(unary("negate", t)), real(0.5))), times(t, t));
  const LazyTensor high = unary("log_plus_one", times(unary("erfc", t), real(-0.5)));
  return select(compare("LT", x, real(-1)), low, high);
}

// By Newton's steps in the logarithm of the smaller tail.
LazyTensor ndtri(X p) {
  constexpr int64_t kSteps = 40;
  constexpr double kRoot2Pi = 2.50662827463100050242, kInfinity = HUGE_VAL;
  const LazyTensor tail = binary("minimum", p, minus(real(1), p));
  const LazyTensor wanted = unary("log", tail);
  const LazyTensor far = unary("negate", unary("sqrt", times(wanted, real(-2))));
  const LazyTensor start = select(compare("GT", tail, real(0.01)), real(0), far);
  const LazyTensor x = counted_loop(kSteps, {start}, {wanted}, [](const LazyTensors& in) {
    const LazyTensor &here = in[1], logarithm = log_ndtr(here);
    const LazyTensor exponent = minus(times(times(here, here), real(-0.5)), logarithm);
    const LazyTensor density = over(unary("exponential", exponent), real(kRoot2Pi));
    return LazyTensors{minus(here, over(minus(logarithm, in[2]), density))};
  })[0];
  const LazyTensor inner = select(compare("GT", p, real(0.5)), unary("negate", x), x);
  const LazyTensor left = select(compare("EQ", p, real(0)), real(-kInfinity), inner);
  const LazyTensor right = select(compare("EQ", p, real(1)), real(kInfinity), left);
  const LazyTensor inside = binary("and", compare("GE", p, real(0)), compare("LE", p, real(1)));
  return select(inside, right, real(std::nan("")));
}

template <LazyTensor (*function)(X)>
LazyTensors in_double(const Call& call, const Types& results) {
  return {cast_to(function(cast_to(call.tensors().at(0), DType::float64)), results[0].dtype)};
}

}  // namespace

void add_special_rows(std::vector<Row>& rows) {
  rows.insert(rows.end(), {{"aten::special_chebyshev_polynomial_t", value_of<kChebyshevT>},
                           {"aten::special_chebyshev_polynomial_u", value_of<kChebyshevU>},
                           {"aten::special_chebyshev_polynomial_v", value_of<kChebyshevV>},
                           {"aten::special_chebyshev_polynomial_w", value_of<kChebyshevW>},
                           {"aten::special_shifted_chebyshev_polynomial_t", value_of<kShiftedT>},
                           {"aten::special_shifted_chebyshev_polynomial_u", value_of<kShiftedU>},
                           {"aten::special_shifted_chebyshev_polynomial_v", value_of<kShiftedV>},
                           {"aten::special_shifted_chebyshev_polynomial_w", value_of<kShiftedW>},
                           {"aten::special_hermite_polynomial_h", value_of<kHermiteH>},
                           {"aten::special_hermite_polynomial_he", value_of<kHermiteHe>},
                           {"aten::special_laguerre_polynomial_l", value_of<kLaguerre>},
                           {"aten::special_legendre_polynomial_p", value_of<kLegendre>},
                           {"aten::special_erfcx", in_double<erfcx>},
                           {"aten::special_log_ndtr", in_double<log_ndtr>},
                           {"aten::special_ndtri", in_double<ndtri>}});
}

}  // namespace composit::stablehlo
