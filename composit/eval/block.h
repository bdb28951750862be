// Blocks: some elements side by side as compute types, and how they come from and go to tensors.
//
//   read(DType::bfloat16, n, data, {.first = 3, .step = 10}, block);
//   // data[3], data[13], … as float
#pragma once

#include <cstddef>
#include <cstdint>
#include <limits>

#include "composit/ir/dtype.h"

namespace composit::eval {

inline constexpr size_t kBlock = 512;  // elements at most

// The run of points that a block stands for: indices along one axis, ascending.
struct Points {
  int64_t first = 0;
  size_t count = 1;
  const int64_t* list = nullptr;  // the indices, where they are not all from `first` on

  int64_t at(size_t i) const { return list != nullptr ? list[i] : first + static_cast<int64_t>(i); }
  int64_t last() const { return at(count - 1); }
};

// Which elements of a tensor, in elements from the one with all indices 0.
struct Elements {
  int64_t first = 0, step = 0;
  const int64_t* offsets = nullptr;  // one per element, instead
};
inline constexpr int64_t kNowhere = std::numeric_limits<int64_t>::min();  // reads as 0

void read(DType dtype, size_t count, const std::byte* data, const Elements& from, void* block);
// The elements where they are, if they lie there as a block does; else nullptr.
const std::byte* view(DType dtype, const std::byte* data, const Elements& from);
// One after the other, so that those of the same place add up.
void write(DType dtype, size_t count, const void* block, std::byte* data, const Elements& to,
           bool add);

// Between blocks: block[i] = from[positions[i]]; block[positions[i]] = from[i]; the first element
// repeated; left[i] = from[2 i] and right[i] = from[2 i + 1].
void take(DType dtype, size_t count, const void* from, const int64_t* positions, void* block);
void put(DType dtype, size_t count, const void* from, const int64_t* positions, void* block);
void repeat(DType dtype, size_t count, void* block);
void split(DType dtype, size_t count, const void* from, void* left, void* right);

}  // namespace composit::eval
