// Operators that move elements as rows of each target: what their arguments say is read here, and
// the target makes nodes of it.
//
//   add_movement_rows(rows, {.reshaped = reshaped, .transposed = transposed, …});
#pragma once

#include <vector>

#include "composit/interchange/row.h"

namespace composit::interchange {

// What a target has. Axes count from the front; sizes and places are in range.
struct MovementOperators {
  LazyTensor (*cast_to)(const LazyTensor& x, DType dtype);
  LazyTensor (*reshaped)(const LazyTensor& x, const Dims& sizes);
  // Axis i of the result is axis order[i] of x.
  LazyTensor (*transposed)(const LazyTensor& x, const std::vector<int64_t>& order);
  LazyTensor (*expanded)(const LazyTensor& x, const Dims& sizes);  // new axes in front
  // Places begin, begin + step, … before `end` along an axis.
  LazyTensor (*sliced)(const LazyTensor& x, int64_t axis, int64_t begin, int64_t end, int64_t step);
  // Consecutive parts of these sizes along an axis, more than one.
  LazyTensors (*split)(const LazyTensor& x, int64_t axis, const std::vector<int64_t>& sizes);
  LazyTensor (*concatenated)(const LazyTensors& parts, int64_t axis);  // of at least one
  // `value` before and behind each axis; negative numbers cut off.
  LazyTensor (*padded)(const LazyTensor& x, double value, const std::vector<int64_t>& low,
                       const std::vector<int64_t>& high);
  LazyTensor (*reversed)(const LazyTensor& x, const std::vector<int64_t>& axes);  // not empty
};

void add_movement_rows(std::vector<Row>& rows, const MovementOperators& target);

}  // namespace composit::interchange
