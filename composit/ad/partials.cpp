#include "composit/ad/partials.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <numbers>

#include "composit/ir/error.h"

namespace composit {
namespace {

using Of = const Application&;
using Rule = Partial::Rule;
using std::numbers::inv_sqrtpi;
using std::numbers::ln10;
using std::numbers::ln2;

constexpr double kSqrtPi = 1 / inv_sqrtpi;
constexpr std::complex<double> kHalfI = {0.0, 0.5};

bool complex(const Expr& x) { return is_complex(x.dtype()); }

Expr one(Of) { return 1; }
Expr minus_one(Of) { return -1; }
Expr half(Of) { return 0.5; }

// |z| = sqrt(z conj(z)): half of `other`, the conjugate of what it is derived by, over |z|.
Expr d_abs(const Expr& other, const Expr& magnitude) {
  return select(eq(magnitude, 0), 0, other / (2 * magnitude));
}

// acosh'(z) = 1 / sqrt(z² - 1); for a complex z the root is that of the factors, in whose product
// the branch cut of z² - 1 would be wrong.
Expr d_acosh(Of f) { return complex(f.x) ? rsqrt(f.x + 1) * rsqrt(f.x - 1) : rsqrt(f.x * f.x - 1); }

// x^y at x = 0: y x^(y-1) is 0 * inf for y = 0, and the derivative is 0 there, as in torch.
Expr d_pow_base(Of f) {
  if (is_literal(f.y, 0)) return 0;
  if (is_literal(f.y, 1)) return 1;
  if (is_literal(f.y, 2)) return 2 * f.x;
  const Expr power = f.y * pow(f.x, f.y - 1);
  return f.y.kind() == ExprKind::literal ? power : select(eq(f.y, 0), 0, power);
}
// x^y log x at x = 0: 0 * -inf for y = 0, and torch gives 0 for every y >= 0.
Expr d_pow_exponent(Of f) {
  const Expr slope = f.result * log(f.x);
  const Expr not_negative = complex(f.y) ? eq(imag(f.y), 0) && real(f.y) >= 0 : f.y >= 0;
  return select(eq(f.x, 0) && not_negative, 0, slope);
}

// Equal operands share the derivative. The zero comes first, so that nothing is multiplied by it.
Expr share(const Expr& loses, const Expr& mine, const Expr& other) {
  return select(loses, 0, select(eq(mine, other), cast(0.5, mine.dtype()), 1));
}
Expr d_max(const Expr& mine, const Expr& other) { return share(mine < other, mine, other); }
Expr d_min(const Expr& mine, const Expr& other) { return share(mine > other, mine, other); }

// 0 at the origin, as in torch.
Expr d_atan2(Of f, const Expr& across) {
  const Expr square = f.x * f.x + f.y * f.y;
  return select(eq(square, 0), 0, across / square);
}

Expr d_copysign(Of f) { return select(eq(f.x, 0), 0, f.result / f.x); }

struct Row {
  Function function;
  Rule x, y = nullptr;    // d / d argument
  Rule x_conj = nullptr;  // d / d conj(argument)
  bool unknown_x = false, unknown_y = false;
};

// The derivative is zero for functions that have no row.
// clang-format off
constexpr std::array kTable = {
    Row{Function::abs, [](Of f) { return complex(f.x) ? d_abs(conj(f.x), f.result) : sign(f.x); },
        nullptr, [](Of f) { return d_abs(f.x, f.result); }},
    Row{Function::real, [](Of f) { return complex(f.x) ? 0.5 : Expr(1); }, nullptr, half},
    Row{Function::imag, [](Of f) { return complex(f.x) ? -kHalfI : Expr(0); }, nullptr,
        [](Of) { return Expr(kHalfI); }},
    Row{Function::conj, [](Of f) { return Expr(complex(f.x) ? 0 : 1); }, nullptr, one},
    Row{Function::complex, one, [](Of) { return Expr(2.0 * kHalfI); }},
    Row{Function::neg, minus_one},
    Row{Function::add, one, one},
    Row{Function::sub, one, minus_one},
    Row{Function::mul, [](Of f) { return f.y; }, [](Of f) { return f.x; }},
    Row{Function::div, [](Of f) { return 1 / f.y; }, [](Of f) { return -(f.result / f.y); }},
    Row{Function::pow, d_pow_base, d_pow_exponent},
    Row{Function::exp, [](Of f) { return f.result; }},
    Row{Function::exp2, [](Of f) { return f.result * ln2; }},
    Row{Function::expm1, [](Of f) { return f.result + 1; }},
    Row{Function::log, [](Of f) { return 1 / f.x; }},
    Row{Function::log2, [](Of f) { return 1 / (f.x * ln2); }},
    Row{Function::log10, [](Of f) { return 1 / (f.x * ln10); }},
    Row{Function::log1p, [](Of f) { return 1 / (f.x + 1); }},
    Row{Function::sqrt, [](Of f) { return 1 / (2 * f.result); }},
    Row{Function::rsqrt, [](Of f) { return -0.5 * (f.result * f.result * f.result); }},
    Row{Function::sin, [](Of f) { return cos(f.x); }},
    Row{Function::cos, [](Of f) { return -sin(f.x); }},
    Row{Function::tan, [](Of f) { return f.result * f.result + 1; }},
    Row{Function::asin, [](Of f) { return rsqrt(1 - f.x * f.x); }},
    Row{Function::acos, [](Of f) { return -rsqrt(1 - f.x * f.x); }},
    Row{Function::atan, [](Of f) { return 1 / (f.x * f.x + 1); }},
    Row{Function::sinh, [](Of f) { return cosh(f.x); }},
    Row{Function::cosh, [](Of f) { return sinh(f.x); }},
    Row{Function::tanh, [](Of f) { return 1 - f.result * f.result; }},
    Row{Function::asinh, [](Of f) { return rsqrt(f.x * f.x + 1); }},
    Row{Function::acosh, d_acosh},
    Row{Function::atanh, [](Of f) { return 1 / (1 - f.x * f.x); }},
    Row{Function::erf, [](Of f) { return 2 * inv_sqrtpi * exp(-(f.x * f.x)); }},
    Row{Function::erfc, [](Of f) { return -2 * inv_sqrtpi * exp(-(f.x * f.x)); }},
    Row{Function::erfinv, [](Of f) { return kSqrtPi / 2 * exp(f.result * f.result); }},
    Row{Function::lgamma, [](Of f) { return digamma(f.x); }},
    Row{Function::digamma, [](Of f) { return polygamma(1, f.x); }},
    Row{.function = Function::polygamma, .x = nullptr,
        .y = [](Of f) { return polygamma(f.x + 1, f.y); }, .unknown_x = true},
    Row{.function = Function::zeta, .x = nullptr,
        .y = [](Of f) { return -f.x * zeta(f.x + 1, f.y); }, .unknown_x = true},
    Row{Function::min, [](Of f) { return d_min(f.x, f.y); }, [](Of f) { return d_min(f.y, f.x); }},
    Row{Function::max, [](Of f) { return d_max(f.x, f.y); }, [](Of f) { return d_max(f.y, f.x); }},
    Row{Function::atan2, [](Of f) { return d_atan2(f, f.y); }, [](Of f) { return d_atan2(f, -f.x); }},
    Row{Function::hypot, [](Of f) { return f.x / f.result; }, [](Of f) { return f.y / f.result; }},
    Row{Function::remainder, one, [](Of f) { return -floor(f.x / f.y); }},
    Row{Function::fmod, one, [](Of f) { return -trunc(f.x / f.y); }},
    Row{Function::copysign, d_copysign},
    Row{.function = Function::nextafter, .x = nullptr, .unknown_x = true, .unknown_y = true},
};
// clang-format on

// Functions whose derivative is zero wherever there is one. Every function is here or in kTable.
constexpr std::array kSteps = {
    Function::sign,        Function::floor,       Function::ceil,         Function::round,
    Function::trunc,       Function::isnan,       Function::floor_divide, Function::trunc_divide,
    Function::bitwise_not, Function::bitwise_and, Function::bitwise_or,   Function::bitwise_xor,
    Function::shift_left,  Function::shift_right, Function::lt,           Function::le,
    Function::gt,          Function::ge,          Function::eq,           Function::ne,
    Function::logical_and, Function::logical_or,  Function::logical_not};

static_assert(kTable.size() + kSteps.size() + 2 /* select, cast */ ==
              static_cast<size_t>(Function::count_));

}  // namespace

Partial partial_of(Function function, size_t argument) {
  if (std::find(kSteps.begin(), kSteps.end(), function) != kSteps.end()) return {};
  const auto* row = std::find_if(kTable.begin(), kTable.end(),
                                 [&](const Row& r) { return r.function == function; });
  COMPOSIT_ASSERT(row != kTable.end(),
                  "no row of derivatives for " + std::string(info_of(function).name));
  if (argument == 0) return {row->x, row->x_conj, !row->unknown_x};
  return {row->y, nullptr, !row->unknown_y};
}

}  // namespace composit
