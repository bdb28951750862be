// Convolutions of random shapes, one behind the other, with what may stand between them.
#include <gtest/gtest.h>

#include <cstdlib>
#include <random>

#include "composit/ops/functions.h"
#include "tests/flashlight/mosaic/compare.h"

namespace flashlight::mosaic {
namespace {

using namespace composit;  // NOLINT
using test::Case;
using test::case_of;
using test::differences;
using test::given;
using test::weight;

class RandomNetwork {
 public:
  explicit RandomNetwork(uint64_t seed) : random_(seed), seed_(seed) {}

  Case make() {
    const int64_t channels[] = {1, 3, 4, 12, 17, 32, 36};
    LazyTensor x = given("x", {one_of(1, 3), channels[one_of(0, 6)], one_of(4, 13), one_of(4, 13)});
    for (int64_t layers = one_of(1, 4); layers > 0; --layers) {
      LazyTensor y = convolution(x);
      if (one_of(0, 2) == 0) outputs_.push_back(y);
      if (one_of(0, 1) == 0) y = relu(y);
      if (one_of(0, 2) == 0) y = apply_one("aten::silu", {y});
      if (y.sizes() == x.sizes() && one_of(0, 1) == 0) y = y + x;
      if (one_of(0, 3) == 0) y = cat({y, sin(y)}, 1);
      if (one_of(0, 3) == 0) y = y * weight(name(), {y.sizes()[1], 1, 1});
      x = y;
    }
    outputs_.push_back(x);
    return case_of("seed " + std::to_string(seed_), outputs_);
  }

 private:
  int64_t one_of(int64_t low, int64_t high) {
    return low + static_cast<int64_t>(random_() % static_cast<uint64_t>(high - low + 1));
  }
  std::string name() { return std::string(1, static_cast<char>('a' + names_++)); }

  // The window has to fit into the picture.
  LazyTensor convolution(const LazyTensor& x) {
    const Ints size = x.sizes();
    const bool transposed = one_of(0, 4) == 0;
    Ints kernel, stride, padding, dilation;
    for (size_t i = 2; i < 4; ++i) {
      kernel.push_back(one_of(1, 3));
      dilation.push_back(one_of(1, 2));
      stride.push_back(one_of(1, 2));
      const int64_t reach = (kernel.back() - 1) * dilation.back();
      const int64_t least = std::max<int64_t>(0, (reach + 2 - size[i]) / 2);
      padding.push_back(transposed ? std::min<int64_t>(one_of(0, 1), size[i] - 1) * (reach > 0)
                                   : std::max(least, one_of(0, 3)));
    }
    std::vector<int64_t> groups = {1};
    for (const int64_t count : {3, 4, 17})
      if (size[1] % count == 0) groups.push_back(count);
    const int64_t group =
        groups[static_cast<size_t>(one_of(0, static_cast<int64_t>(groups.size()) - 1))];
    const int64_t out = one_of(1, 9) * (group == 17 ? 1 : 2);
    const Dims sizes = transposed ? Dims{size[1], out, kernel[0], kernel[1]}
                                  : Dims{out * group, size[1] / group, kernel[0], kernel[1]};
    const ArgumentValue bias =
        one_of(0, 1) == 0 ? ArgumentValue() : ArgumentValue(weight(name(), {out * group}));
    return apply_one("aten::convolution", {x, weight(name(), sizes, 0.2), bias, stride, padding,
                                           dilation, transposed, Ints{0, 0}, group});
  }

  std::mt19937_64 random_;
  uint64_t seed_;
  int names_ = 0;
  LazyTensors outputs_;
};

TEST(MosaicConvolutions, random_networks) {
  const bool nightly = std::getenv("FLASHLIGHT_FUZZ_PROGRAMS") != nullptr;
  const uint64_t networks = nightly ? 400 : 40;
  constexpr uint64_t kBatch = 40;
  for (uint64_t begin = 0; begin < networks; begin += kBatch) {
    std::vector<Case> cases;
    for (uint64_t seed = begin; seed < std::min(networks, begin + kBatch); ++seed)
      cases.push_back(RandomNetwork(seed).make());
    EXPECT_EQ(differences(cases), "");
  }
}

}  // namespace
}  // namespace flashlight::mosaic
