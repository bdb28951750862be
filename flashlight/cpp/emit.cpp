#include "flashlight/cpp/emit.h"

#include <algorithm>
#include <map>
#include <set>

#include "flashlight/text/format.h"
#include "flashlight/text/literal.h"
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
      const std::string type = structs[member.function].name, name = member.name + count + ";";
      if (type.size() + name.size() + 3 <= kColumns)
        members += statement(type + " " + name);
      else
        members += Code{{type, "    " + name}, 1};
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

// What a loader calls: arguments, weights and results as plain pointers.
Code entry(const Program& program, const RoutineWriter& main, const std::string& name) {
  const Routine& function = program.functions.back();
  std::vector<std::string> arguments;
  Code body;
  if (main.signature().has_weights) {
    body += statement(program.functions.back().name + "::Weights bound;");
    body += statement("std::memcpy(&bound, weights, sizeof bound);");
    arguments.push_back("bound");
  }
  const auto reference = [&](const Type& type, const std::string& pointer, bool is_const) {
    return "*static_cast<std::add_pointer_t<" + std::string(is_const ? "const " : "") +
           array_type(type) + ">>(" + pointer + ")";
  };
  size_t number = 0;
  for (ValueId value : function.inputs) {
    const Value& one = function.values[value];
    if (one.role != Role::argument) continue;
    const std::string pointer = "arguments[" + std::to_string(number++) + "]";
    if (one.type.numel() > 0) arguments.push_back(reference(one.type, pointer, true));
  }
  for (size_t i = 0; i < function.results.size(); ++i) {
    const Type& type = function.values[function.results[i]].type;
    if (type.numel() > 0)
      arguments.push_back(reference(type, "results[" + std::to_string(i) + "]", false));
  }
  if (main.signature().has_arena) arguments.push_back("static_cast<std::byte*>(arena)");
  if (main.signature().has_generator)
    arguments.push_back("*static_cast<fl::Generator*>(generator)");
  const Code run =
      call(program.functions.back().name + "::" + main.signature().name, arguments, ";", 4);
  body += braced("try", run, "} catch (const std::exception& error) {");
  body.lines.push_back("  return fl::keep_message(error.what());");
  body.lines.push_back("}");
  body += statement("return nullptr;");
  Code code =
      call("extern \"C\" const char* " + name,
           {"[[maybe_unused]] const void* const* arguments",
            "[[maybe_unused]] const void* const* weights", "[[maybe_unused]] void* const* results",
            "[[maybe_unused]] void* arena", "[[maybe_unused]] void* generator"},
           " {", 0);
  for (const std::string& line : body.lines) code.lines.push_back("  " + line);
  code.lines.push_back("}");
  return code;
}

// Of steps in the same loop: all their operations, the place of the first.
Origin origin_of(const Routine& function, const StepIds& steps) {
  Origin common = origin_of(function.steps[steps[0]]);
  std::set<std::string> operations = {common.operation};
  for (const StepId step : steps) {
    const std::string& operation = origin_of(function.steps[step]).operation;
    if (operations.insert(operation).second) common.operation += ", " + operation;
  }
  return common;
}

// A function's text, and what its lines, the first of which is line `line`, are for.
std::string text_with_origins(const Routine& function, const Code& written,
                              const std::vector<WrittenPiece>& pieces, int line,
                              std::vector<EmittedLines>& origins) {
  std::string text;
  size_t next = 0;
  const auto write = [&](size_t lines) {  // returns how many these become
    const auto begin = written.lines.begin() + static_cast<std::ptrdiff_t>(next);
    next += lines;
    const std::string more =
        formatted(str(Code{{begin, begin + static_cast<std::ptrdiff_t>(lines)}, 0}));
    text += more;
    return line_count(more);
  };
  size_t head = written.lines.size() - 1;  // the last line is the brace
  for (const WrittenPiece& piece : pieces) head -= piece.lines;
  line += write(head);
  for (const WrittenPiece& piece : pieces) {
    const int lines = write(piece.lines);
    origins.push_back({line, line + lines - 1, origin_of(function, piece.steps)});
    line += lines;
  }
  write(1);
  return text;
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

std::string includes(const Source& source) {
  std::string text;
  for (const std::string& header : source.links) text += "#include <" + header + ">\n";
  if (!text.empty()) text += "\n";
  text += "#include \"" + std::string(kRuntimeName) + "\"\n";
  for (const std::string& header : source.headers) text += "#include \"" + header + "\"\n";
  return text;
}

const std::string& runtime_text() {
  static const std::string kText =
#include <flashlight_cpp_runtime.inc>
      ;
  return kText;
}

const std::string& runtime_header(const std::string& name) {
  static const std::map<std::string, std::string> kHeaders = {
#include <flashlight_cpp_runtime_headers.inc>
  };
  return kHeaders.at(name);
}

Source emit(Program program) {
  const std::vector<WeightStruct> structs = plan_weights(program);
  Source source;
  source.name = namespace_name(program.functions.back().name);
  program.functions.back().name = source.name;
  source.entry_name = source.name + "_entry";
  std::vector<Signature> callees;
  for (const FunctionId i : program.functions.ids())
    if (!structs[i].members.empty())
      source.structs += "\n" + str(weight_struct(program, structs, i));
  source.headers = headers_of(program, header_of);
  source.links = headers_of(program, link_header_of);
  const std::string opening = includes(source) + "\nnamespace " + source.name + " {\n";
  const int before = line_count(opening + source.structs);
  std::string loaded;
  for (const FunctionId i : program.functions.ids()) {
    RoutineWriter writer(program, i, structs, callees);
    const text::Function written = writer.write();
    source.functions += "\n";
    source.functions +=
        text_with_origins(program.functions[i], definition(written), writer.pieces(),
                          1 + before + line_count(source.functions), source.origins);
    callees.push_back(writer.signature());
    if (i + 1 < program.functions.size()) continue;
    source.declaration = str(declaration(written));
    loaded = formatted(str(entry(program, writer, source.entry_name)));
    source.arena_bytes = writer.signature().arena_bytes;
    source.draws = writer.signature().has_generator;
  }
  source.text = opening + source.structs + source.functions + "\n}  // namespace " + source.name +
                "\n\n" + loaded;
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

}  // namespace flashlight::cpp
