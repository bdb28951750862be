// A function of tensors over a further, leading dimension.
//
//   TensorFunction rows = vmap(f);                      // every argument has one slot per call
//   TensorFunction mixed = vmap(f, {1, std::nullopt});  // slots along axis 1; the same for all
//
// The result is one `composit::map`, whose body is the graph of f; of a function of numbers, with
// branches as well, one loop over the elements (elementwise.h).
#pragma once

#include <optional>
#include <vector>

#include "composit/ir/node.h"

namespace composit {

// The axis of each argument that is mapped over (negative: from the end); absent: the argument is
// the same in all calls.
using MappedAxes = std::vector<std::optional<int64_t>>;

// `axes`: axis 0 of all arguments where it is empty. Results are stacked along a new first axis.
// UserError where no argument is mapped, or sizes of the axes differ.
TensorFunction vmap(TensorFunction f, MappedAxes axes = {});

}  // namespace composit
