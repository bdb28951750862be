// Graphs as kernels against their definitions, many in one translation unit, with 1, 2 and 3
// threads.
//
//   EXPECT_EQ(differences({case_of("residual", {y})}), "");
#pragma once

#include <string>
#include <vector>

#include "composit/ir/graph.h"
#include "composit/ir/node.h"
#include "flashlight/mosaic/backend.h"
#include "flashlight/mosaic/kernels/loops.h"
#include "flashlight/mosaic/kernels/pack.h"
#include "flashlight/mosaic/kernels/product.h"
#include "flashlight/package/backend.h"

namespace flashlight::mosaic::test {

// A graph compiled, and prepared for these values.
composit::Compiled compiled(const composit::Graph& graph,
                            const std::vector<composit::Array>& values,
                            const PlanOptions& planning = {}, int threads = 0,
                            const std::vector<std::string>& flags = {"-O1"});

// A graph with values for its inputs.
struct Case {
  std::string text;  // what it is, for messages
  composit::Graph graph;
  std::vector<composit::Array> values;
  uint64_t seed = package::kDefaultSeed;
  Choices choices = {};
};

struct CompareOptions {
  double times = 4;  // the tolerance of a result's dtype
  bool freeze = true;
  // Loops of generated code are short: what the compiler makes of them is no matter.
  std::vector<std::string> flags = {"-O1"};
};

// Empty, or every case that does not compile without a warning, fails, or differs from the
// reference: what, the graph as code, and the C++.
std::string differences(const std::vector<Case>& cases, const CompareOptions& options = {});

// The outputs depend on inputs that hold their values.
Case case_of(const std::string& text, const composit::LazyTensors& outputs);
// An input of the caller, and a parameter, with smooth numbers of about this size.
composit::LazyTensor given(const std::string& name, const composit::Dims& sizes, double scale = 1,
                           composit::DType dtype = composit::DType::float32);
composit::LazyTensor weight(const std::string& name, const composit::Dims& sizes,
                            double scale = 0.3, composit::DType dtype = composit::DType::float32);

// True if this processor runs code that is compiled for "native", "x86-64-v3" or "x86-64".
bool runs_here(const std::string& march);

// The number of a plan's kernels of a form, and of its products by any algorithm.
size_t count(const Plan& plan, const KernelForm& form);
size_t count_products(const Plan& plan);
// Pixels of Winograd's tiles that a product is computed by, or packed for; else 0.
int winograd_pixels(const Kernel& kernel);
// Trips that threads divide, of a kernel of loops.
int64_t divided_trips(const Kernel& kernel);

}  // namespace flashlight::mosaic::test
