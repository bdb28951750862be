// A tensor that is zero almost everywhere, as the few values that are put into zeros.
//
// The derivative of x[i] is zeros with one element put in. A loop that reads one element in each
// trip would add up such tensors, each as large as x; it keeps the elements instead, and puts
// them into zeros once, behind the loop.
//
//   // gradient = index_put(zeros, {i}, g, accumulate)
//   const Scatter put = scatters_of(gradient)->at(0);
//   const LazyTensors updates = updates_of(put);              // i and g, of the sizes of i
//   put_together(x.type(), {{.places = {updates[0]}, .values = updates[1]}}) == gradient
#pragma once

#include <optional>
#include <vector>

#include "composit/op/loops.h"
#include "composit/ops/operations.h"

namespace composit {

// A statement with one store, which adds to few places of zeros.
struct Scatter {
  Statement statement;
  LazyTensors operands;  // what it loads
};
// x is the sum of these; nothing where a part of x may be anywhere.
std::optional<std::vector<Scatter>> scatters_of(const LazyTensor& x);

// The places of a scatter, as expressions of the axes that its store runs over, if they are known
// without its operands.
using Places = std::optional<std::vector<Expr>>;
Places fixed_places(const Scatter& scatter);

// What a scatter adds: an index for each axis of its result, left out if they are fixed, then the
// values. All have a size for each axis that the store runs over. Where the statement does not
// store, 0 is added at place 0.
LazyTensors updates_of(const Scatter& scatter);

// Values to add to zeros. Places: tensors of the sizes of `values`, or expressions of its axes.
struct Updates {
  LazyTensors places = {};
  std::vector<Expr> fixed = {};
  LazyTensor values = {};
};
LazyTensor put_together(const Type& type, const std::vector<Updates>& updates);

// Of tensors in the order of updates_of: those of one scatter, whose result has this type.
Updates take_updates(const Type& type, const Places& fixed, LazyTensors::const_iterator& next);

}  // namespace composit
