// Compiles captured programs and functions for LibTorch's tensors, by a backend: the one that
// writes C++ to read, the one that is fast, or one of your own (composit/op/backend.h).
//
//   auto captured = flashlight::trace(model, x);
//   auto fast = flashlight::compile(captured);          // called like the model
//   at::Tensor y = fast(x);                             // y.backward() reaches x and the model
//   std::cout << fast.source();
//
//   auto [loss, gradients] = flashlight::compile(captured.grad())({x});        // as one function
//
//   auto square = flashlight::compile(flashlight::scalar([](auto x) { return x * x; }));
//   square(0.5);                                        // a number
//   square(x);                                          // a tensor of any sizes
//   square.vjp(x, dy);
//   torch::nn::Sequential net(torch::nn::Linear(4, 4), torch::nn::Functional(square));
//
//   auto faster = flashlight::compile(captured, {.backend = flashlight::Mosaic{.threads = 2}});
//   std::cout << flashlight::table(faster.profile({x}));               // kernel by kernel
//   auto other = flashlight::compile(captured,      // by the names of `flashlight plan`
//                                    {.backend = flashlight::Mosaic{.choices = "relu: keep"}});
//   auto mine = flashlight::compile(captured, {.backend = {"mine", {{"some_option", 3}}}});
//
// The compiler of this machine is run (`CXX` says which one), and its results are kept: the same
// program is compiled once. Under autograd a call is one function, whose backward is compiled C++
// as well (flashlight/compiled_graph.h).
#pragma once

#include <concepts>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "composit/ir/node.h"
#include "flashlight/capture.h"
#include "flashlight/compiled_graph.h"
#include "flashlight/scalar/scalar.h"
#include "flashlight/trace.h"

namespace flashlight {

// ---- captured programs --------------------------------------------------------------------------

class BoundInputs;  // bound_inputs.h

// A captured program as C++. It holds for what its capture holds for (Capture::assumptions).
//
// Weights that a backend packs (mosaic's option `freeze`) are in memory once when the model and its
// capture are gone: the packed ones stay, from the first call on. Until then a call sees what was
// written to them.
class CompiledCapture {
 public:
  // UserError as of `compile`.
  // `shared`: of a family, the code at other sizes (family_programs.h).
  CompiledCapture(const CaptureBase& capture, CompileSettings settings, SharedUse shared = {});

  // The tensors of results for those of arguments; parameters and buffers are the model's, as they
  // are at the time of the call. Writes what the program writes. UserError where one of the packed
  // weights was written and others are gone. The backward of a call reads the weights, too:
  // UserError where they are gone.
  std::vector<at::Tensor> run(const std::vector<at::Tensor>& arguments) const;
  // Packs the model's weights, as the first call does.
  void pack() const;
  // Like CompiledGraph::profile, with the model's parameters and buffers.
  Profile profile(const std::vector<at::Tensor>& arguments) const;
  const std::string& source() const { return compiled_.source(); }
  // The graph that is compiled; parameters are among its inputs.
  const CompiledGraph& compiled() const { return compiled_; }
  // The structure of arguments and results, as made of tensors.
  const Structure& argument_structure() const { return arguments_; }
  const Structure& result_structure() const { return results_; }

 private:
  CompiledCapture(const std::shared_ptr<const CaptureBase::State>& capture,
                  CompileSettings settings, SharedUse shared);
  // UserError where a look has found a difference, or numbers follow the calls.
  static std::shared_ptr<const CaptureBase::State> compilable(const CaptureBase& capture);

  Structure arguments_, results_;
  std::shared_ptr<BoundInputs> inputs_;
  CompiledGraph compiled_;
};

template <class Signature = void>
class Compiled;

// A compiled program whose types are known: called like the program.
template <class Result, class... Arguments>
class Compiled<Result(Arguments...)> : public CompiledCapture {
 public:
  // UserError as of `compile`.
  Compiled(const Capture<Result(Arguments...)>& capture, CompileSettings settings)
      : CompiledCapture(capture, std::move(settings)) {}

  // The program's result. UserError if arguments have another structure than the example's.
  template <class... Values>
  Result operator()(Values&&... values) const {
    const FlatValues flat = detail::flatten_as<std::tuple<std::decay_t<Arguments>...>>(
        argument_structure(), std::forward<Values>(values)...);
    if constexpr (std::is_void_v<Result>)
      run(flat.tensors);
    else
      return unflatten<Result>(result_structure(), run(flat.tensors));
  }
};

// Tensors in, tensors out, in the order of the structure.
template <>
class Compiled<void> : public CompiledCapture {
 public:
  // A typed view of any compiled capture.
  using CompiledCapture::CompiledCapture;
  // The tensors of the result.
  template <class... Tensors>
  std::vector<at::Tensor> operator()(const Tensors&... tensors) const {
    return run({tensors...});
  }
};

// Compiles a capture. UserError that lists the operations without code, names the choice that
// cannot be made, or tells what the compiler reports.
template <class Signature>
Compiled<Signature> compile(const Capture<Signature>& capture, CompileSettings settings = {}) {
  return Compiled<Signature>(capture, std::move(settings));
}
// Confirms the capture on these inputs first (trace.h). UserError if that finds a difference.
template <class Signature, class... Values>
Compiled<Signature> compile(const Capture<Signature>& capture, const Confirm<Values...>& request,
                            CompileSettings settings = {}) {
  detail::look_at(capture, request);
  return compile(capture, std::move(settings));
}

// The loss and the gradients of a captured program as one function.
class CompiledGradient {
 public:
  // UserError as of `compile`.
  CompiledGradient(const Gradient& gradient, CompileSettings settings);
  // As Gradient's; nothing of autograd takes part. Weights that are packed are in memory as for
  // CompiledCapture.
  Gradient::Result operator()(const std::vector<at::Tensor>& arguments) const;
  // The C++ it was made of.
  const std::string& source() const { return compiled_.source(); }

 private:
  std::shared_ptr<BoundInputs> inputs_;
  CompiledGraph compiled_;
};
CompiledGradient compile(const Gradient& gradient, CompileSettings settings = {});

// ---- functions ----------------------------------------------------------------------------------

// A function of tensors, compiled for each combination of dtypes and sizes it is called with, on
// the first such call. Calls from several threads are safe.
class CompiledFunction {
 public:
  // Compiles nothing yet.
  CompiledFunction(composit::TensorFunction function, CompileSettings settings);

  // All results.
  std::vector<at::Tensor> call(const std::vector<at::Tensor>& inputs) const;
  // The result of a function with one; UserError for others.
  template <std::same_as<at::Tensor>... X>
  at::Tensor operator()(const X&... x) const {
    return only(call({x...}));
  }
  // Numbers are float64 tensors without dimensions.
  template <std::convertible_to<double>... X>
  double operator()(X... x) const {
    return number(only(call({tensor(static_cast<double>(x))...})));
  }

  // A gradient per input for a cotangent per result. UserError if one is not of a floating point or
  // complex dtype.
  std::vector<at::Tensor> vjp(const std::vector<at::Tensor>& inputs,
                              const std::vector<at::Tensor>& cotangents) const;
  // For a function with one input and one result.
  at::Tensor vjp(const at::Tensor& x, const at::Tensor& cotangent) const;
  double vjp(double x, double cotangent) const;

  // The compiled graph for inputs of these types.
  CompiledGraph specialized(const std::vector<at::Tensor>& inputs) const;

 private:
  static at::Tensor tensor(double value);
  static double number(const at::Tensor& tensor);
  at::Tensor only(const std::vector<at::Tensor>& results) const;
  struct State;
  std::shared_ptr<State> state_;
};

CompiledFunction compile(composit::TensorFunction function, CompileSettings settings = {});
// Compiles a function that is applied to each element of its arguments, which broadcast.
CompiledFunction compile(const ScalarFunction& function, CompileSettings settings = {});

}  // namespace flashlight
