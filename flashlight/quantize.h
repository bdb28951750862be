// Captures with weights of few bits.
//
//   auto captured = flashlight::trace(model, x);
//   auto [small, report] = flashlight::quantize(captured, {.weights = {.bits = 4, .group = 32}});
//   std::cout << str(report);
//   small.save("small");
//
// The same of a saved capture, without LibTorch: composit/quantize/quantize.h.
#pragma once

#include <ATen/core/Tensor.h>

#include <vector>

#include "composit/quantize/quantize.h"
#include "flashlight/capture.h"

namespace flashlight {

// A quantized capture of LibTorch, and the report.
struct QuantizedCapture {
  CaptureBase capture;         // does not know the program, so it never looks
  composit::Quantized report;  // what became of each weight
};

// `examples`: arguments of calls, as flat lists of tensors; empty: the example of the capture.
// UserError as of composit::quantize, and as CaptureBase::save.
QuantizedCapture quantize(const CaptureBase& capture, const composit::QuantizeOptions& options,
                          const std::vector<std::vector<at::Tensor>>& examples = {});

}  // namespace flashlight
