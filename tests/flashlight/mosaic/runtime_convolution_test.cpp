// Convolutions of the header of the mosaic backend, against loops in double.
#include "flashlight/runtime/contraction.hpp"
#include "flashlight/runtime/pack.hpp"
#include "tests/flashlight/mosaic/runtime_cases.h"

namespace flashlight::mosaic::test {
namespace {

struct Window {
  int64_t size, stride, dilation;
};

// Pixels have their channels side by side, `gap` elements of nobody behind them, and images a
// border of zeros.
template <class Element>
class Convolution {
 public:
  Convolution(int64_t images, int64_t height, int64_t width, int64_t channels, int64_t gap,
              int64_t outputs, const Window& window)
      : window_(window),
        images_(images),
        channels_(channels),
        outputs_(outputs),
        pixel_(channels + gap),
        high_(height + (window.size - 1) * window.dilation / 2 * 2),
        wide_(width + (window.size - 1) * window.dilation / 2 * 2),
        rows_((high_ - (window.size - 1) * window.dilation - 1) / window.stride + 1),
        columns_((wide_ - (window.size - 1) * window.dilation - 1) / window.stride + 1),
        x_(whole_numbers<Element>(images * high_ * wide_ * pixel_, 1)),
        w_(whole_numbers<Element>(outputs * channels * window.size * window.size, 2)) {
    const int64_t border = (window.size - 1) * window.dilation / 2;
    for (int64_t line = 0; line < images * high_; ++line)
      for (int64_t j = 0; j < wide_; ++j) {
        const int64_t i = line % high_;
        if (i < border || j < border || i >= high_ - border || j >= wide_ - border)
          std::fill_n(at(line, j), channels, Element(0));
      }
  }

  // What other windows do not read must not reach them, as 0 * NaN would.
  void put_nan(int64_t line, int64_t column) { *at(line, column) = Element(NAN); }

  // A window's terms in a segment for each of its pixels or, where no gaps are and `by_lines`, for
  // each of its lines.
  void expect(fl::Split split, int threads, bool by_lines = false) {
    const int64_t size = window_.size, taps = size * size;
    const int64_t segments = by_lines ? size : taps, run = by_lines ? size * channels_ : channels_;
    std::vector<int32_t> offsets;
    for (int64_t s = 0; s < segments; ++s) {
      const int64_t i = by_lines ? s : s / size, j = by_lines ? 0 : s % size;
      offsets.push_back(static_cast<int32_t>((i * wide_ + j) * pixel_ * window_.dilation));
    }
    // Weights are [output][line][column of the window][channel].
    const fl::Packing packing = {{{}, {}, {segments, run}, {run, 1}}, {outputs_, taps * channels_}};
    std::vector<Element> panels(static_cast<size_t>(fl::packed_size<Element>(packing)),
                                Element(NAN));
    Guarded<float> y(images_ * rows_ * columns_, outputs_);
    fl::run_team(threads, [&](const fl::Team& team) {
      fl::pack_panels<Element>(team, packing, w_.data(), panels.data());
      team.wait();
      const fl::Contraction<float> of = {
          images_ * rows_,
          columns_,
          window_.stride * pixel_,
          outputs_,
          {offsets.data(), static_cast<int>(segments), static_cast<int>(run)},
          split};
      fl::contract<float, Element>(
          team, of,
          [&](int64_t row) { return at(row / rows_ * high_ + row % rows_ * window_.stride, 0); },
          panels.data(),
          [&](int64_t row, int64_t column, int count, int64_t output, int filters,
              const auto* sums) {
            for (int r = 0; r < count; ++r)
              for (int c = 0; c < filters; ++c)
                y(row * columns_ + column + r, output + c) = sums[r][c];
          });
    });
    EXPECT_EQ(y.differences([&](int64_t to, int64_t output) { return sum(to, output); }), "")
        << images_ << " x " << rows_ << " x " << columns_ << " pixels of " << channels_ << " + "
        << pixel_ - channels_ << " -> " << outputs_ << ", window " << size << ", stride "
        << window_.stride << ", dilation " << window_.dilation << ", " << threads << " threads"
        << (by_lines ? ", by lines" : "");
  }

 private:
  Element* at(int64_t line, int64_t column) { return x_.data() + (line * wide_ + column) * pixel_; }
  double sum(int64_t to, int64_t output) {
    const int64_t row = to / columns_, size = window_.size;
    const int64_t line = row / rows_ * high_ + row % rows_ * window_.stride;
    double sum = 0;
    for (int64_t i = 0; i < size; ++i)
      for (int64_t j = 0; j < size; ++j) {
        const Element* const x =
            at(line + i * window_.dilation, to % columns_ * window_.stride + j * window_.dilation);
        const Element* const w = w_.data() + ((output * size + i) * size + j) * channels_;
        for (int64_t c = 0; c < channels_; ++c)
          sum += static_cast<double>(x[c]) * static_cast<double>(w[c]);
      }
    return sum;
  }

  const Window window_;
  const int64_t images_, channels_, outputs_, pixel_, high_, wide_, rows_, columns_;
  std::vector<Element> x_, w_;
};

template <class Element>
void expect_convolution(int64_t height, int64_t width, int64_t channels, int64_t outputs,
                        const Window& window, fl::Split split, int threads) {
  Convolution<Element>(1, height, width, channels, 2, outputs, window).expect(split, threads);
}

TEST(RuntimeConvolution, HasEveryWindow) {
  const Window windows[] = {{3, 1, 1}, {3, 2, 1}, {3, 1, 2}, {1, 1, 1},
                            {1, 2, 1}, {7, 2, 1}, {5, 3, 2}};
  for (const Window& window : windows)
    for (const int threads : {1, 2})
      for (const fl::Split split : {fl::Split::rows, fl::Split::columns}) {
        expect_convolution<float>(17, 23, 5, 35, window, split, threads);
        expect_convolution<float>(9, 30, 16, 20, window, split, threads);
        expect_convolution<fl::bfloat16>(17, 23, 5, 35, window, split, threads);
      }
  expect_convolution<float>(40, 70, 64, 33, {3, 1, 1}, fl::Split::rows, 2);
  expect_convolution<float>(1, 1, 3, 1, {3, 1, 1}, fl::Split::rows, 2);
}

// Rows that lie as the unit for matrices reads them, in lines of few pixels: a tile goes on through
// several of them, of one image or, without a border, of all.
TEST(RuntimeConvolution, GoesThroughSeveralLines) {
  for (const int64_t width : {1, 3, 7, 12, 14, 17, 28, 40})
    for (const int64_t images : {1, 2})
      for (const Window& window : {Window{3, 1, 1}, {1, 1, 1}, {3, 2, 1}, {1, 2, 1}})
        for (const int threads : {1, 3})
          for (const fl::Split split : {fl::Split::rows, fl::Split::columns})
            Convolution<fl::bfloat16>(images, width % 2 == 0 ? 7 : width, width, 32, 0, 40, window)
                .expect(split, threads);
}

// Lines of a window that are shorter than one of the cache, which are copied with what follows.
TEST(RuntimeConvolution, CopiesShortLinesOfWindows) {
  for (const int64_t channels : {1, 2, 3, 4})
    for (const Window& window : {Window{7, 2, 1}, {5, 1, 1}, {3, 1, 1}, {1, 1, 1}})
      for (const int64_t width : {9, 40})
        for (const int threads : {1, 2}) {
          Convolution<fl::bfloat16> one(2, 9, width, channels, 0, 35, window);
          one.put_nan(4, 8);
          one.expect(fl::Split::rows, threads, /*by_lines=*/true);
        }
}

}  // namespace
}  // namespace flashlight::mosaic::test
