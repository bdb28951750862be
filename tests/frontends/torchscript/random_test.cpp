// Random functions against LibTorch's interpreter: what is not refused is right.
#include <gtest/gtest.h>

#include "composit/ir/error.h"
#include "tests/frontends/torchscript/compare.h"
#include "tests/frontends/torchscript/random_text.h"
#include "tests/ir/random_graph.h"

namespace flashlight::test {
namespace {

TEST(Random, functions) {
  const uint64_t runs = composit::test::fuzz_runs(200);
  uint64_t compared = 0, refused = 0;
  for (uint64_t seed = 0; seed < runs; ++seed) {
    const std::string text = random_text(seed);
    SCOPED_TRACE("seed " + std::to_string(seed) + "\n" + text);
    for (int64_t unroll : {16, 2, 0}) {
      const Case one{.text = text,
                     .arguments = {random({3}, seed), random({3}, seed + 7), number(0.7),
                                   static_cast<int64_t>(seed % 4)},
                     .limits = {.unroll = unroll}};
      const std::string refusal = compare_values(one);
      ++(refusal.empty() ? compared : refused);
      if (HasFailure()) return;
    }
  }
  EXPECT_GT(compared, refused / 2);
}

}  // namespace
}  // namespace flashlight::test
