// Rows build their loop forms with these classes: the operands of an operation, and a nest of loops
// over them.
//
//   // y[i, k] = sum over j of x[i, j, k], for `dim` 1
//   .loops = [](In x, Ints dim, bool keepdim) {
//     Nest nest;
//     auto at = nest.reduce_over(x, dim, keepdim);     // parallel and reduction axes; x's indices
//     return nest.store(nest.sum(x(at))).loops();
//   }
#pragma once

#include <string>
#include <vector>

#include "composit/op/loops.h"

namespace composit {

using Ints = std::vector<int64_t>;  // sizes, axes, strides
using Index = std::vector<Expr>;    // an expression per axis

// An operand of an operation: its place and type.
class In {
 public:
  // The operand of this number.
  In(size_t operand, Type type) : operand_(operand), type_(std::move(type)) {}
  // Its type, dtype, number, axes and sizes.
  const Type& type() const { return type_; }
  DType dtype() const { return type_.dtype; }
  size_t operand() const { return operand_; }
  int64_t rank() const { return static_cast<int64_t>(type_.rank()); }
  Ints sizes() const;
  // Size of axis `axis`, which may count from the end.
  int64_t size(int64_t axis) const;
  // Number of elements.
  int64_t numel() const { return type_.numel(); }

  // The element at `index`, which has an entry per axis.
  Expr operator()(const Index& index) const;
  template <class... E>
  Expr operator()(Expr first, E... rest) const {
    return (*this)(Index{std::move(first), Expr(std::move(rest))...});
  }
  // The same, and `fill` outside of the tensor: indices of the axes listed may be out of range.
  Expr padded(const Index& index, Expr fill) const;
  // The element of the tensor broadcast to the axes of `index`, of which the last ones are its own.
  Expr broadcast(const Index& index) const;

 private:
  size_t operand_;
  Type type_;
};

// All axes where `axes` is empty. UserError when one is given twice.
std::vector<bool> wrap_axes(const Ints& axes, int64_t rank);

// The sizes all of them broadcast to. UserError where they do not.
Ints broadcast_sizes(const std::vector<Ints>& sizes);
std::string str(const Ints& sizes);  // "[2, 3]"

// One statement under construction.
class Nest {
 public:
  // A new axis; gives its index. Axes are made in the order parallel, scan, reduction.
  Expr parallel(int64_t extent, std::string name = "");
  Expr scan(int64_t extent, std::string name = "");
  Expr reduction(int64_t extent, std::string name = "");
  // A parallel axis for each extent.
  Index parallel(const Ints& extents);
  // Axes for all elements of `x`: those of `axes` (all, if empty) reduced, in the others parallel.
  // Gives x's indices. `keepdim`: the result keeps reduced axes with size 1.
  Index reduce_over(const In& x, const Ints& axes, bool keepdim);

  Nest& where(Expr domain);  // and what was required before
  // Accumulators: `combine` gets the value so far and that of a point.
  using Combine = std::vector<Expr> (*)(const std::vector<Expr>& left,
                                        const std::vector<Expr>& right);
  std::vector<Expr> fold(const std::vector<Expr>& init, const std::vector<Expr>& body,
                         Combine combine);
  Expr sum(Expr body);  // in the dtype of `body`
  // One accumulator: `combine` gets its value so far and that of a point.
  Expr fold(Expr init, Expr body, Expr (*combine)(Expr left, Expr right));

  // A result of the shape of the parallel (and scan) axes, with one store at their indices; after
  // reduce_over, of the shape that it leaves.
  Nest& store(Expr value);
  // A result of these sizes, dtype that of `value`; or a further store into result `result`.
  Nest& store(const Ints& sizes, Index at, Expr value, bool add = false);
  Nest& store_into(size_t result, Index at, Expr value, bool add = false);
  // An undefined result, for a result that was not asked for.
  Nest& no_result();

  // The types of the results so far.
  const std::vector<Type>& results() const { return results_; }
  // This statement alone; the operands are added by the framework.
  Loops loops() const;

 private:
  friend Loops sequence(const std::vector<Nest>& nests);
  Expr add_axis(int64_t extent, AxisKind kind, std::string name);
  Statement ordered(size_t first_result) const;

  Statement statement_;
  std::vector<Type> results_;
  std::vector<bool> own_;           // per store: whether into a result of this nest
  std::vector<Expr> result_index_;  // the index of a plain store
  Ints result_sizes_;
};

// Statements one after the other. Results are numbered in the order in which they were stored to
// first, through all nests; `store_into` counts them so.
Loops sequence(const std::vector<Nest>& nests);

}  // namespace composit
