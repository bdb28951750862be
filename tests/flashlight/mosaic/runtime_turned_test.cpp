// Products of rows that lie side by side, which are turned, of the header of the mosaic backend,
// against loops in double.
#include "flashlight/runtime/arena.hpp"
#include "flashlight/runtime/contraction.hpp"
#include "flashlight/runtime/pack.hpp"
#include "tests/flashlight/mosaic/runtime_cases.h"

namespace flashlight::mosaic::test {
namespace {

using fl::kPanel;

struct TurnedSizes {
  int64_t rows, columns, terms;
};

// Rows side by side, as those of a transposed matrix are: term k of row r at k * pitch + r. Whole
// numbers, so that sums are exact.
template <class Element, class Operand>
void expect_turned(const TurnedSizes& size, int64_t segments, int threads) {
  const int64_t pitch = size.rows + 5, terms = segments * size.terms;
  const auto x = whole_numbers<Element>(terms * pitch, 1);
  const auto weight = whole_numbers<Operand>(size.columns * terms, 2);
  const fl::Packing packing = {{{}, {}, {segments, size.terms}, {size.terms, 1}},
                               {size.columns, terms}};
  std::vector<Operand> panels(static_cast<size_t>(fl::packed_size<Operand>(packing)), NAN);
  Guarded<float> y(size.rows, size.columns);
  std::vector<int32_t> offsets;
  for (int64_t s = 0; s < segments; ++s)
    offsets.push_back(static_cast<int32_t>(s * size.terms * pitch));
  fl::run_team(threads, [&](const fl::Team& team) {
    fl::pack_panels<Operand>(team, packing, weight.data(), panels.data());
    team.wait();
    const fl::Terms of_row = {offsets.data(), static_cast<int>(segments),
                              static_cast<int>(size.terms), static_cast<int>(pitch)};
    const fl::Contraction<float> of = {1, size.rows, 1, size.columns, of_row, fl::Split::rows};
    fl::contract<float, Element, Operand>(
        team, of, [&](int64_t) { return x.data(); }, panels.data(),
        [&](int64_t, int64_t row, int rows, int64_t column, int columns,
            const float(*sums)[kPanel<float>]) {
          for (int r = 0; r < rows; ++r)
            for (int c = 0; c < columns; ++c) y(row + r, column + c) = sums[r][c];
        });
  });
  const auto expected = [&](int64_t row, int64_t column) {
    double sum = 0;
    for (int64_t k = 0; k < terms; ++k)
      sum += static_cast<double>(x[static_cast<size_t>(k * pitch + row)]) *
             static_cast<double>(weight[static_cast<size_t>(column * terms + k)]);
    return sum;
  };
  EXPECT_EQ(y.differences(expected), "")
      << size.rows << " x " << size.columns << " x " << segments << " x " << size.terms;
}

TEST(RuntimeTurned, RowsOfTransposedMatrices) {
  for (const int64_t rows : {1, 8, 15, 16, 17, 50, 130})
    for (const int64_t terms : {1, 16, 31, 32, 34, 37, 100})
      for (const int64_t segments : {1, 3}) {
        expect_turned<fl::bfloat16, fl::bfloat16>({rows, 33, terms}, segments, 1);
        expect_turned<float, fl::bfloat16>({rows, 33, terms}, segments, 2);
      }
  expect_turned<fl::bfloat16, fl::bfloat16>({900, 40, 700}, 1, 2);  // several strips
}

}  // namespace
}  // namespace flashlight::mosaic::test
