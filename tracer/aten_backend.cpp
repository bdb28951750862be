#include "tracer/aten_backend.h"

#include <ATen/core/Tensor.h>

#include "tracer/convert.h"
#include "tracer/replay.h"

namespace flashlight {
namespace {

using Arrays = std::vector<composit::Array>;

class Aten : public composit::Backend {
 public:
  std::string name() const override { return "aten"; }

  std::string help() const override { return "runs LibTorch's operators"; }

 protected:
  composit::Compiled make(const composit::Graph& graph,
                          const composit::CompileOptions& options) const override {
    composit::Graph::Parts parts = graph.parts();
    for (const composit::Mutation& mutation : parts.mutations)
      parts.outputs.push_back(mutation.value);
    parts.mutations.clear();
    auto plan = std::make_shared<const tracer::Plan>(composit::Graph(std::move(parts)),
                                                     tracer::PlanOptions{.pin_strides = false});
    return composit::code_of(graph, options.name, [plan](const Arrays& inputs) {
      std::vector<at::Tensor> tensors;
      for (const composit::Array& input : inputs)
        tensors.push_back(input.defined() ? tracer::to_tensor(input) : at::Tensor());
      Arrays results;
      for (const at::Tensor& result : plan->run(tensors))
        results.push_back(result.defined() ? tracer::to_array(result) : composit::Array());
      return results;
    });
  }
};

}  // namespace

const composit::Backend& aten() {
  static const Aten backend;
  return backend;
}

}  // namespace flashlight
