// The form between graph and C++: functions, the tensors they handle, and nests of loops.
//
//   Program program = lower(graph);          // lower.h: a nest per operation
//   program = fuse(std::move(program));      // fuse.h: fewer nests, fewer temporaries
//   std::string text = emit(program);        // emit.h
//
// Everything here is data; each stage changes a Program, and program_text.h prints and parses it.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "composit/ir/array.h"
#include "composit/ir/attribute.h"
#include "composit/op/loops.h"
#include "composit/op/schema.h"
#include "flashlight/loops/ids.h"

namespace flashlight::loops {

using composit::Array;
using composit::Expr;
using composit::ExprKind;
using composit::Statement;
using composit::Type;

enum class Role : uint8_t {
  argument,   // the caller gives it
  weight,     // the caller gives it in the function's struct of weights
  result,     // the function writes it to memory of the caller
  constant,   // known at compile time
  temporary,  // the function's own
};

// A size that each call gives, or one that is computed from sizes before it.
struct NamedSize {
  std::string name;     // "tokens": a word
  int64_t example = 0;  // its number in the types and loops of the program
  // The range that a call may give: others were not shown (unify.h). Unused if computed.
  int64_t least = 0, most = 0;
  // A computed size is factor * product of `of` / divisor + added, and the division must be exact.
  // `of` is empty if the call gives the size.
  std::vector<SizeId> of = {};
  int64_t factor = 1, divisor = 1, added = 0;
  bool operator==(const NamedSize&) const = default;
};
// For each number of a list, the named size that it stands for; nothing for a plain number. As long
// as the list, or empty if all numbers are plain.
using SizeIds = std::vector<std::optional<SizeId>>;

// A tensor of a function, row-major.
struct Value {
  Type type;
  Role role = Role::temporary;
  std::string name = {};  // after the model's module or the operation: "query", "softmax"
  Array constant = {};    // its elements, if they are known
  // The sizes in the model, if the type leaves out dimensions of size 1; else empty.
  composit::Dims model_sizes = {};
  SizeIds named = {}, model_named = {};  // of the type's sizes, and of those in the model
};

// The operation, module and source line of the model that a step comes from.
struct Origin {
  std::string operation;  // "aten::softmax.int"
  std::string module;     // "encoder.layer.0.attention"
  std::string source;     // "model.cpp:12"
  bool operator==(const Origin&) const = default;
};

struct Recognised;

// One statement of loops. Its loads and stores refer to the function's values by number.
struct Nest {
  Statement statement;
  Origin origin;
  std::vector<Origin> fused = {};  // operations fused into it, in the order of the model
  // The product that its statement is, if a stage has looked for one (contraction.h).
  std::shared_ptr<const Recognised> recognised = nullptr;
  SizeIds named = {};  // of the extents of its axes
};

// Calls another function of the program.
struct Invocation {
  FunctionId function;
  ValueIds arguments;  // values for the callee's inputs, in order
  ValueIds results;
  Origin origin;
};

// A branch or a loop, whose bodies are functions of the program (see composit/ops/control_flow.h).
// `blocks` calls the first function for every `block` elements of an axis of `length`, and the
// second, if any, for the rest. Each call gets arrays from its first element on.
struct Control {
  enum class Kind : uint8_t { branch, map, scan, repeat, blocks };
  Kind kind = Kind::branch;
  FunctionIds functions;                 // then and else; the body; the condition and the body
  ValueIds carried, sequences, outside;  // values; a branch has only `outside`
  std::optional<ValueId> predicate;      // of a branch
  std::optional<ValueId> trips;          // of a scan: the number of trips, if not all
  int64_t length = 0;                    // of the sequences
  std::optional<SizeId> named_length;
  std::optional<int64_t> limit;  // of repeat: most trips
  bool reverse = false;
  ValueIds results;  // carried values, outputs, and for repeat the number of trips
  ValueIds next;     // memory for what a trip makes of the carried values
  int64_t block = 0;
  // For blocks: the dimension of each sequence, then of each result, that the axis indexes; nothing
  // for a result that every block adds to.
  std::vector<std::optional<size_t>> along;
  Origin origin;
};

// Calls a function that no loops compute: one of the runtime, which every printer of programs has
// under the same name ("order::sort", "random::draw_uniform", "guards::expect"), or one of LibTorch
// ("aten::bincount").
struct RuntimeCall {
  composit::Symbol function;
  ValueIds arguments = {};            // values, each passed as one row of all its elements
  composit::Attributes options = {};  // in order
  ValueIds results = {};
  bool draws = false;       // from the generator, which is its first argument
  bool effect = false;      // runs in the order of steps, even if no step uses its results
  bool on_numbers = false;  // arguments are numbers instead of rows
  // The schema of a function of LibTorch. `options` are then all its arguments; a tensor is a list
  // of its index in `arguments` and its sizes in the model, or none if it is undefined.
  std::shared_ptr<const composit::Schema> schema = nullptr;
  Origin origin = {};
};

using Step = std::variant<Nest, Invocation, Control, RuntimeCall>;

struct Routine {
  std::string name;
  Table<ValueId, Value> values;
  ValueIds inputs;   // arguments and weights, in order
  ValueIds results;  // distinct
  Table<StepId, Step> steps;
  // Split off its only caller. Its steps' modules are relative to the same module as the caller's,
  // not to the module that it is called for.
  bool is_part = false;
  bool is_loop_body = false;  // or a part of one: its caller calls it in a loop
  // By temporary: why it is stored, not computed where it is read ("is read by 2: mean, sub").
  std::map<ValueId, std::string> kept = {};
  // By result: the argument of the same type whose memory it overwrites.
  std::map<ValueId, ValueId> overwrites = {};
  // Threads divide its only outermost loop: the function takes the range of it that it runs.
  bool in_parts = false;
  size_t most_steps_in_loop = 1000;  // more would make a loop too long to read
};

// Callees come before their callers; the last function is the program's own. If sizes have names,
// the numbers in types, axes and lengths are those of one example, and the expressions of nests
// have the named sizes as parameters (sizes.h).
struct Program {
  Table<FunctionId, Routine> functions;
  Table<SizeId, NamedSize> sizes = {};
};

// The number of an axis in an expression, and of the value of a load or a store.
inline AxisId axis_of(const Expr& axis) { return AxisId(axis.number()); }
inline ValueId value_of(const Expr& load) { return ValueId(load.number()); }
inline ValueId value_of(const composit::Store& store) { return ValueId(store.result); }

// Values that a step reads and writes, each once, in order of appearance.
ValueIds reads(const Step& step);
ValueIds writes(const Step& step);
const Origin& origin_of(const Step& step);
// Functions of the program that a step calls.
FunctionIds callees(const Step& step);
// Adds one to the number of each called function from `first` on, before a new function is inserted
// there.
void renumber_callees(Program& program, FunctionId first);
// True if `step` has an effect that no result shows: a draw, a guard.
bool has_effect(const Program& program, const Step& step);
// For messages: "aten::softmax.int at model.cpp:12 (encoder.layer.0)".
std::string place_of(const Origin& origin);
// The operation without namespace and overload: "softmax".
std::string short_name(const Origin& origin);

// Expressions of a statement, in the order in which they are evaluated: domain, init, body,
// combine, then of each store its indices and its value.
std::vector<Expr> expressions(const Statement& statement);
// The same statement with other expressions, in that order.
Statement with_expressions(Statement statement, const std::vector<Expr>& expressions);

}  // namespace flashlight::loops
