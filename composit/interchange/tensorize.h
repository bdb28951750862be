// Loop forms as ATen's operators on whole tensors, for targets that have no loops.
//
//   LazyTensors results = tensorize(loops, operands);
//
// A statement computes over the index space of its axes: a load becomes a tensor with an axis for
// each of them (slices, transposes and broadcasting where its indices are plain, a gather where
// they are computed), its expression operators on such tensors, its reduction a Reduce operator, or
// an Einsum where a sum of products is reduced. What is made is plain: elementwise functions,
// slice, permute, reshape, expand, index, constant_pad_nd, where, sum, amax, amin, prod, einsum.
#pragma once

#include "composit/ir/node.h"
#include "composit/op/loops.h"

namespace composit::interchange {

// The results of `loops` for these operands, by number. UserError for a form that has no operators:
// a scan, a store at computed places, an index space too large to be made.
LazyTensors tensorize(const Loops& loops, const LazyTensors& operands);

}  // namespace composit::interchange
