// Loops of StableHLO, made of functions on what they carry.
//
//   LazyTensors end = while_loop({x}, {}, [&](const LazyTensors& in) { return compare("LT", …); },
//                                [&](const LazyTensors& in) { return LazyTensors{…}; });
#pragma once

#include <functional>

#include "composit/interchange/stablehlo/ops.h"

namespace composit::stablehlo {

// `carried` at the end. Both functions get what is carried, then `outside`, which stays what it is;
// they may use no other value but constants.
LazyTensors while_loop(const LazyTensors& carried, const LazyTensors& outside,
                       const std::function<LazyTensor(const LazyTensors& values)>& condition,
                       const TensorFunction& body);

// The same for i = 0, …, count - 1, which is the first value that `body` gets.
LazyTensors counted_loop(int64_t count, const LazyTensors& carried, const LazyTensors& outside,
                         const TensorFunction& body);

LazyTensors joined(LazyTensors a, const LazyTensors& b);
LazyTensors range_of(const LazyTensors& values, size_t begin, size_t count);
LazyTensor counter(int64_t value);  // a number of int64

}  // namespace composit::stablehlo
