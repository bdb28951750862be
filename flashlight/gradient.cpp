#include "flashlight/gradient.h"

#include <algorithm>

#include "composit/ad/chain_rule.h"
#include "composit/io/saved_capture.h"
#include "composit/ir/error.h"
#include "composit/ir/print.h"
#include "composit/passes/share_parts.h"
#include "flashlight/bound_inputs.h"
#include "flashlight/capture_state.h"

namespace flashlight {

using composit::LazyTensor;
using composit::LazyTensors;
using composit::UserError;

struct Gradient::State {
  composit::Graph graph;
  std::vector<std::string> names;
  std::shared_ptr<const CaptureBase::State> captured;
  std::function<std::vector<at::Tensor>(const std::vector<at::Tensor>&)> run;
  std::function<composit::SavedCapture()> saved;  // of what was differentiated
};

namespace {

bool is_trainable(const LazyTensor& input) {
  return composit::input_kind(*input.node) == composit::InputKind::parameter &&
         composit::is_floating_point(input.dtype());
}

std::string list_of(const std::vector<std::string>& names) {
  std::string text;
  for (size_t i = 0; i < std::min<size_t>(names.size(), 8); ++i)
    text += (i > 0 ? ", '" : "'") + names[i] + "'";
  return names.size() > 8 ? text + ", …" : text;
}

class Names {
 public:
  Names(const composit::Graph& graph, const std::map<std::string, std::vector<std::string>>& tied)
      : graph_(graph), tied_(tied) {}

  // Inputs by name; all trainable parameters if `wanted` is empty.
  LazyTensors find(const std::vector<std::string>& wanted) const {
    LazyTensors found;
    for (const std::string& name : wanted) found.push_back(find(name));
    if (!wanted.empty()) return found;
    for (const LazyTensor& input : graph_.inputs())
      if (is_trainable(input)) found.push_back(input);
    if (found.empty())
      throw UserError("[grad] the capture has no parameter; name what to differentiate by");
    return found;
  }

 private:
  LazyTensor find(const std::string& name) const {
    std::vector<std::string> known;
    for (const LazyTensor& input : graph_.inputs()) {
      known.push_back(composit::input_name(*input.node));
      const auto others = tied_.find(known.back());
      const bool tied = others != tied_.end() &&
                        std::count(others->second.begin(), others->second.end(), name) > 0;
      if (tied || known.back() == name) return input;
    }
    throw UserError("[grad] the capture has no input '" + name + "'; it has " + list_of(known));
  }

  const composit::Graph& graph_;
  const std::map<std::string, std::vector<std::string>>& tied_;
};

Gradient::Result split(const std::vector<at::Tensor>& outputs) {
  return {outputs[0], {outputs.begin() + 1, outputs.end()}};
}

}  // namespace

const composit::Graph& Gradient::graph() const { return state_->graph; }
const std::vector<std::string>& Gradient::names() const { return state_->names; }

std::vector<at::Tensor> Gradient::bind(const std::vector<at::Tensor>& arguments) const {
  return state_->captured->bind(arguments);
}

std::shared_ptr<BoundInputs> Gradient::bound_inputs() const {
  return BoundInputs::of(state_->captured);
}

Gradient::Result Gradient::operator()(const std::vector<at::Tensor>& arguments) const {
  return split(state_->run(bind(arguments)));
}

Gradient::Result Gradient::evaluate(const std::vector<at::Tensor>& arguments,
                                    const composit::Backend& backend) const {
  return split(evaluate_by(backend, state_->graph, bind(arguments)));
}

composit::SavedCapture Gradient::saved() const {
  composit::SavedCapture saved = state_->saved();
  const composit::LazyTensors& outputs = graph().outputs();
  Structure gradients{Structure::Kind::map, {}, names(), {}};
  for (size_t i = 1; i < outputs.size(); ++i)
    gradients.children.push_back(
        {outputs[i] ? Structure::Kind::tensor : Structure::Kind::absent, {}, {}, {}});
  saved.graph = graph();
  saved.schemas = schemas_of(graph());
  saved.properties["results"] = str(Structure{Structure::Kind::tuple, {}, {}, {{}, gradients}});
  saved.example_outputs.clear();
  return saved;
}

Gradient CaptureBase::grad(size_t loss, const std::vector<std::string>& wrt) const {
  expect_trust("a derivative");
  now().expect_fixed_numbers("grad");
  const std::shared_ptr<CaptureBase::State> captured = shared();
  const composit::Graph& graph = captured->graph;
  if (loss >= graph.outputs().size())
    throw UserError("[grad] the capture has " + std::to_string(graph.outputs().size()) +
                    " results, there is no result " + std::to_string(loss));
  const LazyTensors inputs = Names(graph, captured->tied).find(wrt);
  auto state = std::make_shared<Gradient::State>();
  for (const LazyTensor& input : inputs) state->names.push_back(composit::input_name(*input.node));
  composit::Graph::Parts parts = graph.parts();
  const LazyTensor value = graph.outputs()[loss];
  parts.outputs = {value};
  for (LazyTensor& gradient : composit::grad(value, inputs))
    parts.outputs.push_back(std::move(gradient));
  state->graph = composit::share_parts(composit::Graph(std::move(parts)));
  auto plan = std::make_shared<const tracer::Plan>(
      state->graph,
      tracer::PlanOptions{captured->grad, captured->generators, /*pin_strides=*/false});
  state->captured = captured;
  state->saved = [base = frozen()] { return base.saved(); };
  state->run = [plan](const std::vector<at::Tensor>& bound) { return plan->run(bound); };
  return Gradient(std::move(state));
}

}  // namespace flashlight
