// Branches and loops of a function, whose bodies are functions.
#include "flashlight/cpp/routine_writer.h"

namespace flashlight::cpp {
namespace {

// The first `count` values, and the others.
std::vector<size_t> first(const std::vector<size_t>& values, size_t count) {
  return {values.begin(), values.begin() + static_cast<std::ptrdiff_t>(count)};
}
std::vector<size_t> without(const std::vector<size_t>& values, size_t count) {
  return {values.begin() + static_cast<std::ptrdiff_t>(count), values.end()};
}

}  // namespace

// The one element of `value`.
std::string RoutineWriter::number(size_t value) const {
  return whole(value, composit::tensor_type(function_.values[value].type.dtype, {}), true);
}

Code RoutineWriter::branch(const Control& control) {
  const auto call = [&](size_t function) {
    std::vector<std::string> arguments;
    pass(control.outside, function, 0, true, "", arguments);
    pass(control.results, function, 0, false, "", arguments);
    return call_of(function, std::move(arguments));
  };
  indent_ += 2;
  const Code then = call(control.functions[0]), otherwise = call(control.functions[1]);
  indent_ -= 2;
  return if_else(number(*control.predicate), then, otherwise);
}

Code RoutineWriter::control(const Control& control, const std::vector<std::string>& loops) {
  if (control.kind == Control::Kind::branch) return branch(control);
  const auto copy = [&](size_t to, size_t from) {
    const bool pointer = function_.values[from].role == Role::weight;
    return statement("std::memcpy(&" + names_[to] + (pointer ? ", " : ", &") + names_[from] +
                     ", sizeof " + names_[to] + ");");
  };
  const bool repeats = control.kind == Control::Kind::repeat;
  const size_t carried = control.carried.size();
  const std::vector<size_t> finals = first(control.results, carried);
  std::vector<size_t> outputs = without(control.results, carried);
  if (repeats) outputs.pop_back();
  const std::string trip = repeats ? names_[control.results.back()] : loop_name(loops);
  const std::string count = control.trips ? number(*control.trips) : std::to_string(control.length);
  const std::string slot = control.reverse ? count + " - 1 - " + trip : trip;
  Code code;
  for (size_t i = 0; i < carried; ++i) code += copy(finals[i], control.carried[i]);
  if (repeats || control.trips)
    for (size_t value : outputs)
      code += statement("std::memset(&" + names_[value] + ", 0, sizeof " + names_[value] + ");");
  const size_t function = control.functions.back();
  std::vector<std::string> arguments;
  pass(finals, function, 0, true, "", arguments);
  pass(control.sequences, function, carried, true, slot, arguments);
  pass(control.outside, function, carried + control.sequences.size(), true, "", arguments);
  pass(control.next, function, 0, false, "", arguments);
  pass(outputs, function, carried, false, slot, arguments);
  Code body;
  indent_ += 2;
  if (repeats) {
    std::vector<std::string> tested;
    pass(finals, control.functions[0], 0, true, "", tested);
    pass(control.outside, control.functions[0], carried, true, "", tested);
    tested.push_back("goes_on");
    body += statement("bool goes_on;");
    body += call_of(control.functions[0], std::move(tested));
    body += statement("if (!goes_on) break;");
    if (control.limit) {
      const std::string limit = std::to_string(*control.limit);
      body +=
          statement("if (" + trip + " == " + limit +
                    ") throw std::runtime_error(\"a loop goes on after " + limit + " trips\");");
    }
  }
  body += call_of(function, std::move(arguments));
  indent_ -= 2;
  for (size_t i = 0; i < carried; ++i) body += copy(finals[i], control.next[i]);
  const std::string type = control.trips ? "int64_t " : "int ";
  code += repeats
              ? braced("for (" + trip + " = 0;; ++" + trip + ")", body)
              : block("for (" + type + trip + " = 0; " + trip + " < " + count + "; ++" + trip + ")",
                      body);
  return code;
}

}  // namespace flashlight::cpp
