// What rows of factors of matrices share: matrices in a batch of one axis, [batch, rows, columns].
#pragma once

#include "composit/ir/node.h"

namespace composit::interchange {

// True of what these rows compute with.
bool is_single_or_double(const LazyTensor& x);
// One axis for all but the last `kept` ones.
LazyTensor flat_batch(const LazyTensor& x, int64_t kept);
// Ones on the diagonal: [batch, n, n].
LazyTensor unit_matrices(int64_t batch, int64_t n, DType dtype);

// a = q r: q is [batch, m, m], r is [batch, m, n].
struct Factors {
  LazyTensor q, r;
};
// By Householder's reflections, with signs as LAPACK has them; of at least one row and column.
Factors orthogonal_factors(const LazyTensor& a);

}  // namespace composit::interchange
