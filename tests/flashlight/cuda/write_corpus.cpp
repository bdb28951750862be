// Writes programs for cuda.nvcc: ADBench's objectives with their gradients, and random programs.
//
//   write_cuda_corpus FOLDER RANDOM_PROGRAMS
//
// FOLDER gets a file of objectives, a file for each batch of random programs, and their headers.
#include <cstdlib>
#include <fstream>
#include <iostream>

#include "composit/ir/error.h"
#include "examples/objectives/activations.h"
#include "examples/objectives/bundle_adjustment.h"
#include "examples/objectives/gmm.h"
#include "examples/objectives/hand_tracking.h"
#include "examples/objectives/lstm.h"
#include "flashlight/cuda/backend.h"
#include "flashlight/package/shipped.h"
#include "tests/flashlight/cuda/joined.h"
#include "tests/passes/computable_graph.h"

namespace {

using flashlight::cuda::CudaSource;

std::vector<CudaSource> objectives_sources() {
  using namespace objectives;  // NOLINT
  const std::vector<std::pair<std::string, Problem>> problems = {
      {"gelu", gelu_problem(1000, composit::DType::float32)},
      {"gmm", gmm_problem({.d = 3, .k = 5, .n = 100})},
      {"bundle_adjustment",
       bundle_adjustment_problem({.cameras = 3, .points = 20, .observations = 50})},
      {"lstm", lstm_problem({.layers = 2, .characters = 5, .hidden = 7})},
      {"hand_tracking", hand_tracking_problem({.vertices = 30, .points = 10})}};
  std::vector<CudaSource> sources;
  for (const auto& [name, problem] : problems) {
    sources.push_back(flashlight::cuda::source_of(problem.objective, {.name = name}));
    sources.push_back(flashlight::cuda::source_of(problem.gradient, {.name = name + "_gradient"}));
  }
  return sources;
}

// Of the first seeds whose programs have code, as in random_test.cpp.
std::vector<CudaSource> random_sources(size_t count, uint64_t& seed) {
  std::vector<CudaSource> sources;
  for (; sources.size() < count; ++seed) {
    try {
      sources.push_back(flashlight::cuda::source_of(
          composit::test::ComputableGraph(seed).make(),
          {.name = "random_" + std::to_string(seed), .outline = false}));
    } catch (const composit::UserError&) {  // no code for one of its operations
    }
  }
  return sources;
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 3) return std::cerr << "usage: write_cuda_corpus FOLDER RANDOM_PROGRAMS\n", 2;
  const std::string folder = std::string(argv[1]) + "/";
  constexpr size_t kBatch = 40;
  const auto write = [&](const std::string& name, const std::vector<CudaSource>& sources) {
    std::ofstream(folder + name + ".cu") << flashlight::cuda::test::joined(sources);
  };
  for (const char* name : {"flashlight_cuda.cuh", "flashlight_cuda_aten.cuh"})
    std::ofstream(folder + name) << flashlight::package::shipped_file(name).text;
  write("objectives", objectives_sources());
  uint64_t seed = 0;
  size_t left = std::strtoull(argv[2], nullptr, 10);
  for (size_t batch = 0; left > 0; ++batch) {
    const size_t count = std::min(left, kBatch);
    write("random_" + std::to_string(batch), random_sources(count, seed));
    left -= count;
  }
}
