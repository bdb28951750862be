// Products of numbers that were made of bytes become products of the bytes.
//
//   program = integer_products(std::move(program), is_frozen);   // before `fuse`
//
// A sum over (q - z) * s times w * t, where q and w are bytes and none of z, s, t depends on terms,
// is s * t times the sum over (q - z) * w, which is a whole number below 2^31 and exact
// (byte_products.h). The factor goes to what is done with the sum, and what is fused behind the
// product stays so. q is int8 or uint8, w is int8 without a zero point. One of q that only the call
// knows, or one for each row, is multiplied with the sum of w's terms.
//
// Left as they are: sums of other dtypes than float32; numbers that were rounded to 16 bits on the
// way; zero points of w, and those of q beside padding that are not known; w that is not known
// beforehand; sums that could
// reach 2^31; what tiles of bytes cannot compute. aten::_int_mm is such a product from the start.
#pragma once

#include <functional>

#include "flashlight/loops/program.h"
#include "flashlight/mosaic/ids.h"

namespace flashlight::mosaic {

// `is_frozen`: values that are known before the program runs.
loops::Program integer_products(loops::Program program,
                                const std::function<bool(ValueId value)>& is_frozen);

}  // namespace flashlight::mosaic
