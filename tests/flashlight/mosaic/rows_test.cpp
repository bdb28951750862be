// Every sample of every row as kernels: what is emitted computes what the row defines.
#include <gtest/gtest.h>

#include <cstdlib>
#include <map>

#include "composit/ir/error.h"
#include "composit/ops/functions.h"
#include "tests/flashlight/mosaic/compare.h"
#include "tests/flashlight/sample_case.h"

namespace flashlight::mosaic {
namespace {

using namespace composit;  // NOLINT
using test::Case;

// Each part has its share of the operations, so that processors can share the work.
constexpr size_t kParts = 2;
class MosaicRows : public testing::TestWithParam<size_t> {};
INSTANTIATE_TEST_SUITE_P(Part, MosaicRows, testing::Range(size_t{0}, kParts));

// All are planned; every other one is compiled, and by the nightly preset all.
TEST_P(MosaicRows, float32) {
  constexpr size_t kBatch = 150;
  const size_t step = std::getenv("FLASHLIGHT_FUZZ_PROGRAMS") == nullptr ? 2 : 1;
  std::vector<Case> batch;
  std::map<std::string, int> refused;
  size_t count = 0, planned = 0, number = 0;
  const auto flush = [&] {
    EXPECT_EQ(test::differences(batch, {.flags = {"-O0"}}), "");
    count += batch.size();
    batch.clear();
  };
  for (const Operation* operation : all_operations()) {
    if (number++ % kParts != GetParam()) continue;
    for (const std::string& text : split_samples(operation->row.samples)) {
      SCOPED_TRACE(operation->schema.name.str() + ": " + text);
      try {
        Case one = flashlight::test::sample_case<Case>(*operation, text, DType::float32);
        plan_of(one.graph);
        if (planned++ % step == 0) batch.push_back(std::move(one));
      } catch (const UserError& error) {
        ++refused[error.what()];
      } catch (const std::exception& error) {
        ADD_FAILURE() << error.what();
      }
      if (batch.size() == kBatch) flush();
    }
  }
  flush();
  for (const auto& [what, times] : refused) ADD_FAILURE() << times << " x " << what;
  std::cout << planned << " cases, " << count << " of them compiled\n";
  EXPECT_GT(planned, 1000 / kParts);
  EXPECT_GE(count, planned / 2);
}

}  // namespace
}  // namespace flashlight::mosaic
