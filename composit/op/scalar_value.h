// Computes the functions of scalar expressions on blocks of elements. Folding, evaluation and every
// check use this one definition. The formulas are in composit/op/scalar_templates.h.
//
//   float x[2] = {1, 2}, y[2] = {3, 4}, sum[2];
//   const void* arguments[] = {x, y};
//   apply(Function::add, DType::float32, 2, arguments, sum);      // sum == {4, 6}
//
// Elements lie contiguous, as the compute type of their dtype (composit/op/compute_type.h).
// Results are those of torch's kernels for the CPU.
#pragma once

#include <cstddef>

#include "composit/ir/dtype.h"
#include "composit/op/scalar_function.h"

namespace composit {

// `function`, but for select and cast, of `count` elements per argument, all of dtype `operand`.
// The result does not overlap the arguments. Integers wrap to the width of `operand`; an integer
// division by zero gives 0: ask `divides_integers` first. InternalError where there is no such
// function of the dtype.
void apply(Function function, DType operand, size_t count, const void* const* arguments,
           void* result);

// Rounded or wrapped to `to`.
void apply_cast(DType from, DType to, size_t count, const void* argument, void* result);

// Element i: x[i] if condition[i], else y[i]; in the compute type of `dtype`.
void apply_select(DType dtype, size_t count, const bool* condition, const void* x, const void* y,
                  void* result);

// True if a zero in the second argument is an error.
bool divides_integers(Function function, DType operand);

}  // namespace composit
