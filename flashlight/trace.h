// Captures a LibTorch program as a graph.
//
//   auto captured = flashlight::trace(model, x);                 // a module, or any callable
//   at::Tensor y = captured(x2);
//
//   auto typed = flashlight::trace<Output(Input, at::Tensor)>(step, in, t);    // of this signature
//
// Arguments and results are whatever structure.h takes apart. Parameters and buffers of a module
// are inputs under their names; TraceSettings::named gives those of modules that a lambda uses. The
// program runs once, for real.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include "flashlight/capture.h"

namespace flashlight {

namespace detail {

template <class T>
concept HasNamedParameters = requires(T& module) {
  module.named_parameters();
  module.named_buffers();
};
template <class T>
concept HoldsModule = requires(T& holder) {
  { *holder } -> HasNamedParameters;
};

// OrderedDict's items have key() and value(), TorchScript's name and value.
template <class Items>
void add_named(const Items& items, const std::string& prefix, composit::InputKind kind,
               std::vector<NamedTensor>& named) {
  for (const auto& item : items) {
    if constexpr (requires { item.key(); })
      named.push_back({prefix + item.key(), item.value(), kind});
    else
      named.push_back({prefix + item.name, item.value, kind});
  }
}

template <class T>
void add_module(T& module, const std::string& prefix, std::vector<NamedTensor>& named) {
  if constexpr (HoldsModule<T>) {
    add_module(*module, prefix, named);
  } else if constexpr (HasNamedParameters<T>) {
    add_named(module.named_parameters(), prefix, composit::InputKind::parameter, named);
    add_named(module.named_buffers(), prefix, composit::InputKind::buffer, named);
  }
}

template <class T, class... Arguments>
decltype(auto) call(T& program, Arguments&&... arguments) {
  // `forward` first: a holder's call operator does not know the result of a templated one
  // (Sequential's).
  if constexpr (requires { program->forward(std::forward<Arguments>(arguments)...); })
    return program->forward(std::forward<Arguments>(arguments)...);
  else if constexpr (requires { program.forward(std::forward<Arguments>(arguments)...); })
    return program.forward(std::forward<Arguments>(arguments)...);
  else
    return std::invoke(program, std::forward<Arguments>(arguments)...);
}

template <class T, class... Arguments>
using ResultOf = std::decay_t<decltype(call(std::declval<T&>(), std::declval<Arguments>()...))>;

// A module given by reference stays where it is; holders and callables are copied, so that the
// capture can run them again.
template <class T>
auto keep(T&& program) {
  using Plain = std::remove_reference_t<T>;
  if constexpr (std::is_lvalue_reference_v<T> &&
                (!std::is_copy_constructible_v<Plain> || HasNamedParameters<Plain>))
    return std::shared_ptr<Plain>(&program, [](Plain*) {});
  else
    return std::make_shared<std::decay_t<T>>(std::forward<T>(program));
}

template <class Signature>
struct Flat;

template <class Result, class... Arguments>
struct Flat<Result(Arguments...)> {
  using Tuple = std::tuple<std::decay_t<Arguments>...>;

  template <class T>
  static Program program(std::shared_ptr<T> callable, Structure arguments) {
    return [callable, arguments](const std::vector<at::Tensor>& tensors) {
      FlatValues flat;
      auto run = [&](auto&... values) -> decltype(auto) { return call(*callable, values...); };
      Tuple values = unflatten<Tuple>(arguments, tensors);
      if constexpr (std::is_void_v<Result>) {
        std::apply(run, values);
        flat.structure.kind = Structure::Kind::absent;
      } else {
        flat.structure = flatten<Result>(std::apply(run, values), flat.tensors);
      }
      return flat;
    };
  }
};

}  // namespace detail

// Names for the parameters and buffers of a module: those of `model` as "prefix.fc1.weight".
template <class Module>
std::vector<NamedTensor> named_tensors(Module& model, const std::string& prefix = "") {
  std::vector<NamedTensor> named;
  detail::add_module(model, prefix.empty() ? prefix : prefix + ".", named);
  return named;
}

struct TraceSettings : TraceOptions {
  std::vector<NamedTensor> named;  // beyond those of the program itself, from named_tensors()
};

template <class Signature, class T, class... Values>
Capture<Signature> trace_with(const TraceSettings& settings, T&& program, Values&&... values) {
  using Flat = detail::Flat<Signature>;
  FlatValues arguments;
  const typename Flat::Tuple tuple(std::forward<Values>(values)...);
  arguments.structure = flatten(tuple, arguments.tensors);
  auto callable = detail::keep(std::forward<T>(program));
  std::vector<NamedTensor> named = settings.named;
  detail::add_module(*callable, "", named);
  Program flat = Flat::program(callable, arguments.structure);
  return Capture<Signature>(
      CaptureBase::capture(std::move(flat), std::move(arguments), std::move(named), settings));
}

template <class Signature, class T, class... Values>
requires std::is_function_v<Signature> Capture<Signature> trace(T&& program, Values&&... values) {
  return trace_with<Signature>({}, std::forward<T>(program), std::forward<Values>(values)...);
}

// The signature is that of the call as written.
template <class T, class... Values>
requires(!std::is_base_of_v<TraceSettings, std::decay_t<T>> &&
         !std::is_function_v<T>) auto trace(T&& program, Values&&... values) {
  using Signature = detail::ResultOf<std::remove_reference_t<T>, std::decay_t<Values>&...>(
      std::decay_t<Values>...);
  return trace_with<Signature>({}, std::forward<T>(program), std::forward<Values>(values)...);
}

template <class T, class... Values>
auto trace(const TraceSettings& settings, T&& program, Values&&... values) {
  using Signature = detail::ResultOf<std::remove_reference_t<T>, std::decay_t<Values>&...>(
      std::decay_t<Values>...);
  return trace_with<Signature>(settings, std::forward<T>(program), std::forward<Values>(values)...);
}

}  // namespace flashlight
