#include "composit/ops/vmap.h"

#include <algorithm>

#include "composit/ir/error.h"
#include "composit/ir/print.h"
#include "composit/op/nest.h"
#include "composit/ops/control_flow.h"
#include "composit/ops/elementwise.h"
#include "composit/ops/functions.h"

namespace composit {
namespace {

LazyTensor with_leading(const LazyTensor& x, int64_t axis) {
  if (axis < -x.rank() || axis >= x.rank())
    throw UserError("[vmap] expected a tensor with an axis " + std::to_string(axis) +
                    ", received " + print(x.type()));
  const int64_t moved = wrap_axis(axis, x.rank());
  Ints order = {moved};
  for (int64_t i = 0; i < x.rank(); ++i)
    if (i != moved) order.push_back(i);
  return moved == 0 ? x : permute(x, order);
}

}  // namespace

TensorFunction vmap(TensorFunction f, MappedAxes axes) {
  return [f = std::move(f), axes = std::move(axes)](const LazyTensors& inputs) {
    MappedAxes mapped = axes;
    if (mapped.empty()) mapped.assign(inputs.size(), 0);
    if (mapped.size() != inputs.size())
      throw UserError("[vmap] expected " + std::to_string(mapped.size()) +
                      " tensors, an axis for each, received " + std::to_string(inputs.size()));
    LazyTensors sequences;
    for (size_t i = 0; i < inputs.size(); ++i)
      if (mapped[i]) sequences.push_back(with_leading(inputs[i], *mapped[i]));
    const auto of_slots = [&](const LazyTensors& slots) {
      LazyTensors arguments = inputs;
      size_t next = 0;
      for (size_t i = 0; i < inputs.size(); ++i)
        if (mapped[i]) arguments[i] = slots[next++];
      return f(arguments);
    };
    const bool of_numbers =
        std::all_of(sequences.begin(), sequences.end(),
                    [](const LazyTensor& sequence) { return sequence.rank() == 1; });
    const bool same_lengths = std::all_of(
        sequences.begin(), sequences.end(),
        [&](const LazyTensor& sequence) { return sequence.sizes() == sequences[0].sizes(); });
    if (of_numbers && same_lengths && !sequences.empty())
      if (auto results = as_one_loop(of_slots, sequences)) return *std::move(results);
    return map(of_slots, sequences);
  };
}

}  // namespace composit
