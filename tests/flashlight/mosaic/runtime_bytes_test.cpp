// Products of bytes of the header of the mosaic backend, against sums in 64 bits: they are equal.
#include <atomic>
#include <cmath>
#include <random>

#include "flashlight/runtime/byte_rows.hpp"
#include "flashlight/runtime/bytes.hpp"
#include "tests/flashlight/mosaic/runtime_cases.h"

namespace flashlight::mosaic::test {
namespace {

struct Windows {
  int64_t runs, rows, columns, segments, run;
  int64_t step = 1;
  int64_t between = -1;  // rows of nobody, from run to run; less than 0: part of a row
};

// Of all bytes; `extreme`: of the ends of their ranges, whose pairs overflow 16 bits.
template <class T>
std::vector<T> random_bytes(int64_t count, unsigned seed, bool extreme) {
  std::mt19937 random(seed);
  std::vector<T> list(static_cast<size_t>(count));
  for (T& one : list)
    one = extreme
              ? (random() % 8 == 0 ? std::numeric_limits<T>::min() : std::numeric_limits<T>::max())
              : static_cast<T>(random());
  return list;
}

// A product of windows: segment s of a row starts behind those after it. The last term that is read
// is the last byte of memory.
void expect_windows(const Windows& size, int32_t zero, fl::Split split, int threads,
                    bool extreme = false) {
  const int64_t reach = (size.run - 1) * size.step + 1, pitch = size.segments * (reach + 1) + 2;
  const int64_t apart =
      size.between < 0 ? size.rows * pitch + 7 : (size.rows + size.between) * pitch;
  std::vector<int32_t> offsets;
  for (int64_t s = size.segments; s-- > 0;)
    offsets.push_back(static_cast<int32_t>(s * (reach + 1)));
  const int64_t count = std::max<int64_t>(0, (size.runs - 1) * apart + (size.rows - 1) * pitch +
                                                 (size.segments - 1) * (reach + 1) + reach);
  const auto x = random_bytes<uint8_t>(count, 1, extreme);
  const int64_t terms = size.segments * size.run;
  const auto weights = random_bytes<int8_t>(size.columns * terms, 2, extreme);
  const fl::Packing packing = {{{}, {}, {size.segments, size.run}, {size.run, 1}},
                               {size.columns, terms}};
  std::vector<int32_t> panels(static_cast<size_t>(fl::packed_words(packing)), -1);
  const int64_t rows = size.runs * size.rows;
  std::vector<int32_t> y(static_cast<size_t>(rows * size.columns), 0);
  std::vector<std::atomic<int>> stores(y.size());
  fl::run_team(threads, [&](const fl::Team& team) {
    fl::pack_bytes<int32_t>(team, packing, weights.data(), panels.data());
    team.wait();
    fl::Contraction<int32_t> of = {size.runs,
                                   size.rows,
                                   pitch,
                                   size.columns,
                                   {offsets.data(), static_cast<int>(size.segments),
                                    static_cast<int>(size.run), static_cast<int>(size.step)},
                                   split};
    of.next = fl::Upcoming::of(panels.data(), static_cast<int64_t>(panels.size()));
    fl::contract_bytes<int32_t>(
        team, of, zero, [&](int64_t run) { return x.data() + run * apart; }, panels.data(),
        [&](int64_t run, int64_t row, int height, int64_t column, int columns,
            const int32_t(*sums)[fl::kPanel<int32_t>]) {
          for (int r = 0; r < height; ++r)
            for (int c = 0; c < columns; ++c) {
              const auto to =
                  static_cast<size_t>((run * size.rows + row + r) * size.columns + column + c);
              y[to] = sums[r][c];
              ++stores[to];
            }
        });
  });
  for (int64_t row = 0; row < rows; ++row)
    for (int64_t column = 0; column < size.columns; ++column) {
      int64_t sum = 0;
      for (int64_t s = 0; s < size.segments; ++s)
        for (int64_t k = 0; k < size.run; ++k) {
          const int64_t at = row / size.rows * apart + row % size.rows * pitch +
                             offsets[static_cast<size_t>(s)] + k * size.step;
          sum += (int64_t{x[static_cast<size_t>(at)]} - zero) *
                 weights[static_cast<size_t>(column * terms + s * size.run + k)];
        }
      const auto at = static_cast<size_t>(row * size.columns + column);
      ASSERT_EQ(stores[at], 1);
      ASSERT_EQ(y[at], sum) << "[" << row << ", " << column << "] of " << size.runs << " x "
                            << size.rows << " x " << size.columns << " x " << size.segments << " x "
                            << size.run << ", zero point " << zero;
    }
}

TEST(RuntimeBytes, HasEverySize) {
  for (int64_t rows = 1; rows <= fl::kMostRows + 1; ++rows)
    for (const int64_t columns : {1, 15, 17, 32, 70})
      for (const int64_t run : {1, 3, 4, 8, 21, 64, 101}) {
        const auto zero = static_cast<int32_t>((rows * 37 + run) % 256);
        const int64_t runs = (rows + columns + run) % 3 + 1;
        expect_windows({runs, rows, columns, 1, run}, zero, fl::Split::rows, 1);
      }
}

TEST(RuntimeBytes, HasWindows) {
  for (const int64_t rows : {1, 2, 13, 28, 50})
    for (const int64_t segments : {2, 3, 9})
      for (const int64_t run : {1, 4, 12, 21, 40})
        for (const int64_t step : {1, 3})
          expect_windows({2, rows, 33, segments, run, step}, 128, fl::Split::columns, 1);
}

// A row and a term more or less than what registers for matrices hold.
TEST(RuntimeBytes, HasSizesAroundRegisters) {
  for (const int64_t rows : {3, 4, 16, 17, 31, 32, 33, 65})
    for (const int64_t run : {60, 64, 67, 128, 200}) {
      expect_windows({2, rows, 49, 1, run}, 17, fl::Split::rows, 1);
      expect_windows({1, rows, 16, 3, run}, 200, fl::Split::columns, 2);
    }
}

// Sums near the largest that int32 holds, and pairs that do not fit into 16 bits.
TEST(RuntimeBytes, HasTheLargestSums) {
  for (const int32_t zero : {0, 128, 255}) {
    expect_windows({1, 15, 40, 1, 65792}, zero, fl::Split::rows, 1, true);
    expect_windows({1, 3, 40, 7, 9398}, zero, fl::Split::rows, 1, true);
  }
}

TEST(RuntimeBytes, IsSharedByThreads) {
  for (const fl::Split split : {fl::Split::rows, fl::Split::columns}) {
    expect_windows({3, 50, 170, 1, 4000}, 3, split, 2);
    expect_windows({400, 2, 33, 1, 3}, 77, split, 2);  // more tiles than a strip may have
    expect_windows({1, 300, 70, 9, 128}, 0, split, 3);
  }
}

// Runs with so many rows of nobody between them: a tile of the unit for matrices goes through
// several.
TEST(RuntimeBytes, GoesThroughSeveralRuns) {
  for (const int64_t between : {0, 2, 3, 20})
    for (const int64_t rows : {1, 7, 14, 28})
      for (const fl::Split split : {fl::Split::rows, fl::Split::columns}) {
        expect_windows({9, rows, 40, 3, 64, 1, between}, 9, split, 1);
        expect_windows({8, rows, 40, 1, 128, 1, between}, 9, split, 3);
      }
}

TEST(RuntimeBytes, OfNothingIsNothing) {
  expect_windows({2, 3, 4, 0, 4}, 5, fl::Split::rows, 1);
  expect_windows({0, 3, 4, 1, 4}, 5, fl::Split::rows, 1);
}

// Weights of a convolution, [out, in, ky, kx], in the order of its rows, [ky, kx, in].
TEST(RuntimeBytes, PacksInAnyOrder) {
  constexpr int64_t kOut = 37, kIn = 10, kWindow = 9;
  const auto weights = random_bytes<int8_t>(kOut * kIn * kWindow, 3, false);
  const fl::Packing of = {{{}, {3, 3}, {3, 1}, {kIn, kWindow}}, {kOut, kIn * kWindow}};
  std::vector<int32_t> panels(static_cast<size_t>(fl::packed_words(of)), -1);
  fl::run_team(2, [&](const fl::Team& team) {
    fl::pack_bytes<int32_t>(team, of, weights.data(), panels.data());
  });
  constexpr int64_t kColumns = fl::kPanel<int32_t>, kWords = 1 + kWindow * 3;
  const auto* all = reinterpret_cast<const int8_t*>(panels.data());
  for (int64_t c = 0; c < (kOut + kColumns - 1) / kColumns * kColumns; ++c) {
    const int64_t panel = c / kColumns * kWords * kColumns;
    int64_t sum = 0;
    for (int64_t tap = 0; tap < kWindow; ++tap)
      for (int64_t k = 0; k < 12; ++k) {
        const int64_t word = panel + (1 + tap * 3 + k / 4) * kColumns + c % kColumns;
        const int expected =
            c < kOut && k < kIn ? weights[static_cast<size_t>((c * kIn + k) * kWindow + tap)] : 0;
        ASSERT_EQ(all[word * 4 + k % 4], expected) << c << " " << tap << " " << k;
        sum += expected;
      }
    ASSERT_EQ(panels[static_cast<size_t>(panel + c % kColumns)], sum);
  }
}

template <class Byte>
void expect_bytes_loaded() {
  const auto bytes = random_bytes<Byte>(fl::kPanel<int32_t>, 7, false);
  for (int count = 0; count <= fl::kPanel<int32_t>; ++count) {
    std::vector<int32_t> numbers(bytes.size(), 12345);
    fl::load_bytes(bytes.data(), count, numbers.data());
    for (int i = 0; i < fl::kPanel<int32_t>; ++i)
      ASSERT_EQ(numbers[i], i < count ? int32_t{bytes[i]} : 12345) << i << " of " << count;
  }
}
TEST(RuntimeBytes, LoadsNumbers) {
  expect_bytes_loaded<int8_t>();
  expect_bytes_loaded<uint8_t>();
}

// As the expression that it stands for, whatever the numbers are.
TEST(RuntimeBytes, StoresNumbersBetweenBounds) {
  const std::vector<float> numbers = {0,        -0.9F,     0.9F, 127,   127.5F, 128, -128, -129,
                                      1e9F,     -1e9F,     3e9F, -3e9F, 1e30F,  -3,  77,   250,
                                      INFINITY, -INFINITY, NAN,  5,     6,      7,   8,    9,
                                      10,       11,        12,   13,    14,     15,  16,   17};
  ASSERT_GE(numbers.size(), static_cast<size_t>(fl::kPanel<int32_t>));
  for (const auto& [low, high] : {std::pair{-128.0F, 127.0F}, {-INFINITY, INFINITY}})
    for (int count = 0; count <= fl::kPanel<int32_t>; ++count) {
      std::vector<uint8_t> bytes(numbers.size(), 99);
      fl::store_bytes<128>(numbers.data(), low, high, count, bytes.data());
      for (int i = 0; i < fl::kPanel<int32_t>; ++i) {
        const double x = numbers[i], clamped = x < low ? low : x > high ? high : x;
        // What x86 makes of numbers beyond an int32, and of none.
        const int64_t cut = std::abs(clamped) < 2147483648.0 ? static_cast<int64_t>(clamped)
                                                             : std::numeric_limits<int32_t>::min();
        ASSERT_EQ(bytes[i], i < count ? static_cast<uint8_t>(cut ^ 128) : 99)
            << x << " between " << low << " and " << high << ", " << i << " of " << count;
      }
    }
}

}  // namespace
}  // namespace flashlight::mosaic::test
