// Sums of products of bytes, as tiles compute them (runtime/bytes.hpp): uint8, less a zero point,
// times int8, in int32.
//
//   s0 += (int32(x0[m, k]) - 7) * int32(x1[n, k])
//
// integer_products.h makes such sums of others.
#pragma once

#include <optional>

#include "flashlight/loops/contraction.h"
#include "flashlight/loops/program.h"
#include "flashlight/mosaic/ids.h"

namespace flashlight::mosaic {

inline bool is_byte(composit::DType dtype) {
  return dtype == composit::DType::int8 || dtype == composit::DType::uint8;
}

// The body of a sum: both loads, and what is subtracted of each element of the first.
struct ByteProduct {
  composit::Expr rows, columns;  // of uint8, of int8
  int64_t zero = 0;              // 0 to 255
};
// Nothing for a statement that is no such sum.
std::optional<ByteProduct> byte_product_of(const loops::Statement& statement);
// What stands for an element outside of what its rows read, so that it adds nothing: 0 but for
// bytes.
int64_t padding_of(const loops::Statement& statement);
// The inverse: the body.
composit::Expr body_of(const ByteProduct& product);

// An int32 whose low byte is that of x, which is a byte.
composit::Expr with_low_byte(const composit::Expr& x);

// Its sides as those of any product: `left` is the load of uint8, whose rows tiles read, and
// `right` that of int8.
std::optional<loops::Contraction> byte_sides_of(const loops::Statement& statement);

}  // namespace flashlight::mosaic
