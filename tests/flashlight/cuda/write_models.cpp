// Writes programs for cuda.nvcc: the losses of models of examples/models, at small widths, with all
// their gradients, as one file that calls LibTorch.
//
//   write_cuda_models FOLDER [MODEL ...]
//
// Without names it takes all models.
#include <fstream>
#include <iostream>
#include <set>
#include <string>
#include <vector>

#include "examples/zoo/zoo.h"
#include "flashlight/cuda/backend.h"
#include "flashlight/gradient.h"
#include "flashlight/package/shipped.h"
#include "tests/flashlight/cuda/joined.h"

int main(int argc, char** argv) {
  if (argc < 2) return std::cerr << "usage: write_cuda_models FOLDER [MODEL ...]\n", 2;
  std::set<std::string> names(argv + 2, argv + argc);
  const bool all = names.empty();
  const std::string folder = std::string(argv[1]) + "/";
  std::vector<flashlight::cuda::CudaSource> sources;
  for (const zoo::Subject& subject : zoo::small_models()) {
    if (!all && names.erase(subject.name) == 0) continue;
    const auto captured = zoo::capture_loss(subject, subject.inputs(1));
    sources.push_back(flashlight::cuda::linked_source_of(
        captured.grad().graph(),
        {.name = subject.name, .called = flashlight::cuda::schema_of_call}));
  }
  if (!names.empty()) return std::cerr << "there is no model " << *names.begin() << "\n", 2;
  for (const char* name : {"flashlight_cuda.cuh", "flashlight_cuda_aten.cuh"})
    std::ofstream(folder + name) << flashlight::package::shipped_file(name).text;
  std::ofstream(folder + "models.cu") << flashlight::cuda::test::joined(sources);
}
