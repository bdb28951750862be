// A graph on its way to C++: functions, the tensors they handle, and nests of loops over those.
//
//   Program program = lower(graph);          // lower.h: a nest per operation
//   program = fuse(std::move(program));      // fuse.h: what can be computed where it is used, is
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
  argument,   // what the caller gives
  weight,     // the same, in the function's struct of weights
  result,     // memory that the caller gives
  constant,   // known now
  temporary,  // the function's own
};

// A size that the call gives, or one that follows from sizes before it.
struct NamedSize {
  std::string name;     // "tokens": a word
  int64_t example = 0;  // the number that stands in the program where the size does
  // What the call may give; others were not shown (unify.h). Of a size that follows: any.
  int64_t least = 0, most = 0;
  // factor * product of `of` / divisor + added, where the division leaves nothing. `of` is empty
  // where the call gives the size.
  std::vector<SizeId> of = {};
  int64_t factor = 1, divisor = 1, added = 0;
  bool operator==(const NamedSize&) const = default;
};
// Per number of a list, the named size that it is; nothing for those that are numbers. As many as
// there are numbers, or none at all.
using SizeIds = std::vector<std::optional<SizeId>>;

// A tensor of a function, row-major.
struct Value {
  Type type;
  Role role = Role::temporary;
  std::string name = {};  // by the model, or by the operation: "query", "softmax"
  Array constant = {};    // of a constant
  // Sizes in the model, where the type leaves out those of 1; else empty.
  composit::Dims model_sizes = {};
  SizeIds named = {}, model_named = {};  // of the type's sizes, and of those in the model
};

// Where in the model a step comes from.
struct Origin {
  std::string operation;  // "aten::softmax.int"
  std::string module;     // "encoder.layer.0.attention"
  std::string source;     // "model.cpp:12"
  bool operator==(const Origin&) const = default;
};

struct Recognised;

// One statement of loops; its loads and stores count the function's values.
struct Nest {
  Statement statement;
  Origin origin;
  std::vector<Origin> fused = {};  // what was fused into it, in the order of the model
  // Which product its statement is, if a stage has looked (contraction.h).
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
// Of blocks, the first function takes `block` elements of an axis of `length` at a time, the second
// one, if there is one, what is left; each sees arrays from there on.
struct Control {
  enum class Kind : uint8_t { branch, map, scan, repeat, blocks };
  Kind kind = Kind::branch;
  FunctionIds functions;                 // then and else; the body; the condition and the body
  ValueIds carried, sequences, outside;  // values; of a branch, `outside` is all
  std::optional<ValueId> predicate;      // of a branch
  std::optional<ValueId> trips;          // of a scan: how many, where not all
  int64_t length = 0;                    // of the sequences
  std::optional<SizeId> named_length;
  std::optional<int64_t> limit;  // of repeat: most trips
  bool reverse = false;
  ValueIds results;  // carried values, outputs, and of repeat its trips
  ValueIds next;     // room for what carried values become in a trip
  int64_t block = 0;
  // Of blocks: which dimension of the sequences, then of the results, the axis counts; nothing for
  // a result that every block adds to.
  std::vector<std::optional<size_t>> along;
  Origin origin;
};

// Calls a function that no loops compute: of the runtime, which every printer of programs has under
// the same name ("order::sort", "random::draw_uniform", "guards::expect"), or of LibTorch
// ("aten::bincount").
struct RuntimeCall {
  composit::Symbol function;
  ValueIds arguments = {};            // values, each as one row of all its elements
  composit::Attributes options = {};  // in order
  ValueIds results = {};
  bool draws = false;       // from the generator, which it is given first
  bool effect = false;      // happens whether or not somebody uses results, in the order of steps
  bool on_numbers = false;  // arguments are numbers instead of rows
  // Of a function of LibTorch: what it takes. Options are all its arguments then: a tensor among
  // them is a list of its position in `arguments` and its sizes in the model, or none.
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
  // Split off its only caller: modules of its steps count from where the caller's do, and not from
  // the module that it is called for.
  bool is_part = false;
  bool is_loop_body = false;  // or a part of one: what its caller has in a loop
  // By temporary: why it is memory, and not computed where it is read ("is read by 2: mean, sub").
  std::map<ValueId, std::string> kept = {};
  // By result: the argument of the same type that lies in the same memory and is written over.
  std::map<ValueId, ValueId> overwrites = {};
  // Takes the part of its only outermost loop that it runs, of those that threads divide among
  // them.
  bool in_parts = false;
  size_t most_steps_in_loop = 1000;  // where more would make a loop that is too long to read
};

// Callees stand before their callers; the last function is the program's own. Where sizes have
// names, numbers in types, axes and lengths are those of an example, and expressions of nests have
// named sizes as parameters (sizes.h).
struct Program {
  Table<FunctionId, Routine> functions;
  Table<SizeId, NamedSize> sizes = {};
};

// Of an axis in an expression, of a load, of a store: their numbers.
inline AxisId axis_of(const Expr& axis) { return AxisId(axis.number()); }
inline ValueId value_of(const Expr& load) { return ValueId(load.number()); }
inline ValueId value_of(const composit::Store& store) { return ValueId(store.result); }

// Values that a step reads and writes, each once, in order of appearance.
ValueIds reads(const Step& step);
ValueIds writes(const Step& step);
const Origin& origin_of(const Step& step);
// Functions of the program that a step calls.
FunctionIds callees(const Step& step);
// Calls of functions from `first` on become calls of the next ones: a new one is going to stand
// there.
void make_room(Program& program, FunctionId first);
// Whether something happens in `step` that no result shows: a draw, a guard.
bool has_effect(const Program& program, const Step& step);
// "aten::softmax.int at model.cpp:12 (encoder.layer.0)".
std::string place_of(const Origin& origin);
// "softmax".
std::string short_name(const Origin& origin);

// Expressions of a statement, in the order in which they are evaluated: domain, init, body,
// combine, then of each store its indices and its value.
std::vector<Expr> expressions(const Statement& statement);
// The same statement with other expressions, in that order.
Statement with_expressions(Statement statement, const std::vector<Expr>& expressions);

}  // namespace flashlight::loops
