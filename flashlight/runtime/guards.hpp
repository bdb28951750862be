// Checks that a number that the host read when the program was captured is that number again.
//
//   fl::expect(count, 3, "aten::item at model.cpp:12 (encoder)");
//   fl::require(valid, "aten::_assert_async: lengths are positive");
#pragma once

#include <sstream>

#include "flashlight/runtime/flashlight.hpp"

namespace fl {

// A guard that does not hold: "guard: aten::item at model.cpp:12 (encoder) gave 4, captured with
// 3".
class GuardError : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

namespace detail {

template <class T>
std::string text_of(T x) {
  std::ostringstream text;
  text.precision(std::numeric_limits<T>::max_digits10);
  text << +x;
  return text.str();
}
inline std::string text_of(bool x) { return x ? "true" : "false"; }
template <class T>
std::string text_of(std::complex<T> x) {
  return text_of(x.real()) + " + " + text_of(x.imag()) + "i";
}

}  // namespace detail

// Whole numbers are equal; real ones as near as results are (kTolerance): they were computed in
// another order.
template <class T>
void expect(const T& given, detail::Computed<T> captured, const char* place) {
  const detail::Computed<T> number = given;
  if (number == captured || (number != number && captured != captured)) return;
  if constexpr (kTolerance < T >> 0)
    if (std::abs(number - captured) <= kTolerance<T> * std::abs(captured)) return;
  throw GuardError(std::string("guard: ") + place + " gave " + detail::text_of(number) +
                   ", captured with " + detail::text_of(captured));
}

template <class T>
void require(T condition, const char* message) {
  if (!(condition != T(0))) throw GuardError(std::string("guard: ") + message);
}

}  // namespace fl
