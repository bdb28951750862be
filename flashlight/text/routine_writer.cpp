#include "flashlight/text/routine_writer.h"

#include <algorithm>
#include <functional>

#include "composit/ir/scope.h"
#include "flashlight/loops/constants.h"
#include "flashlight/loops/statement.h"
#include "flashlight/text/literal.h"
#include "flashlight/text/open_numbers.h"

namespace flashlight::text {
namespace {

// The callers of a function: the module of the first call, and the number of calls.
struct Callers {
  std::string module;
  std::string frame;  // the module that its steps' modules are relative to
  size_t count = 0;
};

Callers callers_of(const Program& program, FunctionId function) {
  Callers callers;
  for (FunctionId caller = function + 1; caller < program.functions.size(); ++caller)
    for (const Step& step : program.functions[caller].steps) {
      const auto* call = std::get_if<Invocation>(&step);
      if (call == nullptr || call->function != function) continue;
      if (callers.count++ > 0) continue;
      const std::string outer = callers_of(program, caller).frame, &inner = call->origin.module;
      callers.module = outer + (outer.empty() || inner.empty() ? "" : ".") + inner;
      callers.frame = program.functions[function].is_part ? outer : callers.module;
    }
  return callers;
}

void add_steps(const Item& item, std::set<StepId>& steps) {
  if (!item.is_loop()) steps.insert(item.step);
  for (const Item& inner : item.body) add_steps(inner, steps);
}

}  // namespace

std::set<StepId> steps_of(const Item& item) {
  std::set<StepId> steps;
  add_steps(item, steps);
  return steps;
}

RoutineWriter::RoutineWriter(const Program& program, FunctionId number,
                             const std::vector<WeightStruct>& structs,
                             const Table<FunctionId, ScheduledRoutine>& scheduled)
    : program_(program),
      number_(number),
      function_(program.functions[number]),
      structs_(structs),
      scheduled_(scheduled),
      schedule_(scheduled[number].schedule),
      signature_{scheduled[number].needs, identifier(function_.name),
                 !structs[number].members.empty()} {
  writers_.resize(function_.values.size());
  for (const StepId i : function_.steps.ids())
    for (ValueId value : writes(function_.steps[i])) writers_[value].push_back(i);
  name_values();
  name_runs();
}

void RoutineWriter::name_values() {
  std::set<ValueId> used(function_.inputs.begin(), function_.inputs.end());
  for (const Step& one : function_.steps) {
    for (ValueId value : reads(one)) used.insert(value);
    for (ValueId value : writes(one)) used.insert(value);
  }
  names_.resize(function_.values.size());
  for (const Routine& other : program_.functions) taken_.insert(identifier(other.name));
  if (current_names() != nullptr)
    taken_.insert(current_names()->names().begin(), current_names()->names().end());
  for (const WeightMember& member : structs_[number_].members)
    if (!member.is_struct()) names_[member.value] = "weights." + member.name;
  for (ValueId value : used) {
    if (function_.values[value].role == Role::weight) continue;
    names_[value] = composit::unused_name(identifier(function_.values[value].name), taken_);
  }
  for (const auto& [result, argument] : function_.overwrites) names_[argument] = names_[result];
}

// All calls of a run but the last write their results in turn to the halves of an array of two.
void RoutineWriter::name_runs() {
  for (const Run& run : scheduled_[number_].runs)
    for (size_t result = 0; result < run.chain.size(); ++result) {
      const auto& call = std::get<Invocation>(function_.steps[run.first]);
      const std::string name = composit::unused_name(
          identifier(program_.functions[call.function].name) + "_results", taken_);
      for (size_t k = 0; k + 1 < run.count; ++k) {
        const ValueId value = std::get<Invocation>(function_.steps[run.first + k]).results[result];
        arrays_[value] = name;
        names_[value] = name + "[" + std::to_string(k % 2) + "]";
      }
    }
}

// ---- text ---------------------------------------------------------------------------------------

Element RoutineWriter::element(ValueId value, const std::vector<std::string>& indices) const {
  if (form(value) == Form::flat) return flat_element(value, indices);
  Element element = {names_[value]};
  const std::vector<bool>& kept = schedule_.storage[value].kept;
  for (size_t i = 0; i < indices.size(); ++i)
    if (kept[i]) element.indices.push_back(indices[i]);
  if (indices.empty() && function_.values[value].role == Role::weight)
    element.indices.push_back("0");
  return element;
}

Element RoutineWriter::flat_element(ValueId value, const std::vector<std::string>& indices) const {
  const Value& one = function_.values[value];
  const std::vector<bool>& kept = schedule_.storage[value].kept;
  const bool is_wide = one.type.numel() > INT32_MAX;
  std::string place;
  for (size_t i = 0; i < indices.size(); ++i) {
    if (!kept[i]) continue;
    if (place.find(' ') != std::string::npos) place = "(" + place + ")";
    if (!place.empty()) place += " * " + open_number(one.type.sizes[i]) + " + ";
    const bool is_name = indices[i].find_first_of(" <") == std::string::npos;
    place += is_wide   ? "int64_t(" + indices[i] + ")"
             : is_name ? indices[i]
                       : "(" + indices[i] + ")";
  }
  return {names_[value], {place.empty() ? "0" : place}};
}

const std::string& RoutineWriter::use(ValueId value) const {
  mentioned_.insert(value);
  return names_[value];
}

bool RoutineWriter::declares(ValueId value) const {
  if (!is_local(value) || writers_[value].size() != 1 || declared_.contains(value)) return false;
  const Storage& storage = schedule_.storage[value];
  const auto* nest = std::get_if<Nest>(&function_.steps[writers_[value][0]]);
  return nest != nullptr && !std::count(storage.kept.begin(), storage.kept.end(), true) &&
         !nest->statement.stores[0].add && nest->statement.stores.size() == 1 &&
         !(nest->statement.domain.defined() && nest->statement.init.empty()) &&
         !has_axes(nest->statement, composit::AxisKind::scan) &&
         schedule_.order[writers_[value][0]].size() == schedule_.shared[writers_[value][0]];
}

std::vector<std::string> RoutineWriter::parameters() const {
  std::vector<std::string> list;
  if (function_.in_parts) list.push_back("fl::Part part");
  if (signature_.has_weights) list.push_back("const " + structs_[number_].name + "& weights");
  // Memory of results has no other name, which compilers must know to vectorise loops.
  const auto reference = [&](ValueId value, bool is_result) {
    const Type& type = function_.values[value].type;
    const std::string name = (is_result ? "__restrict " : "") + names_[value];
    const Form one = form(value);
    const std::string is_const = is_result ? "" : "const ";
    if (one == Form::view) return parameter_type(type, !is_result) + " " + names_[value];
    if (one == Form::rows) return is_const + declared(type, name);
    if (one == Form::flat) return is_const + type_name(type.dtype) + "* " + name;
    return is_const + type_name(type.dtype) +
           (type.rank() == 0 ? "& " + name : " (&" + name + ")" + brackets(type));
  };
  const auto is_overwritten = [&](ValueId value) {
    return std::any_of(function_.overwrites.begin(), function_.overwrites.end(),
                       [&](const auto& one) { return one.second == value; });
  };
  for (ValueId value : function_.inputs)
    if (function_.values[value].role == Role::argument &&
        function_.values[value].type.numel() > 0 && !is_overwritten(value))
      list.push_back((mentioned_.contains(value) ? "" : "[[maybe_unused]] ") +
                     reference(value, false));
  for (ValueId value : function_.results)
    if (function_.values[value].type.numel() > 0) list.push_back(reference(value, true));
  for (const std::string& size : signature_.sizes) list.push_back("int " + size);
  if (signature_.has_arena)
    list.push_back(current_names() != nullptr ? "fl::Stack& memory" : "std::byte* arena");
  if (signature_.has_generator) list.push_back("fl::Generator& generator");
  return list;
}

Function RoutineWriter::write() {
  std::vector<std::string> loops;
  std::vector<size_t> path;
  if (current_names() != nullptr) find_last_items();
  Code inner = constants();
  inner += items(schedule_.items, loops, path);
  Code body;
  if (takes_memory_) body += statement("fl::Frame frame(memory);");
  body += inner;
  if (current_names() != nullptr) signature_.sizes = current_names()->take_used();
  return {.heading = heading(),
          .specifiers = function_.is_loop_body ? "FLASHLIGHT_INLINE " : "",
          .name = signature_.name,
          .parameters = parameters(),
          .body = std::move(body)};
}

namespace {

std::string braces(const Value& value, size_t dimension, int64_t& next) {
  if (dimension == value.type.rank())
    return literal(element(value.constant, next++), value.type.dtype);
  std::string text = "{";
  for (int64_t i = 0; i < value.type.sizes[dimension]; ++i)
    text += (i > 0 ? ", " : "") + braces(value, dimension + 1, next);
  return text + "}";
}

}  // namespace

Code RoutineWriter::constants() const {
  Code code;
  for (const ValueId value : function_.values.ids()) {
    const Value& one = function_.values[value];
    if (one.role != Role::constant || names_[value].empty()) continue;
    int64_t next = 0;
    code += assignment(
        "static const " + type_name(one.type.dtype) + " " + names_[value] + brackets(one.type),
        braces(one, 0, next));
  }
  return code;
}

Code RoutineWriter::heading() const {
  std::set<std::string> sources;
  for (const Step& one : function_.steps)
    if (const Origin& origin = origin_of(one); !origin.source.empty())
      sources.insert(origin.source);
  const Callers callers = callers_of(program_, number_);
  std::string text = callers.module;
  if (!text.empty() && callers.count > 1)
    text += " and " + std::to_string(callers.count - 1) + " like it";
  if (!sources.empty()) text += (text.empty() ? "" : ", ") + *sources.begin();
  return text.empty() ? Code() : comment(text);
}

std::string RoutineWriter::loop_name(const std::vector<std::string>& loops) {
  return text::loop_name([&](const std::string& name) {
    return !taken_.contains(name) && std::find(loops.begin(), loops.end(), name) == loops.end();
  });
}

// Declares arrays and numbers that `item` is the first to touch.
Code RoutineWriter::declarations(const Item& item, const std::vector<size_t>& path) {
  Code code;
  for (StepId step : steps_of(item))
    for (ValueId value : writes(function_.steps[step])) {
      const Value& one = function_.values[value];
      if (one.role != Role::temporary || declared_.contains(value) || declares(value)) continue;
      if (is_local(value) && schedule_.storage[value].home != path) continue;
      declared_.insert(value);
      const Storage& storage = schedule_.storage[value];
      const auto array = arrays_.find(value);
      const bool takes_turns = array != arrays_.end();
      if (takes_turns && scheduled_[number_].turns.at(value).array != value) continue;
      const std::string dims = (takes_turns ? "[2]" : "") + brackets(one.type, &storage.kept);
      const std::string& name = takes_turns ? array->second : names_[value];
      if (current_names() != nullptr && !is_local(value))
        code += taken_declaration(value, takes_turns);
      else if (form(value) == Form::flat)
        code += flat_declaration(value);
      else if (is_local(value))
        code += declaration(type_name(one.type.dtype), name + dims);
      else
        code += assignment("auto& " + name,
                           "fl::at<" + type_name(one.type.dtype) + dims + ">(arena, " +
                               std::to_string(scheduled_[number_].offsets[value]) + ")");
    }
  return code;
}

Code RoutineWriter::flat_declaration(ValueId value) const {
  const std::string type = type_name(function_.values[value].type.dtype), &name = names_[value];
  if (!is_local(value))
    return assignment(
        type + "* const " + name,
        "&fl::at<" + type + ">(arena, " + open_number(scheduled_[number_].offsets[value]) + ")");
  // A lambda cannot capture an array whose size is data.
  const int64_t elements = schedule_.storage[value].elements;
  Code code = declaration(type, name + "_elements[" + open_number(elements) + "]");
  code += assignment(type + "* const " + name, name + "_elements");
  return code;
}

Code RoutineWriter::items(const std::vector<Item>& list, std::vector<std::string>& loops,
                          std::vector<size_t>& path) {
  Code code;
  for (size_t i = 0; i < list.size(); ++i) {
    const auto nodes = static_cast<std::ptrdiff_t>(code.nodes.size());
    const auto end = [&, first = i] {
      if (!path.empty()) return;
      std::set<StepId> steps;
      for (size_t one = first; one <= i; ++one) add_steps(list[one], steps);
      pieces_.push_back(
          {{{code.nodes.begin() + nodes, code.nodes.end()}}, {steps.begin(), steps.end()}});
    };
    const Item& item = list[i];
    if (path.empty()) item_ = i;
    code += declarations(item, path);
    if (!item.is_loop()) {
      const std::vector<Run>& runs = scheduled_[number_].runs;
      const auto run = std::find_if(runs.begin(), runs.end(),
                                    [&](const Run& one) { return one.first == item.step; });
      if (run == runs.end()) {
        code += step(item.step, loops);
        end();
        continue;
      }
      i += run->count - 1;  // its calls are consecutive steps
      code += declarations(list[i], path);
      code += rolled(*run);
      end();
      continue;
    }
    const std::string name = loop_name(loops);
    loops.push_back(name);
    path.push_back(i);
    const std::set<std::string> outside = taken_;
    const Code body = items(item.body, loops, path);
    taken_ = outside;
    path.pop_back();
    loops.pop_back();
    const bool divided = function_.in_parts && path.empty();
    const std::string type = index_type(),
                      begin = type == "int" ? "static_cast<int>(part.begin)" : "part.begin";
    code += block(
        For{type, name, divided ? begin : "0", divided ? "part.end" : bare_number(item.extent)},
        body);
    end();
  }
  return code;
}

Code RoutineWriter::step(StepId number, const std::vector<std::string>& loops) {
  if (const auto* call = std::get_if<Invocation>(&function_.steps[number]))
    return invocation(number, *call);
  if (const auto* one = std::get_if<Control>(&function_.steps[number])) return control(*one, loops);
  if (const auto* one = std::get_if<RuntimeCall>(&function_.steps[number]))
    return runtime_call(*one);
  NestContext context;
  context.loops = loops;
  context.element = [this](ValueId value, const std::vector<std::string>& indices) {
    return element(value, indices);
  };
  context.type = [this](ValueId value) -> const Type& { return function_.values[value].type; };
  context.range = [this](ValueId value) { return range_of(function_.values[value].constant); };
  context.name = [this](ValueId value) { return names_[value]; };
  context.mention = [this](ValueId value) { mentioned_.insert(value); };
  context.declares = [this](ValueId value) { return declares(value); };
  context.taken = &taken_;
  const auto& nest = std::get<Nest>(function_.steps[number]);
  const std::set<std::string> outside = taken_;
  Code code = NestWriter(nest.statement, schedule_.order[number], context).write();
  const bool has_scope = schedule_.order[number].size() > schedule_.shared[number];
  if (has_scope) taken_ = outside;  // names that its loops declare are free again
  return code;
}

}  // namespace flashlight::text
