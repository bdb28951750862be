#include "flashlight/compile.h"

#include <ATen/core/grad_mode.h>

#include <map>
#include <mutex>

#include "composit/ir/error.h"
#include "composit/ir/print.h"
#include "flashlight/bound_inputs.h"
#include "flashlight/family_maker.h"
#include "tracer/convert.h"

namespace flashlight {

using composit::UserError;

namespace {

// One call, by which weights are packed; those are held no longer.
std::vector<at::Tensor> call(const CompiledGraph& compiled, BoundInputs& inputs,
                             const std::vector<at::Tensor>& arguments) {
  std::vector<at::Tensor> results = compiled(inputs.bind(arguments));
  inputs.let_go(compiled.frozen());
  return results;
}

}  // namespace

CompiledCapture::CompiledCapture(const CaptureBase& capture, CompileSettings settings,
                                 SharedUse shared)
    : CompiledCapture(compilable(capture), std::move(settings), std::move(shared)) {}

CompiledCapture::CompiledCapture(const std::shared_ptr<const CaptureBase::State>& capture,
                                 CompileSettings settings, SharedUse shared)
    : arguments_(capture->arguments),
      results_(capture->results),
      inputs_(shared.inputs ? shared.inputs : BoundInputs::of(capture)),
      compiled_(capture->graph, std::move(settings), std::move(shared)) {}

std::shared_ptr<const CaptureBase::State> CompiledCapture::compilable(const CaptureBase& capture) {
  capture.expect_trust("compiled code");
  const CaptureBase frozen = capture.frozen();
  if (!FamilyMaker::follows_own_values(frozen)) frozen.expect_fixed_numbers("compile");
  return FamilyMaker::with_numbers_inside(frozen);
}

std::vector<at::Tensor> CompiledCapture::run(const std::vector<at::Tensor>& arguments) const {
  return call(compiled_, *inputs_, arguments);
}

void CompiledCapture::pack() const {
  compiled_.pack(inputs_->tensors());
  inputs_->let_go(compiled_.frozen());
}

Profile CompiledCapture::profile(const std::vector<at::Tensor>& arguments) const {
  return compiled_.profile(inputs_->bind(arguments));
}

CompiledGradient::CompiledGradient(const Gradient& gradient, CompileSettings settings)
    : inputs_(gradient.bound_inputs()), compiled_(gradient.graph(), std::move(settings)) {}

Gradient::Result CompiledGradient::operator()(const std::vector<at::Tensor>& arguments) const {
  const at::NoGradGuard no_grad;
  const std::vector<at::Tensor> outputs = call(compiled_, *inputs_, arguments);
  return {outputs[0], {outputs.begin() + 1, outputs.end()}};
}

CompiledGradient compile(const Gradient& gradient, CompileSettings settings) {
  settings.results = {"loss"};
  for (const std::string& name : gradient.names()) settings.results.push_back("grad_" + name);
  return {gradient, std::move(settings)};
}

struct CompiledFunction::State {
  composit::TensorFunction function;
  CompileSettings settings;
  std::mutex mutex;
  std::map<std::string, CompiledGraph> graphs = {};  // by the types of the inputs
};

CompiledFunction::CompiledFunction(composit::TensorFunction function, CompileSettings settings)
    : state_(std::make_shared<State>(std::move(function), std::move(settings))) {}

CompiledGraph CompiledFunction::specialized(const std::vector<at::Tensor>& inputs) const {
  std::vector<composit::Type> types;
  std::string key;
  for (const at::Tensor& input : inputs) {
    if (!input.defined())
      throw UserError("[" + state_->settings.name + "] received an undefined tensor");
    types.push_back(composit::tensor_type(tracer::to_composit(input.scalar_type()),
                                          {input.sizes().begin(), input.sizes().end()}));
    key += composit::print(types.back()) + ";";
  }
  const std::lock_guard lock(state_->mutex);
  const auto found = state_->graphs.find(key);
  if (found != state_->graphs.end()) return found->second;
  const std::vector<std::string>& names = state_->settings.arguments;
  composit::Graph::Parts parts;
  composit::LazyTensors arguments;
  for (size_t i = 0; i < types.size(); ++i) {
    const std::string number = types.size() == 1 ? "" : std::to_string(i);
    parts.inputs.push_back(composit::input(i < names.size() ? names[i] : "x" + number, types[i]));
    arguments.emplace_back(parts.inputs.back());
  }
  for (const composit::LazyTensor& result : state_->function(arguments))
    parts.outputs.push_back(result);
  CompileSettings settings = state_->settings;
  for (size_t i = settings.results.size(); i < parts.outputs.size(); ++i)
    settings.results.push_back(parts.outputs.size() == 1 ? "y" : "y" + std::to_string(i));
  CompiledGraph graph(composit::Graph(std::move(parts)), std::move(settings));
  state_->graphs.emplace(std::move(key), graph);
  return graph;
}

std::vector<at::Tensor> CompiledFunction::call(const std::vector<at::Tensor>& inputs) const {
  return specialized(inputs)(inputs);
}

std::vector<at::Tensor> CompiledFunction::vjp(const std::vector<at::Tensor>& inputs,
                                              const std::vector<at::Tensor>& cotangents) const {
  const CompiledGraph derivative = specialized(inputs).vjp(std::vector<bool>(inputs.size(), true));
  std::vector<at::Tensor> all = inputs;
  all.insert(all.end(), cotangents.begin(), cotangents.end());
  return derivative(all);
}

at::Tensor CompiledFunction::vjp(const at::Tensor& x, const at::Tensor& cotangent) const {
  return only(vjp(std::vector{x}, std::vector{cotangent}));
}

double CompiledFunction::vjp(double x, double cotangent) const {
  return number(vjp(tensor(x), tensor(cotangent)));
}

at::Tensor CompiledFunction::tensor(double value) { return at::scalar_tensor(value, c10::kDouble); }
double CompiledFunction::number(const at::Tensor& tensor) { return tensor.item<double>(); }

at::Tensor CompiledFunction::only(const std::vector<at::Tensor>& results) const {
  if (results.size() != 1)
    throw UserError("[" + state_->settings.name + "] has " + std::to_string(results.size()) +
                    " results; expected one: use call() or the vjp of lists");
  return results[0];
}

CompiledFunction compile(composit::TensorFunction function, CompileSettings settings) {
  return {std::move(function), std::move(settings)};
}

CompiledFunction compile(const ScalarFunction& function, CompileSettings settings) {
  return {[function](const composit::LazyTensors& x) { return function.tensors(x); },
          std::move(settings)};
}

}  // namespace flashlight
