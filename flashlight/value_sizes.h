// The sizes that depend on values, for one call of a family. For family.cpp only.
#pragma once

#include <ATen/core/Tensor.h>

#include <functional>
#include <vector>

#include "composit/family/family.h"

namespace flashlight {

// A number for each of the family's value sizes. `run` computes the outputs of a part of the
// program, bound to inputs of these types, whatever sizes the part says that its outputs have.
std::vector<int64_t> value_sizes_at(
    const composit::Family& family, const std::vector<composit::Type>& types,
    const std::function<std::vector<at::Tensor>(const composit::Graph& part)>& run);

}  // namespace flashlight
