// exp, expm1, log, log1p, tanh, erf, pow, sin and cos without branches and calls, of which a
// compiler makes vector instructions (of the standard library's it does not):
//
// ```text
//   for (int i = 0; i < n; ++i) y[i] = fl::exp(x[i]);
// ```
//
// Right for infinities, NaN, signed zeros and subnormal numbers. Largest errors in units in the
// last place that were seen over 4 million floats and 10^6 doubles of all magnitudes:
//
// ```text
//            exp   expm1   log   log1p   tanh   erf   pow   sin, cos
//   float    1.0     1.6   0.8     1.5    2.4   1.8   0.5        1.6
//   double   1.1     2.3   0.8     1.5    2.5   1.9   that of the standard library
// ```
//
// ATen's gelu and silu of these are wrong by 1.3 and 1.4 units (doubles: 1.4 and 1.5) in the last
// place of their argument. Where that is negative they are nearer to 0: gelu's own last places are
// those of 1 + erf, which cancels, and silu is -0 where exp(-x) is infinite.
//
// Polynomials without another source are minimax fits (C. Lawson's iteratively weighted least
// squares, 1961, in 50 digits) on the interval named beside them.
#pragma once

#include <cmath>

#include "composit/shipped/number_types.h"

namespace fl::detail {

// The fields of a floating point number in its bits.
template <class T>
struct Layout;
template <>
struct Layout<float> {
  using Bits = uint32_t;
  static constexpr Bits kFraction = 23, kBias = 127;
  static constexpr float kRounder = 0x1.8p23f;  // x + kRounder has no fraction
};
template <>
struct Layout<double> {
  using Bits = uint64_t;
  static constexpr Bits kFraction = 52, kBias = 1023;
  static constexpr double kRounder = 0x1.8p52;
};

// The nearest whole number, if it is not large. (-ffast-math would take away both terms.)
template <class T>
FLASHLIGHT_INLINE T nearest(T x) {
  return (x + Layout<T>::kRounder) - Layout<T>::kRounder;
}

// 2^n for a whole n of normal numbers.
template <class T>
FLASHLIGHT_INLINE T power_of_2(T n) {
  using L = Layout<T>;
  const auto bits = bit_cast<typename L::Bits>(n + L::kRounder);  // n in the last places
  return bit_cast<T>((bits + L::kBias) << L::kFraction);
}

// first + x (second + x (...)).
template <class T>
FLASHLIGHT_INLINE T polynomial(T, T last) {
  return last;
}
template <class T, class... Rest>
FLASHLIGHT_INLINE T polynomial(T x, T first, Rest... rest) {
  return first + x * polynomial(x, rest...);
}

// exp(x) - 1 on |x| <= 0.3467.
FLASHLIGHT_INLINE float expm1_near_0(float x) {
  return x + x * x * polynomial(x, 0.5f, 0.16666543f, 0.041666433f, 0.008366529f, 0.0013937808f);
}
FLASHLIGHT_INLINE double expm1_near_0(double x) {
  return x + x * x *
                 polynomial(x, 0.5, 0.1666666666666668, 0.04166666666661959, 0.008333333333318987,
                            0.0013888888920687474, 0.00019841269894265765, 2.4801516105087465e-05,
                            2.7557235198146517e-06, 2.762232943622392e-07, 2.511233962365769e-08);
}

// exp(x) = 2^n (1 + m), after W. J. Cody and W. Waite, "Software Manual for the Elementary
// Functions" (1980), chapter 6: log(2) in two parts, the first with zeros at its end.
template <class T>
struct Exponential {
  T n, m;
};
FLASHLIGHT_INLINE Exponential<float> exponential(float x) {
  const float n = nearest(x * 1.44269504f);
  return {n, expm1_near_0((x - n * 0.693359375f) + n * 2.12194440e-4f)};
}
FLASHLIGHT_INLINE Exponential<double> exponential(double x) {
  const double n = nearest(x * 1.4426950408889634);
  return {n, expm1_near_0((x - n * 6.93147180369123816490e-01) - n * 1.90821492927058770002e-10)};
}

// `x` between bounds; NaN stays.
template <class T>
FLASHLIGHT_INLINE T clamp(T x, T low, T high) {
  const T above = x < low ? low : x;
  return above > high ? high : above;
}

// 2^n in two factors, of which each is a normal number where the product may be none.
template <class T>
FLASHLIGHT_INLINE T exp(T x) {
  constexpr bool kSingle = sizeof(T) == 4;
  const Exponential<T> e = exponential(clamp<T>(x, kSingle ? -105 : -747, kSingle ? 89 : 710));
  const T half = nearest(e.n * T(0.5)), scale = power_of_2(half);
  return (scale + scale * e.m) * power_of_2(e.n - half);
}

template <class T>
FLASHLIGHT_INLINE T expm1(T x) {
  constexpr bool kSingle = sizeof(T) == 4;
  const Exponential<T> e = exponential(clamp<T>(x, kSingle ? -20 : -40, kSingle ? 89 : 710));
  const T half = power_of_2(e.n - T(1));
  const T result = e.n == T(0) ? e.m : (half * e.m + (half - T(0.5))) * T(2);
  return std::copysign(result, x);
}

// t / (t + 2) = 1 - 2 / (t + 2) for t = exp(2 |x|) - 1.
template <class T>
FLASHLIGHT_INLINE T tanh(T x) {
  const T t = detail::expm1(T(2) * std::abs(x));
  const bool small = t < T(1.5);
  const T quotient = (small ? t : T(2)) / (t + T(2));
  return std::copysign(small ? quotient : T(1) - quotient, x);
}

// R of log(1 + f) = f - (f^2 / 2 - s (f^2 / 2 + R)) for s = f / (2 + f), in z = s^2, after e_logf.c
// and e_log.c of fdlibm (Sun Microsystems, 1993), on sqrt(1/2) <= 1 + f <= sqrt(2).
FLASHLIGHT_INLINE float log_series(float z) {
  return z * polynomial(z, 0.66666662693f, 0.40000972152f, 0.28498786688f, 0.24279078841f);
}
FLASHLIGHT_INLINE double log_series(double z) {
  return z * polynomial(z, 6.666666666666735130e-01, 3.999999999940941908e-01,
                        2.857142874366239149e-01, 2.222219843214978396e-01,
                        1.818357216161805012e-01, 1.531383769920937332e-01,
                        1.479819860511658591e-01);
}

// log(x) = e log(2) + log(1 + f), log(2) in two parts.
template <class T>
FLASHLIGHT_INLINE T log_of_positive(T x) {
  using L = Layout<T>;
  using Bits = typename L::Bits;
  constexpr bool kSingle = sizeof(T) == 4;
  constexpr T kLog2 = kSingle ? T(6.9313812256e-01) : T(6.93147180369123816490e-01),
              kRest = kSingle ? T(9.0580006145e-06) : T(1.90821492927058770002e-10),
              kTwoToFraction = static_cast<T>(Bits{1} << L::kFraction);
  const bool tiny = x < std::numeric_limits<T>::min();
  const auto bits = bit_cast<Bits>(tiny ? x * kTwoToFraction : x);
  const T one_to_two = bit_cast<T>((bits & ((Bits{1} << L::kFraction) - 1)) | bit_cast<Bits>(T(1)));
  const T exponent =
      bit_cast<T>((bits >> L::kFraction) | bit_cast<Bits>(kTwoToFraction)) - kTwoToFraction;
  const bool large = one_to_two > T(1.41421356237309515);
  const T e = exponent - (tiny ? T(L::kBias + L::kFraction) : T(L::kBias)) + (large ? T(1) : T(0));
  const T f = (large ? one_to_two * T(0.5) : one_to_two) - T(1);
  const T s = f / (T(2) + f), square = T(0.5) * f * f;
  return e * kLog2 - ((square - (s * (square + log_series(s * s)) + e * kRest)) - f);
}

template <class T>
FLASHLIGHT_INLINE T log(T x) {
  constexpr T kInfinity = std::numeric_limits<T>::infinity();
  const T result = log_of_positive(x);
  const T beyond = x < T(0) ? std::numeric_limits<T>::quiet_NaN() : x;  // and infinity, and NaN
  const T not_positive = x == T(0) ? -kInfinity : beyond;
  return ((x > T(0)) & (x < kInfinity)) ? result : not_positive;
}

// The correction adds what rounding 1 + x has lost (HP-15C Advanced Functions Handbook, 1982,
// appendix).
template <class T>
FLASHLIGHT_INLINE T log1p(T x) {
  const T u = T(1) + x, log_u = detail::log(u), correction = (x - (u - T(1))) / u;
  const T result = x == T(0) ? x : log_u + correction;
  return ((u > T(0)) & (u < std::numeric_limits<T>::infinity())) ? result : log_u;
}

// erf(x) / x - 1 as a polynomial in x^2 on 0 <= x <= 1.
FLASHLIGHT_INLINE float erf_near_0(float u) {
  return polynomial(u, 0.12837912f, -0.37612325f, 0.1128018f, -0.026711307f, 0.0049175466f,
                    -0.0005631404f);
}
FLASHLIGHT_INLINE double erf_near_0(double u) {
  return polynomial(u, 0.12837916709551256, -0.3761263890318352, 0.11283791670944185,
                    -0.026866170643111403, 0.00522397760611797, -0.0008548325929291406,
                    0.00012055293576237535, -1.4924712289749863e-05, 1.64471314254654e-06,
                    -1.6206312680449722e-07, 1.3710975889599251e-08, -7.779460341983499e-10);
}
// erfc(x)^(1/4) on 1 <= x <= 3.93: only its absolute error counts, for which 1 stands before.
FLASHLIGHT_INLINE float root_of_erfc(float x) {
  return polynomial(x, 0.9998404f, -0.28087229f, -0.12342577f, 0.023204628f, 0.0092005609f,
                    0.0064443955f, -0.0061601959f, 0.0017522154f, -0.00022585636f,
                    1.142804831e-05f);
}
// log(1 - erf(x)) on 1 <= x <= 5.95, as a polynomial in x - 2.
FLASHLIGHT_INLINE double log_erfc(double x) {
  return -polynomial(x - 2, 5.364941264616633, 4.418160805994333, 0.9237508418239955,
                     0.01646511814049089, -0.0035707563431747235, 0.0007323993531906307,
                     -0.00013530938316041663, 2.070653657159322e-05, -1.952001353249238e-06,
                     -2.037937313595045e-07, 1.7287532690079191e-07, -5.767159499478698e-08,
                     1.4233703397218762e-08, -2.619872791522739e-09, 1.522291024711924e-10,
                     8.416476238275737e-11, -1.739928349504921e-11);
}

FLASHLIGHT_INLINE float erf_from_1(float x) {
  const float root = root_of_erfc(x), square = root * root;
  return 1 - square * square;
}
FLASHLIGHT_INLINE double erf_from_1(double x) { return 1 - detail::exp(log_erfc(x)); }

template <class T>
FLASHLIGHT_INLINE T erf(T x) {
  const T size = std::abs(x), a = clamp<T>(size, 0, sizeof(T) == 4 ? T(3.93) : T(5.95));
  const T near = a + a * erf_near_0(a * a), far = erf_from_1(a);
  return std::copysign(a < T(1) ? near : far, x);
}

// A number x = n pi/2 + rest: n modulo 4, and the rest.
struct QuarterTurns {
  uint32_t n;
  float rest;
};
// In quarter turns x is x 2/pi, of which whole turns do not matter: large numbers are multiples of
// 2^27, 2^54 or 2^81, and 2/pi times that is taken modulo 4. Two doubles of it suffice, since with
// a fused multiplication the difference of x 2/pi and n is exact (after M. Payne and R. Hanek,
// "Radian reduction for trigonometric functions", SIGNUM Newsletter 18, 1983).
FLASHLIGHT_INLINE QuarterTurns quarter_turns(float x) {
  const double wide = x, size = std::abs(wide);
  const double high = size < 0x1p50    ? 0x1.45f306dc9c883p-1
                      : size < 0x1p77  ? -0x1.1b1bbead603d9p-28
                      : size < 0x1p104 ? 0x1.4a7f09d5f47d5p-54
                                       : -0x1.505c1596447e5p-81;
  const double low = size < 0x1p50    ? -0x1.6b01ec5417056p-55
                     : size < 0x1p77  ? 0x1.5f47d4d377037p-82
                     : size < 0x1p104 ? -0x1.6447e493ad4cep-109
                                      : 0x1.b14acc9e21c82p-135;
  constexpr double kRounder = Layout<double>::kRounder, kQuarter = 1.5707963267948966;
  const double sum = wide * high + kRounder;  // n in the last places
  const double rest = std::fma(wide, low, std::fma(wide, high, -(sum - kRounder)));
  return {static_cast<uint32_t>(bit_cast<uint64_t>(sum)), static_cast<float>(rest * kQuarter)};
}

// The sine of n pi/2 + rest, by the polynomials of S. Moshier's Cephes library, sinf.c.
FLASHLIGHT_INLINE float sine_of(QuarterTurns x) {
  const float u = x.rest * x.rest;
  const float sine =
      x.rest + x.rest * u * polynomial(u, -1.6666654611e-1f, 8.3321608736e-3f, -1.9515295891e-4f);
  const float cosine =
      1.0f - 0.5f * u +
      u * u * polynomial(u, 4.166664568298827e-2f, -1.388731625493765e-3f, 2.443315711809948e-5f);
  const float size = (x.n & 1) != 0 ? cosine : sine;
  return bit_cast<float>(bit_cast<uint32_t>(size) ^ ((x.n & 2) << 30));
}

#if defined(__FMA__) || defined(__FP_FAST_FMA)
FLASHLIGHT_INLINE float sin(float x) {
  const float size = sine_of(quarter_turns(x));
  return x == 0 ? x : size;  // with its sign
}
FLASHLIGHT_INLINE float cos(float x) {
  const QuarterTurns turns = quarter_turns(x);
  return sine_of({turns.n + 1, turns.rest});
}
#else
inline float sin(float x) { return std::sin(x); }
inline float cos(float x) { return std::cos(x); }
#endif
inline double sin(double x) { return std::sin(x); }
inline double cos(double x) { return std::cos(x); }

// exp(y log |x|) in double.
FLASHLIGHT_INLINE float pow(float x, float y) {
  const float size = std::abs(x);
  const auto power = static_cast<float>(
      detail::exp(static_cast<double>(y) * detail::log(static_cast<double>(size))));
  const bool one = (y == 0) | (x == 1) | ((size == 1) & (std::abs(y) > 1e30f));
  const bool whole = std::trunc(y) == y, odd = whole & (std::trunc(y * 0.5f) * 2 != y);
  const bool undefined = (x < 0) & !whole & (size < std::numeric_limits<float>::infinity());
  const float magnitude = undefined ? std::numeric_limits<float>::quiet_NaN() : power;
  const float result = odd ? std::copysign(magnitude, x) : magnitude;
  return one ? 1.0f : result;
}

}  // namespace fl::detail
