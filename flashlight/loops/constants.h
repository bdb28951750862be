// The elements of constants.
#pragma once

#include <optional>
#include <utility>

#include "composit/ir/array.h"
#include "composit/ir/attribute.h"

namespace flashlight::loops {

// Element `index` of a row-major array.
composit::Scalar::Value element(const composit::Array& array, int64_t index);

// The least and the largest element of an array of integers; nothing for others, or for an empty
// one.
std::optional<std::pair<int64_t, int64_t>> range_of(const composit::Array& array);

}  // namespace flashlight::loops
