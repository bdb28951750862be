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
//     happen, and may use what does not depend on a reduction axis.
//     `result[at] = value`, or `+=` where `add`. Two stores of a statement that hit the same place
//     without `add` leave one of their values.
//   * A literal takes the dtype of what it is assigned to; equality compares it in that dtype.
//   * Names of axes are for readers: equality leaves them out.
//
// As text, whose grammar stands in loops_parse.cpp:
//
// ```text
//   loops(x0: float32[32, 64]) -> (y0: float32[32]) {
//     for i < 32 {
//       var s0: float32 = 0
//       reduce r < 64 {
//         s0 += x0[i, r]
//       }
//       y0[i] = s0
//     }
//   }
// ```
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "composit/ir/type.h"
#include "composit/op/expr.h"

namespace composit {

// In which order the points of an axis run: any, upwards, any and combined.
enum class AxisKind : uint8_t { parallel, scan, reduction };

// A loop from 0 to `extent` - 1.
struct Axis {
  std::string name;                    // for readers
  int64_t extent = 0;                  // number of points
  AxisKind kind = AxisKind::parallel;  // see above
  bool operator==(const Axis&) const = default;
};

// The place that a value is stored to.
struct Store {
  size_t result = 0;     // which one
  std::vector<Expr> at;  // an index per axis of the result
  Expr value;            // cast to the result's dtype when stored
  bool add = false;      // adds to what is there
};

// A nest of loops around one body.
struct Statement {
  std::vector<Axis> axes;                                // parallel, then scan, then reduction
  Expr domain = {};                                      // bool; absent: everywhere
  std::vector<Expr> init = {}, body = {}, combine = {};  // one of each per accumulator
  std::vector<Store> stores = {};                        // the stores at each point
};

struct Loops {
  // Dtype and sizes; strides do not matter. Undefined: an operand that is missing, or a result that
  // was not asked for.
  std::vector<Type> operands;
  std::vector<Type> results;
  std::vector<Statement> statements;  // in the order in which they run

  // The hash of the canonical form; names of axes do not count.
  Hash hash() const;
  bool operator==(const Loops& other) const { return hash() == other.hash(); }
};

// The same with every literal in the dtype of what it is assigned to: what equality compares.
Loops canonical(Loops loops);

// The text of `loops`, as parse_loops reads it: loop nests with C++'s expressions. What is used
// more than once has a name, so that text is linear in the size of the expressions.
std::string print(const Loops& loops);
// UserError with line, column, expected and received for any wrong text.
Loops parse_loops(std::string_view text);

// The names of sizes and extents that a program leaves open (flashlight/loops/sizes.h), for text.
// Types and axes hold the numbers of an example; in expressions, a name is the parameter of its
// number.
struct SizeNames {
  // Which name each size of a tensor or extent of an axis has; as many as there are, or none.
  using Which = std::vector<std::optional<size_t>>;
  std::vector<std::string> names = {};
  std::vector<int64_t> numbers = {};                          // by name: the example's
  std::vector<Which> operands = {}, results = {}, axes = {};  // axes: per statement
};
// The same text with names in place of numbers. Reading adds what `sizes` does not know: which
// sizes have names.
std::string print(const Loops& loops, const SizeNames& sizes);
Loops parse_loops(std::string_view text, SizeNames& sizes);
// Parameters become the numbers of these sizes.
Statement with_numbers(const Statement& statement, const std::vector<int64_t>& numbers);

// The same for an expression: leaves are called i0, x0, s0, left0, right0, p0; parts that are used
// more than once stand on lines of their own before it.
std::string print(const Expr& x);

// The fault of a statement of `loops`; nothing if it is legal. Faults are an axis out of range, a
// dtype that does not fit, a load or store with another number of indices than the tensor has axes,
// axes out of order, an accumulator that does not exist.
std::optional<std::string> fault_of(const Loops& loops, const Statement& statement);
// InternalError that says what is wrong, and prints the statement.
void verify(const Loops& loops);

}  // namespace composit
