// The definition of an operation: a row, in composit/ops or in a program of your own.
//
//   rows.add({.schema = "aten::sigmoid(Tensor self) -> Tensor",
//             .promote = Promote::to_float,
//             .scalar = [](Expr x) { return 1 / (1 + exp(-x)); },
//             .vjp = [](Vjp v, LazyTensor x) { return Gradients{slope_times(v, x)}; },
//             .samples = "f32[2,3] | f64[5]=-120..120"});
//
// A row has its semantics in one of four forms; the types of results follow from it:
//
// ```text
//   scalar     an expression of one element of each operand: broadcasting and promotion as torch's
//   loops      a nest of loops
//   decompose  a composition of other operations
//   native     a function on arrays, and `infer` for its results' types
// ```
//
// and, where transposing the loops or differentiating the decomposition does not do, a vjp.
#pragma once

#include <map>
#include <memory>
#include <string_view>
#include <vector>

#include "composit/ir/error.h"
#include "composit/op/rule.h"

namespace composit {

// The rule that makes the common dtype of a scalar expression out of the operands' dtypes.
enum class Promote : uint8_t { common, to_float };

// The kinds of operation that a picture tells apart by colour.
enum class OpKind : uint8_t {
  input,
  output,
  contraction,
  normalisation,
  elementwise,
  movement,
  reduction,
  random,
  effect,
  control,
  other,
  count_
};

// One per place of Call::tensors(): what flows back to it; absent: nothing. None at all: the rule
// does not know this case, and the derivative is worked out from the form.
using Gradients = LazyTensors;

// The definition of an operation. Strings have to live as long as the process.
struct Row {
  std::string_view schema;            // "aten::relu(Tensor self) -> Tensor"
  OpKind kind = OpKind::other;        // of this and of base names like it; other: by its shapes
  Promote promote = Promote::common;  // promotion in the scalar form
  // Scalar form: a number beside 16-bit floats is taken as it is, and the formula computed in
  // float32 and rounded once. Else the number is rounded first. As LibTorch's kernels on the CPU.
  bool wide_numbers = false;
  Rule<Expr> scalar = {};                // one of these four
  Rule<Loops> loops = {};                // a nest of loops
  Rule<LazyTensors> decompose = {};      // other operations
  Rule<std::vector<Type>> infer = {};    // for a native operation: the types of its results
  Rule<std::vector<Array>> native = {};  // a function on arrays
  // The function of the runtime that compiled code calls for a native operation ("order::sort"),
  // and the options that it takes after the operands. Empty: backends have no code for the
  // operation.
  std::string_view runtime = {};
  Rule<Attributes> runtime_options = {};
  // The results of a call that has effects, made of draws and of numbers that are expected, for
  // compiled code; none: the call stays what it is.
  Rule<LazyTensors> opened = {};
  Rule<Gradients> vjp = {};  // see above
  // Calls that must work, and calls that must not with a fragment of the message:
  // "f32[2,3] f32[3] 2 | i64[2,3]<5 2.5", "f32[2] f32[3]: broadcast". See composit/op/samples.h.
  std::string_view samples = {}, bad = {};
  // Names of float arguments that no gradient flows to.
  std::string_view nondifferentiable = {};
  // Other names of the same meaning and the same arguments. In-place spellings need no row:
  // operation_of makes theirs.
  std::vector<std::string_view> also = {};
};

// A row with its schema read.
struct Operation {
  Row row;        // as it was added
  Schema schema;  // of `row.schema`
};

// Operations by name. The table of all is find_operation's (composit/ops/operations.h).
class OperationTable {
 public:
  // UserError where rule and schema do not fit, where a form is missing or there are two, or where
  // a name is taken; the table is as it was then.
  void add(Row row);
  // nullptr: no row.
  const Operation* find(Symbol name) const;
  // In alphabetical order.
  std::vector<const Operation*> all() const;

 private:
  std::map<std::string, std::unique_ptr<Operation>, std::less<>> operations_;
  std::map<std::string, const Operation*, std::less<>> names_;
};

// True where the scalar form of a call is computed in float32, for the sake of a number that its
// 16-bit floats would round: see Row::wide_numbers.
bool computes_wide(const Operation& operation, const Call& call);

// The loop form of a call: the row's, or that of its scalar expression; nothing for a decomposition
// or a native operation. UserError as in `infer`.
std::optional<Loops> loops_of(const Operation& operation, const Call& call);

// Types of the results, contiguous. Tensors of a call may be any with the right types: no value is
// looked at. UserError for operands that do not fit:
// "[aten::mm] expected …, received …".
std::vector<Type> infer(const Operation& operation, const Call& call);

// The results in terms of other operations; the row must have a decomposition.
LazyTensors decompose(const Operation& operation, const Call& call);

// Thrown by `infer` where the sizes of a result depend on values.
class SizesDependOnValues : public UserError {
 public:
  using UserError::UserError;  // the text of the error
};

// Runs `work`; a UserError in it gets the operation's name in front:
// "[aten::linear] in aten::mm: expected …".
std::string within(const Schema& schema, std::string_view message);
template <class Work>
auto in_operation(const Schema& schema, Work work) {
  try {
    return work();
  } catch (const SizesDependOnValues& error) {
    throw SizesDependOnValues(within(schema, error.what()));
  } catch (const UserError& error) {
    throw UserError(within(schema, error.what()));
  }
}

}  // namespace composit
