#include "flashlight/aten_backend.h"

#include <ATen/core/Tensor.h>

#include "flashlight/backends/registry.h"
#include "tracer/convert.h"
#include "tracer/replay.h"

namespace flashlight {
namespace {

using Arrays = std::vector<composit::Array>;

// In memory as the graph has it, which replays expect.
at::Tensor argument(const composit::Array& array, const composit::Type& type) {
  return tracer::to_tensor(
      type.layout == composit::Layout::strided ? array.with_strides(type.strides) : array);
}

class Aten : public composit::Backend {
 public:
  std::string name() const override { return "aten"; }

  std::string help() const override { return "runs LibTorch's operators"; }
  bool has_code(const composit::Operation& /*operation*/) const override { return true; }

 protected:
  composit::Compiled make(const composit::Graph& graph,
                          const composit::CompileOptions& options) const override {
    composit::Graph::Parts parts = graph.parts();
    for (const composit::Mutation& mutation : parts.mutations)
      parts.outputs.push_back(mutation.value);
    parts.mutations.clear();
    auto plan = std::make_shared<const tracer::Plan>(composit::Graph(std::move(parts)),
                                                     tracer::PlanOptions{.pin_strides = false});
    std::vector<composit::Type> types;
    for (const composit::LazyTensor& input : graph.inputs()) types.push_back(input.type());
    return composit::code_of(graph, options.name, [plan, types](const Arrays& inputs) {
      std::vector<at::Tensor> tensors;
      for (size_t i = 0; i < inputs.size(); ++i)
        tensors.push_back(inputs[i].defined() ? argument(inputs[i], types[i]) : at::Tensor());
      Arrays results;
      for (const at::Tensor& result : plan->run(tensors))
        results.push_back(result.defined() ? tracer::to_array(result) : composit::Array());
      return results;
    });
  }
};

const BackendRegistration kRegistration(aten());

}  // namespace

const composit::Backend& aten() {
  static const Aten backend;
  return backend;
}

}  // namespace flashlight
