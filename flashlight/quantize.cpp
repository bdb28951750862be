#include "flashlight/quantize.h"

#include "flashlight/family_maker.h"
#include "tracer/convert.h"

namespace flashlight {

QuantizedCapture quantize(const CaptureBase& capture, const composit::QuantizeOptions& options,
                          const std::vector<std::vector<at::Tensor>>& examples) {
  composit::QuantizeOptions with_examples = options;
  for (const std::vector<at::Tensor>& example : examples) {
    std::vector<composit::Array>& arrays = with_examples.examples.emplace_back();
    for (const at::Tensor& tensor : example) arrays.push_back(tracer::to_array(tensor.detach()));
  }
  composit::Quantized quantized = composit::quantize(capture.saved(), with_examples);
  // Results of the example are those of a replay, so that a check of it compares bits.
  composit::SavedCapture& saved = quantized.capture;
  if (!saved.example_outputs.empty()) {
    const CaptureBase draft = FamilyMaker::of_saved(saved, "a quantized capture");
    saved.example_outputs.clear();
    for (const at::Tensor& result : draft.replay(draft.example_arguments()))
      saved.example_outputs.push_back(tracer::to_array(result.detach()));
  }
  return {FamilyMaker::of_saved(saved, "a quantized capture"), std::move(quantized)};
}

}  // namespace flashlight
