// Scalar functions, element by element: relu3, with which the documentation of Knossos begins, and
// gelu (Hendrycks, Gimpel 2016, "Gaussian error linear units").
//
//   relu3(x) = 0 (x < 0), x^3 / 3 (x < 1), x - 2/3        gelu(x) = x (1 + erf(x / sqrt(2))) / 2
#pragma once

#include "composit/numpy/ndarray.h"
#include "examples/objectives/problem.h"

namespace objectives {

composit::numpy::NdArray relu3(const composit::numpy::NdArray& x);
composit::numpy::NdArray gelu(const composit::numpy::NdArray& x);

// Problems of n elements from -2 to 2. Inputs: x, dy. Objective: y; gradient: the vjp, dy times the
// derivative by x.
Problem relu3_problem(int64_t n, composit::DType dtype = composit::DType::float32);
Problem gelu_problem(int64_t n, composit::DType dtype = composit::DType::float32);

}  // namespace objectives
