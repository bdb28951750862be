// A symbolic number, with which lambdas are traced.
//
//   const auto relu3 = [](auto x) {
//     if (x < 0.0) return 0.0 * x;
//     if (x < 1.0) return 1.0 / 3.0 * pow(x, 3.0);
//     return x - 2.0 / 3.0;
//   };
//   const auto traced = [&](const Numbers& x) { return Numbers{relu3(x[0])}; };
//   composit::ScalarProgram program = trace_numbers(1, traced);
//
// A comparison gives a Truth, and a Truth that becomes a bool is a decision: the function runs once
// for each way its decisions can go, and all its paths together are one tree of selects. A Truth
// that was decided before, or follows from what was (x > 2 from x > 3), is not decided again. A
// loop unrolls if its number of trips does not depend on a Number.
//
// Functions are found by argument: call exp(x), not std::exp(x); `using std::exp;` lets a lambda
// run on doubles as well. min and max give NaN if an operand is NaN.
#pragma once

#include <concepts>
#include <functional>
#include <vector>

#include "composit/op/scalar_program.h"

namespace flashlight {

class Number;

// The result of a comparison of Numbers: true or false, depending on their values.
class Truth {
 public:
  explicit Truth(composit::Expr expr) : expr_(std::move(expr)) {}
  const composit::Expr& expr() const { return expr_; }  // an expression of bool
  // Decides: true on one path, false on another. UserError outside of `trace`, and if there are
  // more decisions than TraceLimits allows.
  operator bool() const;  // NOLINT: numbers are compared as if they were doubles

  // The opposite, without a decision.
  friend Truth operator!(const Truth& x) { return Truth(!x.expr_); }

 private:
  composit::Expr expr_;
};

// A symbolic number; it stands for a double in code that is written for one.
class Number {
 public:
  Number() : Number(0.0) {}  // zero
  // A literal.
  template <class T>
  requires std::integral<T> || std::floating_point<T> Number(T value)  // NOLINT
      : expr_(composit::Expr::literal(static_cast<double>(value), composit::DType::float64)) {}
  // 1 or 0, without a decision.
  Number(const Truth& truth);  // NOLINT: 1 or 0, without a decision
  // A Number of this expression, of float64.
  explicit Number(composit::Expr expr) : expr_(std::move(expr)) {}
  const composit::Expr& expr() const { return expr_; }  // an expression of float64

  // C++'s arithmetic and comparisons; a comparison decides when it becomes a bool.
  Number& operator+=(const Number& y) { return *this = *this + y; }
  Number& operator-=(const Number& y) { return *this = *this - y; }
  Number& operator*=(const Number& y) { return *this = *this * y; }
  Number& operator/=(const Number& y) { return *this = *this / y; }

  // Arithmetic makes expressions.
  friend Number operator+(const Number& x) { return x; }
  friend Number operator-(const Number& x) { return Number(-x.expr_); }
  friend Number operator+(const Number& x, const Number& y) { return Number(x.expr_ + y.expr_); }
  friend Number operator-(const Number& x, const Number& y) { return Number(x.expr_ - y.expr_); }
  friend Number operator*(const Number& x, const Number& y) { return Number(x.expr_ * y.expr_); }
  friend Number operator/(const Number& x, const Number& y) { return Number(x.expr_ / y.expr_); }
  // `x > y` is the decision `y < x`.
  friend Truth operator<(const Number& x, const Number& y) { return Truth(x.expr_ < y.expr_); }
  friend Truth operator>(const Number& x, const Number& y) { return Truth(y.expr_ < x.expr_); }
  friend Truth operator<=(const Number& x, const Number& y) { return Truth(x.expr_ <= y.expr_); }
  friend Truth operator>=(const Number& x, const Number& y) { return Truth(y.expr_ <= x.expr_); }
  friend Truth operator==(const Number& x, const Number& y) {
    return Truth(composit::eq(x.expr_, y.expr_));
  }
  friend Truth operator!=(const Number& x, const Number& y) {
    return Truth(!composit::eq(x.expr_, y.expr_));
  }

// clang-format off
#define FLASHLIGHT_UNARY(name) \
  friend Number name(const Number& x) { return Number(composit::name(x.expr_)); }
#define FLASHLIGHT_BINARY(name) \
  friend Number name(const Number& x, const Number& y) { return Number(composit::name(x.expr_, y.expr_)); }
  // The functions of <cmath> by their names, and `sign`.
  FLASHLIGHT_UNARY(abs) FLASHLIGHT_UNARY(exp) FLASHLIGHT_UNARY(exp2) FLASHLIGHT_UNARY(expm1)
  FLASHLIGHT_UNARY(log) FLASHLIGHT_UNARY(log2) FLASHLIGHT_UNARY(log10) FLASHLIGHT_UNARY(log1p)
  FLASHLIGHT_UNARY(sqrt) FLASHLIGHT_UNARY(sin) FLASHLIGHT_UNARY(cos) FLASHLIGHT_UNARY(tan)
  FLASHLIGHT_UNARY(asin) FLASHLIGHT_UNARY(acos) FLASHLIGHT_UNARY(atan) FLASHLIGHT_UNARY(sinh)
  FLASHLIGHT_UNARY(cosh) FLASHLIGHT_UNARY(tanh) FLASHLIGHT_UNARY(asinh) FLASHLIGHT_UNARY(acosh)
  FLASHLIGHT_UNARY(atanh) FLASHLIGHT_UNARY(erf) FLASHLIGHT_UNARY(erfc) FLASHLIGHT_UNARY(lgamma)
  FLASHLIGHT_UNARY(floor) FLASHLIGHT_UNARY(ceil) FLASHLIGHT_UNARY(trunc) FLASHLIGHT_UNARY(sign)
  FLASHLIGHT_BINARY(min) FLASHLIGHT_BINARY(max) FLASHLIGHT_BINARY(pow) FLASHLIGHT_BINARY(atan2)
  FLASHLIGHT_BINARY(hypot) FLASHLIGHT_BINARY(fmod) FLASHLIGHT_BINARY(copysign)
#undef FLASHLIGHT_UNARY
#undef FLASHLIGHT_BINARY
      // clang-format on
      // More of <cmath>.
      friend Number fabs(const Number& x) {
    return abs(x);
  }
  friend Truth isnan(const Number& x) { return Truth(composit::isnan(x.expr_)); }
  // x if `condition` holds, else y, without a decision: both are computed.
  friend Number select(const Truth& condition, const Number& x, const Number& y) {
    return Number(composit::select(condition.expr(), x.expr_, y.expr_));
  }

 private:
  composit::Expr expr_;
};

inline Number::Number(const Truth& truth) : Number(select(truth, Number(1.0), Number(0.0))) {}

using Numbers = std::vector<Number>;  // arguments or results

// The largest numbers of decisions and paths of a function.
struct TraceLimits {
  size_t decisions = 10000;  // on one path
  size_t paths = 1024;       // through the function
};

// Traces `f` with `parameters` numbers as a program of float64. UserError if `f` exceeds the
// limits, or gives another number of results on one path than on another.
composit::ScalarProgram trace_numbers(size_t parameters,
                                      const std::function<Numbers(const Numbers& x)>& f,
                                      const TraceLimits& limits = {});

}  // namespace flashlight
