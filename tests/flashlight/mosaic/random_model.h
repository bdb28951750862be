// Random programs of what models are made of: products, convolutions, attention, norms, reductions,
// movements, branches and loops, of odd sizes and any layout, from a seed.
//
//   const Case one = RandomModel(seed).make(6);     // of six steps; those of make(5), and one more
#pragma once

#include <random>
#include <vector>

#include "composit/op/tensor.h"
#include "tests/flashlight/mosaic/compare.h"

namespace flashlight::mosaic::test {

class RandomModel {
 public:
  explicit RandomModel(uint64_t seed);

  static constexpr int kMostSteps = 8;
  // With `trains`, derivatives of the result by all inputs are results, too.
  Case make(int steps, bool trains = false);

 private:
  using Tensor = composit::Tensor;
  using Rule = Tensor (RandomModel::*)(const Tensor&);

  Tensor pointwise(const Tensor& x);
  Tensor beside_another(const Tensor& x);
  Tensor reduced(const Tensor& x);
  Tensor normalized(const Tensor& x);
  Tensor moved(const Tensor& x);
  Tensor resized(const Tensor& x);
  Tensor product(const Tensor& x);
  Tensor attention(const Tensor& x);
  Tensor image(const Tensor& x);
  Tensor convolved(const Tensor& x);
  Tensor controlled(const Tensor& x);

  int64_t one_of(int64_t low, int64_t high);
  size_t axis_of(const Tensor& x) { return static_cast<size_t>(one_of(0, x.type().rank() - 1)); }
  std::string name();
  Tensor parameter(const composit::Dims& sizes, double scale = 0.3);
  // Of the rank; a value made before, or another input.
  Tensor of_rank(int64_t rank);
  Tensor input(int64_t rank);

  std::mt19937_64 random_;
  uint64_t seed_;
  composit::DType dtype_;
  int names_ = 0;
  composit::Tensors values_;
};

}  // namespace flashlight::mosaic::test
