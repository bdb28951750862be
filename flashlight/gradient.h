// The derivative of a captured program, as another graph.
//
//   auto captured = flashlight::trace(loss_of, x, target);
//   flashlight::Gradient gradient = captured.grad();            // of result 0, by all parameters
//   auto [loss, gradients] = gradient({x, target});             // gradients[i] is of names()[i]
//
// Autograd takes no part: composit/ad differentiates the graph and LibTorch's kernels run it.
// Operators that ran under no_grad in the capture, and detached values, pass on no gradient.
#pragma once

#include <ATen/core/Tensor.h>

#include <memory>
#include <string>
#include <vector>

#include "composit/ir/graph.h"
#include "composit/op/backend.h"

namespace composit {
struct SavedCapture;
}  // namespace composit

namespace flashlight {

class BoundInputs;  // bound_inputs.h

// The derivative of one number by inputs of a capture; see CaptureBase::grad.
class Gradient {
 public:
  // The result of a call.
  struct Result {
    at::Tensor loss;                    // the number that was differentiated
    std::vector<at::Tensor> gradients;  // in the order of names()
  };

  // Takes the capture's inputs; gives the loss, then gradients. Writes what the program writes.
  const composit::Graph& graph() const;
  // What CaptureBase::saved is of a capture: the loss, and a map of the gradients by name.
  composit::SavedCapture saved() const;
  // The names of the parameters and arguments of the gradients.
  const std::vector<std::string>& names() const;

  // A tensor per input of the graph: the arguments' tensors, parameters and buffers.
  std::vector<at::Tensor> bind(const std::vector<at::Tensor>& arguments) const;
  // `arguments`: the tensors of the capture's arguments, in order; parameters are the model's.
  // UserError as in Capture::replay.
  Result operator()(const std::vector<at::Tensor>& arguments) const;
  // The same by another backend; writes nothing.
  Result evaluate(const std::vector<at::Tensor>& arguments, const composit::Backend& backend) const;

  struct State;  // gradient.cpp
  // Made by CaptureBase::grad.
  explicit Gradient(std::shared_ptr<const State> state) : state_(std::move(state)) {}

 private:
  friend class CompiledGradient;
  std::shared_ptr<BoundInputs> bound_inputs() const;
  std::shared_ptr<const State> state_;
};

}  // namespace flashlight
