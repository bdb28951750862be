// Values of a program while its graph is made.
//
//   Tape tape(DType::float64);
//   const Expr i = tape.variable(5);                       // an index of `build`, below 5
//   const Expr x = tape.load(tensor, {i});
//   const Expr total = tape.sum(x * x, i);                 // a node of the graph; i is bound
//
// A number is an expression over elements of tensors and indices of the enclosing `build`s. A
// tensor is a function from indices to its elements: what is built and read once never lies in
// memory.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "composit/ir/node.h"
#include "composit/op/nest.h"
#include "frontends/ks/syntax.h"

namespace flashlight::ks {

using composit::Expr;
using composit::Index;
using composit::LazyTensor;
using composit::LazyTensors;

struct Value;
using Values = std::vector<Value>;

struct TensorValue {
  composit::Ints sizes;  // the most elements that it can have along an axis
  std::function<Value(const Index& index)> at;
  bool in_memory = false;  // reading an element computes nothing
  // Of a ragged tensor: how many elements it has along an axis, at most its size; absent: as many.
  // What is read behind them means nothing, and is 0 where it lies in memory.
  Index lengths = {};

  bool ragged() const { return !lengths.empty(); }
  bool ragged(size_t axis) const { return ragged() && lengths[axis].defined(); }
  Expr length(size_t axis) const {
    return ragged(axis) ? lengths[axis] : Expr::literal(sizes[axis], composit::DType::int64);
  }
  // Whether there is an element at an index below the sizes; absent: always.
  Expr inside(const Index& index) const;
};
// Integers and bools that are known stay so: they may be sizes.
bool is_known(const Expr& number);

// A function that is an argument.
struct Closure {
  std::function<Value(const Value& argument)> call;
};

struct Value {
  std::variant<Expr, std::string, std::shared_ptr<const Values>, std::shared_ptr<const TensorValue>,
               Closure>
      form;

  bool is_number() const { return std::holds_alternative<Expr>(form); }
  bool is_tuple() const { return std::holds_alternative<std::shared_ptr<const Values>>(form); }
  bool is_tensor() const {
    return std::holds_alternative<std::shared_ptr<const TensorValue>>(form);
  }
  const Expr& number() const { return std::get<Expr>(form); }
  const Values& items() const { return *std::get<std::shared_ptr<const Values>>(form); }
  const TensorValue& tensor() const { return *std::get<std::shared_ptr<const TensorValue>>(form); }
};

inline Value tuple_of(Values items) { return {std::make_shared<const Values>(std::move(items))}; }
inline Value tensor_of(composit::Ints sizes, std::function<Value(const Index&)> at,
                       bool in_memory = false, Index lengths = {}) {
  return {std::make_shared<const TensorValue>(
      TensorValue{std::move(sizes), std::move(at), in_memory, std::move(lengths)})};
}
// Other elements, as many.
inline Value tensor_like(const TensorValue& like, std::function<Value(const Index&)> at) {
  return tensor_of(like.sizes, std::move(at), false, like.lengths);
}
// True if two tensors are known to have as many elements along each axis.
bool same_sizes(const TensorValue& x, const TensorValue& y);

// The least and the largest value that an integer can have.
struct Range {
  int64_t least, most;
};

// A leaf of a value, which is in memory: its axes are indices of enclosing `build`s, then those of
// the tensors that it is an element of. A ragged tensor's lengths are leaves before its elements.
struct Leaf {
  LazyTensor tensor;
  std::vector<size_t> variables;    // the numbers of the indices
  bool is_length = false;           // of a ragged tensor
  std::optional<Range> range = {};  // of an integer, where it is known
};

// The graph so far.
class Tape {
 public:
  explicit Tape(composit::DType floating) : floating_(floating) {}
  // Without a graph: all is an expression of these, of float64. What needs a node is a UserError.
  static Tape of_numbers(const std::vector<Expr>& numbers);

  composit::DType floating() const { return floating_; }
  // A new index below `extent`.
  Expr variable(int64_t extent);
  // One for each axis of a tensor of these sizes.
  Index variables(const composit::Ints& sizes);
  // The element of a tensor at an index per axis. `range`: of all its elements, which are integers.
  Expr load(const LazyTensor& tensor, Index index, std::optional<Range> range = {});
  // The indices that an expression depends on, in the order in which they were made.
  std::vector<size_t> variables_of(const std::vector<Expr>& exprs) const;

  // The expression at all values of the variables, as a tensor with an axis for each.
  LazyTensor tensor(const Expr& value, const std::vector<size_t>& variables);
  bool has_graph() const { return has_graph_; }
  // The sum over an index, a number that the other indices choose.
  Expr sum(const Expr& value, const Expr& variable);
  // The largest over an index; NaN where one of them is.
  Expr maximum(const Expr& value, const Expr& variable);
  // The value of the index at the largest, the first of equal ones.
  Expr largest(const Expr& value, const Expr& variable);
  // The same for all numbers of a value, and lengths of its tensors, but for its own indices.
  std::vector<size_t> variables_within(const Value& value);
  // True if one of a value's tensors is ragged.
  bool is_ragged(const Value& value);
  // By the extents of indices; nothing where an element decides, which no `min` and `max` bound.
  std::optional<Range> range(const Expr& integer) const;
  // The same value, of which nothing is computed when it is read.
  Value in_memory(const Value& value);

  // The same value, of which no number is known: all are leaves.
  Value computed(const Value& value);
  // All numbers of a value in memory that are not known, with at least these variables as leading
  // axes. Where `inside`, which may be absent, does not hold they are 0.
  void leaves(const Value& value, const std::vector<size_t>& variables, std::vector<Leaf>& leaves,
              const Expr& inside = {});
  // How many leaves a value of that form has.
  size_t count_leaves(const Value& form);
  // A value of the same form, whose numbers are read from the leaves from `next` on. `own`: where,
  // of the tensors around it.
  Value from_leaves(const Value& form, const std::shared_ptr<const std::vector<Leaf>>& leaves,
                    size_t& next, const Index& own = {});

 private:
  Expr bound(const Expr& value, const std::vector<size_t>& variables, const Index& axes,
             LazyTensors& operands) const;
  LazyTensor node(const Expr& value, const std::vector<size_t>& parallel,
                  std::optional<size_t> reduced = {});
  Expr read(const Leaf& leaf, const Index& own, std::optional<Range> range);
  void add_leaf(const Expr& number, const std::vector<size_t>& variables, const Expr& inside,
                bool is_length, std::vector<Leaf>& all);
  struct Bounds {
    std::optional<int64_t> least, most;
  };
  Bounds bounds(const Expr& integer) const;
  // A function of a tensor that reduces its last axis, at all other indices.
  Expr reduced(const Expr& value, const Expr& variable, LazyTensor (*f)(const LazyTensor&));

  // The values of an expression at all values of a variable.
  std::vector<Expr> unrolled(const Expr& value, const Expr& variable) const;

  composit::DType floating_;
  bool has_graph_ = true;
  LazyTensors tensors_;                       // by operand number of loads
  std::vector<std::optional<Range>> ranges_;  // of their elements
  std::vector<int64_t> extents_;              // by number of variables
};

}  // namespace flashlight::ks
