// Products with panels of integers, of the header of the mosaic backend, against loops in double.
// Codes and scales are such that sums are exact.
#include "flashlight/runtime/arena.hpp"
#include "flashlight/runtime/compressed.hpp"
#include "tests/flashlight/mosaic/runtime_cases.h"

namespace flashlight::mosaic::test {
namespace {

struct Compression {
  int64_t rows, terms, columns, group;
};

template <class Scale>
std::vector<Scale> powers_of_two(int64_t count) {
  std::vector<Scale> numbers;
  for (int64_t i = 0; i < count; ++i)
    numbers.push_back(static_cast<Scale>(std::ldexp(1.0F, static_cast<int>(i * 5 % 3) - 1)));
  return numbers;
}

template <int kBits, class Scale, bool kOffsets, class Element, class Operand = Element>
void expect_product(const Compression& of, int threads, bool transposed = false) {
  std::mt19937 random(7);
  constexpr int kCodes = 1 << kBits;
  std::vector<int8_t> codes(static_cast<size_t>(of.terms * of.columns));
  for (int8_t& code : codes)
    code = static_cast<int8_t>(static_cast<int>(random() % kCodes) - kCodes / 2);
  const int64_t groups = of.terms / of.group;
  const auto scales = powers_of_two<Scale>(of.columns * groups);
  const auto offsets = whole_numbers<Scale>(of.columns * groups, 3);
  const auto x = whole_numbers<Element>(of.rows * of.terms, 5);
  const fl::CompressedPacking packing = {of.terms, of.columns, of.group,
                                         transposed ? of.columns : 1, transposed ? 1 : of.terms};
  const int64_t bytes = fl::compressed_bytes<kBits, Scale, kOffsets>(packing);
  const fl::Memory memory = fl::allocate(static_cast<size_t>(bytes));
  auto* const panels = reinterpret_cast<uint8_t*>(memory.get());
  Guarded<float> y(of.rows, of.columns);
  constexpr int32_t kTerms[] = {0};
  const auto run = static_cast<int>(of.terms);
  fl::run_team(threads, [&](const fl::Team& team) {
    fl::pack_compressed<kBits, Scale, kOffsets>(team, packing, codes.data(), scales.data(),
                                                kOffsets ? offsets.data() : nullptr, panels);
    team.wait();
    const fl::Contraction<float> shape = {1,          of.rows,          of.terms,
                                          of.columns, {kTerms, 1, run}, fl::Split::columns};
    fl::contract_compressed<float, Element, Operand>(
        team, shape, [&](int64_t) { return x.data(); },
        {panels, of.group, fl::code_format<kBits, Scale, kOffsets>()},
        [&](int64_t, int64_t row, int rows, int64_t column, int columns, const auto* sums) {
          for (int r = 0; r < rows; ++r)
            for (int c = 0; c < columns; ++c) y(row + r, column + c) = sums[r][c];
        });
  });
  const auto expected = [&](int64_t row, int64_t column) {
    double sum = 0;
    for (int64_t k = 0; k < of.terms; ++k) {
      const auto group = static_cast<size_t>(column * groups + k / of.group);
      const int64_t place = k * packing.term_stride + column * packing.column_stride;
      double weight = static_cast<double>(scales[group]) * codes[static_cast<size_t>(place)];
      if (kOffsets) weight += static_cast<double>(offsets[group]);
      sum += weight * static_cast<double>(x[static_cast<size_t>(row * of.terms + k)]);
    }
    return sum;
  };
  EXPECT_EQ(y.differences(expected), "")
      << kBits << " bits, " << of.rows << " x " << of.terms << " x " << of.columns << ", groups of "
      << of.group << ", " << threads << " threads";
}

constexpr Compression kSizes[] = {{1, 64, 40, 32},  {1, 8, 1, 8},     {2, 96, 33, 96},
                                  {3, 32, 70, 16},  {4, 128, 65, 64}, {5, 64, 31, 32},
                                  {14, 64, 32, 64}, {33, 40, 130, 8}};

TEST(RuntimeCompressed, HasEveryHeight) {
  for (const Compression& sizes : kSizes)
    for (const int threads : {1, 3}) {
      expect_product<8, float, false, float>(sizes, threads);
      expect_product<8, float, true, float>(sizes, threads);
      expect_product<4, float, true, float>(sizes, threads);
      expect_product<4, fl::float16, false, float>(sizes, threads);
      expect_product<4, fl::bfloat16, false, float>(sizes, threads);
    }
}

TEST(RuntimeCompressed, ReadsRowsOf16Bits) {
  for (const Compression& sizes : kSizes) {
    expect_product<4, fl::bfloat16, false, fl::bfloat16>(sizes, 1);
    expect_product<4, float, true, fl::float16>(sizes, 1);
    // Codes of up to 8 bits are numbers of bfloat16; with an offset they need not be.
    expect_product<8, float, false, fl::bfloat16>(sizes, 1);
    expect_product<4, float, false, float, fl::bfloat16>(sizes, 1);
  }
}

TEST(RuntimeCompressed, GroupsOf8BitsHaveAnyLength) {
  for (const int64_t rows : {1, 3, 9})
    for (const int64_t group : {1, 3, 7, 21}) {
      expect_product<8, float, false, float>({rows, 42, 35, group}, 1);
      expect_product<8, float, true, float>({rows, 42, 35, group}, 1);
    }
}

TEST(RuntimeCompressed, PacksTransposedCodes) {
  for (const Compression& sizes : kSizes) {
    expect_product<8, float, false, float>(sizes, 1, /*transposed=*/true);
    expect_product<4, fl::float16, false, float>(sizes, 2, /*transposed=*/true);
  }
}

}  // namespace
}  // namespace flashlight::mosaic::test
