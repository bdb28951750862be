// The facts about an operator that the tracer needs, computed once per operator from its schema,
// kernels and tags.
//
//   const OpInfo& info = op_info(handle);     if (info.composite) ...
//
// Run time decides what aliases what; the schema says only which arguments are written. What a
// schema conceals (writes, reads on the host, whether sizes and numbers depend on values) is in
// tables in op_info.cpp; a test compares them with what torch's operators were seen to do.
#pragma once

#include <ATen/core/dispatch/Dispatcher.h>

#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "composit/ir/symbol.h"

namespace flashlight::tracer {

enum class ArgumentKind : uint8_t { tensor, tensor_list, other };

struct OpInfo {
  explicit OpInfo(const c10::OperatorHandle& handle);

  c10::OperatorHandle handle;
  const c10::FunctionSchema* schema;
  composit::Symbol name;                // "aten::add_.Tensor"
  std::vector<ArgumentKind> arguments;  // one per schema argument
  std::vector<composit::Symbol> argument_names;
  std::vector<bool> writes;           // declared or concealed
  std::vector<bool> reads;            // looks at the elements (a view does not, nor does `fill_`)
  std::vector<bool> out;              // `out=` arguments: their old values do not matter
  std::vector<bool> returns_written;  // per return: is one of the written arguments
  bool writes_any = false;
  bool composite = false;      // its kernel only calls other operators: recorded as a region
  bool metadata = false;       // asks or changes what a tensor is, not what it holds: no node
  bool inplace_view = false;   // changes the geometry of its argument
  bool value_query = false;    // gives a number, which is guarded
  bool dynamic_shape = false;  // output sizes depend on values
  bool may_draw = false;       // may draw random numbers
  bool always_draws = false;   // keeps its place also when it drew nothing
  bool as_strided = false;     // its result is found by geometry
  bool reads_storage = false;  // reads what lies around its first argument, too
  bool unwritten = false;      // its result has no content
  bool packed = false;         // it packs a weight for this processor, or reads one that is
  bool fills = false;          // `fill_` with a number
  bool clone = false;
  bool detach = false;  // a gradient boundary that shares memory
  bool steady = false;  // does not fail, whatever the elements of its arguments
  // None of LibTorch's own: it may do more than its schema says.
  bool foreign = false;
  bool asynchronous = false;  // returns before its work is done (distributed.h)
  std::string refused;        // why it is not captured; empty for nearly all
  const OpInfo* twin =
      nullptr;  // functional form of an in-place or out= operator, by name and arguments

  // Writes that are concealed happen where an argument says so (`training` of batch_norm): its
  // number, and what the operator is in a call where it is false. None: in every call.
  std::optional<size_t> write_switch;
  std::shared_ptr<const OpInfo> switched_off;
  // A composite whose kernel makes results itself, unseen, in calls that autograd takes no part in:
  // what it is there, run in one piece. None: for most.
  std::shared_ptr<const OpInfo> without_grad;
  // Arguments it was seen to write in a call, although neither schema nor table say so.
  std::vector<int64_t> observed;

  const OpInfo& of_call(c10::ArrayRef<c10::IValue> arguments) const {
    if (without_grad != nullptr && !needs_grad(arguments)) return *without_grad;
    return write_switch && !arguments[*write_switch].toBool() ? *switched_off : *this;
  }

  // The facts for a call that also writes these arguments. Valid as long as the process.
  const OpInfo& writing(const std::vector<int64_t>& arguments) const;

  size_t number_of_arguments() const { return arguments.size(); }

 private:
  void find_write_switch();
  static bool needs_grad(c10::ArrayRef<c10::IValue> arguments);
};

// Valid for the life of the process. Thread-safe.
const OpInfo& op_info(const c10::OperatorHandle& handle);
// nullptr when LibTorch has no such operator. `name` includes the overload: "aten::add.Tensor".
const OpInfo* find_op(std::string_view name);

// Operators, without overload names, that write an argument their schema does not mark, and that
// argument's name.
const std::vector<std::pair<std::string_view, std::string_view>>& concealed_writes();

// Is result `output` of `op` a workspace, whose bytes mean something to the operator's own backward
// alone, and may be arbitrary in part?
bool is_workspace(const OpInfo& op, size_t output);

}  // namespace flashlight::tracer
