// Comparisons of the models of examples/zoo: of captures with LibTorch, by tensors.
//
//   EXPECT_LT(difference(gradients, expected), 1e-10);
#pragma once

#include <ATen/Functions.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <ostream>

#include "composit/ir/node.h"
#include "examples/zoo/zoo.h"
#include "flashlight/capture.h"

namespace zoo {

inline void PrintTo(const Subject& subject, std::ostream* out) { *out << subject.name; }

}  // namespace zoo

namespace flashlight::test {

// Largest difference over the largest element of all: a bias in front of a batch norm has a
// gradient of zero but for rounding.
inline double difference(const zoo::Tensors& actual, const zoo::Tensors& expected) {
  double worst = 0, scale = 0;
  EXPECT_EQ(actual.size(), expected.size());
  for (size_t i = 0; i < expected.size(); ++i) {
    const at::Tensor e = expected[i].defined() ? expected[i] : at::zeros_like(actual[i]);
    EXPECT_EQ(actual[i].sizes(), e.sizes());
    EXPECT_EQ(actual[i].scalar_type(), e.scalar_type());
    scale = std::max(scale, e.abs().max().item<double>());
    worst = std::max(worst, (actual[i] - e).abs().max().item<double>());
  }
  EXPECT_GT(scale, 0);
  return worst / scale;
}

// Six digits more than float32 has; the project's promise for float64. But the sampler's noise
// levels, the embedding of a time step and the angles of rotary positions are float32, whatever the
// model is: sines and logarithms that LibTorch, which has its own for each processor, gives one
// unit in the last place otherwise.
inline double compiled_tolerance(const zoo::Subject& subject) {
  const bool has_sines =
      subject.name == "unet" || subject.name == "stable_diffusion" || subject.name == "llama";
  return has_sines ? 1e-7 : 1e-10;
}

// Of the reference interpreter: its float32 sines and cosines of Llama's angles are the C++
// library's, a unit in the last place from LibTorch's. Those of the others happen to agree.
inline double reference_tolerance(const zoo::Subject& subject) {
  return subject.name == "llama" ? 1e-7 : 1e-12;
}

// The tensors that the inputs of a graph, of the capture or of its derivative, are bound to.
inline zoo::Tensors tensors_of(const CaptureBase& captured, const composit::Graph& graph,
                               const zoo::Tensors& arguments) {
  zoo::Tensors bound;
  size_t next = 0;
  for (const composit::LazyTensor& input : graph.inputs()) {
    at::Tensor found;
    for (const NamedTensor& named : captured.state())
      if (named.name == composit::input_name(*input.node)) found = named.tensor.detach();
    bound.push_back(found.defined() ? found : arguments.at(next++));
  }
  return bound;
}

}  // namespace flashlight::test
