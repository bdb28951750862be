// Every sample of every row that has kernels as CUDA C++, and its derivative.
#include <gtest/gtest.h>

#include <cstdlib>

#include "composit/ad/chain_rule.h"
#include "composit/ir/error.h"
#include "composit/ops/functions.h"
#include "tests/flashlight/cuda/compare.h"
#include "tests/flashlight/sample_case.h"

namespace flashlight::cuda {
namespace {

using namespace composit;  // NOLINT
using test::Case;

std::optional<Case> applied(const Operation& operation, const std::string& text, DType floats) {
  return flashlight::test::sample_case<Case>(operation, text, floats);
}

// The gradients of a weighted sum of all float results by all float inputs.
std::optional<Case> derivative(const Operation& operation, const std::string& text, DType floats) {
  Case one = *applied(operation, text, floats);
  LazyTensor loss;
  for (const LazyTensor& y : one.graph.outputs()) {
    if (y.dtype() != floats) continue;
    const LazyTensor part =
        sum(y * reshape(sin(arange(y.numel(), y.dtype()) * 0.7 + 1.0), y.sizes()));
    loss = loss.defined() ? loss + part : part;
  }
  LazyTensors inputs;
  for (const LazyTensor& input : one.graph.inputs())
    if (input.dtype() == floats &&
        operation.row.nondifferentiable.find(input_name(*input.node)) == std::string_view::npos)
      inputs.push_back(input);
  if (!loss.defined() || inputs.empty()) return std::nullopt;
  one.text += ", gradient";
  one.graph = Graph({.inputs = one.graph.inputs(), .outputs = grad(loss, inputs)});
  return one;
}

// Every fifth sample, nightly all.
size_t step() { return std::getenv("FLASHLIGHT_FUZZ_PROGRAMS") == nullptr ? 5 : 1; }

using Make = std::optional<Case> (*)(const Operation&, const std::string&, DType);

// All cases in batches; those without kernels are refused by name.
void expect_agreement(DType floats, Make make, size_t every = 1) {
  constexpr size_t kBatch = 150;
  std::vector<Case> batch;
  size_t count = 0, refused = 0, number = 0;
  const auto flush = [&] {
    EXPECT_EQ(test::differences(batch), "");
    count += batch.size();
    batch.clear();
  };
  for (const Operation* operation : all_operations())
    for (const std::string& text : split_samples(operation->row.samples)) {
      if (number++ % every != 0) continue;
      SCOPED_TRACE(operation->schema.name.str() + ": " + text);
      try {
        std::optional<Case> one = make(*operation, text, floats);
        if (!one) continue;
        source_of(one->graph, {.name = "probe", .outline = false});
        batch.push_back(std::move(*one));
      } catch (const UserError& error) {
        const std::string what = error.what();
        if (what.starts_with("[" + operation->schema.name.str() + "]")) continue;  // for its dtype
        EXPECT_TRUE(what.starts_with("[compile] no code for") ||
                    what == "[compile] no C++ type for complex32")
            << what;
        ++refused;
      }
      if (batch.size() == kBatch) flush();
    }
  if (!batch.empty()) flush();
  std::cout << count << " cases, " << refused << " refused\n";
  EXPECT_GT(count, 5 * refused);
}

TEST(CudaRows, float32) { expect_agreement(DType::float32, applied); }
TEST(CudaRows, bfloat16) { expect_agreement(DType::bfloat16, applied, step()); }
TEST(CudaRows, float16) { expect_agreement(DType::float16, applied, step()); }
TEST(CudaRows, complex64) { expect_agreement(DType::complex64, applied, step()); }
TEST(CudaRows, complex128) { expect_agreement(DType::complex128, applied, 4 * step()); }
TEST(CudaRows, gradients) { expect_agreement(DType::float64, derivative); }

}  // namespace
}  // namespace flashlight::cuda
