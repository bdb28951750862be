// Zeros, or other numbers, around arrays, of the header of the mosaic backend.
#include "flashlight/runtime/border.hpp"
#include "tests/flashlight/mosaic/runtime_cases.h"

namespace flashlight::mosaic::test {
namespace {

// Elements inside, and beside the array, stay as they are.
template <int kRank, class T>
void expect_cleared(const int64_t (&sizes)[kRank], const int64_t (&before)[kRank],
                    const int64_t (&after)[kRank], int threads, int fill = 0) {
  int64_t count = 1;
  for (const int64_t size : sizes) count *= size;
  Guarded<T> x(1, count);
  for (int64_t i = 0; i < count; ++i) x(0, i) = static_cast<T>(i + 1);
  fl::run_team(threads, [&](const fl::Team& team) {
    fl::clear_border<kRank>(team, x.data(), sizes, before, after, static_cast<T>(fill));
  });
  const auto expected = [&](int64_t, int64_t at) {
    bool is_inside = true;
    for (int64_t i = kRank, rest = at; i-- > 0; rest /= sizes[i])
      is_inside &= rest % sizes[i] >= before[i] && rest % sizes[i] < sizes[i] - after[i];
    return is_inside ? static_cast<double>(at + 1) : fill;
  };
  EXPECT_EQ(x.differences(expected), "") << kRank << " dimensions";
}

TEST(RuntimeBorder, IsClearedInEveryDimension) {
  for (const int threads : {1, 3}) {
    expect_cleared<1, float>({13}, {2}, {0}, threads);
    expect_cleared<1, double>({5}, {2}, {3}, threads);  // nothing inside
    expect_cleared<2, float>({3, 7}, {0, 1}, {1, 0}, threads);
    expect_cleared<3, float>({9, 11, 5}, {1, 1, 0}, {1, 2, 0}, threads);
    expect_cleared<3, float>({9, 11, 5}, {1, 1, 0}, {1, 2, 0}, threads, 125);
    expect_cleared<3, double>({4, 5, 3}, {0, 0, 1}, {0, 0, 1}, threads);
    expect_cleared<4, float>({2, 5, 6, 17}, {0, 2, 3, 0}, {0, 1, 0, 0}, threads);
    expect_cleared<4, float>({1, 1, 1, 1}, {0, 0, 0, 0}, {0, 0, 0, 0}, threads);
  }
}

}  // namespace
}  // namespace flashlight::mosaic::test
