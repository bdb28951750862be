#include "flashlight/cpp/emit.h"

#include <algorithm>
#include <set>

#include "flashlight/loops/sizes.h"
#include "flashlight/text/literal.h"
#include "flashlight/text/open_numbers.h"
#include "flashlight/text/printer.h"
#include "flashlight/text/routine_writer.h"
#include "flashlight/text/runtime_call_text.h"
#include "flashlight/text/weights.h"

namespace flashlight::cpp {

using namespace text;
namespace {

Code weight_struct(const Program& program, const std::vector<WeightStruct>& structs,
                   FunctionId function) {
  Code members;
  for (const WeightMember& member : structs[function].members) {
    if (member.is_struct()) {
      const std::string count =
          member.calls.size() == 1 ? "" : "[" + std::to_string(member.calls.size()) + "]";
      members += declaration(structs[member.function].name, member.name + count);
      continue;
    }
    const Type& type = program.functions[function].values[member.value].type;
    const std::string element = "const " + type_name(type.dtype);
    std::string rows;
    for (size_t i = 1; i < type.rank(); ++i) rows += "[" + std::to_string(type.sizes[i]) + "]";
    members += statement(rows.empty() ? element + "* " + member.name + ";"
                                      : element + " (*" + member.name + ")" + rows + ";");
  }
  return braced("struct " + structs[function].name, members, "};");
}

// The pointer that a loader passes as what a function takes.
std::string taken(const Type& type, const std::string& pointer, bool is_const) {
  const Form form = form_of(type);
  const std::string prefix = is_const ? "const " : "";
  if (form == Form::rows)
    return "static_cast<" + parameter_type(type, is_const) + ">(" + pointer + ")";
  if (form == Form::view)
    return view_of("static_cast<" + prefix + type_name(type.dtype) + "*>(" + pointer + ")", type);
  return "*static_cast<std::add_pointer_t<" + prefix + array_type(type) + ">>(" + pointer + ")";
}

// A port of a text for several sizes.
package::SizedPort sized_port(const Type& type, bool is_const) {
  package::SizedPort port;
  for (const int64_t size : type.sizes) port.sizes.push_back(bare_number(size));
  port.is_view = form_of(type) == Form::view;
  if (port.is_view)
    port.parameter = (is_const ? "const " : "") + type_name(type.dtype);
  else if (form_of(type) == Form::rows)
    port.parameter = parameter_type(type, is_const);
  return port;
}

void add_ports(const Routine& function, const Signature& signature, Source& source) {
  for (const ValueId value : function.inputs)
    if (function.values[value].role == Role::argument)
      source.inputs.push_back(sized_port(function.values[value].type, true));
  for (const ValueId value : function.results)
    source.results.push_back(sized_port(function.values[value].type, false));
  source.passed_sizes = signature.sizes;
  source.takes_memory = signature.has_arena;
}

// The function that a loader calls: arguments, weights and results are plain pointers.
Code entry(const Program& program, const RoutineWriter& main, const std::string& name,
           const std::vector<std::string>& sizes) {
  const Routine& function = program.functions.back();
  std::vector<std::string> arguments;
  Code body;
  if (main.signature().has_weights) {
    body += declaration(program.functions.back().name + "::Weights", "bound");
    body += statement("std::memcpy(&bound, weights, sizeof bound);");
    arguments.push_back("bound");
  }
  size_t number = 0;
  for (ValueId value : function.inputs) {
    const Value& one = function.values[value];
    if (one.role != Role::argument) continue;
    const std::string pointer = "arguments[" + std::to_string(number++) + "]";
    if (one.type.numel() > 0) arguments.push_back(taken(one.type, pointer, true));
  }
  for (size_t i = 0; i < function.results.size(); ++i) {
    const Type& type = function.values[function.results[i]].type;
    if (type.numel() > 0)
      arguments.push_back(taken(type, "results[" + std::to_string(i) + "]", false));
  }
  for (size_t i = 0; i < sizes.size(); ++i)
    body += assignment("[[maybe_unused]] const int " + sizes[i],
                       "static_cast<int>(sizes[" + std::to_string(i) + "])");
  arguments.insert(arguments.end(), main.signature().sizes.begin(), main.signature().sizes.end());
  const bool is_sized = current_names() != nullptr;
  if (main.signature().has_arena) {
    if (is_sized) body += statement("static thread_local fl::Stack memory;");
    arguments.push_back(is_sized ? "memory" : "static_cast<std::byte*>(arena)");
  }
  if (main.signature().has_generator)
    arguments.push_back("*static_cast<fl::Generator*>(generator)");
  body += reported(call(program.functions.back().name + "::" + main.signature().name, arguments));
  return code(Definition{
      "extern \"C\" const char* " + name,
      {"[[maybe_unused]] const void* const* arguments",
       "[[maybe_unused]] const void* const* weights", "[[maybe_unused]] void* const* results",
       is_sized ? "[[maybe_unused]] const int64_t* sizes" : "[[maybe_unused]] void* arena",
       "[[maybe_unused]] void* generator"},
      body});
}

// The origin of steps in one loop: the module of the first, and the operations of all.
Origin origin_of(const Routine& function, const StepIds& steps) {
  Origin common = origin_of(function.steps[steps[0]]);
  std::set<std::string> operations = {common.operation};
  for (const StepId step : steps) {
    const std::string& operation = origin_of(function.steps[step]).operation;
    if (operations.insert(operation).second) common.operation += ", " + operation;
  }
  return common;
}

// Adds the operations that the lines of a function are for; its last line is `last`.
void add_origins(const Routine& function, const std::vector<WrittenPiece>& pieces, size_t last,
                 std::vector<EmittedLines>& origins) {
  std::vector<size_t> lines;
  size_t line = last;  // the brace
  for (const WrittenPiece& piece : pieces) {
    lines.push_back(line_count(piece.code, kIndent));
    line -= lines.back();
  }
  for (size_t i = 0; i < pieces.size(); ++i) {
    origins.push_back({static_cast<int>(line), static_cast<int>(line + lines[i]) - 1,
                       origin_of(function, pieces[i].steps)});
    line += lines[i];
  }
}

// The headers that runtime calls need.
std::vector<std::string> headers_of(const Program& program,
                                    std::string (*header)(const RuntimeCall&)) {
  std::set<std::string> headers;
  for (const Routine& function : program.functions)
    for (const Step& step : function.steps)
      if (const auto* call = std::get_if<RuntimeCall>(&step)) headers.insert(header(*call));
  headers.erase("");
  return {headers.begin(), headers.end()};
}

}  // namespace

namespace {

// Memory of a size that is no constant is taken while the function runs.
void take_memory_later(const Routine& function,
                       const Table<FunctionId, ScheduledRoutine>& scheduled,
                       ScheduledRoutine& routine) {
  routine.needs.has_arena = false;
  for (const Step& step : function.steps) {
    for (const FunctionId callee : callees(step))
      routine.needs.has_arena |= scheduled[callee].needs.has_arena;
    for (const ValueId value : writes(step))
      if (function.values[value].role == Role::temporary)
        routine.needs.has_arena |= !is_local(function, routine, value);
  }
}

Source emitted(Program program) {
  expect_bound("emit", program);
  const std::vector<WeightStruct> structs = plan_weights(program);
  Source source;
  source.name = namespace_name(program.functions.back().name);
  program.functions.back().name = source.name;
  source.entry_name = source.name + "_entry";
  Table<FunctionId, ScheduledRoutine> scheduled;
  Code weights, closing = blank();
  for (const FunctionId i : program.functions.ids()) {
    if (structs[i].members.empty()) continue;
    weights += blank();
    weights += weight_struct(program, structs, i);
  }
  source.structs = str(weights);
  source.headers = headers_of(program, header_of);
  const bool is_sized = current_names() != nullptr;
  if (is_sized) {
    source.headers.push_back("flashlight_arena.hpp");
    source.sizes = current_names()->names();
  }
  source.links = headers_of(program, link_header_of);
  Code opening = includes(source);
  opening += blank();
  opening += statement("namespace " + source.name + " {");
  size_t line = line_count(opening) + line_count(weights);
  for (const FunctionId i : program.functions.ids()) {
    scheduled.push_back(scheduled_routine(program.functions[i], program.functions, scheduled));
    if (is_sized) take_memory_later(program.functions[i], scheduled, scheduled.back());
    RoutineWriter writer(program, i, structs, scheduled);
    const text::Function written = writer.write();
    scheduled.back().needs.sizes = writer.signature().sizes;
    Code function = blank();
    function += definition(written);
    source.functions += str(function);
    line += line_count(function);
    add_origins(program.functions[i], writer.pieces(), line, source.origins);
    if (i + 1 < program.functions.size()) continue;
    source.declaration = str(declaration(written));
    closing += statement("}  // namespace " + source.name);
    closing += blank();
    closing += entry(program, writer, source.entry_name, source.sizes);
    if (is_sized) add_ports(program.functions[i], writer.signature(), source);
    source.arena_bytes = is_sized ? 0 : writer.signature().arena_bytes;
    source.draws = writer.signature().has_generator;
  }
  source.text = str(opening) + source.structs + source.functions + str(closing);
  source.lines = static_cast<int>(line + line_count(closing));
  const Routine& main = program.functions.back();
  for (size_t i = 0; i < main.inputs.size(); ++i)
    if (main.values[main.inputs[i]].role == Role::argument) source.arguments.push_back(i);
  for (const WeightPlace& weight : weight_places(program, structs)) {
    source.weights.push_back(weight.input);
    source.constants.push_back(main.values[main.inputs[weight.input]].constant);
    source.members.push_back(weight.member);
  }
  return source;
}

}  // namespace

Source emit(Program program) { return emitted(std::move(program)); }

Source emit(Program program, const text::SizeNames& names) {
  text::SizeNames own = names;
  const text::NamedNumbers named(own);
  return emitted(std::move(program));
}

}  // namespace flashlight::cpp
