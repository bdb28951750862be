// Layers of graphs for tests, with parameters that are made where they are used.
//
//   const LazyTensor y = relu(linear(given("x", {9, 33}), "w", 40));
//   const LazyTensor z = convolution(image, weight("k", {17, 3, 3, 3}), {.padding = {1, 1}});
#pragma once

#include <string>

#include "composit/ops/functions.h"
#include "tests/flashlight/mosaic/compare.h"

namespace flashlight::mosaic::test {

// A linear layer over the last dimension, with a bias.
inline composit::LazyTensor linear(const composit::LazyTensor& x, const std::string& name,
                                   int64_t out) {
  const composit::DType dtype = x.type().dtype;
  return composit::apply_one("aten::linear",
                             {x, weight(name, {out, x.type().sizes.back()}, 0.1, dtype),
                              weight(name + "b", {out}, 0.3, dtype)});
}

struct Conv {
  composit::Ints stride = {1, 1}, padding = {0, 0}, dilation = {1, 1};
  bool transposed = false;
  composit::Ints output_padding = {0, 0};
  int64_t groups = 1;
};

inline composit::LazyTensor convolution(const composit::LazyTensor& x,
                                        const composit::LazyTensor& w, const Conv& how,
                                        const composit::LazyTensor& bias = {}) {
  const auto optional = bias.defined() ? composit::ArgumentValue(bias) : composit::ArgumentValue();
  return composit::apply_one("aten::convolution",
                             {x, w, optional, how.stride, how.padding, how.dilation, how.transposed,
                              how.output_padding, how.groups});
}

// As many pixels as before, or with a stride half as many in each direction; with a bias.
inline composit::LazyTensor conv3x3(const composit::LazyTensor& x, const std::string& name,
                                    int64_t out, int64_t stride = 1) {
  const composit::DType dtype = x.type().dtype;
  return convolution(x, weight(name, {out, x.sizes()[1], 3, 3}, 0.1, dtype),
                     {.stride = {stride, stride}, .padding = {1, 1}},
                     weight(name + "b", {out}, 0.3, dtype));
}

}  // namespace flashlight::mosaic::test
