#include "flashlight/cuda/function_writer.h"

#include <algorithm>

#include "composit/ir/error.h"
#include "flashlight/text/literal.h"
#include "flashlight/text/printer.h"
#include "flashlight/text/runtime_call_text.h"

namespace flashlight::cuda {

using text::Code;

namespace {

using Words = std::vector<std::string>;

bool is_guard(const Step& step) {
  const auto* call = std::get_if<RuntimeCall>(&step);
  return call != nullptr && call->function.domain() == "guards";
}

// The reason why a step other than a nest has no code.
std::string fault_of(const Step& step, Target target) {
  const std::string waits = "in a CUDA graph: the host waits for a number";
  if (const auto* control = std::get_if<Control>(&step)) {
    if (control->kind == Control::Kind::blocks) return "in blocks";
    const bool decides =
        control->predicate || control->trips || control->kind == Control::Kind::repeat;
    return target.graph && decides ? waits : "";
  }
  if (std::holds_alternative<Invocation>(step)) return "";
  if (!target.linked) return "on a GPU";
  if (is_guard(step)) return target.graph ? waits : "";
  if (!aten_call_in(step)) return "on a GPU";
  const auto& results = aten_call_in(step)->schema->results;
  const bool list = std::any_of(results.begin(), results.end(),
                                [](const composit::SchemaArgument& one) { return one.list; });
  return list ? "that gives lists of tensors" : "";
}

std::set<ValueId> made_by_libtorch(const Routine& routine, bool is_main) {
  std::set<ValueId> values;
  for (const Step& step : routine.steps)
    if (aten_call_in(step))
      for (const ValueId value : writes(step)) values.insert(value);
  // Functions that others call write results where these say.
  if (!is_main)
    for (const ValueId value : routine.results) values.erase(value);
  return values;
}

// The step after which each value is not read any more.
Table<ValueId, StepId> last_uses(const Routine& routine) {
  Table<ValueId, StepId> last;
  last.resize(routine.values.size());
  for (const StepId step : routine.steps.ids()) {
    for (const ValueId value : reads(routine.steps[step])) last[value] = step;
    for (const ValueId value : writes(routine.steps[step])) last[value] = step;
  }
  return last;
}

std::set<std::string> words(bool linked, bool is_main) {
  // The last three are variables of kernels, whose parameters have the names of values.
  std::set<std::string> all = {"arena", "error", "point", "lane", "term"};
  all.insert(linked ? "session" : "stream");
  if (!linked && is_main) all.insert("graph");
  if (linked && is_main) all.insert("inputs");
  return all;
}

}  // namespace

void check(const Program& program, Target target) {
  for (const Routine& routine : program.functions)
    check(routine, [&](const Step& step) { return fault_of(step, target); });
}

std::unique_ptr<Functions> write_functions(Program& program, bool linked) {
  auto all = std::make_unique<Functions>();
  for (Routine& function : program.functions)
    all->views.push_back(linked ? Views(function) : Views());
  all->arenas.resize(program.functions.size());
  for (const Routine& function : program.functions)
    all->file.names.insert(function_name(function.name));
  Code callees;
  for (const FunctionId number : program.functions.ids()) {
    auto writer = std::make_unique<FunctionWriter>(program, number, linked, all->views[number],
                                                   all->file, all->arenas);
    if (static_cast<size_t>(number) + 1 < program.functions.size())
      callees += writer->definition();
    else
      all->main = std::move(writer);
  }
  all->steps = all->main->steps();
  all->hidden =
      "namespace {\n" + text::str(all->file.kernels) + text::str(callees) + "\n}  // namespace\n\n";
  all->arena_bytes = all->arenas[FunctionId(program.functions.size() - 1)];
  return all;
}

FunctionWriter::FunctionWriter(const Program& program, FunctionId function, bool linked,
                               const Views& views, File& file, ArenaBytes& arenas)
    : program_(program),
      number_(function),
      routine_(program.functions[function]),
      linked_(linked),
      views_(views),
      is_main_(static_cast<size_t>(function) + 1 == program.functions.size()),
      file_(file),
      arenas_(arenas),
      made_(made_by_libtorch(routine_, is_main_)),
      kernels_(routine_, words(linked, is_main_), file,
               [this](ValueId value) { return made_.count(value) == 0; }),
      last_uses_(last_uses(routine_)) {
  memories_.resize(routine_.values.size());
}

Code FunctionWriter::steps() {
  Code code;
  for (const StepId number : routine_.steps.ids()) {
    code += step(number);
    code += released(number);
  }
  arenas_[number_] = kernels_.arena_bytes() + deepest_;
  return code;
}

Code FunctionWriter::definition() {
  const Code steps = this->steps();
  Words parameters;
  for (const ValueId value : routine_.inputs)
    if (!kernels_.is_constant(value))
      parameters.push_back("const " + kernels_.type(value) + "* " + kernels_.name(value));
  for (const ValueId value : routine_.results)
    parameters.push_back(kernels_.type(value) + "* " + kernels_.name(value));
  parameters.push_back(arenas_[number_] > 0 ? "char* arena" : "char* /*arena*/");
  parameters.push_back(linked_ ? "const fl::Session& session" : "cudaStream_t stream");
  Code body = kernels_.temporaries();
  body += steps;
  if (!linked_) body += text::returned("cudaSuccess");
  Code code = text::blank();
  code += text::code(text::Definition{
      (linked_ ? "void " : "cudaError_t ") + function_name(routine_.name), parameters, body});
  return code;
}

// ---- names and sizes ----------------------------------------------------------------------------

std::string FunctionWriter::count(ValueId value) const {
  return std::to_string(routine_.values[value].type.numel());
}
std::string FunctionWriter::bytes(ValueId value) const {
  return std::to_string(routine_.values[value].type.nbytes());
}
std::string FunctionWriter::sizes(ValueId value) const {
  const Value& one = routine_.values[value];
  const composit::Dims& sizes = one.model_sizes.empty() ? one.type.sizes : one.model_sizes;
  return text::braces({sizes.begin(), sizes.end()});
}
const std::string& FunctionWriter::memory(ValueId value) {
  std::string& name = memories_[value];
  if (name.empty()) name = kernels_.unused(kernels_.name(value) + "_memory");
  return name;
}
Code FunctionWriter::pointer(ValueId value) {
  return text::assignment(
      "auto* const " + kernels_.name(value),
      "fl::elements<" + kernels_.type(value) + ">(" + memory(value) + ", " + count(value) + ")");
}
bool FunctionWriter::is_result(ValueId value) const {
  return std::count(routine_.results.begin(), routine_.results.end(), value) > 0;
}

std::string FunctionWriter::passed(ValueId value) const {
  if (routine_.values[value].type.numel() == 0)
    return "static_cast<" + kernels_.type(value) + "*>(nullptr)";
  return kernels_.is_constant(value) ? "fl::address(" + kernels_.name(value) + ")"
                                     : kernels_.name(value);
}

// ---- steps --------------------------------------------------------------------------------------

Code FunctionWriter::step(StepId number) {
  const Step& step = routine_.steps[number];
  if (const auto* nest = std::get_if<Nest>(&step)) return launch(*nest);
  if (const auto* call = std::get_if<Invocation>(&step)) return invocation(*call);
  if (const auto* control = std::get_if<Control>(&step))
    return control->kind == Control::Kind::branch ? branch(*control) : loop(*control);
  const auto& call = std::get<RuntimeCall>(step);
  return is_guard(step) ? guard(call) : aten_call(call, number);
}

// A call that gives an error.
Code FunctionWriter::checked(const std::string& function, const Words& arguments) const {
  text::Call inner = {"", function, {arguments.begin(), arguments.end()}, ""};
  return text::call(text::Call{.function = linked_ ? "session.check" : "FLASHLIGHT_TRY",
                               .arguments = {std::make_shared<const text::Call>(inner)}});
}

Code FunctionWriter::launch(const Nest& nest) {
  const auto launch = kernels_.add(nest);
  if (!launch) return {};
  Words words = {launch->kernel, launch->grid, linked_ ? "session.stream()" : "stream"};
  words.insert(words.end(), launch->arguments.begin(), launch->arguments.end());
  return checked("fl::launch", words);
}

Code FunctionWriter::invocation(const Invocation& invocation) {
  Words arguments;
  pass(invocation.arguments, invocation.function, 0, true, "", arguments);
  pass(invocation.results, invocation.function, 0, false, "", arguments);
  return call_of(invocation.function, std::move(arguments));
}

Code FunctionWriter::call_of(FunctionId function, Words arguments) {
  const int64_t needed = arenas_[function];
  deepest_ = std::max(deepest_, needed);
  arguments.push_back(needed == 0
                          ? "nullptr"
                          : "fl::at<char>(arena, " + std::to_string(kernels_.arena_bytes()) + ")");
  arguments.push_back(linked_ ? "session" : "stream");
  const std::string name = function_name(program_.functions[function].name);
  return linked_ ? text::call(name, arguments) : checked(name, arguments);
}

void FunctionWriter::pass(const ValueIds& values, FunctionId function, size_t first, bool is_const,
                          const std::string& slot, Words& arguments) const {
  const Routine& callee = program_.functions[function];
  const ValueIds& places = is_const ? callee.inputs : callee.results;
  for (size_t i = 0; i < values.size(); ++i) {
    const int64_t length = callee.values[places[first + i]].type.numel();
    std::string text = passed(values[i]);
    if (!slot.empty() && length == 1) text += " + " + slot;
    if (!slot.empty() && length > 1)
      text += " + " + (slot.find(' ') == slot.npos ? slot : "(" + slot + ")") + " * " +
              std::to_string(length);
    arguments.push_back(std::move(text));
  }
}

// ---- branches and loops -------------------------------------------------------------------------

Code FunctionWriter::read(ValueId value, const std::string& name) const {
  const std::string type = kernels_.type(value);
  Code code = text::statement(type + " " + name + ";");
  code += checked("fl::read", {"&" + name, passed(value), linked_ ? "session.stream()" : "stream"});
  return code;
}
Code FunctionWriter::copy(ValueId to, ValueId from) const {
  if (routine_.values[to].type.numel() == 0) return {};
  return checked("fl::copy",
                 {passed(to), passed(from), bytes(to), linked_ ? "session.stream()" : "stream"});
}

Code FunctionWriter::branch(const Control& control) {
  const auto call = [&](FunctionId function) {
    Words arguments;
    pass(control.outside, function, 0, true, "", arguments);
    pass(control.results, function, 0, false, "", arguments);
    return call_of(function, std::move(arguments));
  };
  const std::string chosen = kernels_.unused("chosen");
  Code code = read(*control.predicate, chosen);
  code += text::if_else(chosen, call(control.functions[0]), call(control.functions[1]));
  return code;
}

Code FunctionWriter::loop(const Control& control) {
  const bool repeats = control.kind == Control::Kind::repeat;
  const auto carried = static_cast<std::ptrdiff_t>(control.carried.size());
  const ValueIds finals(control.results.begin(), control.results.begin() + carried);
  ValueIds outputs(control.results.begin() + carried, control.results.end());
  if (repeats) outputs.pop_back();
  const std::string stream = linked_ ? "session.stream()" : "stream";
  const std::string trip = kernels_.unused("trip");
  std::string length = std::to_string(control.length);
  const int64_t flag = repeats ? kernels_.reserve(1) : 0;
  Code code;
  if (control.trips) {
    length = kernels_.unused("trips");
    code += read(*control.trips, length);
  }
  for (size_t i = 0; i < finals.size(); ++i) code += copy(finals[i], control.carried[i]);
  if (repeats || control.trips)
    for (const ValueId value : outputs)
      if (routine_.values[value].type.numel() > 0)
        code += checked("fl::zero", {passed(value), bytes(value), stream});

  const std::string slot = control.reverse ? length + " - 1 - " + trip : trip;
  const FunctionId function = control.functions.back();
  Words arguments;
  pass(finals, function, 0, true, "", arguments);
  pass(control.sequences, function, finals.size(), true, slot, arguments);
  pass(control.outside, function, finals.size() + control.sequences.size(), true, "", arguments);
  pass(control.next, function, 0, false, "", arguments);
  pass(outputs, function, finals.size(), false, slot, arguments);
  Code body;
  if (repeats) {
    Words tested;
    const std::string place = "fl::at<bool>(arena, " + std::to_string(flag) + ")",
                      goes_on = kernels_.unused("goes_on");
    pass(finals, control.functions[0], 0, true, "", tested);
    pass(control.outside, control.functions[0], finals.size(), true, "", tested);
    tested.push_back(place);
    body += call_of(control.functions[0], std::move(tested));
    body += text::statement("bool " + goes_on + ";");
    body += checked("fl::read", {"&" + goes_on, "static_cast<const bool*>(" + place + ")", stream});
    body += text::block(text::If{"!" + goes_on}, text::statement("break;"));
    if (control.limit) {
      const std::string limit = std::to_string(*control.limit);
      body +=
          text::block(text::If{trip + " == " + limit},
                      linked_ ? text::statement("throw std::runtime_error(\"a loop goes on after " +
                                                limit + " trips\");")
                              : text::returned("cudaErrorAssert"));
    }
  }
  body += call_of(function, std::move(arguments));
  for (size_t i = 0; i < finals.size(); ++i) body += copy(finals[i], control.next[i]);
  if (repeats) code += text::assignment("int64_t " + trip, "0");
  code += text::braced(
      repeats ? text::For{"", trip, "0", ""} : text::For{"int64_t", trip, "0", length}, body);
  if (repeats) code += checked("fl::write", {passed(control.results.back()), trip, stream});
  return code;
}

// ---- LibTorch -----------------------------------------------------------------------------------

Code FunctionWriter::aten_call(const RuntimeCall& call, StepId step) {
  file_.headers.insert(text::link_header_of(call));
  const auto tensor = [&](size_t position, const std::vector<int64_t>& sizes) {
    const std::string pointer = passed(call.arguments.at(position));
    const Strided* view = views_.find(step, position);
    if (view == nullptr) return text::tensor_text(pointer, sizes);
    return "fl::view(" + pointer + ", " + text::braces(sizes) + ", " +
           text::braces(*view->strides_for(sizes)) + ")";
  };
  const Words arguments = text::aten_arguments(call, tensor, "fl::device()");
  const bool is_one = call.results.size() == 1;
  const std::string whole = is_one ? memory(call.results[0])
                                   : kernels_.unused(kernels_.name(call.results.at(0)) + "_all");
  Code code = text::call(text::Call{.target = (is_one ? "at::Tensor " : "auto ") + whole,
                                    .function = text::function_text(call),
                                    .arguments = {arguments.begin(), arguments.end()}});
  for (size_t i = 0; i < call.results.size(); ++i) {
    const ValueId value = call.results[i];
    if (routine_.values[value].type.numel() == 0) continue;
    if (!is_one)
      code += text::assignment("at::Tensor " + memory(value),
                               "std::move(std::get<" + std::to_string(i) + ">(" + whole + "))");
    if (is_made_by_libtorch(value)) {
      code += pointer(value);
    } else {
      code += text::call("fl::store", {memory(value), kernels_.name(value), count(value)});
      code += text::statement(memory(value) + ".reset();");
    }
  }
  return code;
}

// It reads a number on the host, and waits for it.
Code FunctionWriter::guard(const RuntimeCall& guard) const {
  const ValueId value = guard.arguments.at(0);
  Words words = {"fl::number(" + passed(value) + ")"};
  for (std::string& option : text::option_texts(guard, routine_.values[value].type.dtype))
    words.push_back(std::move(option));
  return text::call(text::function_text(guard), words);
}

// Gives memory back as soon as nothing reads it: LibTorch's allocator reuses it in the order of the
// stream.
Code FunctionWriter::released(StepId step) {
  Code code;
  for (const ValueId value : made_)
    if (last_uses_[value] == step && !is_result(value) && !memories_[value].empty())
      code += text::statement(memories_[value] + ".reset();");
  return code;
}

}  // namespace flashlight::cuda
