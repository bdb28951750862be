// Parts of arrays: x[...] as in NumPy, and functions that take elements by index.
//
//   x[{0, cnp::slice(1, 3)}];                  // Python: x[0, 1:3]
//   x[{cnp::ellipsis, cnp::newaxis, -1}];      // x[..., None, -1]
//   x[cnp::asarray({2, 0})];                   // x[[2, 0]]
//   x = cnp::set_item(x, {0}, 7);              // x[0] = 7, but as a new array
//
// Integers, slices, ellipsis, newaxis and arrays of integers combine as NumPy documents it
// (https://numpy.org/doc/stable/user/basics.indexing.html). How many elements a mask chooses
// depends on values: x[mask] works for a mask that is a constant, set_item and where for any.
#pragma once

#include <initializer_list>
#include <optional>
#include <string_view>
#include <variant>
#include <vector>

#include "composit/numpy/ndarray.h"

namespace composit::numpy {

// Python's start:stop:step. Without start or stop the slice reaches to that end.
struct Slice {
  std::optional<int64_t> start, stop, step;  // negative ones count from the end
};
// NumPy's `...`: all axes that no other item indexes.
struct Ellipsis {};
inline constexpr Ellipsis ellipsis;    // `...`
inline constexpr None newaxis = none;  // a new axis of size 1

// The slice that Python writes as :stop, as start:stop:step.
inline Slice slice(std::optional<int64_t> stop) { return {{}, stop, {}}; }
inline Slice slice(std::optional<int64_t> start, std::optional<int64_t> stop,
                   std::optional<int64_t> step = {}) {
  return {start, stop, step};
}
inline Slice slice() { return {}; }  // everything

// One item of x[...], between two commas.
class IndexItem {
 public:
  using Value = std::variant<int64_t, Slice, Ellipsis, None, NdArray>;  // one of these
  IndexItem(int place) : value_(int64_t{place}) {}                      // NOLINT: any of these
  IndexItem(int64_t place) : value_(place) {}                           // NOLINT
  IndexItem(Slice slice) : value_(slice) {}                             // NOLINT
  IndexItem(Ellipsis) : value_(Ellipsis{}) {}                           // NOLINT
  IndexItem(None) : value_(none) {}                                     // NOLINT
  IndexItem(NdArray places) : value_(std::move(places)) {}  // NOLINT: integers or a mask
  const Value& value() const { return value_; }             // which of them

 private:
  Value value_;
};

// All items of x[...].
class Indices {
 public:
  // A single item.
  template <class T>
  requires std::convertible_to<T, IndexItem> Indices(const T& item) : items_{IndexItem(item)} {}
  Indices(std::initializer_list<IndexItem> items) : items_(items) {}   // several items
  Indices(std::vector<IndexItem> items) : items_(std::move(items)) {}  // several items
  const std::vector<IndexItem>& items() const { return items_; }       // in order

 private:
  std::vector<IndexItem> items_;
};

// x[indices]. UserError for an index out of range, or too many of them.
NdArray get_item(const NdArray& x, const Indices& indices);
// x with `value`, broadcast and cast to x's dtype, in the places of x[indices].
NdArray set_item(const NdArray& x, const Indices& indices, const Operand& value);

// Elements along an axis; none: of x flattened. Places beyond the ends: raise (found out when the
// graph is evaluated), wrap or clip.
NdArray take(const NdArray& x, const NdArray& indices, std::optional<int64_t> axis = {},
             std::string_view mode = "raise");
// Elements at their own places along an axis: those of x[..., indices[...], ...]; x with `values`
// there.
NdArray take_along_axis(const NdArray& x, const NdArray& indices, std::optional<int64_t> axis);
NdArray put_along_axis(const NdArray& x, const NdArray& indices, const Operand& values,
                       int64_t axis);
// Elements of the arrays of `choices`, which broadcast: that of array indices[i] at place i.
NdArray choose(const NdArray& indices, const NdArrays& choices);

// Places of elements that are not zero, one array per axis, and the elements that differ from all
// others, sorted. Only of constants: elsewhere the number of places depends on values.
NdArrays nonzero(const NdArray& x);
NdArray unique(const NdArray& x);

}  // namespace composit::numpy
