// Tiles and products of packed matrices of the header of the mosaic backend, against loops in
// double.
#include <tuple>

#include "flashlight/runtime/arena.hpp"
#include "flashlight/runtime/contraction.hpp"
#include "flashlight/runtime/pack.hpp"
#include "flashlight/runtime/strassen.hpp"
#include "tests/flashlight/mosaic/runtime_cases.h"

namespace flashlight::mosaic::test {
namespace {

using fl::kMostRows;
using fl::kPanel;

// The place of term k of a segment and a column in a panel.
template <class T, class Weight>
size_t panel_place(int64_t segment, int64_t run, int64_t k, int64_t column) {
  constexpr int64_t kGroup = fl::kGroup<Weight>;
  const int64_t term = segment * fl::whole_groups<Weight>(run) + k;
  return static_cast<size_t>(term / kGroup * kPanel<T> * kGroup + column * kGroup + k % kGroup);
}

// Tiles of rows of T, or, where the machine has an instruction for them, of groups of Operand. Then
// a run is one of groups.
template <class T, class Weight = T, class Operand = T>
void expect_tile(int rows, int vectors, int segments, int words, int step) {
  using Word = fl::detail::WordOf<T, Operand, Weight>;
  using Element = std::conditional_t<std::is_same_v<Word, T>, T, Operand>;
  constexpr int kTerms = sizeof(Word) / sizeof(Element);
  const int64_t reach = words * step + 2, row_stride = segments * reach + 5, run = words * kTerms;
  std::vector<int32_t> offsets;  // the last segment first
  for (int s = segments; s-- > 0;) offsets.push_back(static_cast<int32_t>(s * reach));
  const auto left = whole_numbers<Element>(rows * row_stride * kTerms, 1);
  const auto panel = whole_numbers<Weight>(segments * fl::whole_groups<Weight>(run) * kPanel<T>, 2);
  Guarded<T> sums(rows, vectors * kPanel<T> / 2, (2 - vectors) * kPanel<T> / 2);
  const fl::Terms places = {offsets.data(), segments, words, step};
  const fl::Tile<T, Weight, Word> tile = {reinterpret_cast<const Word*>(left.data()),
                                          row_stride,
                                          places,
                                          panel.data(),
                                          panel.data(),
                                          7};
  fl::multiply_tile(rows, vectors, tile, reinterpret_cast<T(*)[kPanel<T>]>(sums.data()));
  const auto expected = [&](int64_t row, int64_t column) {
    double sum = 0;
    for (int64_t t = 0; t < segments * run; ++t) {
      const int64_t s = t / run, k = t % run;
      const int64_t word = offsets[static_cast<size_t>(s)] + k / kTerms * step;
      const auto place = (row * row_stride + word) * kTerms + k % kTerms;
      sum += static_cast<double>(left[static_cast<size_t>(place)]) *
             static_cast<double>(panel[panel_place<T, Weight>(s, run, k, column)]);
    }
    return sum;
  };
  EXPECT_EQ(sums.differences(expected), "")
      << rows << " rows, " << vectors << " vectors, " << segments << " x " << words << " words";
}

TEST(RuntimeTile, HasEveryHeight) {
  const std::tuple<int, int, int> terms[] = {{1, 1, 1},  {1, 3, 1},  {1, 37, 1}, {3, 5, 2},
                                             {5, 16, 1}, {2, 33, 3}, {4, 1, 1},  {0, 4, 1}};
  for (int rows = 1; rows <= kMostRows; ++rows)
    for (const int vectors : {1, 2})
      for (const auto& [segments, run, step] : terms) {
        expect_tile<float>(rows, vectors, segments, run, step);
        expect_tile<double>(rows, vectors, segments, run, step);
        expect_tile<float, fl::bfloat16>(rows, vectors, segments, run, step);
        expect_tile<float, fl::bfloat16, fl::bfloat16>(rows, vectors, segments, run, step);
        expect_tile<float, fl::float16>(rows, vectors, segments, run, step);
      }
}

// By plain arithmetic of indices: term t of column c is at sum of steps, zeros behind the last one,
// and behind the last term of a group that is not whole.
template <class T, class From>
void expect_packed(const fl::Packing& of, int threads) {
  int64_t low = 0, high = 0;
  const auto reach = [&](const fl::Loop& loop) {
    (loop.stride < 0 ? low : high) += (loop.extent - 1) * loop.stride;
  };
  for (const fl::Loop& loop : of.terms) reach(loop);
  reach(of.columns);
  const auto numbers = whole_numbers<From>(high - low + 1, 1);
  const auto factors = whole_numbers<T>(of.columns.extent, 2);
  const From* const from = numbers.data() - low;
  std::vector<T> panels(static_cast<size_t>(fl::packed_size<T>(of)), NAN),
      scaled(panels.size(), NAN);
  fl::run_team(threads, [&](const fl::Team& team) {
    fl::pack_panels<T>(team, of, from, panels.data());
    fl::pack_panels<T>(team, of, from, scaled.data(), factors.data());
  });
  constexpr int64_t kGroup = fl::kGroup<T>;
  for (size_t i = 0; i < panels.size(); ++i) {
    const int64_t at = static_cast<int64_t>(i) / (kPanel<T> * kGroup),
                  groups = fl::packed_terms<T>(of) / kGroup, run = of.terms[3].extent;
    const int64_t column = at / groups * kPanel<T> + static_cast<int64_t>(i) / kGroup % kPanel<T>;
    const int64_t group = at % groups, in_run = fl::whole_groups<T>(run) / kGroup;
    const int64_t k = group % in_run * kGroup + static_cast<int64_t>(i) % kGroup;
    int64_t offset = column * of.columns.stride + k * of.terms[3].stride, term = group / in_run;
    for (int l = 2; l >= 0; term /= of.terms[l].extent, --l)
      offset += term % of.terms[l].extent * of.terms[l].stride;
    const bool inside = column < of.columns.extent && k < run;
    const auto expected = static_cast<float>(inside ? from[offset] : From(0));
    ASSERT_EQ(panels[i], expected) << i;
    const float factor = inside ? static_cast<float>(factors[static_cast<size_t>(column)]) : 0;
    ASSERT_EQ(scaled[i], static_cast<float>(T(expected * factor))) << i;
  }
}

TEST(RuntimePack, HasEveryOrder) {
  const fl::Packing packings[] = {
      {{{}, {}, {}, {21, 1}}, {40, 21}},                    // [column][term]
      {{{}, {}, {}, {150, 1}}, {70, 150}},                  // the same, in several blocks
      {{{}, {}, {}, {21, 40}}, {40, 1}},                    // [term][column]
      {{{}, {}, {2, 6000}, {150, 40}}, {40, 1}},            // the same, in several blocks
      {{{}, {3, 1}, {3, 3}, {10, 9}}, {17, 90}},            // [column][channel][kx][ky]
      {{{}, {3, 3}, {3, 1}, {50, 9}}, {37, 450}},           // [column][channel][ky][kx]
      {{{}, {3, -3}, {3, -1}, {50, 360}}, {40, 9}},         // [term][column][ky][kx], backwards
      {{{}, {3, 3}, {3, 1}, {50, 630}}, {70, 9}},           // [term][column][ky][kx]
      {{{}, {}, {2, 1}, {20, 250}}, {80, 3}},               // the same, with gaps
      {{{2, 2000}, {3, 1}, {3, 3}, {30, 9}}, {33, 6000}},   // what is outside of a block
      {{{2, 600}, {3, 100}, {5, 20}, {4, 2}}, {33, 1200}},  // every other element
      {{{}, {0, 3}, {3, 1}, {5, 9}}, {37, 45}}};            // nothing
  for (const fl::Packing& of : packings)
    for (const int threads : {1, 3}) {
      expect_packed<float, float>(of, threads);
      expect_packed<float, double>(of, threads);
      expect_packed<fl::bfloat16, fl::bfloat16>(of, threads);
      expect_packed<fl::bfloat16, float>(of, threads);
    }
}

TEST(RuntimeTile, OfDifferencesHasEveryHeight) {
  constexpr int kTerms = 37;
  const int32_t offset = 0;
  for (int rows = 1; rows <= kMostRows; ++rows)
    for (const bool add : {false, true}) {
      const auto left = whole_numbers<float>(rows * kTerms, 1);
      constexpr int64_t kMinus = kTerms * kPanel<float> + 5;
      const auto panel = whole_numbers<float>(kMinus + kTerms * kPanel<float>, 2);
      Guarded<float> sums(rows, kPanel<float>, 0);
      for (int r = 0; r < rows; ++r)
        for (int c = 0; c < kPanel<float>; ++c) sums(r, c) = add ? static_cast<float>(r - c) : NAN;
      fl::Tile<float> tile = {left.data(), kTerms, {&offset, 1, kTerms}, panel.data()};
      tile.add = add;
      tile.minus = kMinus;
      fl::multiply_tile_by_difference<float>(
          rows, tile, reinterpret_cast<float(*)[kPanel<float>]>(sums.data()));
      const auto expected = [&](int64_t row, int64_t column) {
        double sum = add ? static_cast<double>(row - column) : 0;
        for (int64_t t = 0; t < kTerms; ++t) {
          const auto at = static_cast<size_t>(t * kPanel<float> + column);
          sum += double{left[static_cast<size_t>(row * kTerms + t)]} *
                 (double{panel[at]} - double{panel[at + kMinus]});
        }
        return sum;
      };
      EXPECT_EQ(sums.differences(expected), "") << rows << " rows";
    }
}

struct Sizes {
  int64_t rows, columns, terms;
};

// fl::contract, and what computes the same.
struct Direct {
  template <class T, class... Arguments>
  static void contract(const Arguments&... arguments) {
    fl::contract<T>(arguments...);
  }
};
template <class Element, class Operand = Element>
struct DirectOf {
  template <class T, class... Arguments>
  static void contract(const Arguments&... arguments) {
    fl::contract<T, Element, Operand>(arguments...);
  }
};
struct Strassen {
  template <class T, class... Arguments>
  static void contract(const Arguments&... arguments) {
    fl::contract_strassen<T>(arguments...);
  }
};

// A product with `runs` of the rows apart from each other, added to what lies where its result
// goes. Between rows is what is no number. The rows start `shift` elements behind an address that
// is aligned.
template <class T, class Algorithm = Direct, class Element = T, class Weight = Element>
void expect_product(const Sizes& size, int64_t runs, fl::Split split, int threads,
                    int64_t shift = 0) {
  const int64_t pitch = size.terms + 3, apart = size.rows * pitch + 11;
  const auto numbers = whole_numbers<Element>(runs * apart, 1),
             weight = whole_numbers<Element>(size.columns * size.terms, 2);
  const fl::Memory memory =
      fl::allocate((numbers.size() + static_cast<size_t>(shift)) * sizeof(Element));
  auto* const x = reinterpret_cast<Element*>(memory.get()) + shift;
  for (size_t i = 0; i < numbers.size(); ++i) {
    const auto at = static_cast<int64_t>(i) % apart;
    x[i] =
        at % pitch < size.terms && at < size.rows * pitch ? numbers[i] : static_cast<Element>(NAN);
  }
  const fl::Packing packing = {{{}, {}, {}, {size.terms, 1}}, {size.columns, size.terms}};
  std::vector<Weight> panels(static_cast<size_t>(fl::packed_size<Weight>(packing)), NAN);
  Guarded<T> y(runs * size.rows, size.columns);
  const auto residual = [](int64_t row, int64_t column) {
    return static_cast<double>((3 * row + column) % 11);
  };
  for (int64_t row = 0; row < runs * size.rows; ++row)
    for (int64_t column = 0; column < size.columns; ++column)
      y(row, column) = static_cast<T>(residual(row, column));
  std::vector<std::atomic<int>> stores(static_cast<size_t>(runs * size.rows * size.columns));
  const int32_t offset = 0;
  fl::run_team(threads, [&](const fl::Team& team) {
    fl::pack_panels<Weight>(team, packing, weight.data(), panels.data());
    team.wait();
    fl::Contraction<T> of = {
        runs, size.rows, pitch, size.columns, {&offset, 1, static_cast<int>(size.terms)}, split};
    of.next = fl::Upcoming::of(panels.data(), static_cast<int64_t>(panels.size()));
    Algorithm::template contract<T>(
        team, of, [&](int64_t run) { return x + run * apart; }, panels.data(),
        [&](int64_t run, int64_t row, int rows, int64_t column, int columns,
            const T(*sums)[kPanel<T>]) {
          for (int r = 0; r < rows; ++r)
            for (int c = 0; c < columns; ++c) {
              const int64_t to = run * size.rows + row + r;
              y(to, column + c) += sums[r][c];
              ++stores[static_cast<size_t>(to * size.columns + column + c)];
            }
        });
  });
  for (const auto& count : stores) ASSERT_EQ(count, 1);
  const auto expected = [&](int64_t row, int64_t column) {
    const Element* left = x + row / size.rows * apart + row % size.rows * pitch;
    const Element* right = weight.data() + column * size.terms;
    double sum = residual(row, column);
    for (int64_t k = 0; k < size.terms; ++k)
      sum += static_cast<double>(left[k]) * static_cast<double>(right[k]);
    return sum;
  };
  EXPECT_EQ(y.differences(expected), "")
      << runs << " x " << size.rows << " x " << size.columns << " x " << size.terms << ", " << shift
      << " elements behind an aligned address";
}

TEST(RuntimeContraction, HasEverySize) {
  for (const int64_t rows : {1, 2, 3, 13, 14, 15, 29, 50})
    for (const int64_t columns : {1, 4, 15, 17, 32, 33, 70})
      for (const int64_t terms : {1, 16, 37})
        for (const fl::Split split : {fl::Split::rows, fl::Split::columns}) {
          const int64_t runs = (rows + columns + terms) % 3 + 1;
          expect_product<float>({rows, columns, terms}, runs, split, 1);
          if (terms == 37) expect_product<double>({rows, columns, terms}, runs, split, 1);
          if (terms == 16) expect_product<float>({rows, columns, terms}, runs, split, 3);
        }
}

template <class Element>
void expect_product_of(const Sizes& size, int64_t runs, fl::Split split, int threads,
                       int64_t shift = 0) {
  expect_product<float, DirectOf<Element>, Element>(size, runs, split, threads, shift);
}

// A row and a column more or less than what registers for matrices hold, and more terms than are
// summed up at once.
TEST(RuntimeContraction, HasSizesAroundRegisters) {
  for (const int64_t rows : {3, 4, 16, 17, 31, 32, 33, 65})
    for (const int64_t terms : {2, 30, 32, 33, 64, 98}) {
      expect_product_of<fl::bfloat16>({rows, 49, terms}, 2, fl::Split::rows, 1);
      expect_product_of<fl::bfloat16>({rows, 16, terms}, 1, fl::Split::columns, 2);
    }
  for (const int64_t rows : {9, 40})
    for (const int64_t terms : {1536, 1568, 3105})
      expect_product_of<fl::bfloat16>({rows, 40, terms}, 1, fl::Split::rows, 1);
}

// Floats that are multiplied as bfloat16: whole numbers up to 256 are such.
TEST(RuntimeContraction, RoundsRows) {
  const auto expect = [](const Sizes& size, int64_t runs, int threads) {
    expect_product<float, DirectOf<float, fl::bfloat16>, float, fl::bfloat16>(
        size, runs, fl::Split::rows, threads);
  };
  for (const int64_t rows : {1, 3, 14, 50})
    for (const int64_t columns : {1, 17, 70})
      for (const int64_t terms : {1, 2, 37, 64}) expect({rows, columns, terms}, 2, 1);
  expect({50, 70, 4000}, 3, 2);
}

// Sums of 16-bit floats are floats: of whole numbers, exact.
TEST(RuntimeContraction, WidensNumbersOf16Bits) {
  for (const fl::Split split : {fl::Split::rows, fl::Split::columns}) {
    for (const int64_t rows : {1, 3, 14, 15, 50})
      for (const int64_t columns : {1, 17, 33, 70})
        for (const int64_t terms : {1, 16, 37}) {
          const int64_t runs = (rows + columns + terms) % 3 + 1;
          expect_product_of<fl::bfloat16>({rows, columns, terms}, runs, split, 1);
          expect_product_of<fl::float16>({rows, columns, terms}, runs, split, 1);
        }
    for (int64_t shift = 0; shift < 16; ++shift)
      expect_product_of<fl::bfloat16>({29, 33, 37}, 2, split, 2, shift);
    expect_product_of<fl::bfloat16>({50, 70, 4000}, 3, split, 2);
    expect_product_of<fl::float16>({2, 33, 3}, 400, split, 2);
    expect_product_of<fl::bfloat16>({3, 4, 0}, 2, split, 2);
  }
}

// Subnormal numbers, infinities and NaN are widened to themselves.
template <class Half>
void expect_widened() {
  std::vector<Half> all(1 << 16);
  for (size_t i = 0; i < all.size(); ++i) all[i].bits = static_cast<uint16_t>(i);
  std::vector<float> wide(all.size());
  fl::detail::widen(all.data(), 1, static_cast<int64_t>(all.size()), wide.data());
  for (size_t i = 0; i < all.size(); ++i) {
    const float expected = all[i];
    ASSERT_TRUE(wide[i] == expected || (std::isnan(wide[i]) && std::isnan(expected))) << i;
    ASSERT_EQ(std::signbit(wide[i]), std::signbit(expected)) << i;
  }
}
TEST(RuntimeContraction, WidensEveryNumber) {
  expect_widened<fl::float16>();
  expect_widened<fl::bfloat16>();
}

TEST(RuntimeContraction, StartsAtEveryElement) {
  for (int64_t shift = 0; shift < 16; ++shift) {
    expect_product<float>({29, 33, 37}, 2, fl::Split::rows, 1, shift);
    expect_product<double>({5, 17, 16}, 1, fl::Split::columns, 2, shift);
  }
}

TEST(RuntimeContraction, HasSeveralStrips) {
  for (const fl::Split split : {fl::Split::rows, fl::Split::columns}) {
    expect_product<float>({50, 70, 4000}, 3, split, 2);
    expect_product<double>({300, 33, 900}, 1, split, 2);
    expect_product<float>({2, 33, 3}, 400, split, 2);  // more tiles than a strip may have
  }
}

TEST(RuntimeContraction, OfNothingIsNothing) {
  for (const Sizes size : {Sizes{0, 3, 3}, Sizes{3, 0, 3}, Sizes{3, 4, 0}})
    expect_product<float>(size, 2, fl::Split::rows, 2);
}

TEST(RuntimeStrassen, HasEverySize) {
  for (const int64_t rows : {1, 2, 3, 13, 28, 29, 57})
    for (const int64_t columns : {1, 17, 32, 33, 64, 70, 130})
      for (const int64_t terms : {2, 16, 38})
        for (const fl::Split split : {fl::Split::rows, fl::Split::columns}) {
          const int64_t runs = (rows + columns + terms) % 3 + 1;
          expect_product<float, Strassen>({rows, columns, terms}, runs, split, 1);
          if (terms == 38) expect_product<double, Strassen>({rows, columns, terms}, runs, split, 1);
          if (terms == 16) expect_product<float, Strassen>({rows, columns, terms}, runs, split, 3);
        }
}

TEST(RuntimeStrassen, StartsAtEveryElement) {
  for (int64_t shift = 0; shift < 16; ++shift) {
    expect_product<float, Strassen>({29, 70, 38}, 2, fl::Split::rows, 1, shift);
    expect_product<double, Strassen>({5, 17, 16}, 1, fl::Split::columns, 2, shift);
  }
}

TEST(RuntimeStrassen, HasSeveralStripsAndChunks) {
  for (const fl::Split split : {fl::Split::rows, fl::Split::columns}) {
    expect_product<float, Strassen>({300, 70, 4000}, 1, split, 2);
    expect_product<double, Strassen>({300, 33, 900}, 1, split, 2);
    expect_product<float, Strassen>({3, 65, 4}, 400, split, 2);
  }
}

TEST(RuntimeStrassen, OfNothingIsNothing) {
  for (const Sizes size : {Sizes{0, 3, 4}, Sizes{3, 0, 4}})
    expect_product<float, Strassen>(size, 2, fl::Split::rows, 2);
}

// So many times the bound of sums: what Strassen's algorithm adds are larger numbers, which cancel.
// The first of three rows is `larger` times as large, the second one has opposite halves.
// `beside_zeros`: what a row of zeros may become.
template <class Algorithm>
void expect_rounding(double times, float larger, double beside_zeros = 0) {
  constexpr int64_t kSize = 40, kTerms = 704;
  auto x = normal_numbers<float>(kSize * kTerms, 1);
  const auto w = normal_numbers<float>(kSize * kTerms, 2);
  for (size_t row = 0; row < kSize; row += 3)
    for (size_t k = 0; k < kTerms; ++k) x[row * kTerms + k] *= larger;
  for (size_t row = 1; row < kSize; row += 3)
    for (size_t k = 0; k < kTerms / 2; ++k) x[row * kTerms + kTerms / 2 + k] = -x[row * kTerms + k];
  const fl::Packing packing = {{{}, {}, {}, {kTerms, 1}}, {kSize, kTerms}};
  std::vector<float> panels(static_cast<size_t>(fl::packed_size<float>(packing)));
  fl::pack_panels<float>(fl::Team::solo(), packing, w.data(), panels.data());
  const int32_t offset = 0;
  const fl::Contraction<float> of = {1, kSize, kTerms, kSize, {&offset, 1, kTerms}};
  Algorithm::template contract<float>(
      fl::Team::solo(), of, [&](int64_t) { return x.data(); }, panels.data(),
      [&](int64_t, int64_t row, int rows, int64_t column, int columns, const auto* sums) {
        for (int r = 0; r < rows; ++r)
          for (int c = 0; c < columns; ++c) {
            double expected = 0, size = 0;
            for (int64_t k = 0; k < kTerms; ++k) {
              const double term = double{x[static_cast<size_t>((row + r) * kTerms + k)]} *
                                  double{w[static_cast<size_t>((column + c) * kTerms + k)]};
              expected += term, size += std::abs(term);
            }
            EXPECT_NEAR(sums[r][c], expected, size * times * 20 * 0x1p-24 + beside_zeros);
          }
      });
}
TEST(RuntimeContraction, RoundsAsSumsOfFloatsDo) { expect_rounding<Direct>(1, 1); }
TEST(RuntimeStrassen, RoundsAlmostAsSumsOfFloatsDo) {
  for (const float larger : {1.0F, 100.0F, 1e6F}) expect_rounding<Strassen>(2, larger);
  expect_rounding<Strassen>(2, 0, 1e-10);  // 2^-30 of what the row that is added to zeros rounds
}

}  // namespace
}  // namespace flashlight::mosaic::test
