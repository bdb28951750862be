// Options of functions of the runtime, for rows (Row::runtime_options).
//
//   .runtime = "order::sort",
//   .runtime_options = [](Tensor x, int64_t dim, bool descending) {
//     return Attributes{lines(x.type(), dim), option("descending", descending)};
//   }
#pragma once

#include <utility>

#include "composit/ir/attribute.h"
#include "composit/op/tensor.h"

namespace composit {

inline NamedAttribute option(const char* name, Attribute value) {
  return {Symbol(name), std::move(value)};
}

inline int64_t size_from_end(const Type& type, size_t from_end) {
  return type.sizes[type.rank() - from_end].value();
}

// The product of the sizes from dimension `begin` to before `end`.
inline int64_t count_between(const Type& type, size_t begin, size_t end) {
  int64_t count = 1;
  for (size_t i = begin; i < end; ++i) count *= type.sizes[i].value();
  return count;
}
// How many there are of what the last `axes` axes hold.
inline int64_t batch(const Type& type, size_t axes) {
  return count_between(type, 0, type.rank() - axes);
}

// Along dimension `dim`: how many groups of lines, elements of a line, and lines of a group, whose
// elements lie side by side.
inline NamedAttribute lines(const Type& type, int64_t dim) {
  if (type.rank() == 0) return option("lines", int_list({1, 1, 1}));
  const auto axis = static_cast<size_t>(dim < 0 ? dim + static_cast<int64_t>(type.rank()) : dim);
  return option("lines", int_list({count_between(type, 0, axis), type.sizes[axis].value(),
                                   count_between(type, axis + 1, type.rank())}));
}

// How many matrices, and their rows and columns.
inline NamedAttribute matrices(const Type& type) {
  return option("matrices",
                int_list({batch(type, 2), size_from_end(type, 2), size_from_end(type, 1)}));
}

// The same, and one more option.
inline Attributes matrices_with(const Tensor& x, const char* name, Attribute value) {
  return {matrices(x.type()), option(name, std::move(value))};
}

}  // namespace composit
