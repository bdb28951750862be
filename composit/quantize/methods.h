// The integers of a weight, by the methods that know what it is multiplied with.
#pragma once

#include "composit/quantize/examples.h"

namespace composit::quantization {

// Column by column, and what a column's rounding adds to the output is made up for by the columns
// to its right (https://arxiv.org/abs/2210.17323): by the inverse of the Gram matrix of the inputs.
// UserError where the examples say nothing of the layer.
Integers gptq(const Matrix& matrix, const WeightFormat& format, const InputStatistics& inputs);

// Numbers that the columns of a weight are multiplied with, and its inputs divided by, before it is
// quantized.
// AWQ (https://arxiv.org/abs/2306.00978): a power of the mean size of each input, the one of 20
// whose output is nearest to what it was.
std::vector<float> awq_factors(const Matrix& matrix, const WeightFormat& format,
                               const InputStatistics& inputs);
// SmoothQuant (https://arxiv.org/abs/2211.10438): the root of the largest input over the largest
// weight, which makes both sides as hard to round.
std::vector<float> smooth_factors(const Matrix& matrix, const InputStatistics& inputs);

// Each column multiplied with its factor, or divided by it.
Matrix multiplied(Matrix matrix, const std::vector<float>& factors);
Matrix divided(Matrix matrix, const std::vector<float>& factors);

}  // namespace composit::quantization
