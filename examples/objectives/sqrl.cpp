#include "examples/objectives/sqrl.h"

#include "composit/numpy/numpy.h"
#include "examples/objectives/uniform.h"

namespace objectives {
namespace cnp = composit::numpy;

cnp::NdArray sqrl(const cnp::NdArray& x) {
  const cnp::NdArray total = cnp::sum(x, {-2, -1}, {.keepdims = true});
  const cnp::NdArray t = cnp::where(total < 0.0, -0.125 * x, 0.5 * x * x);
  return cnp::mean(cnp::sin(t) * t, {-2, -1});
}

Problem sqrl_problem(const SqrlSizes& sizes, composit::DType dtype) {
  const auto [batch, rows, columns] = sizes;
  const bool batched = batch > 0;
  const composit::Ints shape =
      batched ? composit::Ints{batch, rows, columns} : composit::Ints{rows, columns};
  return function_problem(
      batched ? "sqrl_b" + std::to_string(batch) + "_" + std::to_string(rows) + "x" +
                    std::to_string(columns)
              : "sqrl_" + std::to_string(rows) + "x" + std::to_string(columns),
      sqrl, uniform({.sizes = shape, .seed = 31, .low = -1}, dtype),
      uniform({.sizes = batched ? composit::Ints{batch} : composit::Ints{}, .seed = 32}, dtype));
}

}  // namespace objectives
