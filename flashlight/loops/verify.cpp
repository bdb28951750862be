#include "flashlight/loops/verify.h"

#include <algorithm>
#include <set>

#include "composit/ir/error.h"
#include "composit/ir/knobs.h"
#include "composit/ir/print.h"
#include "composit/op/loops_text.h"
#include "flashlight/loops/contraction.h"
#include "flashlight/loops/program_text.h"
#include "flashlight/loops/sizes.h"

namespace flashlight::loops {
namespace {

using Fault = std::optional<std::string>;

std::string str(size_t number) { return std::to_string(number); }

// Rules 10 and 11.
class SizesChecker {
 public:
  explicit SizesChecker(const Program& program) : program_(program) {}

  Fault fault() const {
    SizeNumbers given;
    for (const SizeId i : program_.sizes.ids()) {
      const NamedSize& size = program_.sizes[i];
      if (!is_size_name(size.name)) return "'" + size.name + "' is no name of a size";
      for (SizeId before; before < i; ++before)
        if (program_.sizes[before].name == size.name) return "two sizes are called " + size.name;
      for (const SizeId from : size.of)
        if (from >= i) return "size " + size.name + " follows from one that stands behind it";
      if (size.divisor <= 0) return "size " + size.name + " is divided by " + str(size.divisor);
      if (!size.of.empty()) continue;
      given.emplace(size.name, size.example);
      if (!is_given(i)) return "size " + size.name + " is none of an argument";
    }
    return examples(given);
  }

 private:
  static std::string str(int64_t number) { return std::to_string(number); }
  bool is_given(SizeId size) const {
    const Routine& function = program_.functions.back();
    return std::any_of(function.inputs.begin(), function.inputs.end(), [&](ValueId input) {
      return input < function.values.size() && contains(function.values[input].named, size);
    });
  }
  Fault examples(const SizeNumbers& given) const {
    try {
      const Table<SizeId, int64_t> numbers = numbers_of(program_, given);
      for (const SizeId i : program_.sizes.ids())
        if (numbers[i] != program_.sizes[i].example)
          return "size " + program_.sizes[i].name + " is " + str(program_.sizes[i].example) +
                 ", and follows as " + str(numbers[i]);
    } catch (const composit::UserError& error) {
      return error.what();
    }
    return std::nullopt;
  }

  const Program& program_;
};

class FunctionChecker {
 public:
  FunctionChecker(const Program& program, FunctionId number)
      : program_(program),
        number_(number),
        function_(program.functions[number]),
        examples_(size_examples(program)) {}

  Fault fault() {
    if (auto found = interface()) return found;
    if (auto found = overwrites()) return found;
    if (auto found = names()) return found;
    for (const Value& value : function_.values) {
      loops_.operands.push_back(value.type);
      loops_.results.push_back(value.type);
    }
    for (const StepId i : function_.steps.ids())
      if (auto found = step(function_.steps[i]))
        return "step " + str(i) + " (" + place_of(origin_of(function_.steps[i])) + "): " + *found;
    for (const ValueId result : function_.results)
      if (written_.count(result) == 0 && function_.values[result].type.numel() > 0)
        return "result " + named(result) + " is never written";
    return std::nullopt;
  }

 private:
  std::string named(ValueId value) const {
    return "%" + str(value) + " \"" + function_.values[value].name + "\"";
  }
  Fault exist(const ValueIds& values) const {
    for (const ValueId value : values)
      if (value >= function_.values.size())
        return "there is no value %" + str(value) + ", there are " + str(function_.values.size());
    return std::nullopt;
  }

  Fault interface() const {
    for (const auto* list : {&function_.inputs, &function_.results})
      if (auto found = exist(*list)) return found;
    std::set<ValueId> seen;
    for (const ValueId input : function_.inputs) {
      const Role role = function_.values[input].role;
      if (role != Role::argument && role != Role::weight && role != Role::constant)
        return "input " + named(input) + " is neither an argument nor a weight";
      if (!seen.insert(input).second) return "input " + named(input) + " stands there twice";
    }
    for (const ValueId result : function_.results)
      if (!seen.insert(result).second)
        return "result " + named(result) + " is an input, or stands there twice";
    for (const ValueId i : function_.values.ids()) {
      const Value& value = function_.values[i];
      if (value.role != Role::constant) continue;
      if (!value.constant.defined() || value.constant.type().dtype != value.type.dtype ||
          value.constant.type().numel() != value.type.numel())
        return "constant " + named(i) + " has no constant of its type";
    }
    return std::nullopt;
  }

  Fault overwrites() const {
    for (const auto& [result, input] : function_.overwrites) {
      if (auto found = exist({result, input})) return found;
      const Type &to = function_.values[result].type, &from = function_.values[input].type;
      if (to.dtype != from.dtype || to.numel() != from.numel())
        return "result " + named(result) + " overwrites " + named(input) + " of another type";
    }
    return std::nullopt;
  }

  // Rule 12.
  Fault names() const {
    for (const ValueId i : function_.values.ids()) {
      const Value& value = function_.values[i];
      if (value.constant.defined() && !(value.named.empty() && value.model_named.empty()))
        return "constant " + named(i) + " has named sizes";
      auto found = names(value.named, value.type.sizes);
      if (!found) found = names(value.model_named, value.model_sizes);
      if (found) return "value " + named(i) + ": " + *found;
    }
    return std::nullopt;
  }
  Fault names(const SizeIds& named, const std::vector<int64_t>& numbers) const {
    if (named.empty()) return std::nullopt;
    if (named.size() != numbers.size())
      return str(named.size()) + " names for " + str(numbers.size()) + " numbers";
    for (size_t i = 0; i < named.size(); ++i) {
      if (!named[i]) continue;
      if (*named[i] >= examples_.size()) return "there is no size " + str(*named[i]);
      if (numbers[i] != examples_[*named[i]])
        return std::to_string(numbers[i]) + " is called " + program_.sizes[*named[i]].name +
               ", which is " + std::to_string(examples_[*named[i]]);
    }
    return std::nullopt;
  }

  Fault step(const Step& step) {
    for (const FunctionId callee : callees(step))
      if (callee >= number_)
        return "it calls function " + str(callee) + ", which does not stand before its caller";
    const ValueIds read = reads(step), written = writes(step);
    for (const auto* list : {&read, &written})
      if (auto found = exist(*list)) return found;
    if (auto found = std::visit([&](const auto& one) { return kind(one); }, step)) return found;
    for (const ValueId value : read)
      if (!is_known(value)) return named(value) + " is read before it is written";
    for (const ValueId value : written) {
      const Role role = function_.values[value].role;
      if (role == Role::argument || role == Role::weight || role == Role::constant)
        return named(value) + " is written, and is no result or temporary";
    }
    written_.insert(written.begin(), written.end());
    return std::nullopt;
  }
  bool is_known(ValueId value) const {
    const Value& one = function_.values[value];
    return one.role == Role::constant || one.type.numel() == 0 || written_.count(value) > 0 ||
           contains(function_.inputs, value);
  }

  Fault kind(const Nest& nest) const {
    if (nest.recognised != nullptr && !is_recognised(nest))
      return "it keeps what was recognised of another statement";
    std::vector<int64_t> extents;
    for (const composit::Axis& axis : nest.statement.axes) extents.push_back(axis.extent);
    if (auto found = names(nest.named, extents)) return found;
    std::vector<Expr> defined = expressions(nest.statement);
    std::erase_if(defined, [](const Expr& x) { return !x.defined(); });
    for (const Expr& part : composit::parts_of(defined))
      if (part.kind() == ExprKind::parameter && part.number() < examples_.size() &&
          part.dtype() != composit::DType::int64)
        return "size " + program_.sizes[SizeId(part.number())].name + " is not read as int64";
    return composit::fault_of(loops_, composit::with_numbers(nest.statement, examples_));
  }

  Fault kind(const Invocation& call) const {
    const Routine& callee = program_.functions[call.function];
    if (auto found = same(call.arguments, callee, callee.inputs, "arguments")) return found;
    return same(call.results, callee, callee.results, "results");
  }
  Fault same(const ValueIds& values, const Routine& callee, const ValueIds& slots,
             const char* what) const {
    if (values.size() != slots.size())
      return "it has " + str(values.size()) + " " + what + ", and '" + callee.name + "' " +
             str(slots.size());
    for (size_t i = 0; i < slots.size(); ++i) {
      const Type &given = function_.values[values[i]].type, &taken = callee.values[slots[i]].type;
      if (given.dtype != taken.dtype || given.numel() != taken.numel())
        return "of its " + std::string(what) + " " + named(values[i]) + " is " +
               composit::print(given) + ", and '" + callee.name + "' expects " +
               composit::print(taken);
    }
    return std::nullopt;
  }

  Fault kind(const Control& control) const {
    if (auto found = names({control.named_length}, {control.length})) return found;
    const size_t count = control.functions.size();
    const bool one_or_two = control.kind == Control::Kind::blocks && (count == 1 || count == 2);
    const bool two = control.kind == Control::Kind::branch || control.kind == Control::Kind::repeat;
    if (!one_or_two && count != (two ? 2 : 1))
      return "it has " + str(count) + " functions, which is not what its kind takes";
    if (control.kind == Control::Kind::branch && !control.predicate)
      return "it is a branch without a predicate";
    if (control.kind == Control::Kind::blocks && control.block <= 0)
      return "its blocks have no size";
    return std::nullopt;
  }

  static Fault kind(const RuntimeCall& call) {
    if (call.function.empty()) return "it calls a function without a name";
    if (call.schema != nullptr && call.schema->arguments.size() != call.options.size())
      return "it has " + str(call.options.size()) + " options, and its schema " +
             str(call.schema->arguments.size()) + " arguments";
    return std::nullopt;
  }

  const Program& program_;
  const FunctionId number_;
  const Routine& function_;
  const std::vector<int64_t> examples_;  // of named sizes
  composit::Loops loops_;                // all values are operands, and results
  std::set<ValueId> written_;
};

std::string mode() {
  static const std::string kMode = composit::knob(composit::Knob::verify);
#ifndef NDEBUG
  if (kMode.empty()) return "on";
#endif
  return kMode;
}

// Rule 14.
Fault fault_at_ends(const Program& program) {
  for (const auto end : {&NamedSize::least, &NamedSize::most}) {
    SizeNumbers given;
    for (const NamedSize& size : program.sizes)
      if (size.of.empty()) given.emplace(size.name, size.*end);
    try {
      if (const auto fault = fault_of(bind_sizes(program, given)))
        return *fault + (end == &NamedSize::least ? ", at the least" : ", at the most") + " sizes";
    } catch (const composit::UserError& error) {
      return error.what();
    }
  }
  return std::nullopt;
}

}  // namespace

std::optional<std::string> fault_of(const Program& program) {
  if (!program.sizes.empty())
    if (auto fault = SizesChecker(program).fault()) return fault;
  for (const FunctionId i : program.functions.ids())
    if (auto fault = FunctionChecker(program, i).fault())
      return "function '" + program.functions[i].name + "': " + *fault;
  return program.sizes.empty() ? std::nullopt : fault_at_ends(program);
}

Program checked(std::string_view stage, Program program) {
  if (mode().empty()) return program;
  if (const auto fault = fault_of(program))
    COMPOSIT_ASSERT(false, "after " + std::string(stage) + ", " + *fault + "\n" + print(program));
  if (mode() == "text") {
    const std::string text = print(program);
    COMPOSIT_ASSERT(print(parse_program(text)) == text,
                    "after " + std::string(stage) + ", the text does not read back\n" + text);
  }
  return program;
}

}  // namespace flashlight::loops
