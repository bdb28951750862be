#include "flashlight/mosaic/emit.h"

#include <spdlog/fmt/fmt.h>

#include <algorithm>
#include <map>
#include <set>
#include <utility>

#include "composit/ir/scope.h"
#include "composit/ir/side_by_side.h"
#include "flashlight/mosaic/called_functions.h"
#include "flashlight/mosaic/describe.h"
#include "flashlight/mosaic/kernels/border.h"
#include "flashlight/mosaic/kernels/forms.h"
#include "flashlight/text/code.h"
#include "flashlight/text/literal.h"
#include "flashlight/text/printer.h"
#include "flashlight/text/runtime_call_text.h"

namespace flashlight::mosaic {
namespace {

// Characters of kernels that one unit is worth, for it reads the headers, and how many at most.
constexpr size_t kUnitSize = 16000, kMostUnits = 6;

std::string all_of(const std::vector<EmittedKernel>& kernels) {
  std::string text;
  for (const EmittedKernel& kernel : kernels) text += "\n" + kernel.definition;
  return text;
}

using loops::Role;
using text::Code;
using text::statement;

std::string includes_of(const std::vector<std::string>& headers) {
  Code code = text::directive(fmt::format("#include \"{}\"", kRuntimeName));
  for (const std::string& header : headers)
    code += text::directive(fmt::format("#include \"{}\"", header));
  return text::str(code);
}
std::string opening_of(const std::vector<std::string>& headers, const std::string& name) {
  return includes_of(headers) + "\nnamespace " + name + " {\n";
}
std::string closing_of(const std::string& name) { return "\n}  // namespace " + name + "\n"; }

// Texts in `count` groups of about the same size: for each, the number of its group.
template <class Size>
std::vector<size_t> grouped(size_t texts, size_t count, const Size& size_of) {
  size_t size = 0, before = 0;
  for (size_t i = 0; i < texts; ++i) size += size_of(i);
  std::vector<size_t> groups;
  for (size_t i = 0; i < texts; ++i) {
    groups.push_back(std::min(count - 1, before * count / size));
    before += size_of(i);
  }
  return groups;
}

class Emitter {
 public:
  Emitter(const Plan& plan, const std::string& name)
      : plan_(plan), name_(text::namespace_name(name)) {
    for (const char* word :
         {"team", "weights", "prepared", "arena", "generator", "times", "prepare", "run", "Weights",
          "threads", "kThreads", "profile", "kKernelCount", "measured_peak", "kPreparedBy"})
      taken_.insert(word);
    for (const loops::Routine& function : plan.functions)
      taken_.insert(text::identifier(function.name));
    taken_.insert(name_);
  }

  Source run() {
    const loops::Routine& routine = plan_.routine;
    names_.resize(routine.values.size());
    for (size_t i = 0; i < routine.inputs.size(); ++i) {
      const ValueId value = routine.inputs[i];
      const bool weight = routine.values[value].role == Role::weight;
      names_[value] = composit::unused_name(text::identifier(routine.values[value].name),
                                            weight ? members_ : taken_);
    }
    for (const ValueId value : routine.results)
      names_[value] = composit::unused_name(text::identifier(routine.values[value].name), taken_);
    const Code prepare = calls(plan_.prepare, false);
    const std::set<size_t> read_before = std::exchange(read_, {});
    const Code body = calls(plan_.run, true);
    source_ = source_without_text(plan_, name_, read_before, read_);
    for (const size_t input : source_.weights)
      source_.members.push_back(names_[routine.inputs[input]]);
    source_.prepare_name = name_ + "_prepare";
    source_.run_name = name_ + "_run";
    source_.tiles = tiles();
    source_.kernels = std::move(kernels_);
    source_.timed = std::move(timed_);
    for (const text::Function& one : called_functions(plan_))
      source_.called += "\n" + text::str(definition(one));
    source_.run = function("run", run_parameters(), body);
    arrange(function("prepare", prepare_parameters(), prepare));
    source_.names = std::move(names_);
    return std::move(source_);
  }

 private:
  std::vector<toolchain::SourceFile> tiles() const {
    Units units;
    for (const auto* kernels : {&plan_.prepare, &plan_.run})
      for (const Kernel& kernel : *kernels)
        if (kernel.form->add_units != nullptr) kernel.form->add_units(plan_, kernel, units);
    return tile_files(units);
  }

  // Makes the text and its units of the parts.
  void arrange(const std::string& prepare) {
    const std::string opening = opening_of(source_.headers, source_.name),
                      closing = closing_of(source_.name), structs = text::str(weights()),
                      main = "\n" + prepare + "\n" + source_.run + closing + "\n" +
                             text::str(entries());
    source_.text = opening + structs + source_.called + all_of(source_.kernels) + main;
    source_.units = {source_.text};
    const auto groups = groups_of_kernels(source_);
    if (groups.empty()) return;
    source_.units = {opening + structs + "\n" + declarations_of(source_.kernels) + main};
    for (const std::vector<EmittedKernel>& group : groups)
      source_.units.push_back(opening + all_of(group) + closing);
  }

  const loops::Value& value(ValueId number) const { return plan_.routine.values[number]; }

  Code weights() const {
    Code members;
    for (const size_t i : source_.weights) {
      const ValueId number = plan_.routine.inputs[i];
      members += statement("const " + text::type_name(value(number).type.dtype) + "* " +
                           names_[number] + ";");
    }
    return members.empty() ? statement("struct Weights {};")
                           : text::braced("struct Weights", members, "};");
  }

  // Equal kernels are one, whose comment is that of the first.
  std::string kernel_name(const Kernel& kernel, const KernelText& text) {
    const auto [known, is_new] = kernel_names_.try_emplace(text_without_name(*text.function));
    if (!is_new) return known->second;
    known->second = composit::unused_name(text.name, taken_);
    text::Function function = *text.function;
    function.name = known->second;
    function.heading = comment_of(plan_, kernel);
    kernels_.push_back({text::str(definition(function)), text::str(declaration(function))});
    return known->second;
  }

  // The argument that a call passes for a value: an array, or the address of its first element.
  std::string passed(ValueId number, bool by_pointer) {
    const loops::Value& one = value(number);
    const std::string element = text::type_name(one.type.dtype), array = text::array_type(one.type);
    if (one.role == Role::weight) {
      const ValueIds& inputs = plan_.routine.inputs;
      read_.insert(
          static_cast<size_t>(std::find(inputs.begin(), inputs.end(), number) - inputs.begin()));
      const std::string name = "weights." + names_[number];
      return by_pointer ? name : fmt::format("fl::as<const {}>({})", array, name);
    }
    if (one.role == Role::argument || one.role == Role::result) {
      const std::string cast = one.role == Role::argument ? "const " : "";
      return by_pointer ? names_[number]
                        : fmt::format("fl::as<{}{}>({})", cast, array, names_[number]);
    }
    const char* memory = plan_.homes[number] == Home::prepared ? "prepared" : "arena";
    return fmt::format("{}fl::at<{}>({}, {})", by_pointer ? "&" : "", by_pointer ? element : array,
                       memory, plan_.offsets[number]);
  }
  // The weights that are read first behind kernel `number`.
  std::string read_next(const std::vector<KernelText>& texts, size_t number) {
    const std::optional<Panels> panels = next_panels(plan_, texts, number);
    if (!panels) return "{}";
    return fmt::format("fl::first_panel(team, {}, {}, {}, {})",
                       panels->by_columns ? "fl::Split::columns" : "fl::Split::rows",
                       passed(panels->value, true), panels->columns, panels->terms);
  }

  Code calls(const std::vector<Kernel>& kernels, bool timed) {
    Code code;
    if (timed) code += statement("fl::start_times(team, times);");
    std::vector<KernelText> texts;
    texts.resize(kernels.size());
    composit::side_by_side(kernels.size(),
                           [&](size_t i) { texts[i] = kernels[i].form->write(plan_, kernels[i]); });
    std::string module;
    int number = 0;
    for (size_t i = 0; i < kernels.size(); ++i) {
      const Kernel& kernel = kernels[i];
      if (!kernel.steps.empty()) {
        const std::string& now = loops::origin_of(plan_.routine.steps[kernel.steps[0]]).module;
        if (now != module && !now.empty()) code += text::comment(now);
        module = now;
      }
      const KernelText& text = texts[i];
      const std::string name = text.function ? kernel_name(kernel, text) : text.name;
      std::vector<std::string> arguments;
      if (!text.first.empty()) arguments.push_back(text.first);
      for (const ValueId one : text.values) arguments.push_back(passed(one, text.by_pointer));
      arguments.insert(arguments.end(), text.last.begin(), text.last.end());
      if (text.takes_next) arguments.push_back(read_next(texts, i));
      const bool alone = text.first.empty();
      const Code one = text::call(name, arguments);
      code += alone ? text::block(text::If{"team.thread() == 0"}, one) : one;
      if (!text.function) {
        if (reads_before_end(plan_, kernels, i)) code += statement("team.wait();");
        continue;
      }
      ++number;
      if (timed) timed_.push_back(timed_kernel(plan_, kernel, text));
      code += statement(timed ? fmt::format("fl::end_kernel(team, times, {});", number)
                              : "team.wait();");
    }
    return code;
  }

  std::vector<std::string> prepare_parameters() const {
    return {"const fl::Team& team", "const Weights& weights", "std::byte* prepared"};
  }
  std::vector<std::string> run_parameters() const {
    std::vector<std::string> list = {"const fl::Team& team", "const Weights& weights",
                                     "const std::byte* prepared", "std::byte* arena",
                                     "int64_t* times"};
    if (source_.draws) list.push_back("fl::Generator* generator");
    for (const size_t i : source_.arguments) {
      const ValueId number = plan_.routine.inputs[i];
      list.push_back("const " + text::type_name(value(number).type.dtype) + "* " + names_[number]);
    }
    for (const ValueId number : plan_.routine.results)
      list.push_back(text::type_name(value(number).type.dtype) + "* " + names_[number]);
    return list;
  }
  static std::string function(const std::string& name, std::vector<std::string> parameters,
                              const Code& body) {
    for (std::string& one : parameters) one = "[[maybe_unused]] " + one;
    const text::Function written = {
        .name = name, .parameters = std::move(parameters), .body = body};
    return text::str(definition(written));
  }

  // The functions that a loader calls: arguments, weights and results are plain pointers.
  Code entries() const {
    const std::string memory = "static_cast<std::byte*>(";
    std::vector<std::string> arguments = {
        "team", "bound", "static_cast<const std::byte*>(prepared)", memory + "arena)", "times"};
    if (source_.draws) arguments.push_back("static_cast<fl::Generator*>(generator)");
    for (size_t i = 0; i < source_.arguments.size(); ++i) {
      const ValueId number = plan_.routine.inputs[source_.arguments[i]];
      arguments.push_back(fmt::format("static_cast<const {}*>(arguments[{}])",
                                      text::type_name(value(number).type.dtype), i));
    }
    for (size_t i = 0; i < plan_.routine.results.size(); ++i)
      arguments.push_back(fmt::format("static_cast<{}*>(results[{}])",
                                      text::type_name(value(plan_.routine.results[i]).type.dtype),
                                      i));
    const std::string weights = "[[maybe_unused]] const void* const* weights";
    std::vector<std::string> of_prepare = {weights, "void* prepared", "int threads"},
                             of_run = {"[[maybe_unused]] const void* const* arguments",
                                       weights,
                                       "[[maybe_unused]] void* const* results",
                                       "const void* prepared",
                                       "void* arena",
                                       "[[maybe_unused]] void* generator",
                                       "int64_t* times",
                                       "int threads"},
                             passed = {"team", "bound", memory + "prepared)"};
    Code code =
        entry(source_.prepare_name, of_prepare, text::call(source_.name + "::prepare", passed));
    code += text::blank();
    code += entry(source_.run_name, of_run, text::call(source_.name + "::run", arguments));
    return code;
  }
  // `run` by a team of threads, with the weights bound.
  Code entry(const std::string& name, const std::vector<std::string>& parameters,
             const Code& run) const {
    const std::string type = source_.name + "::Weights";
    Code body = text::declaration(type, source_.weights.empty() ? "bound{}" : "bound");
    if (!source_.weights.empty()) body += statement("std::memcpy(&bound, weights, sizeof bound);");
    body +=
        text::reported(text::braced("fl::run_team(threads, [&](const fl::Team& team)", run, "});"));
    return text::code(text::Definition{"extern \"C\" const char* " + name, parameters, body});
  }

  const Plan& plan_;
  const std::string name_;  // of the program's namespace
  Source source_;
  std::vector<EmittedKernel> kernels_;
  Profile timed_;
  std::set<std::string> taken_, members_ = {"prepared"};
  std::set<size_t> read_;  // weights, by input
  std::vector<std::string> names_;
  std::map<std::string, std::string> kernel_names_;
};

}  // namespace

Source emit(const Plan& plan, const std::string& name) { return Emitter(plan, name).run(); }

Source source_without_text(const Plan& plan, const std::string& name,
                           const std::set<size_t>& read_before, const std::set<size_t>& read) {
  Source source;
  source.name = text::namespace_name(name);
  source.headers = headers_of(plan);
  source.arena_bytes = plan.arena_bytes;
  source.draws = draws(plan);
  const loops::Routine& routine = plan.routine;
  for (size_t i = 0; i < routine.inputs.size(); ++i) {
    const loops::Value& value = routine.values[routine.inputs[i]];
    if (value.role != Role::weight) source.arguments.push_back(i);
    if (!read.contains(i) && !read_before.contains(i)) continue;
    source.weights.push_back(i);
    source.constants.push_back(value.constant);
    source.is_read_by_run.push_back(read.contains(i));
  }
  return source;
}

TimedKernel timed_kernel(const Plan& plan, const Kernel& kernel, const KernelText& text) {
  TimedKernel timed = {text.name, ""};
  if (!kernel.steps.empty())
    timed.module = loops::origin_of(plan.routine.steps[kernel.steps.back()]).module;
  for (const ValueId value : text.values) timed.bytes += plan.routine.values[value].type.nbytes();
  if (kernel.form->product_operations != nullptr)
    timed.operations = kernel.form->product_operations(kernel);
  return timed;
}

bool reads_before_end(const Plan& plan, const std::vector<Kernel>& kernels, size_t number) {
  const ValueId cleared = data_of<Border>(kernels[number]).value;
  while (kernels[number].form == &kBorder) ++number;
  if (kernels[number].form != &kLoops) return false;
  for (const StepId step : kernels[number].steps)
    if (loops::contains(loops::reads(plan.routine.steps[step]), cleared)) return true;
  return false;
}

std::optional<Panels> next_panels(const Plan& plan, const std::vector<KernelText>& texts,
                                  size_t number) {
  for (size_t i = number + 1; i < texts.size(); ++i)
    if (texts[i].panels && plan.homes[texts[i].panels->value] == Home::prepared)
      return texts[i].panels;
  return std::nullopt;
}

std::vector<std::vector<EmittedKernel>> groups_of_kernels(const Source& source) {
  // Functions that kernels call are in one unit with them.
  if (!source.called.empty()) return {};
  const std::vector<EmittedKernel>& kernels = source.kernels;
  const size_t count = std::min(kMostUnits, all_of(kernels).size() / kUnitSize);
  if (count == 0) return {};
  std::vector<std::vector<EmittedKernel>> groups(count);
  const std::vector<size_t> numbers =
      grouped(kernels.size(), count, [&](size_t i) { return kernels[i].definition.size() + 1; });
  for (size_t i = 0; i < kernels.size(); ++i) groups[numbers[i]].push_back(kernels[i]);
  std::erase_if(groups, [](const auto& group) { return group.empty(); });
  return groups;
}

std::string declarations_of(const std::vector<EmittedKernel>& kernels) {
  std::string text;
  for (const EmittedKernel& kernel : kernels) text += kernel.declaration;
  return text;
}

// All instantiations that are built on tiles are one more unit, not one each: the header takes as
// long to compile as most of them.
std::vector<toolchain::SourceFile> tile_files(const Units& units) {
  std::vector<toolchain::SourceFile> files;
  for (const auto& [name, statements] : units)
    files.push_back({name + ".cpp", fmt::format("{}#include \"{}\"\n\n{}", kTilesElsewhere,
                                                kRuntimeName, fmt::join(statements, ""))});
  return files;
}

std::vector<std::string> units_of(const std::vector<std::string>& definitions,
                                  const std::vector<std::string>& headers,
                                  const std::string& space) {
  size_t size = 0;
  for (const std::string& one : definitions) size += one.size();
  const size_t count = std::clamp<size_t>(size / kUnitSize, 1, kMostUnits);
  std::vector<std::string> units(count,
                                 space.empty() ? includes_of(headers) : opening_of(headers, space));
  const std::vector<size_t> numbers =
      grouped(definitions.size(), count, [&](size_t i) { return definitions[i].size(); });
  for (size_t i = 0; i < definitions.size(); ++i) units[numbers[i]] += definitions[i];
  for (std::string& unit : units) unit += space.empty() ? "" : closing_of(space);
  return units;
}

}  // namespace flashlight::mosaic
