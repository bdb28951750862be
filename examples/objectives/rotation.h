// Rotations as three numbers: their direction is the axis, their length the angle.
//
//   cnp::NdArray y = rotated(rotation, x);    // row by row; either may have one row for all
#pragma once

#include "composit/numpy/ndarray.h"

namespace objectives {

// [..., 3], by Rodrigues' formula; for an angle of zero by the first terms of its series, so that
// the derivative is right there, too.
composit::numpy::NdArray rotated(const composit::numpy::NdArray& rotation,
                                 const composit::numpy::NdArray& x);

}  // namespace objectives
