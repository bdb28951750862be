#include "frontends/cli/example.h"

namespace cli {

std::vector<composit::Array> example_of(const composit::SavedCapture& capture) {
  std::vector<composit::Array> inputs;
  size_t example = 0;
  for (const composit::LazyTensor& input : capture.graph.inputs()) {
    const bool given = composit::input_kind(*input.node) == composit::InputKind::user_input;
    inputs.push_back(given ? capture.example_inputs.at(example++)
                           : capture.weights.at(composit::input_name(*input.node)));
  }
  return inputs;
}

}  // namespace cli
