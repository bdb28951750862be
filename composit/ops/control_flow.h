// Branches and loops as operations, and functions that make them from C++ lambdas.
//
//   LazyTensors y = cond(sum(x) > 0, [&](const LazyTensors&) { return LazyTensors{exp(x)}; },
//                    [&](const LazyTensors&) { return LazyTensors{x}; });
//   LazyTensors root = while_loop([&](const LazyTensors& v) { return abs(v[0] * v[0] - x) > 1e-9;
//   },
//                             [&](const LazyTensors& v) { return LazyTensors{(v[0] + x / v[0]) /
//                             2}; }, {x}, {.limit = 50});
//   ScanStep sums = scan([](const LazyTensors& sum, const LazyTensors& x) {
//     return ScanStep{.carried = {sum[0] + x[0]}, .outputs = {sum[0]}};
//   }, {zero}, {xs});
//   LazyTensors squares = map([](const LazyTensors& x) { return LazyTensors{x[0] * x[0]}; }, {xs});
//
// A lambda is called once, on blocks, and what it makes becomes a region. What it takes from
// outside is found, and passed to the region as an operand; constants are part of the region.
//
// The nodes. Regions are graphs without effects; everything they use is an operand. Types of
// results are contiguous.
//
// ```text
//   composit::cond(Tensor predicate, Tensor[] operands, Graph then_body, Graph else_body)
//       `predicate`: one bool. Both regions take `operands` and give results of equal types: those
//       of the node. Only one of them runs.
//   composit::map(Tensor[] sequences, Tensor[] outside, Graph body, int length)
//       `body` takes a slot of each sequence (x[i] along the first axis, of size `length`) and
//       `outside`. Results: what it gives, stacked along a new first axis.
//   composit::scan(Tensor[] carried, Tensor[] sequences, Tensor[] outside, Tensor? trips,
//                  Graph body, int length, bool reverse=False)
//       `body` takes carried values, a slot of each sequence and `outside`; it gives the carried
//       values of the next trip, and outputs. Slots come in the order 0 … trips - 1, or if
//       `reverse` trips - 1 … 0; `trips`, one int64 of at most `length`, is `length` where it is
//       absent. Results: the carried values at the end, then each output stacked along a new first
//       axis of size `length`, slot i from the trip over slot i, zeros where there was none.
//   composit::while_loop(Tensor[] carried, Tensor[] outside, Graph condition, Graph body,
//                        int? limit=None)
//       `condition` takes carried values and `outside`, and gives one bool; `body` takes the same.
//       It gives the carried values of the next trip, and may give outputs where there is a
//       `limit`. Results: the carried values at the end; each output stacked along a new first axis
//       of size `limit`, slot i from trip i, zeros behind the last; and the number of trips, one
//       int64. A loop that goes on after `limit` trips is a UserError when it runs; a limit of 0
//       allows none.
// ```
//
// Derivatives are made of the same operations, linear in the number of trips: of cond, a cond of
// the branches' derivatives; of loops, a loop that runs back over what its body needs of the trips
// forward, which the loop forward then gives as outputs. That of while_loop needs `limit`.
#pragma once

#include <functional>
#include <optional>

#include "composit/ir/node.h"

namespace composit {

// Only the branch that is taken is computed. Both take `operands`, and give as many results of the
// same types. `predicate`: one bool.
LazyTensors cond(const LazyTensor& predicate, const TensorFunction& then_branch,
                 const TensorFunction& else_branch, const LazyTensors& operands = {});

// The options of `while_loop`.
struct WhileOptions {
  std::optional<int64_t> limit = {};  // most trips, 0 included; the derivative needs it
};
// The carried values when `condition`, of one bool, is false of them; `init` at the start. Their
// types stay what they are.
LazyTensors while_loop(const std::function<LazyTensor(const LazyTensors& carried)>& condition,
                       const TensorFunction& body, const LazyTensors& init,
                       const WhileOptions& options = {});

// The result of one trip of a scan, or of the whole scan.
struct ScanStep {
  LazyTensors carried;  // for the next trip; after a whole scan: at the end
  LazyTensors outputs;  // of one trip; after a whole scan: stacked along a new axis 0
};
struct ScanOptions {
  bool reverse = false;                // from the last slot to the first
  std::optional<int64_t> length = {};  // length of the sequences; needed if there are none
};
// One trip per slot of the sequences along their first axis.
using ScanBody = std::function<ScanStep(const LazyTensors& carried, const LazyTensors& slots)>;
ScanStep scan(const ScanBody& body, const LazyTensors& init, const LazyTensors& sequences,
              const ScanOptions& options = {});

// `f` of each slot along the first axis of `sequences`, of which there is at least one; stacked.
LazyTensors map(const TensorFunction& f, const LazyTensors& sequences);

}  // namespace composit
