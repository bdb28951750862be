// Products of float32, of bfloat16 and of bytes beside the limit of the processor's instruction for
// them, measured on registers in the same run. One thread, by the time that it computes.
//
//   ./dev bench products
#include <cstdio>
#include <string>
#include <vector>

#include "benchmarks/limits.h"
#include "benchmarks/report.h"
#include "flashlight/runtime/arena.hpp"
#include "flashlight/runtime/bytes.hpp"

namespace {

using benchmarks::Report;

constexpr int kRounds = 40;
constexpr double kLeastOfLimit = 0.90;

// Lines of pixels (`lines` of `rows`), or rows of a matrix, whose terms are `taps` lines of a
// window with `run` bytes each; rows are `stride` bytes apart, lines `line`.
struct Shape {
  const char* name;
  int64_t lines, rows, stride, line, columns;
  int taps, run;
};
Shape matrix(const char* name, int64_t rows, int64_t columns, int terms) {
  // As mosaic lays out rows that would meet in the same sets of the cache.
  return {name, 1, rows, terms % 1024 == 0 ? terms + 64 : terms, 0, columns, 1, terms};
}
Shape window_3x3(const char* name, int64_t pixels, int channels, int64_t columns) {
  return {name, pixels, pixels, channels, (pixels + 2) * channels, columns, 3, 3 * channels};
}

template <class T>
struct Product {
  std::vector<T> rows;
  std::vector<int32_t> offsets;
  std::vector<float> results;
  fl::Contraction<std::conditional_t<std::is_same_v<T, uint8_t>, int32_t, float>> of;

  explicit Product(const Shape& shape)
      : rows(static_cast<size_t>(shape.lines * shape.line + shape.rows * shape.stride +
                                 shape.taps * shape.line + shape.run + 64),
             T(3)),
        results(static_cast<size_t>(shape.lines * shape.rows * shape.columns)) {
    for (int tap = 0; tap < shape.taps; ++tap)
      offsets.push_back(static_cast<int32_t>(tap * shape.line));
    of = {shape.lines,
          shape.rows,
          shape.stride,
          shape.columns,
          {offsets.data(), shape.taps, shape.run}};
  }
  // What is done with a tile's sums: scaled, and stored as float32.
  auto store() {
    return [this](int64_t line, int64_t row, int height, int64_t column, int columns,
                  const auto* sums) {
      for (int r = 0; r < height; ++r) {
        float* to = results.data() + (line * of.inner + row + r) * of.columns + column;
        for (int c = 0; c < columns; ++c) to[c] = static_cast<float>(sums[r][c]) * 0.01f;
      }
    };
  }
};

template <class Work>
std::vector<double> seconds_of(const Work& work) {
  std::vector<double> rounds;
  for (int round = 0; round < kRounds; ++round) {
    const double before = benchmarks::thread_time();
    work();
    rounds.push_back(benchmarks::thread_time() - before);
  }
  return rounds;
}

fl::Packing packing_of(const Shape& shape) {
  const int64_t terms = int64_t{shape.taps} * shape.run;
  return {{{}, {}, {shape.taps, shape.run}, {shape.run, 1}}, {shape.columns, terms}};
}

std::vector<double> of_bytes(const Shape& shape) {
  Product<uint8_t> product(shape);
  const fl::Packing packing = packing_of(shape);
  const std::vector<int8_t> weights(static_cast<size_t>(shape.columns * packing.columns.stride), 2);
  const fl::Memory panels =
      fl::allocate(static_cast<size_t>(fl::packed_words(packing)) * sizeof(int32_t));
  auto* const words = reinterpret_cast<int32_t*>(panels.get());
  fl::pack_bytes<int32_t>(fl::Team::solo(), packing, weights.data(), words);
  return seconds_of([&] {
    fl::contract_bytes<int32_t>(
        fl::Team::solo(), product.of, 128,
        [&](int64_t line) { return product.rows.data() + line * shape.line; }, words,
        product.store());
  });
}

template <class T>
std::vector<double> of_floats(const Shape& shape) {
  Product<T> product(shape);
  const fl::Packing packing = packing_of(shape);
  const std::vector<T> weights(static_cast<size_t>(shape.columns * packing.columns.stride), T(2));
  const fl::Memory panels =
      fl::allocate(static_cast<size_t>(fl::packed_size<T>(packing)) * sizeof(T));
  auto* const packed = reinterpret_cast<T*>(panels.get());
  fl::pack_panels<T>(fl::Team::solo(), packing, weights.data(), packed);
  return seconds_of([&] {
    fl::contract<float, T>(
        fl::Team::solo(), product.of,
        [&](int64_t line) { return product.rows.data() + line * shape.line; }, packed,
        product.store());
  });
}

void measure(Report& report, const Shape& shape, const std::string& type, double limit,
             const std::vector<double>& rounds) {
  const double products = static_cast<double>(shape.lines * shape.rows * shape.columns) *
                          shape.taps * shape.run,
               best = benchmarks::minimum(rounds), rate = 1e-9 * products / best;
  report.raw(shape.name, type, rounds);
  std::printf("%-28s %-8s %8.3f ms; %6.1f of %6.1f GMAC/s\n", shape.name, type.c_str(), best * 1e3,
              rate, limit);
  report.target(type + ", " + shape.name + ": of the instruction's limit", ">=", kLeastOfLimit,
                rate / limit);
}

void measure(Report& report, const Shape& shape) {
  measure(report, shape, "float32", benchmarks::float32_limit(), of_floats<float>(shape));
  measure(report, shape, "bfloat16", benchmarks::bfloat16_limit(), of_floats<fl::bfloat16>(shape));
  measure(report, shape, "bytes", benchmarks::bytes_limit(), of_bytes(shape));
}

}  // namespace

int main() {
  Report report("products");
  for (const Shape& shape : {matrix("BERT 128 x 768 x 768", 128, 768, 768),
                             matrix("BERT 128 x 3072 x 768", 128, 3072, 768),
                             matrix("BERT 128 x 768 x 3072", 128, 768, 3072),
                             window_3x3("ResNet 56 x 56, 64, 3x3", 56, 64, 64),
                             window_3x3("ResNet 28 x 28, 128, 3x3", 28, 128, 128),
                             window_3x3("ResNet 14 x 14, 256, 3x3", 14, 256, 256),
                             window_3x3("ResNet 7 x 7, 512, 3x3", 7, 512, 512),
                             matrix("ResNet 784 x 128 x 512", 784, 128, 512),
                             matrix("ResNet 196 x 256 x 1024", 196, 256, 1024),
                             window_3x3("UNet 64 x 64, 320, 3x3", 64, 320, 320),
                             matrix("UNet 4096 x 320 x 320", 4096, 320, 320),
                             matrix("UNet 1024 x 5120 x 640", 1024, 5120, 640)})
    measure(report, shape);
  return report.finish();
}
