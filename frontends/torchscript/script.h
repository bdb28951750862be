// TorchScript as composit's graphs: the text of Python functions, or a saved module.
//
//   const auto script = torchscript::compile(R"(
//   def relu3(x: float) -> float:
//       if x < 0.0:
//           return 0.0
//       elif x < 1.0:
//           return 1 / 3 * x ** 3
//       else:
//           return x - 2 / 3
//   )");
//   LazyTensor y = elementwise(script.function("relu3"))({x})[0];     // one loop over all elements
//   LazyTensor z = vmap(script.function("rows"))({x})[0];
//
//   const auto model = torchscript::load("model.pt");
//   Graph graph = model.graph("forward", {at::rand({1, 3, 224, 224})});
//   composit::save(model.capture("forward", {image}), "folder");   // flashlight compile folder
//
// Conditions that depend on inputs become composit::cond, loops composit::scan or while_loop
// (composit/ops/control_flow.h); values that are known while the graph is made are computed then.
//
// Errors are composit::UserError: "[torchscript] model.py:3:11: …", with the line and a caret.
#pragma once

#include <ATen/core/Tensor.h>
#include <ATen/core/ivalue.h>

#include <filesystem>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "composit/io/saved_capture.h"
#include "composit/ir/graph.h"
#include "composit/ir/node.h"
#include "composit/op/scalar_program.h"
#include "frontends/torchscript/limits.h"

namespace flashlight::torchscript {

class Script {
 public:
  // Names of the functions, or of the module's methods.
  std::vector<std::string> functions() const;

  // The graph of a function for these arguments. A tensor is an input of its dtype and sizes, named
  // after the parameter ("x", "xs.0"); all else is part of the graph. A parameter that is a number
  // is an input where it is given as a zero-dimensional tensor. Parameters and buffers of a module
  // are inputs that hold their values; what the function writes of these and of its arguments are
  // the graph's mutations. A result's tuples and lists are taken apart.
  composit::Graph graph(const std::string& function,
                        const std::vector<c10::IValue>& arguments) const;

  // The function of tensors, for a caller: it takes one per parameter that is a tensor or number,
  // and per item of a tuple, but for those that `known` gives by name. Floats are computed in
  // float64, or in the dtype of the numbers that are given. UserError where it writes them.
  composit::TensorFunction function(const std::string& function,
                                    const std::map<std::string, c10::IValue>& known = {}) const;

  // A function of floats that consists of arithmetic and branches; UserError for others.
  composit::ScalarProgram scalar(const std::string& function) const;

  // The graph with parameters, these arguments and what LibTorch computes for them.
  composit::SavedCapture capture(const std::string& function,
                                 const std::vector<c10::IValue>& arguments) const;

  struct State;

 private:
  friend Script compile(const std::string& text, const std::string& file, const Limits& limits);
  friend Script load(const std::filesystem::path& file, const Limits& limits);
  explicit Script(std::shared_ptr<const State> state) : state_(std::move(state)) {}
  std::shared_ptr<const State> state_;
};

// `file`: where the text is from, for errors. UserError for what is not TorchScript.
Script compile(const std::string& text, const std::string& file = "<text>",
               const Limits& limits = {});
// Loads a file that torch.jit.save or torch::jit::Module::save wrote. UserError for other files.
Script load(const std::filesystem::path& file, const Limits& limits = {});

// An argument of which dtype and sizes are known, and no values.
at::Tensor like(const composit::Type& type);

}  // namespace flashlight::torchscript
