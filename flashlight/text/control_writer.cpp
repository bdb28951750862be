// Writes branches and loops of a function, whose bodies are functions.
#include "composit/ir/scope.h"
#include "flashlight/text/literal.h"
#include "flashlight/text/open_numbers.h"
#include "flashlight/text/routine_writer.h"

namespace flashlight::text {
namespace {

// The first `count` values, and the others.
ValueIds first(const ValueIds& values, size_t count) {
  return {values.begin(), values.begin() + static_cast<std::ptrdiff_t>(count)};
}
ValueIds without(const ValueIds& values, size_t count) {
  return {values.begin() + static_cast<std::ptrdiff_t>(count), values.end()};
}

}  // namespace

// The text of the only element of `value`.
std::string RoutineWriter::number(ValueId value) const {
  return whole(value, composit::tensor_type(function_.values[value].type.dtype, {}), true);
}

Code RoutineWriter::branch(const Control& control) {
  const auto call = [&](FunctionId function) {
    std::vector<std::string> arguments;
    pass(control.outside, function, 0, true, "", arguments);
    pass(control.results, function, 0, false, "", arguments);
    return call_of(function, std::move(arguments));
  };
  return if_else(number(*control.predicate), call(control.functions[0]),
                 call(control.functions[1]));
}

Code RoutineWriter::zeros(ValueId value) const {
  const Type& type = function_.values[value].type;
  const std::string& name = use(value);
  if (type.rank() == 0)
    return assignment(name, literal(composit::cast(Expr(0), type.dtype).value(), type.dtype));
  return statement("std::memset(" + first_byte(value) + ", 0, " + byte_count(value) + ");");
}

// constexpr int kBlock = 500;
// for (int block = 0; block < 10000; block += kBlock) body(x[block], ...);
Code RoutineWriter::blocks(const Control& control) {
  const auto from = [&](ValueId value, const Value& parameter, size_t number,
                        const std::string& begin, bool is_const) {
    const std::optional<size_t> along = control.along[number];
    if (!along) return whole(value, parameter.type, is_const);
    std::string first = use(value);
    for (size_t i = 0; i < *along; ++i) first += "[0]";
    return "fl::as<" + std::string(is_const ? "const " : "") + array_type(parameter.type) + ">(" +
           first + "[" + begin + "])";
  };
  const auto call = [&](FunctionId function, const std::string& begin) {
    const Routine& callee = program_.functions[function];
    std::vector<std::string> arguments;
    const size_t sequences = control.sequences.size();
    for (size_t i = 0; i < sequences; ++i)
      arguments.push_back(
          from(control.sequences[i], callee.values[callee.inputs[i]], i, begin, true));
    pass(control.outside, function, sequences, true, "", arguments);
    for (size_t i = 0; i < control.results.size(); ++i)
      arguments.push_back(
          from(control.results[i], callee.values[callee.results[i]], sequences + i, begin, false));
    return call_of(function, std::move(arguments));
  };
  Code code;
  for (size_t i = 0; i < control.results.size(); ++i)
    if (!control.along[control.sequences.size() + i]) code += zeros(control.results[i]);
  const std::string size = composit::unused_name("kBlock", taken_),
                    begin = composit::unused_name("block", taken_);
  const int64_t rest = control.length % control.block, all = control.length - rest;
  code += assignment("constexpr int " + size, std::to_string(control.block));
  code +=
      block(For{"int", begin, "0", std::to_string(all), size}, call(control.functions[0], begin));
  if (rest > 0) code += call(control.functions[1], std::to_string(all));
  return code;
}

Code RoutineWriter::control(const Control& control, const std::vector<std::string>& loops) {
  if (control.kind == Control::Kind::branch) return branch(control);
  if (control.kind == Control::Kind::blocks) return blocks(control);
  const auto copy = [&](ValueId to, ValueId from) {
    return statement("std::memcpy(" + first_byte(to) + ", " + first_byte(from) + ", " +
                     byte_count(to) + ");");
  };
  const bool repeats = control.kind == Control::Kind::repeat;
  const size_t carried = control.carried.size();
  const ValueIds finals = first(control.results, carried);
  ValueIds outputs = without(control.results, carried);
  if (repeats) outputs.pop_back();
  const std::string trip = repeats ? use(control.results.back()) : loop_name(loops);
  const std::string count = control.trips ? number(*control.trips) : bare_number(control.length);
  const std::string slot = control.reverse ? count + " - 1 - " + trip : trip;
  Code code;
  for (size_t i = 0; i < carried; ++i) code += copy(finals[i], control.carried[i]);
  if (repeats || control.trips)
    for (ValueId value : outputs) code += zeros(value);
  const FunctionId function = control.functions.back();
  std::vector<std::string> arguments;
  pass(finals, function, 0, true, "", arguments);
  pass(control.sequences, function, carried, true, slot, arguments);
  pass(control.outside, function, carried + control.sequences.size(), true, "", arguments);
  pass(control.next, function, 0, false, "", arguments);
  pass(outputs, function, carried, false, slot, arguments);
  Code body;
  if (repeats) {
    std::vector<std::string> tested;
    pass(finals, control.functions[0], 0, true, "", tested);
    pass(control.outside, control.functions[0], carried, true, "", tested);
    tested.push_back("goes_on");
    body += declaration("bool", "goes_on");
    body += call_of(control.functions[0], std::move(tested));
    body += block(If{"!goes_on"}, statement("break;"));
    if (control.limit) {
      const std::string limit = std::to_string(*control.limit);
      body += block(
          If{trip + " == " + limit},
          statement("throw std::runtime_error(\"a loop goes on after " + limit + " trips\");"));
    }
  }
  body += call_of(function, std::move(arguments));
  for (size_t i = 0; i < carried; ++i) body += copy(finals[i], control.next[i]);
  code += repeats ? braced(For{"", trip, "0", ""}, body)
                  : block(For{control.trips ? "int64_t" : "int", trip, "0", count}, body);
  return code;
}

}  // namespace flashlight::text
