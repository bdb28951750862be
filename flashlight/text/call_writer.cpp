// Writes the calls of a function: of others, one by one and in loops, and of the shipped headers.
#include <algorithm>

#include "composit/ir/error.h"
#include "flashlight/text/literal.h"
#include "flashlight/text/open_numbers.h"
#include "flashlight/text/routine_writer.h"
#include "flashlight/text/runtime_call_text.h"

namespace flashlight::text {

// The text that passes `value` as a reference to an array of type `as`, or as a pointer where its
// sizes are data.
std::string RoutineWriter::whole(ValueId value, const Type& as, bool is_const) const {
  const std::string& text = use(value);
  if (form_of(as) != Form::array) return moved(text, function_.values[value].type, as, is_const);
  const Value& one = function_.values[value];
  if (one.role == Role::weight) return "fl::as<const " + array_type(as) + ">(" + text + ")";
  if (one.type.sizes == as.sizes) return text;
  return std::string("fl::as<") + (is_const ? "const " : "") + array_type(as) + ">(" + text + ")";
}

std::vector<std::string> RoutineWriter::rows(const RuntimeCall& call, bool is_const) const {
  std::vector<std::string> list;
  for (ValueId value : is_const ? call.arguments : call.results) {
    const Type& type = function_.values[value].type;
    if (current_names() != nullptr && is_open_number(type.numel()))
      throw composit::UserError("[cpp] expected constant sizes of what " + function_text(call) +
                                " takes, received " + bare_number(type.numel()) + " elements of '" +
                                function_.values[value].name + "'");
    const Type row = composit::tensor_type(type.dtype, {type.numel()});
    const std::string element = (is_const ? "const " : "") + type_name(type.dtype);
    if (type.numel() == 0)
      list.push_back("static_cast<" + element + "*>(nullptr)");
    else
      list.push_back(
          whole(value, call.on_numbers ? composit::tensor_type(type.dtype, {}) : row, is_const));
  }
  return list;
}

Code RoutineWriter::aten_call(const RuntimeCall& call) const {
  const std::vector<std::string> arguments =
      aten_arguments(call, [&](size_t position, const auto& sizes) {
        const ValueId value = call.arguments.at(position);
        const bool number = function_.values[value].type.rank() == 0 &&
                            function_.values[value].role != Role::weight;
        return tensor_text((number ? "&" : "") + use(value), sizes);
      });
  Call inner = {"", function_text(call), {arguments.begin(), arguments.end()}, ""};
  Call store = {"", "fl::store", {std::make_shared<const Call>(std::move(inner))}, ";"};
  for (const ValueId value : call.results)
    store.arguments.push_back(function_.values[value].type.numel() > 0 ? use(value)
                                                                       : "std::ignore");
  return flashlight::text::call(std::move(store));
}

Code RoutineWriter::runtime_call(const RuntimeCall& call) const {
  if (call.schema != nullptr) return aten_call(call);
  std::vector<std::string> list = rows(call, true);
  if (call.draws) list.insert(list.begin(), "generator");
  const composit::DType dtype = call.arguments.empty()
                                    ? composit::DType::float64
                                    : function_.values[call.arguments[0]].type.dtype;
  const std::vector<std::string> options = option_texts(call, dtype);
  list.insert(list.end(), options.begin(), options.end());
  const std::vector<std::string> results = rows(call, false);
  list.insert(list.end(), results.begin(), results.end());
  return flashlight::text::call(function_text(call), list);
}

Code RoutineWriter::call_of(FunctionId function, std::vector<std::string> arguments) const {
  const Needs& needs = scheduled_[function].needs;
  const int64_t own_bytes = scheduled_[number_].own_bytes;
  arguments.insert(arguments.end(), needs.sizes.begin(), needs.sizes.end());
  if (current_names() != nullptr) {
    current_names()->use(needs.sizes);
    if (needs.has_arena) arguments.push_back("memory");
  } else if (needs.has_arena)
    arguments.push_back(own_bytes > 0 ? "arena + " + open_number(own_bytes) : "arena");
  if (needs.has_generator) arguments.push_back("generator");
  return flashlight::text::call(identifier(program_.functions[function].name), arguments);
}

void RoutineWriter::pass(const ValueIds& values, FunctionId function, size_t first, bool is_const,
                         const std::string& index, std::vector<std::string>& arguments) const {
  const Routine& callee = program_.functions[function];
  const ValueIds& places = is_const ? callee.inputs : callee.results;
  for (size_t i = 0; i < values.size(); ++i) {
    const Value& parameter = callee.values[places[first + i]];
    const bool passed = parameter.role != Role::weight && parameter.type.numel() > 0;
    const composit::Dims &sizes = function_.values[values[i]].type.sizes,
                         &slot = parameter.type.sizes;
    if (!passed) continue;
    if (index.empty())
      arguments.push_back(whole(values[i], parameter.type, is_const));
    else if (form(values[i]) == Form::view)
      arguments.push_back(slot_of(values[i], parameter.type, index, is_const));
    else if (sizes.size() == slot.size() + 1 &&
             std::equal(slot.begin(), slot.end(), sizes.begin() + 1))
      arguments.push_back(use(values[i]) + "[" + index + "]");
    else
      arguments.push_back("fl::slot<" + std::string(is_const ? "const " : "") +
                          array_type(parameter.type) + ">(" + use(values[i]) + ", " + index + ")");
  }
}

// The element along the first dimension of a view: a pointer, or a view of one dimension less.
std::string RoutineWriter::slot_of(ValueId value, const Type& as, const std::string& index,
                                   bool is_const) const {
  Type slot = function_.values[value].type;
  slot.sizes.erase(slot.sizes.begin());
  const std::string element = use(value) + "[" + index + "]";
  const bool is_view = slot.rank() > 1;
  if (form_of(as) == Form::view)
    return is_view && slot.sizes == as.sizes ? element
                                             : view_of(element + (is_view ? ".data" : ""), as);
  if (!is_view && as.rank() == 1) return element;
  return "reinterpret_cast<" + parameter_type(as, is_const) + ">(" + element +
         (is_view ? ".data" : "") + ")";
}

std::string RoutineWriter::first_byte(ValueId value) const {
  const Form here = form(value);
  const bool is_pointer = here == Form::rows || function_.values[value].role == Role::weight;
  return (is_pointer || here == Form::view ? "" : "&") + use(value) +
         (here == Form::view ? ".data" : "");
}
std::string RoutineWriter::byte_count(ValueId value) const {
  if (form(value) == Form::array) return "sizeof " + use(value);
  const Type& type = function_.values[value].type;
  return "sizeof(" + type_name(type.dtype) + ") * " + open_number(type.numel());
}

// `index`: the number of the call, if it is in a loop.
Code RoutineWriter::invocation(StepId number, const Invocation& call, const std::string& index) {
  std::vector<std::string> arguments;
  for (const WeightMember& member : structs_[number_].members) {
    const auto place = std::find(member.calls.begin(), member.calls.end(), number);
    if (place == member.calls.end()) continue;
    const std::string element = std::to_string(place - member.calls.begin());
    arguments.push_back(
        "weights." + member.name +
        (member.calls.size() == 1 ? "" : "[" + (index.empty() ? element : index) + "]"));
  }
  pass(call.arguments, call.function, 0, true, "", arguments);
  pass(call.results, call.function, 0, false, "", arguments);
  return call_of(call.function, std::move(arguments));
}

Code RoutineWriter::rolled(const Run& run) {
  const auto call = [&](StepId number, const std::string& index = "") {
    return invocation(number, std::get<Invocation>(function_.steps[number]), index);
  };
  const std::string i = loop_name({});
  const StepId last = run.first + (run.count - 1);
  // In the loop, call number i reads one half of the array and writes the other.
  const std::vector<std::string> names = names_;
  for (const auto& [argument, result] : run.chain) {
    const auto value = [&, slot = result](StepId step) {
      return std::get<Invocation>(function_.steps[step]).results[slot];
    };
    const std::string name = arrays_.at(value(run.first));
    names_[value(run.first)] = name + "[(" + i + " - 1) % 2]";
    names_[value(run.first + 1)] = name + "[" + i + " % 2]";
  }
  // The index of the run's first call in the array of weights that its calls share.
  size_t offset = 0;
  for (const WeightMember& member : structs_[number_].members) {
    const auto place = std::find(member.calls.begin(), member.calls.end(), run.first);
    if (place != member.calls.end()) offset = static_cast<size_t>(place - member.calls.begin());
  }
  const Code body = call(run.first + 1, offset == 0 ? i : i + " + " + std::to_string(offset));
  names_ = names;
  Code code = call(run.first);
  code += block(For{"int", i, "1", std::to_string(run.count - 1)}, body);
  code += call(last);
  return code;
}

}  // namespace flashlight::text
