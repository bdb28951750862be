// Derivatives of branches and loops (composit/ops/control_flow.h), for their rows.
//
//   .vjp = [](Vjp v, LazyTensor predicate, LazyTensors operands, Region then_body, Region
//   else_body) {
//     return cond_vjp(v, predicate, operands, *then_body, *else_body);
//   }
//
// A loop is differentiated by a scan that runs back. Its body computes a trip of the loop again
// from the carried values at its start, and goes back through it; it carries the cotangents of the
// carried values, and sums what flows to tensors from outside; where it reaches few elements of one
// in a trip, it gives these (composit/ops/scatters.h), and they are put together behind it. What
// this needs of the trip forward, carried values and values that are expensive to compute
// (composit/ops/recompute.h), are outputs of the loop forward, which is a node of its own then: the
// loop with more outputs.
#pragma once

#include <optional>

#include "composit/op/operation.h"

namespace composit {

struct ScanOrder {
  int64_t length;
  bool reverse;
};

// Each: one gradient per tensor of the call, absent where none flows or none is wanted.
Gradients cond_vjp(const Vjp& v, const LazyTensor& predicate, const LazyTensors& operands,
                   const Graph& then_body, const Graph& else_body);
Gradients map_vjp(const Vjp& v, const LazyTensors& sequences, const LazyTensors& outside,
                  const Graph& body, int64_t length);
Gradients scan_vjp(const Vjp& v, const LazyTensors& carried, const LazyTensors& sequences,
                   const LazyTensors& outside, const LazyTensor& trips, const Graph& body,
                   const ScanOrder& order);
// UserError without a `limit`.
Gradients while_vjp(const Vjp& v, const LazyTensors& carried, const LazyTensors& outside,
                    const Region& condition, const Graph& body, std::optional<int64_t> limit);

}  // namespace composit
