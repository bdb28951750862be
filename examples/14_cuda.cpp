// CUDA C++ for a function of a number over many elements, and for a small network with its
// gradient.
//
//   example_14_cuda > kernels.cu
//
// Prints kernels with the functions that launch them; fails if the first is not one kernel.
// `flashlight compile --backend cuda` writes folders that nvcc builds.
#include <iostream>
#include <string>

#include "composit/ad/chain_rule.h"
#include "composit/numpy/numpy.h"
#include "composit/ops/functions.h"
#include "flashlight/cuda/backend.h"
#include "flashlight/scalar/scalar.h"

using composit::Graph;
using composit::LazyTensor;

LazyTensor input(const char* name, composit::Dims sizes) {
  return composit::input(name, composit::tensor_type(composit::DType::float32, sizes));
}

// Prints the text; the number of its kernels.
int print(const char* name, const Graph& graph) {
  const std::string text = flashlight::cuda::source_of(graph, {.name = name}).text;
  std::cout << text << "\n";
  int kernels = 0;
  for (size_t at = 0; (at = text.find("__global__", at)) != text.npos; ++at) ++kernels;
  return kernels;
}

int main() {
  const auto relu3 = flashlight::scalar([](auto x) {
    if (x < 0.0) return 0.0 * x;
    if (x < 1.0) return x * x * x / 3.0;
    return x - 2.0 / 3.0;
  });
  const LazyTensor x = input("x", {1000});
  const int branches = print("relu3", Graph({.inputs = {x}, .outputs = {relu3.tensor(x)}}));

  const LazyTensor rows = input("rows", {64, 16}), w = input("w", {16, 8}), v = input("v", {8, 1});
  namespace cnp = composit::numpy;
  const cnp::NdArray y = cnp::matmul(cnp::tanh(cnp::matmul(rows, w)), v);
  const LazyTensor loss = cnp::mean(y * y);
  composit::LazyTensors outputs = composit::grad(loss, {w, v});
  outputs.insert(outputs.begin(), loss);
  const int network = print("network", Graph({.inputs = {rows, w, v}, .outputs = outputs}));
  return branches == 1 && network > 1 ? 0 : 1;  // each element takes its branch within a kernel
}
