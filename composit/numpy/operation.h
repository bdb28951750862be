// A function of yours as an operation: one node of the graph, with a name, that evaluates,
// differentiates, prints and saves like any other.
//
//   static const auto relu = cnp::wrap_as_operation(
//       "user::relu(Tensor x) -> Tensor", [](cnp::NdArray x) { return cnp::maximum(x, 0); });
//   cnp::NdArray y = relu(x);                                     // 2 nodes: x and user::relu
//
// The function is traced and becomes the decomposition of the operation, from which its derivative
// follows. A C++ function on values needs a whole row (composit/op/operation.h):
//
//   static const auto twice = cnp::wrap_as_operation(
//       {.schema = "user::twice(Tensor x) -> Tensor",
//        .infer = [](LazyTensor x) { return std::vector<Type>{x.type()}; },
//        .native = [](Array x) { return std::vector<Array>{...}; },
//        .vjp = [](Vjp v, LazyTensor x) { return Gradients{2 * v.cotangents[0]}; }});
//
// An operation is added once for the whole process: UserError where its name is taken.
#pragma once

#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

#include "composit/ir/symbol.h"
#include "composit/numpy/ndarray.h"
#include "composit/ops/operations.h"

namespace composit::numpy {

// Calls an operation. Result: NdArray for an operation with one, NdArrays for several.
template <class Result = NdArray>
class WrappedOperation {
 public:
  // The operation of that name, which has to be known to composit.
  explicit WrappedOperation(Symbol name) : name_(name) {}
  Symbol name() const { return name_; }  // "user::relu"

  // The operation's result for arrays, numbers, and lists of arrays. UserError as in apply().
  template <class... A>
  Result operator()(const A&... arguments) const {
    const LazyTensors results = apply(name_.str(), {value_of(arguments)...});
    if constexpr (std::is_same_v<Result, NdArrays>)
      return NdArrays(results.begin(), results.end());
    else
      return results.at(0);
  }

 private:
  static ArgumentValue value_of(const NdArrays& list) {
    return LazyTensors(list.begin(), list.end());
  }
  template <class A>
  static ArgumentValue value_of(const A& argument) {
    if constexpr (std::is_convertible_v<A, LazyTensor>)
      return argument;
    else
      return ArgumentValue(argument);
  }

  Symbol name_;
};

namespace detail {

// The rule's way to say what the function takes and gives.
template <class P>
struct InRule {
  using type = P;
};
template <>
struct InRule<NdArray> {
  using type = LazyTensor;
};
template <>
struct InRule<NdArrays> {
  using type = LazyTensors;
};
template <>
struct InRule<std::optional<NdArray>> {
  using type = std::optional<LazyTensor>;
};
inline LazyTensors as_tensors(const NdArray& result) { return {result}; }
inline LazyTensors as_tensors(const NdArrays& results) { return {results.begin(), results.end()}; }

template <class F, class Signature = decltype(&F::operator())>
struct Decomposition;
template <class F, class R, class... P>
struct Decomposition<F, R (F::*)(P...) const> {
  using Result = std::conditional_t<std::is_same_v<R, NdArrays>, NdArrays, NdArray>;
  LazyTensors operator()(typename InRule<std::decay_t<P>>::type... arguments) const {
    return as_tensors(F{}(given<std::decay_t<P>>(arguments)...));
  }
  template <class Q, class A>
  static Q given(const A& argument) {
    if constexpr (std::is_same_v<Q, NdArrays>)
      return NdArrays(argument.begin(), argument.end());
    else
      return Q(argument);
  }
};

// Adds the row under a schema that lasts, and gives the operation's name.
Symbol add_wrapped(std::string_view schema, Row row);

}  // namespace detail

// `function`: a lambda without captures; its parameters are as in composit/op/rule.h, with NdArray
// for tensors, and mirror the schema.
template <class F>
requires std::is_empty_v<F>
auto wrap_as_operation(std::string_view schema, F) {
  using D = detail::Decomposition<F>;
  return WrappedOperation<typename D::Result>(
      detail::add_wrapped(schema, {.schema = schema, .decompose = D{}}));
}

// An operation of the row, whose schema need not outlive the call. UserError as in add_operation().
template <class Result = NdArray>
WrappedOperation<Result> wrap_as_operation(const Row& row) {
  return WrappedOperation<Result>(detail::add_wrapped(row.schema, row));
}

}  // namespace composit::numpy
