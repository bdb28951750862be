#include "examples/objectives/activations.h"

#include <numbers>

#include "composit/numpy/numpy.h"
#include "composit/ops/functions.h"
#include "examples/objectives/uniform.h"

namespace objectives {
namespace {

namespace cnp = composit::numpy;

Problem activation_problem(const std::string& name, const Function& function, int64_t n,
                           composit::DType dtype) {
  return function_problem(name + "_" + std::to_string(n), function,
                          uniform({.sizes = {n}, .seed = 41, .low = -2, .high = 2}, dtype),
                          uniform({.sizes = {n}, .seed = 42}, dtype));
}

}  // namespace

cnp::NdArray relu3(const cnp::NdArray& x) {
  return cnp::where(x < 0.0, 0.0, cnp::where(x < 1.0, x * x * x * (1.0 / 3), x - 2.0 / 3));
}

cnp::NdArray gelu(const cnp::NdArray& x) {
  return 0.5 * x * (1.0 + cnp::NdArray(composit::erf(x * (1 / std::numbers::sqrt2))));
}

Problem relu3_problem(int64_t n, composit::DType dtype) {
  return activation_problem("relu3", relu3, n, dtype);
}

Problem gelu_problem(int64_t n, composit::DType dtype) {
  return activation_problem("gelu", gelu, n, dtype);
}

}  // namespace objectives
