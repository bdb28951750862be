// Turns C++ functions of numbers into expressions, with their derivatives.
//
//   auto relu3 = flashlight::scalar([](auto x) {
//     if (x < 0.0) return 0.0 * x;
//     if (x < 1.0) return 1.0 / 3.0 * x * x * x;
//     return x - 2.0 / 3.0;
//   });
//   relu3(0.5);                         // a number, interpreted
//   relu3.vjp({0.5}, {1.0});            // {0.25}
//   relu3.tensor(x);                    // for each element: a node of the graph, one loop
//   print(relu3.program());             // the form that a backend gets
//
// The function may have several parameters (they are counted: `[](auto x, auto y)`), and gives a
// number, or a std::pair, std::tuple, std::array or std::vector of numbers. See
// flashlight/scalar/number.h for what it may do with them.
#pragma once

#include <array>
#include <tuple>
#include <type_traits>
#include <utility>
#include <vector>

#include "composit/ir/node.h"
#include "flashlight/scalar/number.h"

namespace flashlight {

// A function of numbers with its branches, as an expression of float64.
class ScalarFunction {
 public:
  explicit ScalarFunction(composit::ScalarProgram program);

  // The program, and its results as expressions of its parameters.
  const composit::ScalarProgram& program() const { return program_; }
  const std::vector<composit::Expr>& exprs() const { return program_.results; }
  // The expression of a function with one result; UserError for others.
  const composit::Expr& expr() const;

  // All results at these values, in float64. UserError for another number of values.
  std::vector<double> values(const std::vector<double>& x) const;
  // The result of a function with one; UserError for others.
  template <std::convertible_to<double>... X>
  double operator()(X... x) const {
    return only(values({static_cast<double>(x)...}));
  }

  // A gradient per parameter, for a cotangent per result.
  std::vector<double> vjp(const std::vector<double>& x,
                          const std::vector<double>& cotangents) const;
  // The function (x..., cotangents...) -> gradients.
  ScalarFunction vjp() const;

  // Applies the function to each element of tensors, which broadcast, as a node `composit::loops`.
  // One tensor per result.
  composit::LazyTensors tensors(const composit::LazyTensors& x) const;
  template <std::convertible_to<composit::LazyTensor>... X>
  composit::LazyTensor tensor(const X&... x) const {
    expr();
    return tensors({x...})[0];
  }

 private:
  double only(const std::vector<double>& results) const;
  composit::ScalarProgram program_;
};

namespace detail {

template <class F, class... Before>
constexpr size_t count_parameters() {
  if constexpr (std::is_invocable_v<const F&, Before..., Number>)
    return sizeof...(Before) + 1;
  else if constexpr (sizeof...(Before) < 15)
    return count_parameters<F, Before..., Number>();
  else
    static_assert(!std::is_same_v<F, F>, "expected a function of 1 to 16 numbers");
}

template <class T>
struct ResultsOf {  // a number
  static Numbers numbers(const T& result) { return {Number(result)}; }
};
template <class... T>
struct ResultsOf<std::tuple<T...>> {
  static Numbers numbers(const std::tuple<T...>& result) {
    return std::apply([](const auto&... x) { return Numbers{Number(x)...}; }, result);
  }
};
template <class A, class B>
struct ResultsOf<std::pair<A, B>> : ResultsOf<std::tuple<A, B>> {};
template <class T, size_t N>
struct ResultsOf<std::array<T, N>> {
  static Numbers numbers(const std::array<T, N>& result) { return {result.begin(), result.end()}; }
};
template <class T>
struct ResultsOf<std::vector<T>> {
  static Numbers numbers(const std::vector<T>& result) { return {result.begin(), result.end()}; }
};

}  // namespace detail

// `f`: a function of 1 to 16 numbers (generic, or of Numbers) that gives a number, a pair, tuple,
// array or vector of them. UserError as of trace_numbers.
template <class F>
ScalarFunction scalar(const F& f, const TraceLimits& limits = {}) {
  constexpr size_t kParameters = detail::count_parameters<F>();
  const auto call = [&]<size_t... I>(const Numbers& x, std::index_sequence<I...>) {
    const auto result = f(x[I]...);
    return detail::ResultsOf<std::remove_const_t<decltype(result)>>::numbers(result);
  };
  return ScalarFunction(trace_numbers(
      kParameters,
      [&](const Numbers& x) { return call(x, std::make_index_sequence<kParameters>()); }, limits));
}

}  // namespace flashlight
