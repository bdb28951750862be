// Running sums and the like in operators on whole tensors, for targets that have no scans.
#pragma once

#include <optional>

#include "composit/op/call.h"

namespace composit::interchange {

// The results of cumsum, cumprod, cummax, cummin, logcumsumexp or composit::recurrence, by
// doubling: after step k each element has met the 2^k before it. Nothing for other operations.
// `results`: the types of the results.
std::optional<LazyTensors> scan_by_doubling(const Call& call, const std::vector<Type>& results);

}  // namespace composit::interchange
