// Random graphs and their derivatives as CUDA C++, run on the host.
#include <gtest/gtest.h>

#include <cstdlib>
#include <iostream>

#include "composit/ir/error.h"
#include "tests/flashlight/cuda/compare.h"
#include "tests/passes/computable_graph.h"

namespace flashlight::cuda {
namespace {

using test::Case;

TEST(CudaRandom, Programs) {
  constexpr size_t kBatch = 40;
  const bool is_nightly = std::getenv("FLASHLIGHT_FUZZ_PROGRAMS") != nullptr;
  const size_t wanted = is_nightly ? 2000 : 40;
  std::vector<Case> batch;
  size_t compared = 0, refused = 0;
  for (uint64_t seed = 0; compared < wanted; ++seed) {
    const composit::Graph graph = composit::test::ComputableGraph(seed).make();
    try {
      source_of(graph, {.name = "probe", .outline = false});
    } catch (const composit::UserError&) {
      ++refused;  // branches and loops
      continue;
    }
    batch.push_back({"ComputableGraph(" + std::to_string(seed) + ")", graph,
                     composit::test::random_inputs(graph, seed)});
    if (batch.size() < kBatch) continue;
    EXPECT_EQ(test::differences(batch, 16), "");
    compared += batch.size();
    batch.clear();
  }
  std::cout << compared << " programs, " << refused << " refused\n";
}

}  // namespace
}  // namespace flashlight::cuda
