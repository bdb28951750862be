// A sum of products as register tiles compute it: rows that are read where they lie, times a side
// that is packed in panels.
//
//   if (const auto product = product_of(routine, nest, is_frozen)) ...
//
// Recognised by axes and affine indices alone: products of matrices and batches of them,
// convolutions with any strides and dilations, depthwise ones, too. In the statement of a Product
// each load and store has one index, the number of the element in memory, and axes that go through
// memory like one are one.
#pragma once

#include <functional>
#include <optional>
#include <vector>

#include "composit/op/affine.h"
#include "flashlight/loops/contraction.h"
#include "flashlight/loops/program.h"
#include "flashlight/mosaic/ids.h"

namespace flashlight::mosaic {

struct Product {
  loops::Statement statement;
  // Axes from the outside in, those of extent 1 left out. Tiles lie along the last of `rows`.
  AxisIds batch, rows, terms;
  std::optional<AxisId> columns;
  ValueId left = {}, right = {};  // values: what is read by rows, what is packed
  // Dtypes of what is read by rows, of what that is rounded to, of what is packed, and of the sums:
  // float32 of 16-bit floats.
  composit::DType element = {}, operand = {}, weight = {}, accumulator = {};
  composit::Affine left_at, right_at;  // numbers of their elements
  // Of bytes (byte_products.h): what is subtracted of each that is read by rows.
  int64_t zero = 0;
  // Columns are channels that do not mix: the left side has them, too, side by side.
  bool depthwise = false;

  bool is_of_bytes() const { return accumulator == composit::DType::int32; }
  bool has_one_dtype() const {
    return element == accumulator && operand == accumulator && weight == accumulator;
  }
  int64_t extent(AxisId axis) const { return statement.axes[axis].extent; }
  int64_t size(const AxisIds& axes) const;
  int64_t column_count() const { return columns ? extent(*columns) : 1; }
  // Multiplications and additions.
  int64_t operations() const;
};

// Orders the sides: afterwards the left one is streamed row by row, and the right one is packed. A
// side that is known beforehand is packed; a window never is, as packing would repeat its pixels.
// Otherwise the side with several axes is the rows, unless these are contiguous in the result,
// whose indices are `store`.
void choose_rows(loops::Contraction& of, const std::vector<composit::Expr>& store,
                 const std::function<bool(ValueId value)>& is_frozen);

// True if an index depends on one of `places` and one of `terms`: neighbouring outputs read the
// same elements.
bool has_window(const composit::Expr& side, const AxisIds& places, const AxisIds& terms);

// `is_frozen`: values that are known before the program runs, and are packed then. Without
// `joins_batch`, axes of the batch stay apart: two products then have the same ones.
std::optional<Product> product_of(const loops::Routine& routine, const loops::Nest& nest,
                                  const std::function<bool(ValueId value)>& is_frozen,
                                  bool joins_batch = true);

// True for a convolution with a 3x3 window and stride 1. Its rows are images (if there are
// several), lines and pixels; its terms are lines and pixels of the window, then channels.
bool is_3x3(const Product& product);

// True if Strassen's algorithm can compute it: it is a product of matrices with an even number of
// terms, which lie side by side. The second function is true if that is faster, as measured: with
// many rows, terms and columns, the additions of the two sides cost little beside the eighth of the
// multiplications that is saved.
bool can_halve(const Product& product);
bool pays_to_halve(const Product& product);

// Terms of a panel of its packed side: those of the product, each run of them in whole groups, or,
// where they are transformed for Winograd's algorithm by tiles of `winograd` pixels, points for
// taps. 0: as they are. Of bytes, words of the panel: the sum of each column, and its terms.
int64_t packed_terms(const Product& product, int winograd);
// The dtype of what is counted by that.
composit::DType panel_dtype(const Product& product);
// So many terms as groups of that dtype have room for (runtime/words.hpp).
int64_t whole_groups(composit::DType weight, int64_t terms);

// Columns of a panel, on the machine with the widest vectors; there are half as many of float64.
constexpr int64_t kMostColumns = 32;

// Tiles pay for fewer columns than plain loops: those of an image's colours.
constexpr int64_t kLeastSide = 2;

// The same statement with one index per load and store.
loops::Statement flat(const loops::Routine& routine, const loops::Statement& statement);

}  // namespace flashlight::mosaic
