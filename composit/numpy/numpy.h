// All of composit::numpy: NumPy's names, argument order, broadcasting and dtypes, lazily.
//
//   namespace cnp = composit::numpy;
//   cnp::NdArray x = cnp::asarray({{1.0, 2.0}, {3.0, 4.0}}, "x");
//   cnp::NdArray y = cnp::exp(x - cnp::max(x, 1, {.keepdims = true}));
//   Array value = cnp::evaluate(y);
#pragma once

#include "composit/numpy/creation.h"
#include "composit/numpy/evaluate.h"
#include "composit/numpy/indexing.h"
#include "composit/numpy/linear_algebra.h"
#include "composit/numpy/math.h"
#include "composit/numpy/operation.h"
#include "composit/numpy/random.h"
#include "composit/numpy/reductions.h"
#include "composit/numpy/shape.h"
#include "composit/numpy/sorting.h"
#include "composit/numpy/statistics.h"
