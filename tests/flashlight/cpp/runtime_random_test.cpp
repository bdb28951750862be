// Draws of the shipped header against LibTorch's; see make_torch_draws.py.
#include <gtest/gtest.h>

#include <vector>

#include "flashlight/runtime/random.hpp"

namespace {

template <class T, size_t kCount>
uint64_t digest(const T (&x)[kCount]) {
  uint64_t total = 0;
  for (size_t i = 0; i < kCount; ++i) {
    const auto value = static_cast<double>(x[i]);
    uint64_t bits;
    std::memcpy(&bits, &value, sizeof bits);
    total += (i + 1) * bits;
  }
  return total;
}

template <class T, size_t kCount>
std::vector<uint64_t> draws(uint64_t seed) {
  static T x[kCount], p[kCount];
  static int64_t whole[kCount];
  static int32_t narrow[kCount];
  static uint8_t bytes[kCount];
  static bool bools[kCount];
  fl::Generator generator(seed);
  std::vector<uint64_t> found;
  const auto add = [&](const auto& drawn) { found.push_back(digest(drawn)); };
  fl::draw_uniform(generator, 0, 1, x), add(x);
  fl::draw_uniform(generator, -0.3, 1.7, x), add(x);
  fl::draw_normal(generator, 0, 1, x), add(x);
  fl::draw_normal(generator, 0.3, 1.7, x), add(x);
  fl::draw_exponential(generator, 1.3, x), add(x);
  fl::draw_cauchy(generator, 0.5, 2, x), add(x);
  fl::draw_log_normal(generator, 0.5, 0.25, x), add(x);
  fl::draw_geometric(generator, 0.1, x), add(x);
  fl::draw_bernoulli(generator, 0.3, x), add(x);
  // torch.linspace: from both ends.
  const double step = kCount > 1 ? 1.0 / static_cast<double>(kCount - 1) : 0;
  for (size_t i = 0; i < kCount; ++i) {
    const size_t from_end = kCount - 1 - i;
    p[i] = static_cast<T>(static_cast<fl::detail::Drawn<T>>(
        i < kCount / 2 || kCount == 1 ? static_cast<double>(i) * step
                                      : 1 - static_cast<double>(from_end) * step));
  }
  fl::draw_bernoulli(generator, p, x), add(x);
  if constexpr (std::is_arithmetic_v<T>) {
    for (size_t i = 0; i < kCount; ++i) p[i] = static_cast<T>(i % 7) + T(0.25);
    static int64_t places[30];
    fl::draw_multinomial(generator, p, 1, 30, places), add(places);
  }
  fl::draw_integers(generator, -5, 100, x), add(x);
  fl::draw_integers(generator, -5, int64_t{1} << 40, whole), add(whole);
  fl::draw_integers(generator, narrow), add(narrow);
  fl::draw_integers(generator, whole), add(whole);
  fl::draw_integers(generator, bytes), add(bytes);
  fl::draw_integers(generator, bools), add(bools);
  fl::draw_integers(generator, x), add(x);
  fl::draw_permutation(generator, whole), add(whole);
  fl::draw_uniform(generator, 0, 1, x), add(x);
  return found;
}

#define DRAWS(T, count, seed, ...)                        \
  {                                                       \
    SCOPED_TRACE(#T " x " #count ", seed " #seed);        \
    const std::vector<uint64_t> expected = {__VA_ARGS__}; \
    EXPECT_EQ((draws<T, count>(seed)), expected);         \
  }

TEST(Random, draws_are_those_of_libtorch){
#include "tests/flashlight/cpp/torch_draws.inc"
}

TEST(Random, probabilities_are_checked) {
  fl::Generator generator(0);
  float x[2];
  const float p[2] = {0.5f, 1.5f}, q[2] = {NAN, 0};
  EXPECT_THROW(fl::draw_bernoulli(generator, p, x), std::domain_error);
  EXPECT_THROW(fl::draw_bernoulli(generator, q, x), std::domain_error);
}

}  // namespace
