// Subjects of the zoo: a model, how it is run, and inputs by seed.
#pragma once

#include <torch/torch.h>

#include <functional>
#include <string>
#include <utility>

#include "examples/models/random_weights.h"
#include "examples/zoo/zoo.h"
#include "flashlight/trace.h"

namespace zoo {

inline at::Generator generator(uint64_t seed) {
  return at::make_generator<at::CPUGeneratorImpl>(seed);
}

inline at::Tensor noise(at::IntArrayRef sizes, uint64_t seed) {
  return torch::randn(sizes, generator(seed));
}

inline at::Tensor tokens(at::IntArrayRef sizes, int64_t vocabulary, uint64_t seed) {
  return torch::randint(0, vocabulary, sizes, generator(seed), torch::kLong);
}

// The last quarter of the tokens is padding.
inline at::Tensor padding_mask(int64_t batch, int64_t length) {
  at::Tensor mask = torch::ones({batch, length}, torch::kLong);
  mask.slice(1, length - length / 4).zero_();
  return mask;
}

template <class Model>
Subject subject(std::string name, Model model, std::function<Tensors(Model&, const Tensors&)> run,
                std::function<Tensors(uint64_t)> inputs, bool grad = false) {
  Subject result;
  result.name = std::move(name);
  result.named = flashlight::named_tensors(model);
  result.run = [model, run = std::move(run)](const Tensors& tensors) mutable {
    return run(model, tensors);
  };
  result.inputs = std::move(inputs);
  result.grad = grad;
  return result;
}

}  // namespace zoo
