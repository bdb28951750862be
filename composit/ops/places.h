// Indices into tensors, for rows that work out places themselves.
//
//   nest.store(x(joined(lead, unflattened(flat, {height, width}))));
#pragma once

#include "composit/op/nest.h"

namespace composit {

// UserError where `index` is of no dtype that names places: int64 or int32.
void expect_index(const In& index);
// All elements of x, where they are: what scatters start from.
Nest copy_of(const In& x);

Ints joined(Ints front, const Ints& back);
Index joined(Index front, const Index& back);

// The place of `at` among the elements of a tensor of these sizes, row by row; and back.
Expr flattened(const Index& at, const Ints& sizes);
Index unflattened(Expr flat, const Ints& sizes);

// UserError unless there are this many axes behind the channels, or behind samples and channels.
void expect_axes(const Ints& sizes, size_t axes);
// The gradient of x from that of a maximum over its last `axes`: each number goes to the place that
// `indices` names.
Loops at_maxima(const In& gradient, const In& indices, const In& x, size_t axes);

// Combines accumulators of a value and its place, -1: none yet. The first of equal values wins, and
// NaN before everything, as in torch.
std::vector<Expr> first_largest(const std::vector<Expr>& left, const std::vector<Expr>& right);
std::vector<Expr> first_smallest(const std::vector<Expr>& left, const std::vector<Expr>& right);

}  // namespace composit
