// Parameters and their first values.
//
//   nn::Initializer init(/*seed=*/1);
//   LazyTensor w = init.kaiming_uniform("conv.weight", {8, 1, 3, 3});
//   LazyTensor b = init.zeros("conv.bias", {8});
//   auto gradients = grad(loss, init.parameters());            // all of them, in this order
//
// A parameter is an input that holds its value (`held_input`): graphs know it by its name and type,
// so that the graph of a step of training is that of the step before. The same seed and the same
// calls give the same values everywhere.
#pragma once

#include <random>
#include <string>
#include <vector>

#include "composit/ops/functions.h"

namespace composit::nn {

// The gain that makes up for an activation, after Kaiming He et al. 2015,
// https://arxiv.org/abs/1502.01852.
inline constexpr double kReluGain = 1.4142135623730951;

class Initializer {
 public:
  // The same seed gives the same values. `dtype`: of all parameters.
  explicit Initializer(uint64_t seed, DType dtype = DType::float32);

  // A parameter of this name and sizes: a number everywhere. UserError for a name that is taken.
  LazyTensor full(const std::string& name, const Ints& sizes, double value);
  LazyTensor zeros(const std::string& name, const Ints& sizes) { return full(name, sizes, 0); }
  LazyTensor ones(const std::string& name, const Ints& sizes) { return full(name, sizes, 1); }
  LazyTensor uniform(const std::string& name, const Ints& sizes, double low,
                     double high);  // between the two
  LazyTensor normal(const std::string& name, const Ints& sizes, double mean,
                    double deviation);  // of this mean and standard deviation
  // For a weight [out, in, ...], of which one row makes one result. The variance is gain^2 / in.
  LazyTensor kaiming_uniform(const std::string& name, const Ints& sizes, double gain = kReluGain);
  LazyTensor kaiming_normal(const std::string& name, const Ints& sizes, double gain = kReluGain);
  // Variance 2 gain^2 / (in + out), after Glorot and Bengio 2010.
  LazyTensor xavier_uniform(const std::string& name, const Ints& sizes, double gain = 1);
  LazyTensor xavier_normal(const std::string& name, const Ints& sizes, double gain = 1);

  // The parameters of all calls so far, in their order.
  const LazyTensors& parameters() const { return parameters_; }

 private:
  double draw();         // from 0 to 1, 1 excluded
  double draw_normal();  // mean 0, variance 1
  // UserError where the name is taken or a size is negative.
  template <class F>
  LazyTensor add(const std::string& name, const Ints& sizes, F next);

  std::mt19937_64 random_;
  DType dtype_;
  LazyTensors parameters_;
};

}  // namespace composit::nn
