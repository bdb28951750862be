// Operators of ATen that a target has, a row each, and what their rules ask of a call.
//
//   const RowTable rows("ONNX", {add_activation_rows, add_convolution_rows});
//   const Row* row = rows.find(Symbol("aten::relu"));
//   LazyTensors results = row->rule(call, types);
//
// A rule makes the target's nodes of a call; results that it leaves out (none at all) stand for a
// case that the target's operator does not do, which is then written by its definition.
#pragma once

#include <functional>
#include <initializer_list>
#include <map>
#include <string_view>
#include <vector>

#include "composit/op/call.h"

namespace composit::interchange {

// `results`: the types of the results, as the graph has them.
using RowRule = std::function<LazyTensors(const Call& call, const std::vector<Type>& results)>;

struct Row {
  std::string_view op;  // of ATen: "aten::relu"; lives as long as the process
  RowRule rule;
};

class RowTable {
 public:
  // Of the rows that these functions add. InternalError for two rows of one operation, or one of an
  // operation that composit does not define.
  explicit RowTable(std::initializer_list<void (*)(std::vector<Row>&)> families);
  RowTable(const RowTable&) = delete;
  RowTable& operator=(const RowTable&) = delete;
  const Row* find(Symbol op) const;  // nullptr: the target has no operator for it
  const std::vector<Row>& all() const { return rows_; }

 private:
  std::vector<Row> rows_;
  std::map<std::string_view, const Row*> by_name_;
};

// ---- arguments of a call ------------------------------------------------------------------------

const LazyTensor& tensor_of(const Call& call, std::string_view name);
std::vector<int64_t> ints_of(const Call& call, std::string_view name);  // empty where it is none
// An integer per axis: one stands for all.
std::vector<int64_t> ints_of(const Call& call, std::string_view name, size_t axes);
int64_t int_of(const Call& call, std::string_view name);
bool bool_of(const Call& call, std::string_view name);
double real_of(const Call& call, std::string_view name);
// An axis counted from the front.
int64_t axis_of(const Call& call, std::string_view name, const LazyTensor& x);
// Axes counted from the front, in order; all of them, where none is given.
std::vector<int64_t> axes_of(const Call& call, std::string_view name, const LazyTensor& x);
// The number that a Scalar is.
double number_of(const Scalar& scalar);

}  // namespace composit::interchange
