// Llama of examples/zoo, token by token: captured as one family for all positions, compiled, and
// its cache, which is written in place.
#include "examples/zoo/llama.h"

#include <c10/core/Allocator.h>
#include <c10/util/ThreadLocalDebugInfo.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <torch/torch.h>

#include "examples/zoo/subject.h"
#include "flashlight/backends/mosaic.h"
#include "tests/agreement.h"
#include "tests/flashlight/small_llama.h"
#include "tests/user_error.h"
#include "tracer/convert.h"

namespace flashlight {
namespace {

using composit::user_error;
using testing::HasSubstr;
using testing::Optional;

zoo::LlamaOptions small(int64_t batch = 1, at::ScalarType dtype = at::kFloat) {
  zoo::LlamaOptions options = test::small_llama(batch);
  options.dtype = dtype;
  return options;
}

at::Tensor from(int64_t first, int64_t count, int64_t batch = 1) {
  return torch::arange(first, first + count).unsqueeze(0).repeat({batch, 1});
}

std::vector<at::Tensor> cache_of(const zoo::Llama& llama) {
  std::vector<at::Tensor> tensors;
  for (const models::LlamaKeysAndValues& layer : llama.decoder()->cache->layers)
    tensors.insert(tensors.end(), {layer.keys, layer.values});
  return tensors;
}

void clear(const zoo::Llama& llama) {
  for (at::Tensor& tensor : cache_of(llama)) tensor.zero_();
}

// What a prompt of 9 tokens and 20 more give, by calls of one token, and a draft of 4 at the end.
template <class Compare>
void decode(const zoo::LlamaStep& ours, const zoo::LlamaStep& eager, const Compare& compare,
            int64_t batch = 1) {
  const auto both = [&](const at::Tensor& tokens, const at::Tensor& positions) {
    const at::Tensor expected = eager(tokens, positions);
    compare(ours(tokens, positions), expected);
    return expected.argmax(-1, /*keepdim=*/true);
  };
  at::Tensor token = both(zoo::tokens({batch, 9}, 60, 3), from(0, 9, batch));
  for (int64_t i = 0; i < 20; ++i) token = both(token, from(9 + i, 1, batch));
  both(zoo::tokens({batch, 4}, 60, 4), from(29, 4, batch));
}

TEST(LlamaTest, ReplaysHaveEagersBits) {
  for (const at::ScalarType dtype : {at::kFloat, at::kBFloat16}) {
    const zoo::Llama eager(small(1, dtype)), llama(small(1, dtype));
    const zoo::LlamaStep replay = llama.captured();
    clear(llama);
    decode(replay, eager.eager(),
           [](const at::Tensor& a, const at::Tensor& b) { EXPECT_TRUE(torch::equal(a, b)); });
    const auto ours = cache_of(llama), expected = cache_of(eager);
    for (size_t i = 0; i < ours.size(); ++i) EXPECT_TRUE(torch::equal(ours[i], expected[i])) << i;
  }
}

// The tolerance of a chain of operations, of logits: layers times sums.
void expect_close(const at::Tensor& a, const at::Tensor& b) {
  EXPECT_EQ(composit::test::difference(tracer::to_array(a), tracer::to_array(b), 8), "");
}

TEST(LlamaTest, CompiledComputesTheSame) {
  for (const int64_t batch : {1, 3}) {
    const zoo::Llama eager(small(batch)), llama(small(batch));
    const zoo::LlamaStep fast = llama.compiled({.backend = Mosaic{.threads = 2}});
    clear(llama);
    decode(fast, eager.eager(), expect_close, batch);
    const auto ours = cache_of(llama), expected = cache_of(eager);
    for (size_t i = 0; i < ours.size(); ++i) expect_close(ours[i], expected[i]);
  }
}

// Bytes that LibTorch allocates on this thread.
struct Allocated : c10::MemoryReportingInfoBase {
  void reportMemoryUsage(void*, int64_t size, size_t, size_t, c10::Device) override {
    if (size > 0) bytes += size;
  }
  bool memoryProfilingEnabled() const override { return true; }
  int64_t bytes = 0;
};

TEST(LlamaTest, NoByteOfTheCacheIsCopied) {
  const zoo::Llama llama(small());
  const zoo::LlamaStep fast = llama.compiled({.backend = Mosaic{.threads = 1}});
  fast(zoo::tokens({1, 9}, 60, 3), from(0, 9));
  for (const int64_t count : {1, 4}) {
    fast(zoo::tokens({1, count}, 60, 3), from(9, count));  // plans
    const auto cache = cache_of(llama);
    const auto allocated = std::make_shared<Allocated>();
    {
      const c10::DebugInfoGuard guard(c10::DebugInfoKind::PROFILER_STATE, allocated);
      fast(zoo::tokens({1, count}, 60, 3), from(9, count));
    }
    EXPECT_GT(allocated->bytes, 0);
    EXPECT_LT(allocated->bytes, cache[0].nbytes()) << "the smallest of what could be copied";
  }
}

TEST(LlamaTest, PositionsBeyondTheCacheAreRefusedBeforeAnythingIsWritten) {
  const zoo::Llama llama(small(2));
  const auto expect_refused = [&](const zoo::LlamaStep& step) {
    std::vector<at::Tensor> before;
    for (const at::Tensor& tensor : cache_of(llama)) before.push_back(tensor.clone());
    const at::Tensor token = zoo::tokens({2, 1}, 60, 3);
    EXPECT_THAT(user_error([&] {
                  step(token, torch::tensor({{3}, {64}}));
                }),
                Optional(HasSubstr("expected positions from 0 to 63")));
    for (size_t i = 0; i < before.size(); ++i)
      EXPECT_TRUE(torch::equal(before[i], cache_of(llama)[i])) << i;
  };
  expect_refused(llama.eager());
  expect_refused(llama.captured());
  expect_refused(llama.compiled({.backend = Mosaic{.threads = 1}}));
  // The program's own guard.
  const auto fast = compile(llama.family(), {.backend = Mosaic{.threads = 1}});
  const at::Tensor before = cache_of(llama)[0].clone();
  for (const int64_t outside : {16, -1})
    EXPECT_THAT(user_error([&] {
                  fast(zoo::tokens({2, 1}, 60, 3), torch::tensor({{int64_t{3}}, {outside}}),
                       torch::arange(16));
                }),
                Optional(HasSubstr("guard")));
  EXPECT_TRUE(torch::equal(before, cache_of(llama)[0]));
}

}  // namespace
}  // namespace flashlight
