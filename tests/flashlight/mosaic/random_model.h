// Random programs of what models are made of: products, convolutions, attention, norms, reductions,
// movements, branches and loops, of odd sizes and any layout, from a seed.
//
//   const Case one = RandomModel(seed).make(6);     // of six steps; those of make(5), and one more
#pragma once

#include <random>
#include <vector>

#include "composit/ir/node.h"
#include "tests/flashlight/mosaic/compare.h"

namespace flashlight::mosaic::test {

class RandomModel {
 public:
  explicit RandomModel(uint64_t seed);

  static constexpr int kMostSteps = 8;
  // With `trains`, derivatives of the result by all inputs are results, too.
  Case make(int steps, bool trains = false);

 private:
  using LazyTensor = composit::LazyTensor;
  using Rule = LazyTensor (RandomModel::*)(const LazyTensor&);

  LazyTensor pointwise(const LazyTensor& x);
  LazyTensor beside_another(const LazyTensor& x);
  LazyTensor reduced(const LazyTensor& x);
  LazyTensor normalized(const LazyTensor& x);
  LazyTensor moved(const LazyTensor& x);
  LazyTensor resized(const LazyTensor& x);
  LazyTensor product(const LazyTensor& x);
  LazyTensor attention(const LazyTensor& x);
  LazyTensor image(const LazyTensor& x);
  LazyTensor convolved(const LazyTensor& x);
  LazyTensor controlled(const LazyTensor& x);

  int64_t one_of(int64_t low, int64_t high);
  size_t axis_of(const LazyTensor& x) {
    return static_cast<size_t>(one_of(0, x.type().rank() - 1));
  }
  std::string name();
  LazyTensor parameter(const composit::Dims& sizes, double scale = 0.3);
  // A value of the rank that was made before, or another input.
  LazyTensor of_rank(int64_t rank);
  LazyTensor input(int64_t rank);

  std::mt19937_64 random_;
  uint64_t seed_;
  composit::DType dtype_;
  int names_ = 0;
  composit::LazyTensors values_;
};

}  // namespace flashlight::mosaic::test
