// Writes a program of loops as CUDA C++: a kernel per nest, and a function that launches them.
//
//   const CudaSource source = emit(program);
//   source.text;       // relu3.cu: kernels, cudaError_t relu3(const float* x, float* y, …)
//   source.header;     // relu3.h: the function, for C
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "flashlight/loops/program.h"

namespace flashlight::cuda {

using namespace loops;

struct CudaSource {
  std::string name;    // of the function
  std::string text;    // a translation unit
  std::string header;  // for callers, in C
  int64_t arena_bytes = 0;
};

struct EmitOptions {
  // Adds a function that captures a call in a CUDA graph.
  bool graph = false;
  // With LibTorch: the inputs that the last results are new values of.
  std::vector<size_t> targets = {};
};

// UserError that lists all steps without a kernel: calls of the runtime
// (sorting, draws, guards); with `graph` also those for which the host waits.
CudaSource emit(loops::Program program, const EmitOptions& options);
// The same as a function of LibTorch's tensors, in which steps may be calls of LibTorch.
CudaSource emit_linked(loops::Program program, const EmitOptions& options);

}  // namespace flashlight::cuda
