// The loop form of an operation: a short list of statements, each a nest of loops.
//
//   Loops row_sums;                                                // y[i] = sum of x[i, r]
//   row_sums.operands = {tensor_type(DType::float32, {32, 64})};
//   row_sums.results = {tensor_type(DType::float32, {32})};
//   row_sums.statements = {{.axes = {{"i", 32}, {"r", 64, AxisKind::reduction}},
//                           .init = {0.0f}, .body = {x(i, r)}, .combine = {left + right},
//                           .stores = {{0, {i}, accumulator}}}};
//   row_sums == parse_loops(print(row_sums));
//
// Rows build it with a Nest (composit/op/nest.h). It is the inference, too: result types are those
// of `results`.
//
// Meaning
//   * Results start as zeros. Statements run one after the other, and read operands only.
//   * A statement runs its body once for each point of its axes where `domain` holds (every point,
//     if it is absent); what it loads need only be in range there. Axes stand in the order
//     parallel, scan, reduction. Parallel axes may run in any order, scan axes run upwards.
//   * Accumulators are set to `init` for each point of the parallel axes, and become
//     combine_k(left, right) with right_j = body_j at each point of the scan and reduction axes.
//     Combining reduction axes is associative: any order, any grouping.
//   * Stores happen once for each point of the parallel axes (and scan axes, after combining) at
//     which the body ran; without a reduction axis, `domain` guards them. With one, they always
//     happen, and may use only parallel axes and accumulators.
//     `result[at] = value`, or `+=` where `add`. Two stores of a statement that hit the same place
//     without `add` leave one of their values.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "composit/ir/type.h"
#include "composit/op/expr.h"

namespace composit {

enum class AxisKind : uint8_t { parallel, scan, reduction };

struct Axis {
  std::string name;
  Dim extent;
  AxisKind kind = AxisKind::parallel;
  bool operator==(const Axis&) const = default;
};

struct Store {
  size_t result = 0;
  std::vector<Expr> at;  // an index per axis of the result
  Expr value;            // cast to the result's dtype when stored
  bool add = false;
};

struct Statement {
  std::vector<Axis> axes;
  Expr domain = {};  // bool; absent: everywhere
  std::vector<Expr> init = {}, body = {}, combine = {};  // one of each per accumulator
  std::vector<Store> stores = {};
};

struct Loops {
  std::vector<Type> operands;  // dtype and sizes; strides do not matter
  std::vector<Type> results;
  std::vector<Statement> statements;

  Hash hash() const;
  bool operator==(const Loops& other) const { return hash() == other.hash(); }
};

// The text of `loops`, as parse_loops reads it. For readers: a loop nest with C++'s expressions.
std::string print(const Loops& loops);
// UserError with line, column, expected and received.
Loops parse_loops(std::string_view text);
// The same for an expression: axes, operands and so on by the given names, or i0, x0, … .
std::string print(const Expr& x);

// InternalError that says what is wrong and prints the statement: an axis out of range, a dtype
// that does not fit, a load or store with another number of indices than the tensor has axes,
// axes out of order, accumulators where there are none.
void verify(const Loops& loops);

}  // namespace composit
