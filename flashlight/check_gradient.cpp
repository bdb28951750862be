#include <ATen/Functions.h>
#include <c10/core/GradMode.h>
#include <torch/csrc/autograd/autograd.h>

#include <algorithm>

#include "composit/ir/error.h"
#include "flashlight/gradient.h"
#include "flashlight/saved_state.h"

namespace flashlight {
namespace {

using composit::UserError;
using Tensors = std::vector<at::Tensor>;

// Largest difference over the largest element of all gradients: sums may run in another order.
double tolerance_of(at::ScalarType dtype) {
  if (dtype == at::kDouble || dtype == at::kComplexDouble) return 1e-10;
  if (dtype == at::kFloat || dtype == at::kComplexFloat) return 1e-4;
  return 3e-2;  // float16, bfloat16
}

struct Expected {
  std::string oracle;
  Tensors gradients;  // undefined if no gradient flows
};

// The positions of `names` among the inputs of a capture.
std::vector<size_t> positions(const CaptureBase::State& state,
                              const std::vector<std::string>& names) {
  std::vector<size_t> result;
  for (const std::string& name : names)
    for (size_t i = 0; i < state.inputs.size(); ++i)
      if (state.inputs[i].name == name) result.push_back(i);
  return result;
}

Tensors autograd(const at::Tensor& loss, const Tensors& leaves) {
  if (!loss.requires_grad())
    throw UserError(
        "[check] autograd has no gradient of the loss: the program computes it under "
        "no_grad, or by nothing that requires one");
  return torch::autograd::grad({loss}, leaves, {}, {}, false, /*allow_unused=*/true);
}

// Clears `.grad` of tensors while the program runs, and puts it back at the end.
class ClearedGradients {
 public:
  explicit ClearedGradients(const Tensors& tensors) : tensors_(tensors) {
    for (at::Tensor& tensor : tensors_) {
      before_.push_back(tensor.grad());
      tensor.mutable_grad() = at::Tensor();
    }
  }
  ClearedGradients(const ClearedGradients&) = delete;
  ~ClearedGradients() {
    for (size_t i = 0; i < tensors_.size(); ++i) tensors_[i].mutable_grad() = before_[i];
  }
  Tensors take() const {
    Tensors gradients;
    for (const at::Tensor& tensor : tensors_) gradients.push_back(tensor.grad());
    return gradients;
  }

 private:
  Tensors tensors_, before_;
};

Expected by_program(const CaptureBase::State& state, Tensors arguments, size_t loss,
                    const std::vector<size_t>& wrt) {
  Tensors leaves = state.bind(arguments);
  size_t next = 0;
  for (size_t i = 0; i < leaves.size(); ++i) {
    if (state.inputs[i].tensor.defined()) continue;
    at::Tensor& argument = arguments[next++];
    if (std::count(wrt.begin(), wrt.end(), i) > 0)
      argument = argument.detach().clone().requires_grad_(true);
    leaves[i] = argument;
  }
  Tensors wanted;
  for (size_t i : wrt) wanted.push_back(leaves[i]);
  const ClearedGradients cleared(wanted);
  const Tensors results = state.program(arguments).tensors;
  Tensors left = cleared.take();
  if (std::any_of(left.begin(), left.end(), [](const at::Tensor& g) { return g.defined(); }))
    return {"the gradients that backward() inside the program left", std::move(left)};
  return {"autograd on the program", autograd(results.at(loss), wanted)};
}

Expected by_replay(const CaptureBase::State& state, const Tensors& arguments, size_t loss,
                   const std::vector<size_t>& wrt) {
  composit::Graph::Parts parts = state.graph.parts();
  parts.outputs = {parts.outputs.at(loss)};
  parts.mutations.clear();
  const tracer::Plan plan(composit::Graph(std::move(parts)),
                          {state.grad, state.generators, /*pin_strides=*/false, /*autograd=*/true});
  Tensors inputs = state.bind(arguments), wanted;
  for (size_t i = 0; i < inputs.size(); ++i) {
    inputs[i] = inputs[i].detach();
    if (std::count(wrt.begin(), wrt.end(), i) > 0) inputs[i].requires_grad_(true);
  }
  for (size_t i : wrt) wanted.push_back(inputs[i]);
  return {"autograd on a replay", autograd(plan.run(inputs)[0], wanted)};
}

bool is_leaf_of_autograd(const NamedTensor& input) {
  return !input.tensor.defined() || (input.tensor.is_leaf() && input.tensor.requires_grad());
}

GradientReport compare(const std::vector<std::string>& names, const Tensors& actual,
                       const Expected& expected) {
  GradientReport report;
  report.oracle = expected.oracle;
  double scale = 0;
  for (const at::Tensor& gradient : expected.gradients)
    if (gradient.defined() && gradient.numel() > 0)
      scale = std::max(scale, gradient.abs().max().item<double>());
  for (size_t i = 0; i < names.size(); ++i) {
    GradientDifference one{names[i]};
    const at::Tensor& theirs = expected.gradients[i];
    const at::Tensor apart =
        theirs.defined() ? (actual[i] - theirs.detach()).abs() : actual[i].abs();
    if (apart.numel() > 0) one.absolute = apart.max().item<double>();
    one.relative = one.absolute == 0 ? 0 : one.absolute / scale;
    report.differences.push_back(one);
    report.tolerance = std::max(report.tolerance, tolerance_of(actual[i].scalar_type()));
  }
  return report;
}

}  // namespace

GradientReport CaptureBase::check_grad(const std::vector<at::Tensor>& arguments, size_t loss,
                                       const std::vector<std::string>& wrt) const {
  const Gradient gradient = grad(loss, wrt);
  const std::vector<size_t> inputs = positions(now(), gradient.names());
  const bool known = now().program != nullptr &&
                     std::all_of(inputs.begin(), inputs.end(),
                                 [this](size_t i) { return is_leaf_of_autograd(now().inputs[i]); });
  SavedState saved(now(), arguments);
  Expected expected;
  {
    const c10::AutoGradMode grad_mode(true);
    try {
      expected = known ? by_program(now(), arguments, loss, inputs)
                       : by_replay(now(), arguments, loss, inputs);
    } catch (...) {
      saved.restore();
      throw;
    }
  }
  saved.restore();
  const c10::AutoGradMode grad_mode(false);
  const Tensors ours = gradient(arguments).gradients;
  saved.restore();
  GradientReport report = compare(gradient.names(), ours, expected);
  report.generators = generators_read(state_->graph);
  return report;
}

}  // namespace flashlight
