// Captures a LibTorch program as a graph.
//
//   auto captured = flashlight::trace(model, x);                 // a module, or any callable
//   at::Tensor y = captured(x2);
//
//   auto typed = flashlight::trace<Output(Input, at::Tensor)>(step, in, t);    // of this signature
//
// Arguments and results may have any type that structure.h takes apart. Parameters and buffers of a
// module are inputs under their names; TraceSettings::named gives those that a lambda uses. The
// program runs once, for real; a call of the capture runs it again, until that has confirmed it
// (capture.h):
//
//   auto captured = flashlight::trace(model, x, flashlight::confirm(x2));       // at once
//   auto unseen = flashlight::trace(model, x, flashlight::seen_once);           // never
//
// Objects that a callable refers to must live as long as calls may run it. The capture keeps
// callables, holders, and modules that a shared pointer owns. It runs another module, given by
// reference, only while something else owns the parameters as well; once the module is gone, the
// capture replays as seen once.
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

// Modules whose present state can be read at any time. TorchScript's cannot.
template <class T>
concept HasModules = requires(T& module) {
  module.modules(false);
  module.is_training();
};
template <class Module>
void add_view(const Module& module, ModuleView& view) {
  view.training.push_back(module.is_training());
  view.parts.push_back(&module);
  for (const auto& tensors : {module.parameters(false), module.buffers(false)})
    for (const at::Tensor& tensor : tensors) view.parts.push_back(tensor.unsafeGetTensorImpl());
}
template <class T, class Kept>
std::function<ModuleView()> modules_of(T& module, const std::shared_ptr<Kept>& kept) {
  if constexpr (HoldsModule<T>) {
    return modules_of(*module, kept);
  } else if constexpr (HasModules<T>) {
    return [root = &module, kept] {
      ModuleView view;
      add_view(*root, view);
      for (const auto& child : root->modules(false)) add_view(*child, view);
      return view;
    };
  } else {
    return nullptr;
  }
}

template <class T, class... Arguments>
decltype(auto) call(T& program, Arguments&&... arguments) {
  // Tries `forward` first: a holder's call operator does not know the result of a templated one
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

template <class T>
concept KnowsItsOwner = requires(T& module) {
  module.weak_from_this();
};

// A module given by reference stays where it is; holders and callables are copied, so that the
// capture can run them again.
template <class T>
auto keep(T&& program) {
  using Plain = std::remove_reference_t<T>;
  if constexpr (std::is_lvalue_reference_v<T> &&
                (!std::is_copy_constructible_v<Plain> || HasNamedParameters<Plain>)) {
    if constexpr (KnowsItsOwner<Plain>)
      if (const auto owner = program.weak_from_this().lock())
        return std::shared_ptr<Plain>(owner, &program);
    return std::shared_ptr<Plain>(&program, [](Plain*) {});
  } else {
    return std::make_shared<std::decay_t<T>>(std::forward<T>(program));
  }
}

// True for a module given by reference if only the owners of its parameters show that it lives.
template <class T, class Kept>
bool is_borrowed(const std::shared_ptr<Kept>& kept) {
  return std::is_lvalue_reference_v<T> && HasNamedParameters<std::remove_reference_t<T>> &&
         kept.use_count() == 1;
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

// Options of capturing, and names and roles of the program's tensors.
struct TraceSettings : TraceOptions {
  std::vector<NamedTensor> named;  // beyond those of the program itself, from named_tensors()
  bool seen_once = false;          // calls never run the program
};

// The last input of `trace`: calls never run the program; the capture stays "seen once".
struct SeenOnce {};
inline constexpr SeenOnce seen_once{};

// The last input of `trace` and `compile`: further inputs, on which the program is run at once to
// confirm the capture. UserError of `trace` if that finds a difference.
template <class... Values>
struct Confirm {
  std::tuple<Values...> inputs;  // as the program takes them
};
// Inputs to confirm a capture on: see Confirm.
template <class... Values>
Confirm<std::decay_t<Values>...> confirm(Values&&... inputs) {
  return {{std::forward<Values>(inputs)...}};
}

namespace detail {

template <class T>
struct IsConfirm : std::false_type {};
template <class... Values>
struct IsConfirm<Confirm<Values...>> : std::true_type {};

template <class... Values>
constexpr bool ends_with_request() {
  if constexpr (sizeof...(Values) == 0) {
    return false;
  } else {
    using Last = std::decay_t<std::tuple_element_t<sizeof...(Values) - 1, std::tuple<Values...>>>;
    return IsConfirm<Last>::value || std::is_same_v<Last, SeenOnce>;
  }
}

template <class Capture, class... Values>
void look_at(const Capture& capture, const Confirm<Values...>& request) {
  std::apply(capture, request.inputs);
  if (const std::string why = capture.refusal(); !why.empty()) throw composit::UserError(why);
}

}  // namespace detail

// Called by the functions below: captures `program` as a function of this signature, run on
// `values`.
template <class Signature, class T, class... Values>
Capture<Signature> trace_with(const TraceSettings& settings, T&& program, Values&&... values) {
  using Flat = detail::Flat<Signature>;
  FlatValues arguments;
  const typename Flat::Tuple tuple(std::forward<Values>(values)...);
  arguments.structure = flatten(tuple, arguments.tensors);
  auto callable = detail::keep(std::forward<T>(program));
  const bool borrowed = detail::is_borrowed<T>(callable);
  TracedProgram traced;
  traced.named = [callable, further = settings.named] {
    std::vector<NamedTensor> named = further;
    detail::add_module(*callable, "", named);
    return named;
  };
  traced.modules = detail::modules_of(*callable, callable);
  traced.run = Flat::program(callable, arguments.structure);
  traced.run_as = [callable](const Structure& structure) {
    return Flat::program(callable, structure);
  };
  traced.borrowed = borrowed;
  traced.seen_once = settings.seen_once;
  return Capture<Signature>(
      CaptureBase::capture(std::move(traced), std::move(arguments), settings));
}

namespace detail {

// `trace` with a request after the inputs: `trace_inputs` traces with those before it.
template <class TraceInputs, class... Values, size_t... I>
auto trace_with_request(TraceSettings settings, TraceInputs trace_inputs,
                        std::tuple<Values...> values, std::index_sequence<I...>) {
  auto&& request = std::get<sizeof...(I)>(values);
  using Request = std::decay_t<decltype(request)>;
  if constexpr (std::is_same_v<Request, SeenOnce>) settings.seen_once = true;
  auto captured = trace_inputs(
      settings,
      std::forward<std::tuple_element_t<I, std::tuple<Values...>>>(std::get<I>(values))...);
  if constexpr (IsConfirm<Request>::value) look_at(captured, request);
  return captured;
}

}  // namespace detail

// Runs `program` on `values`, and captures it as a function of this signature. UserError if values
// are not made of tensors, numbers and strings, or if the program cannot be captured.
template <class Signature, class T, class... Values>
requires std::is_function_v<Signature> Capture<Signature> trace(T&& program, Values&&... values) {
  if constexpr (detail::ends_with_request<Values...>())
    return detail::trace_with_request(
        {},
        [&](const TraceSettings& settings, auto&&... inputs) {
          return trace_with<Signature>(settings, std::forward<T>(program),
                                       std::forward<decltype(inputs)>(inputs)...);
        },
        std::forward_as_tuple(std::forward<Values>(values)...),
        std::make_index_sequence<sizeof...(Values) - 1>());
  else
    return trace_with<Signature>({}, std::forward<T>(program), std::forward<Values>(values)...);
}

// Captures `program` with the signature of the call as written.
template <class T, class... Values>
auto trace(const TraceSettings& settings, T&& program, Values&&... values) {
  if constexpr (detail::ends_with_request<Values...>()) {
    return detail::trace_with_request(
        settings,
        [&](const TraceSettings& requested, auto&&... inputs) {
          return trace(requested, std::forward<T>(program),
                       std::forward<decltype(inputs)>(inputs)...);
        },
        std::forward_as_tuple(std::forward<Values>(values)...),
        std::make_index_sequence<sizeof...(Values) - 1>());
  } else {
    using Signature = detail::ResultOf<std::remove_reference_t<T>, std::decay_t<Values>&...>(
        std::decay_t<Values>...);
    return trace_with<Signature>(settings, std::forward<T>(program),
                                 std::forward<Values>(values)...);
  }
}

// The same with default settings.
template <class T, class... Values>
requires(!std::is_base_of_v<TraceSettings, std::decay_t<T>> &&
         !std::is_function_v<T>) auto trace(T&& program, Values&&... values) {
  return trace(TraceSettings{}, std::forward<T>(program), std::forward<Values>(values)...);
}

}  // namespace flashlight
