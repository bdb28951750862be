#include "flashlight/package/weights.h"

#include <string>

#include "composit/ir/error.h"

namespace flashlight::package {

using composit::Array;
using composit::SavedCapture;
using composit::UserError;

Array weight_of(const SavedCapture& capture, const composit::LazyTensor& input) {
  const std::string& name = input_name(*input.node);
  const auto found = capture.weights.find(name);
  const Array value = found != capture.weights.end() ? found->second : input.node->held();
  if (!value.defined()) throw UserError("weight '" + name + "' has no value");
  return value;
}

std::vector<Array> weights_of(const SavedCapture& capture) {
  std::vector<Array> weights;
  for (const composit::LazyTensor& input : capture.graph.inputs())
    weights.push_back(composit::input_kind(*input.node) == composit::InputKind::user_input
                          ? Array()
                          : weight_of(capture, input));
  return weights;
}

}  // namespace flashlight::package
