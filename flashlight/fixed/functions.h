// Operations on tensors whose sizes are types, evaluated at once.
//
//   Tensor<float, 2, 128, 64> q, k;
//   auto scores = softmax<-1>(matmul(q, transpose<0, 2, 1>(k)) * 0.125f);     // 2 x 128 x 128
//
// matmul(q, k) would not compile, and say why.
//
// All of it is inlined loops whose bounds the compiler knows: right for tensors that fit in a
// cache, inside of somebody's inner loop. For larger ones trace the same function (fixed/traced.h)
// and compile it.
#pragma once

#include <cmath>
#include <concepts>
#include <cstdint>
#include <limits>
#include <type_traits>
#include <utility>

#include "flashlight/fixed/small_product.h"
#include "flashlight/fixed/tensor.h"
#include "flashlight/runtime/functions.hpp"

namespace flashlight::fixed {

// Reductions with it keep their axes, with size 1: sum<-1>(x, keep).
struct Keep {};
inline constexpr Keep keep = {};

namespace detail {

template <class X>
struct IsTensor : std::false_type {};
template <class T, int64_t... kAxes>
struct IsTensor<Tensor<T, kAxes...>> : std::true_type {};

}  // namespace detail

template <class X>
concept AnyTensor = detail::IsTensor<X>::value;
template <class T>
concept AnyNumber = std::is_arithmetic_v<T>;

// ---- element by element -------------------------------------------------------------------------

// f of the elements that belong together; the tensors broadcast.
template <class F, AnyTensor... Operands>
auto map(const F& f, const Operands&... operands) {
  using S = Broadcast<typename Operands::Shape...>;
  using Result = decltype(f(*operands.data()...));
  TensorOf<Result, S> y{detail::Unwritten{}};
  if constexpr ((std::is_same_v<S, typename Operands::Shape> && ...)) {
    for (int64_t i = 0; i < S::kElements; ++i) y.data()[i] = f(operands.data()[i]...);
  } else {
    detail::for_each_index<detail::BroadcastLoops<S, typename Operands::Shape...>>(
        [&](Result* to, const auto*... from) { *to = f(*from...); }, y.data(), operands.data()...);
  }
  return y;
}

namespace detail {

// A number beside tensors of T takes their type.
template <class T, AnyNumber N>
constexpr T number_of(N number) {
  static_assert(std::is_floating_point_v<T> || std::is_integral_v<N>,
                "a floating point number beside integers: convert the tensor, to<float>(x)");
  return static_cast<T>(number);
}

}  // namespace detail

#define FLASHLIGHT_FIXED_BINARY(name, Result, kFits, message, expression)                          \
  template <AnyTensor A, AnyTensor B>                                                              \
  auto name(const A& a, const B& b) {                                                              \
    using T = typename A::Element;                                                                 \
    static_assert(std::is_same_v<T, typename B::Element>,                                          \
                  "the elements of both operands have one type");                                  \
    static_assert(kFits, message);                                                                 \
    return map([](T x, T y) { return static_cast<Result>(expression); }, a, b);                    \
  }                                                                                                \
  template <AnyTensor A, AnyNumber B>                                                              \
  auto name(const A& a, B b) {                                                                     \
    using T = typename A::Element;                                                                 \
    static_assert(kFits, message);                                                                 \
    return map([y = detail::number_of<T>(b)](T x) { return static_cast<Result>(expression); }, a); \
  }                                                                                                \
  template <AnyNumber A, AnyTensor B>                                                              \
  auto name(A a, const B& b) {                                                                     \
    using T = typename B::Element;                                                                 \
    static_assert(kFits, message);                                                                 \
    return map([x = detail::number_of<T>(a)](T y) { return static_cast<Result>(expression); }, b); \
  }
#define FLASHLIGHT_FIXED_ARITHMETIC(name, expression)          \
  FLASHLIGHT_FIXED_BINARY(name, T, (!std::is_same_v<T, bool>), \
                          "arithmetic of bools: convert them by to<float>(x)", expression)
#define FLASHLIGHT_FIXED_QUOTIENT(name, expression)             \
  FLASHLIGHT_FIXED_BINARY(name, T, std::is_floating_point_v<T>, \
                          "division of integers: convert them by to<float>(x)", expression)
#define FLASHLIGHT_FIXED_COMPARISON(name, expression) \
  FLASHLIGHT_FIXED_BINARY(name, bool, true, "", expression)
// Two tensors of the same elements, which broadcast, or a tensor and a number, which takes the type
// of the tensor's elements.
FLASHLIGHT_FIXED_ARITHMETIC(operator+, x + y)
FLASHLIGHT_FIXED_ARITHMETIC(operator-, x - y)
FLASHLIGHT_FIXED_ARITHMETIC(operator*, x* y)
FLASHLIGHT_FIXED_QUOTIENT(operator/, x / y)
// The larger, the smaller one; NaN where one of them is.
FLASHLIGHT_FIXED_ARITHMETIC(maximum, x != x || x > y ? x : y)
FLASHLIGHT_FIXED_ARITHMETIC(minimum, x != x || x < y ? x : y)
// Tensors of bool.
FLASHLIGHT_FIXED_COMPARISON(operator<, x < y)
FLASHLIGHT_FIXED_COMPARISON(operator>, x > y)
FLASHLIGHT_FIXED_COMPARISON(operator<=, x <= y)
FLASHLIGHT_FIXED_COMPARISON(operator>=, x >= y)
#undef FLASHLIGHT_FIXED_COMPARISON
#undef FLASHLIGHT_FIXED_QUOTIENT
#undef FLASHLIGHT_FIXED_ARITHMETIC
#undef FLASHLIGHT_FIXED_BINARY

#define FLASHLIGHT_FIXED_UNARY(name, expression)                 \
  template <AnyTensor X>                                         \
  auto name(const X& tensor) {                                   \
    static_assert(std::is_floating_point_v<typename X::Element>, \
                  "expected floating point elements");           \
    using T [[maybe_unused]] = typename X::Element;              \
    return map([](T x) { return expression; }, tensor);          \
  }
// Functions of floating point numbers, element by element. Their errors: runtime/functions.hpp.
FLASHLIGHT_FIXED_UNARY(exp, fl::detail::exp(x))
FLASHLIGHT_FIXED_UNARY(log, fl::detail::log(x))
FLASHLIGHT_FIXED_UNARY(tanh, fl::detail::tanh(x))
FLASHLIGHT_FIXED_UNARY(erf, fl::detail::erf(x))
FLASHLIGHT_FIXED_UNARY(sin, fl::detail::sin(x))
FLASHLIGHT_FIXED_UNARY(cos, fl::detail::cos(x))
FLASHLIGHT_FIXED_UNARY(sqrt, std::sqrt(x))
FLASHLIGHT_FIXED_UNARY(sigmoid, T(1) / (T(1) + fl::detail::exp(-x)))
// x/2 (1 + erf(x / sqrt(2))): the exact form.
FLASHLIGHT_FIXED_UNARY(gelu, x* T(0.5) * (T(1) + fl::detail::erf(x * T(0.70710678118654752440))))
#undef FLASHLIGHT_FIXED_UNARY

template <AnyTensor X>
X operator-(const X& x) {
  return map([](auto one) { return static_cast<typename X::Element>(-one); }, x);
}
template <AnyTensor X>
X abs(const X& x) {
  return map([](auto one) { return static_cast<typename X::Element>(std::abs(one)); }, x);
}
// NaN stays.
template <AnyTensor X>
X relu(const X& x) {
  return map([](auto one) { return one < 0 ? decltype(one){} : one; }, x);
}
template <class To, AnyTensor X>
auto to(const X& x) {
  return map([](auto one) { return static_cast<To>(one); }, x);
}

// x where `condition` holds, y elsewhere; the three broadcast.
template <AnyTensor C, AnyTensor X, AnyTensor Y>
auto where(const C& condition, const X& x, const Y& y) {
  using T = typename X::Element;
  static_assert(std::is_same_v<typename C::Element, bool>, "where: expected a condition of bools");
  static_assert(std::is_same_v<T, typename Y::Element>, "where: both values have one type");
  return map([](bool first, T a, T b) { return first ? a : b; }, condition, x, y);
}

// ---- where elements lie -------------------------------------------------------------------------

// The same elements in other sizes, as many.
template <int64_t... kAxes, AnyTensor X>
auto reshape(const X& x) {
  using Result = Tensor<typename X::Element, kAxes...>;
  constexpr int64_t kWanted = Result::kElements, kGiven = X::kElements;
  static_assert(kWanted == kGiven, "reshape: the new sizes have another number of elements");
  return Result::copy_of(x.data());
}

namespace detail {

template <class Result, class Operand, class How>
struct PermutedLoops {
  static constexpr auto kSizes = Result::kSizes;
  static constexpr std::array kStrides = {row_major(kSizes),
                                          permuted(row_major(Operand::kSizes), How::kWhich)};
};

}  // namespace detail

// Axis i of the result is axis kAxes[i] of x: transpose<0, 2, 1>(x).
template <int64_t kFirst, int64_t... kAxes, AnyTensor X>
auto transpose(const X& x) {
  using How = detail::PermutedShape<typename X::Shape, kFirst, kAxes...>;
  using S = typename How::type;
  TensorOf<typename X::Element, S> y{detail::Unwritten{}};
  detail::for_each_index<detail::PermutedLoops<S, typename X::Shape, How>>(
      [](auto* to, const auto* from) { *to = *from; }, y.data(), x.data());
  return y;
}
// The last two axes exchanged.
template <AnyTensor X>
auto transpose(const X& x) {
  static_assert(X::kRank >= 2, "transpose: expected a matrix, or batches of them");
  constexpr int64_t kLast = static_cast<int64_t>(X::kRank) - 1;
  return [&]<size_t... kBefore>(std::index_sequence<kBefore...>) {
    return transpose<static_cast<int64_t>(kBefore)..., kLast, kLast - 1>(x);
  }
  (std::make_index_sequence<X::kRank - 2>());
}

// ---- reductions ---------------------------------------------------------------------------------

namespace detail {

// Combines the elements over axes in their order, from `start` on.
template <bool kKeep, int64_t... kAxes, AnyTensor X, class F>
auto reduce(const X& x, typename X::Element start, const F& combine) {
  using T = typename X::Element;
  using How = ReducedShape<typename X::Shape, kKeep, kAxes...>;
  auto y = TensorOf<T, typename How::type>::full(start);
  for_each_index<BroadcastLoops<typename X::Shape, typename How::Kept>>(
      [&](const T* from, T* to) { *to = combine(*to, *from); }, x.data(), y.data());
  return y;
}

}  // namespace detail

// Over these axes, all if none is named; they are left out, or with `keep` have size 1:
// sum<-1>(x, keep). A sum adds in the order of the elements.
template <int64_t... kAxes, AnyTensor X, std::same_as<Keep>... How>
auto sum(const X& x, How...) {
  using T = typename X::Element;
  return detail::reduce<(sizeof...(How) > 0), kAxes...>(
      x, T{}, [](T a, T b) { return static_cast<T>(a + b); });
}
template <int64_t... kAxes, AnyTensor X, std::same_as<Keep>... How>
auto mean(const X& x, How... how) {
  using T = typename X::Element;
  static_assert(std::is_floating_point_v<T>, "mean: expected floating point elements");
  const auto total = sum<kAxes...>(x, how...);
  return total / (X::kElements / std::max<int64_t>(decltype(total)::kElements, 1));
}
// The largest; NaN where one of them is.
template <int64_t... kAxes, AnyTensor X, std::same_as<Keep>... How>
auto amax(const X& x, How...) {
  using T = typename X::Element;
  static_assert(X::kElements > 0 || decltype(sum<kAxes...>(x))::kElements == 0,
                "amax: expected at least one element");
  constexpr T kLeast = std::numeric_limits<T>::has_infinity ? -std::numeric_limits<T>::infinity()
                                                            : std::numeric_limits<T>::lowest();
  return detail::reduce<(sizeof...(How) > 0), kAxes...>(
      x, kLeast, [](T a, T b) { return a != a || a > b ? a : b; });
}

// exp(x) / sum(exp(x)) along an axis, without overflow.
template <int64_t kAxis, AnyTensor X>
X softmax(const X& x) {
  if constexpr (X::kElements == 0) {
    return x;
  } else {
    const X e = exp(x - amax<kAxis>(x, keep));
    return e / sum<kAxis>(e, keep);
  }
}

// ---- products -----------------------------------------------------------------------------------

namespace detail {

// Over the matrices of a batch.
template <class A, class B>
struct ProductLoops {
  static constexpr int64_t kRows = rows_of(A::kSizes), kTerms = A::kSizes[A::kRank - 1],
                           kColumns = columns_of(B::kSizes);
  static constexpr auto kLeft = batch_of(A::kSizes), kRight = batch_of(B::kSizes);
  static constexpr auto kSizes = broadcast(kLeft, kRight);
  static constexpr auto in_elements(Sizes<kSizes.size()> strides, int64_t matrix) {
    for (int64_t& stride : strides) stride *= matrix;
    return strides;
  }
  static constexpr std::array kStrides = {
      in_elements(row_major(kSizes), kRows* kColumns),
      in_elements(broadcast_strides(kLeft, kSizes), kRows* kTerms),
      in_elements(broadcast_strides(kRight, kSizes), kTerms* kColumns)};
};

}  // namespace detail

// Products of matrices, the last two axes; those before broadcast. A vector is one row on the left,
// one column on the right, which the result does not have.
template <AnyTensor A, AnyTensor B>
auto matmul(const A& a, const B& b) {
  using T = typename A::Element;
  static_assert(std::is_same_v<T, typename B::Element>, "matmul: both operands have one type");
  using S = Product<typename A::Shape, typename B::Shape>;
  using Loops = detail::ProductLoops<typename A::Shape, typename B::Shape>;
  TensorOf<T, S> y{detail::Unwritten{}};
  detail::for_each_index<Loops>(
      [](T* to, const T* left, const T* right) {
        detail::small_product<T, Loops::kRows, Loops::kTerms, Loops::kColumns>(left, right, to);
      },
      y.data(), a.data(), b.data());
  return y;
}

// A tensor, or one that is traced (traced.h).
template <class X>
concept AnyValue = requires {
  typename X::Shape;
  typename X::Element;
};

// x weight^T: weight [out][in] as LibTorch's, for each row of in elements.
template <AnyValue X, AnyValue W>
auto linear(const X& x, const W& weight) {
  static_assert(W::kRank == 2, "linear: expected a weight [out][in]");
  constexpr int64_t kIn = X::Shape::kSizes[X::kRank - 1], kExpected = W::Shape::kSizes[1];
  static_assert(kIn == kExpected, "linear: x has other columns than the weight [out][in]");
  return matmul(x, transpose(weight));
}
template <AnyValue X, AnyValue W, AnyValue B>
auto linear(const X& x, const W& weight, const B& bias) {
  constexpr int64_t kBias = B::kElements, kOut = W::Shape::kSizes[0];
  static_assert(B::kRank == 1 && kBias == kOut,
                "linear: expected a bias [out] for a weight [out][in]");
  return linear(x, weight) + bias;
}

}  // namespace flashlight::fixed
