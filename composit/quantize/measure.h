// Errors on examples: of layers, and of what a program gives.
#pragma once

#include "composit/quantize/examples.h"
#include "composit/quantize/rewrite.h"

namespace composit::quantization {

using Changes = std::vector<std::pair<const Layer*, LayerChange>>;

// Per change: |y' - y| / |y| over all products of the layer, y being its output in the program;
// infinite where elements become infinite or no numbers.
std::vector<double> output_errors(const ExampleRuns& runs, const Changes& changes);

// True if the program gives, or writes, numbers of floating point, which have an error.
bool has_numbers(const SavedCapture& capture);
// The root of the mean square of what results of `changed` differ by from those of `capture`, in
// units of their standard deviation; of the result for which that is largest. What is written
// counts as a result. Infinities and NaNs have to stay; where others come, the error is infinite.
double result_error(const ExampleRuns& runs, const SavedCapture& capture,
                    const SavedCapture& changed);

}  // namespace composit::quantization
