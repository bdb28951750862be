// The packed side of a product that is integers times scales.
//
//   if (const auto weight = compressed_weight(routine, step, product)) ...
//
// The step computes the side's elements, as scale * code, scale * code + offset or
// scale * (code - zero): a code is an integer of at most 8 bits, the others are one number for each
// column and group of terms. Recognised by what is computed: rows of quantized_decomposed, blocks
// of GGUF files, and what a program writes itself are all the same here. Casts between floats on
// the way are left out, as others are between operations that are fused.
#pragma once

#include <optional>

#include "flashlight/loops/program.h"
#include "flashlight/mosaic/product.h"

namespace flashlight::mosaic {

// What a product reads instead of its packed side.
struct CompressedWeight {
  int bits = 8;       // of a code, 4 or 8
  int64_t group = 0;  // terms that share a scale; they divide the product's
  composit::DType scale_dtype = composit::DType::float32;
  bool has_offsets = false;
  // Elements between codes of neighbouring columns, and of terms.
  int64_t column_stride = 0, term_stride = 0;
  // Statements that store codes, int8, to value 0, in the order of memory of the packed side;
  // scales and offsets to value 1, [column][group].
  loops::Statement codes, scales, offsets;
  // The value that has the codes as they are needed; then there is no statement for them.
  std::optional<ValueId> stored_codes;
};

// `step` writes the product's packed side, and all that it reads is known beforehand. Nothing where
// that is something else, or the groups are not those that tiles read.
std::optional<CompressedWeight> compressed_weight(const loops::Routine& routine,
                                                  const loops::Nest& nest, const Product& product);

}  // namespace flashlight::mosaic
