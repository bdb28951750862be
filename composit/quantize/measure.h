// Errors on examples: of layers, and of what a program gives.
#pragma once

#include "composit/quantize/examples.h"
#include "composit/quantize/rewrite.h"

namespace composit::quantization {

using Changes = std::vector<std::pair<const Layer*, LayerChange>>;

// Per change: |y' - y| / |y| over all products of the layer, y being its output in the program.
std::vector<double> output_errors(const ExampleRuns& runs, const Changes& changes);

// The root of the mean square of what results of `changed` differ by from those of `capture`, in
// units of their standard deviation; of the result for which that is largest.
double result_error(const ExampleRuns& runs, const SavedCapture& capture,
                    const SavedCapture& changed);

}  // namespace composit::quantization
