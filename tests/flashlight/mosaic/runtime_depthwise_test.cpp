// Convolutions whose channels do not mix, of the header of the mosaic backend, against loops in
// double.
#include <atomic>

#include "flashlight/runtime/depthwise.hpp"
#include "flashlight/runtime/pack.hpp"
#include "tests/flashlight/mosaic/runtime_cases.h"

namespace flashlight::mosaic::test {
namespace {

using fl::kPanel;

struct Shape {
  int64_t lines, pixels, channels, taps, stride, dilation;
};

// Lines of pixels with their channels side by side, and windows along a line.
template <class T>
void expect_depthwise(const Shape& of, int threads) {
  const int64_t width = (of.pixels - 1) * of.stride + (of.taps - 1) * of.dilation + 1;
  const auto x = whole_numbers<T>(of.lines * width * of.channels, 1),  // nothing behind the last
      weight = whole_numbers<T>(of.channels * of.taps, 2);
  const fl::Packing packing = {{{}, {}, {}, {of.taps, 1}}, {of.channels, of.taps}};
  std::vector<T> panels(static_cast<size_t>(fl::packed_size<T>(packing)));
  fl::pack_panels<T>(fl::Team::solo(), packing, weight.data(), panels.data());
  Guarded<T> y(of.lines * of.pixels, of.channels);
  std::vector<std::atomic<int>> stores(static_cast<size_t>(of.lines * of.pixels * of.channels));
  const int32_t offset = 0;
  const fl::Contraction<T> contraction = {
      of.lines,
      of.pixels,
      of.stride * of.channels,
      of.channels,
      {&offset, 1, static_cast<int>(of.taps), static_cast<int>(of.dilation * of.channels)}};
  fl::run_team(threads, [&](const fl::Team& team) {
    fl::contract_depthwise<T>(
        team, contraction, [&](int64_t line) { return x.data() + line * width * of.channels; },
        panels.data(),
        [&](int64_t line, int64_t pixel, int pixels, int64_t channel, int channels,
            const T(*sums)[kPanel<T>]) {
          for (int p = 0; p < pixels; ++p)
            for (int c = 0; c < channels; ++c) {
              const int64_t to = line * of.pixels + pixel + p;
              y(to, channel + c) = sums[p][c];
              ++stores[static_cast<size_t>(to * of.channels + channel + c)];
            }
        });
  });
  for (const auto& count : stores) ASSERT_EQ(count, 1);
  const auto expected = [&](int64_t row, int64_t channel) {
    const T* from =
        x.data() + (row / of.pixels * width + row % of.pixels * of.stride) * of.channels;
    double sum = 0;
    for (int64_t k = 0; k < of.taps; ++k)
      sum += static_cast<double>(from[k * of.dilation * of.channels + channel]) *
             static_cast<double>(weight[static_cast<size_t>(channel * of.taps + k)]);
    return sum;
  };
  SCOPED_TRACE(testing::Message() << of.lines << " x " << of.pixels << " x " << of.channels);
  EXPECT_EQ(y.differences(expected), "");
}

TEST(RuntimeDepthwise, HasEverySize) {
  for (const int64_t pixels : {1, 2, 3, 7, 8, 9, 15, 22})
    for (const int64_t channels : {1, 4, 8, 15, 16, 17, 32, 47, 70})
      for (const int64_t taps : {1, 3, 5}) {
        const Shape shape = {3, pixels, channels, taps, taps % 2 + 1, taps == 3 ? 2 : 1};
        expect_depthwise<float>(shape, 1);
        if (taps == 3) expect_depthwise<double>(shape, 3);
      }
}

}  // namespace
}  // namespace flashlight::mosaic::test
