// sqrl, the squared leaky relu of Knossos: which way an array is computed depends on its data.
//
//   cnp::NdArray y = sqrl(x);    // one number per matrix of x: [b, m, n] -> [b]
//
//   t = -x / 8 if sum(x) < 0 else x^2 / 2,    mean(sin(t) t)
#pragma once

#include "composit/numpy/ndarray.h"
#include "examples/objectives/problem.h"

namespace objectives {

// The function of the last two axes.
composit::numpy::NdArray sqrl(const composit::numpy::NdArray& x);

struct SqrlSizes {
  int64_t batch, rows, columns;
};
// Inputs: x, dy. Objective: sqrl(x), [batch]; gradient: the vjp, dy times the derivative by x.
// batch 0: of one matrix without a batch axis.
Problem sqrl_problem(const SqrlSizes& sizes, composit::DType dtype = composit::DType::float32);

}  // namespace objectives
