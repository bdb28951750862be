#include "flashlight/saved_state.h"

#include <ATen/Context.h>
#include <c10/core/GradMode.h>

#include <algorithm>

#include "composit/ir/error.h"
#include "flashlight/value_samples.h"
#include "tracer/memory_view.h"
#include "tracer/op_info.h"

namespace flashlight {

GeneratorStates::GeneratorStates(const std::map<std::string, at::Generator>& generators) {
  const auto add = [this](const at::Generator& generator) {
    states_.emplace_back(generator, generator.get_state());
  };
  add(at::globalContext().defaultGenerator(c10::kCPU));
  for (const auto& [role, generator] : generators)
    if (role != "default") add(generator);
}

void GeneratorStates::restore() const {
  for (const auto& [generator, state] : states_) at::Generator(generator).set_state(state);
}

bool GeneratorStates::are_now() const {
  return std::all_of(states_.begin(), states_.end(), [](const auto& entry) {
    return same_bits(entry.second, entry.first.get_state());
  });
}

SavedState::SavedState(const CaptureBase::State& state, const std::vector<at::Tensor>& arguments)
    : generators_(state.generators) {
  const std::vector<at::Tensor> inputs = state.bind(arguments);
  for (const composit::Mutation& mutation : state.graph.mutations())
    for (size_t i = 0; i < inputs.size(); ++i)
      if (state.graph.inputs()[i].node == mutation.target.node)
        saved_.emplace_back(inputs[i], tracer::copy_keeping_strides(inputs[i].detach()));
}

void SavedState::restore() {
  const c10::AutoGradMode no_grad(false);
  for (auto& [target, value] : saved_) target.copy_(value);
  generators_.restore();
}

std::vector<std::string> generators_read(const composit::Graph& graph) {
  std::vector<std::string> known, read;
  for_each_node(graph, [&](const composit::Node& node) {
    if (node.effect() < 0 || node.find_run("body") != nullptr) return;
    const composit::Attribute* attribute = node.find_attribute("generator");
    const auto* given = attribute ? attribute->get_if<composit::Generator>() : nullptr;
    const tracer::OpInfo* op = tracer::find_op(node.op().str());
    if (given == nullptr && (op == nullptr || !op->may_draw)) return;
    const std::string role = given != nullptr ? given->role : "default";
    if (std::count(known.begin(), known.end(), role) > 0) return;
    known.push_back(role);
    const std::string& name = node.op().str();
    if (name != "composit::set_generator_state" && name != "composit::restore_generator_state")
      read.push_back(role);
  });
  return read;
}

}  // namespace flashlight
