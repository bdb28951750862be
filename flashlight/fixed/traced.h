// The same functions on values of the graph: what is written for tensors whose sizes are types
// becomes a graph, which is compiled, differentiated and written as any other one.
//
//   const auto f = [](auto x, auto weight) { return softmax<-1>(linear(x, weight)); };
//   f(Tensor<float, 4, 8>(), Tensor<float, 3, 8>());                         // at once: 4 x 3
//   composit::Graph graph = graph_of<Tensor<float, 128, 768>, Tensor<float, 16, 768>>(f);
//
// A size that does not fit does not compile, as for Tensor.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <tuple>
#include <type_traits>
#include <utility>

#include "composit/ir/error.h"
#include "composit/ir/graph.h"
#include "composit/ir/node.h"
#include "composit/ir/print.h"
#include "composit/ops/functions.h"
#include "flashlight/fixed/fixed.h"

namespace flashlight::fixed {

// A value of the graph, of elements T and these sizes.
template <class T, int64_t... kAxes>
struct Traced {
  using Element = T;                                      // of the tensor
  using Shape = fixed::Shape<kAxes...>;                   // its sizes
  static constexpr size_t kRank = Shape::kRank;           // the number of axes
  static constexpr int64_t kElements = Shape::kElements;  // the number of elements

  composit::LazyTensor value;  // in the graph
};

namespace detail {

template <class T>
constexpr composit::DType dtype_of() {
  if constexpr (std::is_same_v<T, float>)
    return composit::DType::float32;
  else if constexpr (std::is_same_v<T, double>)
    return composit::DType::float64;
  else if constexpr (std::is_same_v<T, bool>)
    return composit::DType::bool_;
  else if constexpr (std::is_same_v<T, int32_t>)
    return composit::DType::int32;
  else if constexpr (std::is_same_v<T, int64_t>)
    return composit::DType::int64;
  else
    static_assert(!std::is_same_v<T, T>, "a traced tensor has floats, doubles, bools or integers");
}

template <class T, class S>
struct TracedOfShape;
template <class T, int64_t... kAxes>
struct TracedOfShape<T, Shape<kAxes...>> {
  using type = Traced<T, kAxes...>;
};
template <class T, class S>
using TracedOf = typename TracedOfShape<T, S>::type;

template <class X>
struct IsTraced : std::false_type {};
template <class T, int64_t... kAxes>
struct IsTraced<Traced<T, kAxes...>> : std::true_type {};

template <class S>
composit::Ints ints_of() {
  return {S::kSizes.begin(), S::kSizes.end()};
}

}  // namespace detail

template <class X>
concept AnyTraced = detail::IsTraced<X>::value;

namespace detail {

template <class S, class T>
auto traced(composit::LazyTensor value) {
  return TracedOf<T, S>{std::move(value)};
}
template <class T, AnyNumber N>
composit::Number traced_number(N number) {
  if constexpr (std::is_floating_point_v<T>)
    return static_cast<double>(number_of<T>(number));
  else
    return static_cast<int64_t>(number_of<T>(number));
}

}  // namespace detail

#define FLASHLIGHT_FIXED_BINARY(name, Result, kFits, message)           \
  template <AnyTraced A, AnyTraced B>                                   \
  auto name(const A& a, const B& b) {                                   \
    using T = typename A::Element;                                      \
    static_assert(std::is_same_v<T, typename B::Element>,               \
                  "the elements of both operands have one type");       \
    static_assert(kFits, message);                                      \
    using S = Broadcast<typename A::Shape, typename B::Shape>;          \
    return detail::traced<S, Result>(composit::name(a.value, b.value)); \
  }                                                                     \
  template <AnyTraced A, AnyNumber B>                                   \
  auto name(const A& a, B b) {                                          \
    using T = typename A::Element;                                      \
    static_assert(kFits, message);                                      \
    return detail::traced<typename A::Shape, Result>(                   \
        composit::name(a.value, detail::traced_number<T>(b)));          \
  }                                                                     \
  template <AnyNumber A, AnyTraced B>                                   \
  auto name(A a, const B& b) {                                          \
    using T = typename B::Element;                                      \
    static_assert(kFits, message);                                      \
    return detail::traced<typename B::Shape, Result>(                   \
        composit::name(detail::traced_number<T>(a), b.value));          \
  }
#define FLASHLIGHT_FIXED_ARITHMETIC(name)                      \
  FLASHLIGHT_FIXED_BINARY(name, T, (!std::is_same_v<T, bool>), \
                          "arithmetic of bools: convert them by to<float>(x)")
#define FLASHLIGHT_FIXED_QUOTIENT(name)                         \
  FLASHLIGHT_FIXED_BINARY(name, T, std::is_floating_point_v<T>, \
                          "division of integers: convert them by to<float>(x)")
#define FLASHLIGHT_FIXED_COMPARISON(name) FLASHLIGHT_FIXED_BINARY(name, bool, true, "")
// Those of Tensor (functions.h), as nodes of the graph.
FLASHLIGHT_FIXED_ARITHMETIC(operator+)
FLASHLIGHT_FIXED_ARITHMETIC(operator-)
FLASHLIGHT_FIXED_ARITHMETIC(operator*)
FLASHLIGHT_FIXED_QUOTIENT(operator/)
FLASHLIGHT_FIXED_ARITHMETIC(maximum)
FLASHLIGHT_FIXED_ARITHMETIC(minimum)
FLASHLIGHT_FIXED_COMPARISON(operator<)
FLASHLIGHT_FIXED_COMPARISON(operator>)
FLASHLIGHT_FIXED_COMPARISON(operator<=)
FLASHLIGHT_FIXED_COMPARISON(operator>=)
#undef FLASHLIGHT_FIXED_COMPARISON
#undef FLASHLIGHT_FIXED_QUOTIENT
#undef FLASHLIGHT_FIXED_ARITHMETIC
#undef FLASHLIGHT_FIXED_BINARY

#define FLASHLIGHT_FIXED_FLOATING(name)                          \
  template <AnyTraced X>                                         \
  X name(const X& x) {                                           \
    static_assert(std::is_floating_point_v<typename X::Element>, \
                  "expected floating point elements");           \
    return {composit::name(x.value)};                            \
  }
// Those of Tensor (functions.h), as nodes of the graph.
FLASHLIGHT_FIXED_FLOATING(exp)
FLASHLIGHT_FIXED_FLOATING(log)
FLASHLIGHT_FIXED_FLOATING(tanh)
FLASHLIGHT_FIXED_FLOATING(erf)
FLASHLIGHT_FIXED_FLOATING(sin)
FLASHLIGHT_FIXED_FLOATING(cos)
FLASHLIGHT_FIXED_FLOATING(sqrt)
FLASHLIGHT_FIXED_FLOATING(sigmoid)
#undef FLASHLIGHT_FIXED_FLOATING

// x/2 (1 + erf(x / sqrt(2))) of each element.
template <AnyTraced X>
X gelu(const X& x) {
  static_assert(std::is_floating_point_v<typename X::Element>, "expected floating point elements");
  return {composit::apply_one("aten::gelu", {x.value, "none"})};
}
// Each element with the other sign.
template <AnyTraced X>
X operator-(const X& x) {
  return {composit::operator-(x.value)};
}
// The magnitude of each element.
template <AnyTraced X>
X abs(const X& x) {
  return {composit::abs(x.value)};
}
template <AnyTraced X>
X relu(const X& x) {
  return {composit::relu(x.value)};
}
template <class To, AnyTraced X>
auto to(const X& x) {
  return detail::traced<typename X::Shape, To>(composit::to(x.value, detail::dtype_of<To>()));
}
template <AnyTraced C, AnyTraced X, AnyTraced Y>
auto where(const C& condition, const X& x, const Y& y) {
  using T = typename X::Element;
  static_assert(std::is_same_v<typename C::Element, bool>, "where: expected a condition of bools");
  static_assert(std::is_same_v<T, typename Y::Element>, "where: both values have one type");
  using S = Broadcast<typename C::Shape, typename X::Shape, typename Y::Shape>;
  return detail::traced<S, T>(composit::where(condition.value, x.value, y.value));
}

template <int64_t... kAxes, AnyTraced X>
auto reshape(const X& x) {
  using S = fixed::Shape<kAxes...>;
  constexpr int64_t kWanted = S::kElements, kGiven = X::kElements;
  static_assert(kWanted == kGiven, "reshape: the new sizes have another number of elements");
  return detail::traced<S, typename X::Element>(composit::reshape(x.value, {kAxes...}));
}
template <int64_t kFirst, int64_t... kAxes, AnyTraced X>
auto transpose(const X& x) {
  using S = Permuted<typename X::Shape, kFirst, kAxes...>;
  return detail::traced<S, typename X::Element>(composit::permute(x.value, {kFirst, kAxes...}));
}
template <AnyTraced X>
auto transpose(const X& x) {
  static_assert(X::kRank >= 2, "transpose: expected a matrix, or batches of them");
  return [&]<size_t... kBefore>(std::index_sequence<kBefore...>) {
    return transpose<static_cast<int64_t>(kBefore)..., -1, -2>(x);
  }
  (std::make_index_sequence<X::kRank - 2>());
}

#define FLASHLIGHT_FIXED_REDUCTION(name)                                                       \
  template <int64_t... kAxes, AnyTraced X, std::same_as<Keep>... How>                          \
  auto name(const X& x, How...) {                                                              \
    constexpr bool kKeep = sizeof...(How) > 0;                                                 \
    using S = Reduced<typename X::Shape, kKeep, kAxes...>;                                     \
    return detail::traced<S, typename X::Element>(composit::name(x.value, {kAxes...}, kKeep)); \
  }
FLASHLIGHT_FIXED_REDUCTION(sum)
FLASHLIGHT_FIXED_REDUCTION(mean)
FLASHLIGHT_FIXED_REDUCTION(amax)
#undef FLASHLIGHT_FIXED_REDUCTION

template <int64_t kAxis, AnyTraced X>
X softmax(const X& x) {
  static_assert(detail::axis_of(kAxis, X::kRank) < X::kRank,
                "softmax: expected an axis that the tensor has");
  return {composit::softmax(x.value, kAxis)};
}
template <AnyTraced A, AnyTraced B>
auto matmul(const A& a, const B& b) {
  using T = typename A::Element;
  static_assert(std::is_same_v<T, typename B::Element>, "matmul: both operands have one type");
  using S = Product<typename A::Shape, typename B::Shape>;
  return detail::traced<S, T>(composit::matmul(a.value, b.value));
}
template <Subscripts kSubscripts, AnyTraced First, AnyTraced... Others>
auto einsum(const First& first, const Others&... others) {
  static_assert((std::is_same_v<typename First::Element, typename Others::Element> && ...),
                "einsum: the elements of all operands have one type");
  using S = typename detail::EinsumShape<kSubscripts, typename First::Shape,
                                         typename Others::Shape...>::type;
  return detail::traced<S, typename First::Element>(composit::apply_one(
      "aten::einsum",
      {std::string(kSubscripts.text), composit::LazyTensors{first.value, others.value...}}));
}

// ---- graphs -------------------------------------------------------------------------------------

namespace detail {

template <AnyTraced X>
composit::LazyTensors values_of(const X& result) {
  return {result.value};
}
template <AnyTraced... X>
composit::LazyTensors values_of(const std::tuple<X...>& results) {
  return std::apply([](const X&... x) { return composit::LazyTensors{x.value...}; }, results);
}

}  // namespace detail

// A function of tensors of the graph, for flashlight::compile, derivatives and others that take
// one. UserError for tensors of other types than these. `f` gives one tensor, or a std::tuple of
// them.
template <AnyTensor... Arguments, class F>
composit::TensorFunction function_of(F f) {
  return [f = std::move(f)](const composit::LazyTensors& inputs) {
    const std::array types = {
        composit::tensor_type(detail::dtype_of<typename Arguments::Element>(),
                              detail::ints_of<typename Arguments::Shape>())...};
    if (inputs.size() != types.size())
      throw composit::UserError("expected " + std::to_string(types.size()) + " tensors, received " +
                                std::to_string(inputs.size()));
    for (size_t i = 0; i < types.size(); ++i)
      if (inputs[i].dtype() != types[i].dtype || inputs[i].sizes() != types[i].sizes)
        throw composit::UserError("argument " + std::to_string(i) + ": expected " +
                                  composit::print(types[i]) + ", received " +
                                  composit::print(inputs[i].type()));
    return [&]<size_t... kWhich>(std::index_sequence<kWhich...>) {
      return detail::values_of(
          f(detail::TracedOf<typename Arguments::Element, typename Arguments::Shape>{
              inputs[kWhich]}...));
    }
    (std::index_sequence_for<Arguments...>());
  };
}

// The graph of such a function, with inputs "x0", "x1", ...
template <AnyTensor... Arguments, class F>
composit::Graph graph_of(const F& f) {
  composit::Graph::Parts parts;
  (parts.inputs.push_back(
       composit::input("x" + std::to_string(parts.inputs.size()),
                       composit::tensor_type(detail::dtype_of<typename Arguments::Element>(),
                                             detail::ints_of<typename Arguments::Shape>()))),
   ...);
  parts.outputs = function_of<Arguments...>(f)(parts.inputs);
  return composit::Graph(std::move(parts));
}

}  // namespace flashlight::fixed
