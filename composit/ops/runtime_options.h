// Functions that native code of rows and generated code share (composit/shipped): shapes of their
// arguments, and the options that generated code gives them (Row::runtime_options).
//
//   .runtime = "order::sort",
//   .runtime_options = [](LazyTensor x, int64_t dim, bool descending) {
//     return Attributes{lines(x.type(), dim), option("descending", descending)};
//   }
#pragma once

#include <utility>

#include "composit/ir/attribute.h"
#include "composit/ir/node.h"
#include "composit/shipped/matrices.h"
#include "composit/shipped/order.h"

namespace composit {

inline NamedAttribute option(const char* name, Attribute value) {
  return {Symbol(name), std::move(value)};
}

inline int64_t size_from_end(const Type& type, size_t from_end) {
  return type.sizes[type.rank() - from_end];
}

// The product of the sizes from dimension `begin` to before `end`.
inline int64_t count_between(const Type& type, size_t begin, size_t end) {
  int64_t count = 1;
  for (size_t i = begin; i < end; ++i) count *= type.sizes[i];
  return count;
}
// The number of items in a batch, if one item has the last `axes` axes.
inline int64_t batch(const Type& type, size_t axes) {
  return count_between(type, 0, type.rank() - axes);
}

// The lines along dimension `dim`.
inline fl::Lines lines_of(const Type& type, int64_t dim) {
  if (type.rank() == 0) return {1, 1, 1};
  const auto axis = static_cast<size_t>(dim < 0 ? dim + static_cast<int64_t>(type.rank()) : dim);
  return {count_between(type, 0, axis), type.sizes[axis],
          count_between(type, axis + 1, type.rank())};
}
inline NamedAttribute lines(const Type& type, int64_t dim) {
  const fl::Lines along = lines_of(type, dim);
  return option("lines", int_list({along.outer, along.length, along.inner}));
}

// The matrices that the last two axes are those of.
inline fl::Matrices matrices_of(const Type& type) {
  return {batch(type, 2), size_from_end(type, 2), size_from_end(type, 1)};
}
inline NamedAttribute matrices(const Type& type) {
  const fl::Matrices all = matrices_of(type);
  return option("matrices", int_list({all.count, all.rows, all.columns}));
}

// The same, and one more option.
inline Attributes matrices_with(const LazyTensor& x, const char* name, Attribute value) {
  return {matrices(x.type()), option(name, std::move(value))};
}

}  // namespace composit
