// What indices of ATen's operators say, masks among them.
#pragma once

#include <optional>

#include "composit/ir/node.h"

namespace composit::interchange {

bool is_integer(const LazyTensor& x);
// How many elements a mask among the indices chooses, by the result; -1 without a mask. Nothing
// where the result does not say: several masks, or other indices beside one.
std::optional<int64_t> chosen_by(const LazyTensors& indices, const Type& result);

// The same of what is written there, by its values; nothing where they are one for all places.
std::optional<int64_t> chosen_by_values(const LazyTensors& indices, const LazyTensor& values,
                                        int64_t rank);

}  // namespace composit::interchange
