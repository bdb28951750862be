// Orthogonal polynomials, in float64: all elements at once, each up to its degree.
#include "composit/interchange/common_rows.h"
#include "composit/interchange/polynomials.h"
#include "composit/ops/control_flow.h"
#include "composit/ops/functions.h"

namespace composit::interchange {
namespace {

using X = const LazyTensor&;

// p(0) = 1, p(1), and p(k + 1) from the two before.
struct Polynomial {
  LazyTensor (*first)(X x);
  LazyTensor (*next)(X k, X x, X here, X before);
  bool is_shifted = false;  // of 2 x - 1
};

LazyTensor chebyshev(X, X x, X here, X before) { return x * 2 * here - before; }
LazyTensor twice(X x) { return x * 2; }
LazyTensor same(X x) { return x; }

constexpr Polynomial kChebyshevT{same, chebyshev};
constexpr Polynomial kChebyshevU{twice, chebyshev};
constexpr Polynomial kChebyshevV{[](X x) { return x * 2 - 1; }, chebyshev};
constexpr Polynomial kChebyshevW{[](X x) { return x * 2 + 1; }, chebyshev};
constexpr Polynomial kShiftedT{kChebyshevT.first, chebyshev, true};
constexpr Polynomial kShiftedU{kChebyshevU.first, chebyshev, true};
constexpr Polynomial kShiftedV{kChebyshevV.first, chebyshev, true};
constexpr Polynomial kShiftedW{kChebyshevW.first, chebyshev, true};
constexpr Polynomial kHermiteH{
    twice, [](X k, X x, X here, X before) { return x * 2 * here - k * 2 * before; }};
constexpr Polynomial kHermiteHe{same,
                                [](X k, X x, X here, X before) { return x * here - k * before; }};
constexpr Polynomial kLaguerre{
    [](X x) { return 1 - x; },
    [](X k, X x, X here, X before) { return ((k * 2 + 1 - x) * here - k * before) / (k + 1); }};
constexpr Polynomial kLegendre{same, [](X k, X x, X here, X before) {
                                 return ((k * 2 + 1) * x * here - k * before) / (k + 1);
                               }};

template <const Polynomial& polynomial>
LazyTensors value_of(const Call& call, const std::vector<Type>& results) {
  const Dims& sizes = results[0].sizes;
  LazyTensor x = expand(in_float64(call.tensors().at(0)), sizes);
  if (polynomial.is_shifted) x = x * 2 - 1;
  const LazyTensor degree =
      expand(apply_one("aten::trunc", {in_float64(call.tensors().at(1))}), sizes);
  const LazyTensor one = ones_like(x), first = full({}, 1.0, DType::float64);
  const LazyTensors end = while_loop(
      [&](const LazyTensors& in) { return apply_one("aten::any", {in[0] < degree}); },
      [&](const LazyTensors& in) {
        const LazyTensor &k = in[0], &here = in[1], &before = in[2], goes_on = k < degree;
        const LazyTensor next = polynomial.next(k, x, here, before);
        return LazyTensors{k + 1, where(goes_on, next, here), where(goes_on, here, before)};
      },
      {first, polynomial.first(x), one});
  const LazyTensor value = where(eq(degree, 0), 1.0, end[1]);
  return {in_dtype(where(degree < 0, 0.0, value), results[0].dtype)};
}

}  // namespace

void add_orthogonal_polynomial_rows(std::vector<Row>& rows) {
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
                           {"aten::special_legendre_polynomial_p", value_of<kLegendre>}});
}

}  // namespace composit::interchange
