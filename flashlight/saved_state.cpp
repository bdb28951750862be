#include "flashlight/saved_state.h"

#include <ATen/Context.h>
#include <c10/core/GradMode.h>

#include "composit/ir/error.h"
#include "tracer/memory_view.h"

namespace flashlight {

SavedState::SavedState(const CaptureBase::State& state, const std::vector<at::Tensor>& arguments)
    : generator_(at::globalContext().defaultGenerator(c10::kCPU)),
      random_state_(generator_.get_state()) {
  const std::vector<at::Tensor> inputs = state.bind(arguments);
  for (const composit::Mutation& mutation : state.graph.mutations())
    for (size_t i = 0; i < inputs.size(); ++i)
      if (state.graph.inputs()[i].node == mutation.target.node)
        saved_.emplace_back(inputs[i], tracer::copy_keeping_strides(inputs[i].detach()));
}

void SavedState::restore() {
  const c10::AutoGradMode no_grad(false);
  for (auto& [target, value] : saved_) target.copy_(value);
  generator_.set_state(random_state_);
}

}  // namespace flashlight
