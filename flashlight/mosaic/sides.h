// The two sides of a sum of products that register tiles can compute.
//
//   if (const auto sides = sides_of(nest)) ...
//
// A product of matrices (loops/contraction.h), a convolution whose channels do not mix
// (depthwise.h), a vector times a matrix, or one of these of bytes (byte_products.h).
#pragma once

#include <optional>

#include "flashlight/loops/contraction.h"
#include "flashlight/loops/program.h"

namespace flashlight::mosaic {

// y[c] = sum over k of x[k] * w[k, c]: a product with one row, x; its columns and terms are the
// axes of w. It is recognised by its form, whatever w is; only a w that is known beforehand is
// worth packing, so product_of takes no other.
std::optional<loops::Contraction> vector_times_matrix_of(const loops::Statement& statement);
bool has_one_row(const loops::Contraction& sides);

// Nothing for statements that are none of them. Those of a nest that was recognised are kept in it
// (Nest::recognised).
std::optional<loops::Contraction> sides_of(const loops::Statement& statement);
std::optional<loops::Contraction> sides_of(const loops::Nest& nest);
// The nests of the program know their sides: each is looked at once, until its statement changes.
loops::Program with_sides(loops::Program program);

}  // namespace flashlight::mosaic
