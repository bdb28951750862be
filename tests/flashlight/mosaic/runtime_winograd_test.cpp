// Winograd's convolutions of the header of the mosaic backend, against loops in double.
#include <memory>

#include "flashlight/runtime/pack.hpp"
#include "flashlight/runtime/winograd.hpp"
#include "tests/flashlight/mosaic/runtime_cases.h"

namespace flashlight::mosaic::test {
namespace {

using fl::kPanel;

// Pixels with a gap of NaN behind each, and behind each line.
template <class T>
struct Image {
  int64_t height, width, channels, row_pitch, pixel_pitch;
  std::vector<T> elements;

  Image(int64_t height, int64_t width, int64_t channels, std::vector<T> values)
      : height(height),
        width(width),
        channels(channels),
        row_pitch(width + 1),
        pixel_pitch(channels + 2),
        elements(static_cast<size_t>(height * row_pitch * pixel_pitch), T(NAN)) {
    for (size_t i = 0; i < values.size(); ++i) {
      const auto at = static_cast<int64_t>(i), pixel = at / channels;
      elements[static_cast<size_t>((pixel / width * row_pitch + pixel % width) * pixel_pitch +
                                   at % channels)] = values[i];
    }
  }
  double operator()(int64_t y, int64_t x, int64_t c) const {
    if (y < 0 || x < 0 || y >= height || x >= width) return 0;
    return static_cast<double>(
        elements[static_cast<size_t>((y * row_pitch + x) * pixel_pitch + c)]);
  }
};

template <class T>
struct Case {
  int64_t height, width, channels, outputs;
  int64_t top = 1, left = 1, bottom = 1, right = 1;
  fl::Split split = fl::Split::rows;
  int threads = 1;
  bool plain_weights = false;
};

template <class T>
fl::Winograd<T> convolution_of(const Case<T>& one, const Image<T>& x) {
  fl::Winograd<T> of = {one.height + one.top + one.bottom - 2,
                        one.width + one.left + one.right - 2,
                        one.height,
                        one.width,
                        one.top,
                        one.left,
                        x.row_pitch,
                        x.pixel_pitch,
                        one.channels,
                        one.outputs};
  of.split = one.split;
  of.plain_weights = one.plain_weights;
  return of;
}

// The convolution of x and the weights [output][channel][3][3]; each element has to be stored once.
template <int kOut, class T>
void convolve(const Case<T>& one, const Image<T>& x, const std::vector<T>& w, Guarded<T>& y) {
  fl::Winograd<T> of = convolution_of(one, x);
  const fl::Packing packing = {{{}, {3, 3}, {3, 1}, {one.channels, 9}},
                               {one.outputs, 9 * one.channels}};
  std::vector<T> packed(static_cast<size_t>(fl::packed_size<T>(packing)), T(NAN)),
      transformed(static_cast<size_t>(fl::transformed_size<kOut, T>(one.channels, one.outputs)),
                  T(NAN)),
      memory(static_cast<size_t>(fl::winograd_memory<kOut>(of, one.threads) * one.threads), T(NAN));
  of.next = fl::Upcoming::of(packed.data(), static_cast<int64_t>(packed.size()));
  fl::run_team(one.threads, [&](const fl::Team& team) {
    fl::pack_panels<T>(team, packing, w.data(), packed.data());
    team.wait();
    fl::transform_weights<kOut>(team, one.channels, one.outputs, packed.data(), transformed.data());
    team.wait();
    fl::convolve_winograd<kOut>(
        team, of, x.elements.data(), one.plain_weights ? packed.data() : transformed.data(),
        memory.data() + fl::winograd_memory<kOut>(of, one.threads) * team.thread(),
        [&](int64_t row, int64_t column, int pixels, int64_t output, int outputs,
            const T(*sums)[kPanel<T>]) {
          ASSERT_LE(pixels, fl::kMostRows);
          for (int i = 0; i < pixels; ++i)
            for (int c = 0; c < outputs; ++c) {
              T& to = y(row * of.width + column + i, output + c);
              ASSERT_TRUE(std::isnan(to));
              to = sums[i][c];
            }
        });
  });
}

template <int kOut, class T>
void expect_right(const Case<T>& one, double times) {
  const Image<T> x(one.height, one.width, one.channels,
                   whole_numbers<T>(one.height * one.width * one.channels, 1));
  const auto w = whole_numbers<T>(one.outputs * one.channels * 9, 2);
  const fl::Winograd<T> of = convolution_of(one, x);
  Guarded<T> y(of.height * of.width, one.outputs);
  convolve<kOut>(one, x, w, y);
  const auto expected = [&](int64_t pixel, int64_t output) {
    double sum = 0;
    for (int64_t c = 0; c < one.channels; ++c)
      for (int64_t i = 0; i < 3; ++i)
        for (int64_t j = 0; j < 3; ++j)
          sum += x(pixel / of.width + i - one.top, pixel % of.width + j - one.left, c) *
                 static_cast<double>(
                     w[static_cast<size_t>(((output * one.channels + c) * 3 + i) * 3 + j)]);
    return sum;
  };
  EXPECT_EQ(y.differences(expected, times), "")
      << kOut << ": " << one.height << " x " << one.width << " x " << one.channels << " -> "
      << one.outputs << ", " << one.threads << " threads";
}

// With kOut = 2, whole numbers are computed exactly. With 4, rounding errors of single precision
// are up to three times those of plain sums (which the tolerances are for), relative to the largest
// of all points.
template <class T>
void expect_right(const Case<T>& one) {
  expect_right<2>(one, 0);
  expect_right<4>(one, sizeof(T) == 4 ? 8 : 1);
}

TEST(RuntimeWinograd, HasEverySize) {
  for (const int64_t height : {1, 2, 5, 9, 14})
    for (const int64_t width : {1, 3, 4, 7, 30})
      for (const int64_t channels : {1, 3, 16, 21})
        for (const int64_t outputs : {1, 17, 40}) {
          expect_right<float>({height, width, channels, outputs});
          if (width == 7) expect_right<double>({height, width, channels, outputs});
        }
}

TEST(RuntimeWinograd, HasEveryBorder) {
  for (const int64_t top : {0, 1, 2})
    for (const int64_t left : {0, 1, 3})
      for (const int64_t bottom : {0, 1, 5})
        expect_right<double>({9, 11, 5, 8, top, left, bottom, 2});
}

TEST(RuntimeWinograd, SharesRowsAndColumns) {
  for (const fl::Split split : {fl::Split::rows, fl::Split::columns})
    for (const int threads : {2, 3})
      for (const bool plain : {false, true}) {
        expect_right<float>({14, 14, 40, 70, 1, 1, 1, 1, split, threads, plain});
        expect_right<float>({2, 3, 5, 7, 1, 1, 1, 1, split, threads, plain});
        expect_right<double>({30, 34, 64, 17, 1, 1, 1, 1, split, threads, plain});  // some blocks
      }
}

TEST(RuntimeWinograd, TransformsWeightsInTheCall) {
  for (const int64_t channels : {1, 16, 21})
    for (const int64_t outputs : {1, 17, 40})
      expect_right<float>({9, 11, channels, outputs, 1, 1, 1, 1, fl::Split::rows, 1, true});
  expect_right<float>({9, 6, 1100, 10, 1, 1, 1, 1, fl::Split::rows, 1, true});  // some at a time
}

TEST(RuntimeWinograd, HasBlocksOfFewTilesWhereChannelsAreMany) {
  expect_right<float>({21, 20, 1024, 2, 1, 1, 1, 1, fl::Split::columns, 2});
}

// Largest error in units of the root of the mean square of the results: with normal numbers, plain
// sums of floats have some 5e-6.
template <int kOut>
double error(const Case<float>& one) {
  const Image<float> x(one.height, one.width, one.channels,
                       normal_numbers<float>(one.height * one.width * one.channels, 1));
  const auto w = normal_numbers<float>(one.outputs * one.channels * 9, 2);
  Guarded<float> y(one.height * one.width, one.outputs);
  convolve<kOut>(one, x, w, y);
  double largest = 0, squares = 0;
  for (int64_t pixel = 0; pixel < one.height * one.width; ++pixel)
    for (int64_t output = 0; output < one.outputs; ++output) {
      double sum = 0;
      for (int64_t k = 0; k < one.channels * 9; ++k)
        sum += x(pixel / one.width + k % 9 / 3 - 1, pixel % one.width + k % 3 - 1, k / 9) *
               double{w[static_cast<size_t>(output * one.channels * 9 + k)]};
      largest = std::max(largest, std::abs(sum - double{y(pixel, output)}));
      squares += sum * sum;
    }
  return largest / std::sqrt(squares / static_cast<double>(one.height * one.width * one.outputs));
}

TEST(RuntimeWinograd, IsAccurate) {
  const Case<float> one = {16, 16, 128, 40};
  EXPECT_LT(error<2>(one), 5e-6);
  EXPECT_LT(error<4>(one), 2e-5);
}

}  // namespace
}  // namespace flashlight::mosaic::test
