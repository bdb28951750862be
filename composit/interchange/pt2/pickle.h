// Example arguments as torch.save writes them: an inner zip with a pickle and the tensors' bytes.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "composit/interchange/pt2/structure.h"
#include "composit/ir/array.h"

namespace composit::pt2 {

// The pickle of a value of this structure, whose tensors are `tensors`: what torch.load reads with
// weights_only. Tensor i has the storage "i".
std::string pickle_of(const Structure& structure, const std::vector<Array>& tensors);

// The dtype of a storage's class: "FloatStorage". Nothing for other names.
std::optional<DType> dtype_of_storage(std::string_view name);

}  // namespace composit::pt2
