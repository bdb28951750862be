// Values of float32 that are stored as bfloat16: they take half the memory.
//
//   store_rounded(plan, DType::float32);   // behind the choice of kernels, before memory is
//   planned
//
// Where nobody but products of bfloat16 reads a value, it is always stored that way: they round
// each element, so no number that is multiplied changes, and rows are read where they lie. With
// `values` bfloat16, or by choice ("stored bfloat16"), all are that loops and products read.
#pragma once

#include "flashlight/mosaic/plan.h"

namespace flashlight::mosaic {

// UserError for a choice that cannot be.
void store_rounded(Plan& plan, composit::DType values);

}  // namespace flashlight::mosaic
