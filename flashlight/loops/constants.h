// Reads the elements of constants.
#pragma once

#include <optional>
#include <utility>

#include "composit/ir/array.h"
#include "composit/ir/attribute.h"

namespace flashlight::loops {

// Element `index` of a row-major array.
composit::Scalar::Value element(const composit::Array& array, int64_t index);

// The least and the largest element of an array of int64; nothing for other dtypes, or for an empty
// array.
std::optional<std::pair<int64_t, int64_t>> range_of(const composit::Array& array);

}  // namespace flashlight::loops
