#include "flashlight/mosaic/emit.h"

#include <spdlog/fmt/fmt.h>

#include <algorithm>
#include <map>
#include <set>
#include <utility>

#include "composit/ir/scope.h"
#include "flashlight/mosaic/called_functions.h"
#include "flashlight/mosaic/describe.h"
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

// Without times.
TimedKernel timed_kernel(const Plan& plan, const Kernel& kernel, const KernelText& text) {
  TimedKernel timed = {text.name, ""};
  if (!kernel.steps.empty())
    timed.module = loops::origin_of(plan.routine.steps[kernel.steps.back()]).module;
  for (const ValueId value : text.values) timed.bytes += plan.routine.values[value].type.nbytes();
  if (kernel.form->product_operations != nullptr)
    timed.operations = kernel.form->product_operations(kernel);
  return timed;
}

class Emitter {
 public:
  Emitter(const Plan& plan, const std::string& name) : plan_(plan) {
    source_.name = text::namespace_name(name);
    source_.prepare_name = source_.name + "_prepare";
    source_.run_name = source_.name + "_run";
    for (const char* word :
         {"team", "weights", "prepared", "arena", "generator", "times", "prepare", "run", "Weights",
          "threads", "kThreads", "profile", "kKernelCount", "measured_peak", "kPreparedBy"})
      taken_.insert(word);
    for (const loops::Routine& function : plan.functions)
      taken_.insert(text::identifier(function.name));
    taken_.insert(source_.name);
    source_.headers = headers_of(plan);
    source_.arena_bytes = plan.arena_bytes;
    source_.draws = draws(plan);
  }

  Source run() {
    const loops::Routine& routine = plan_.routine;
    names_.resize(routine.values.size());
    for (size_t i = 0; i < routine.inputs.size(); ++i) {
      const ValueId value = routine.inputs[i];
      const bool weight = routine.values[value].role == Role::weight;
      if (!weight) source_.arguments.push_back(i);
      names_[value] = composit::unused_name(text::identifier(routine.values[value].name),
                                            weight ? members_ : taken_);
    }
    for (const ValueId value : routine.results)
      names_[value] = composit::unused_name(text::identifier(routine.values[value].name), taken_);
    const Code prepare = calls(plan_.prepare, false);
    const std::set<ValueId> read_before = std::exchange(read_, {});
    const Code body = calls(plan_.run, true);
    for (size_t i = 0; i < routine.inputs.size(); ++i) {
      const ValueId value = routine.inputs[i];
      if (read_.contains(value) || read_before.contains(value)) add_weight(i);
    }
    for (const text::Function& one : called_functions(plan_))
      source_.called += "\n" + text::str(definition(one));
    source_.run = function("run", run_parameters(), body);
    arrange("\n" + function("prepare", prepare_parameters(), prepare) + "\n" + source_.run +
            closing() + "\n" + text::str(entries()));
    source_.names = std::move(names_);
    return std::move(source_);
  }

 private:
  void add_weight(size_t input) {
    const ValueId value = plan_.routine.inputs[input];
    source_.weights.push_back(input);
    source_.constants.push_back(plan_.routine.values[value].constant);
    source_.members.push_back(names_[value]);
    source_.is_read_by_run.push_back(read_.contains(value));
  }

  // The text and its units around `main`.
  void arrange(const std::string& main) {
    const std::string structs = text::str(weights());
    source_.text = opening() + structs + source_.called + all_of(source_.kernels) + main;
    source_.tiles = tile_units(plan_);
    const auto groups = groups_of_kernels(source_);
    source_.units = {source_.text};
    if (groups.empty()) return;
    source_.units = {opening() + structs + "\n" + declarations_of(source_.kernels) + main};
    for (const std::vector<EmittedKernel>& group : groups)
      source_.units.push_back(opening() + all_of(group) + closing());
  }

  std::string opening() const {
    Code code = text::directive(fmt::format("#include \"{}\"", kRuntimeName));
    for (const std::string& header : source_.headers)
      code += text::directive(fmt::format("#include \"{}\"", header));
    code += text::blank();
    code += statement("namespace " + source_.name + " {");
    return text::str(code);
  }
  std::string closing() const { return "\n}  // namespace " + source_.name + "\n"; }

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
    source_.kernels.push_back({text::str(definition(function)), text::str(declaration(function))});
    return known->second;
  }

  // The argument that a call passes for a value: an array, or the address of its first element.
  std::string passed(ValueId number, bool by_pointer) {
    const loops::Value& one = value(number);
    const std::string element = text::type_name(one.type.dtype);
    if (one.role == Role::weight) {
      read_.insert(number);
      const std::string name = "weights." + names_[number];
      return by_pointer ? name
                        : fmt::format("fl::as<const {}>({})", text::array_type(one.type), name);
    }
    if (one.role == Role::argument || one.role == Role::result) {
      const std::string cast = one.role == Role::argument ? "const " : "";
      return by_pointer ? names_[number]
                        : fmt::format("fl::as<{}{}>({})", cast, text::array_type(one.type),
                                      names_[number]);
    }
    const char* memory = plan_.homes[number] == Home::prepared ? "prepared" : "arena";
    return fmt::format("{}fl::at<{}>({}, {})", by_pointer ? "&" : "",
                       by_pointer ? element : text::array_type(one.type), memory,
                       plan_.offsets[number]);
  }

  // True if the kernel after border `number`, which writes `value`, reads it as well.
  bool reads_before_end(const std::vector<Kernel>& kernels, size_t number, ValueId value) const {
    while (kernels[number].form == &kBorder) ++number;
    if (kernels[number].form != &kLoops) return false;
    for (const StepId step : kernels[number].steps) {
      if (loops::contains(loops::reads(plan_.routine.steps[step]), value)) return true;
    }
    return false;
  }

  // The weights that are read first behind kernel `number`.
  std::string read_next(const std::vector<KernelText>& texts, size_t number) {
    for (size_t i = number + 1; i < texts.size(); ++i) {
      const std::optional<Panels>& panels = texts[i].panels;
      if (!panels || plan_.homes[panels->value] != Home::prepared) continue;
      return fmt::format("fl::first_panel(team, {}, {}, {}, {})", panels->split,
                         passed(panels->value, true), panels->columns, panels->terms);
    }
    return "{}";
  }

  Code calls(const std::vector<Kernel>& kernels, bool timed) {
    Code code;
    if (timed) code += statement("fl::start_times(team, times);");
    std::vector<KernelText> texts;
    for (const Kernel& kernel : kernels) texts.push_back(kernel.form->write(plan_, kernel));
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
        if (reads_before_end(kernels, i, text.values[0])) code += statement("team.wait();");
        continue;
      }
      ++number;
      if (timed) source_.timed.push_back(timed_kernel(plan_, kernel, text));
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
    Code code =
        entry(source_.prepare_name, {weights, "void* prepared", "int threads"},
              text::call(source_.name + "::prepare", {"team", "bound", memory + "prepared)"}));
    code += text::blank();
    code += entry(source_.run_name,
                  {"[[maybe_unused]] const void* const* arguments", weights,
                   "[[maybe_unused]] void* const* results", "const void* prepared", "void* arena",
                   "[[maybe_unused]] void* generator", "int64_t* times", "int threads"},
                  text::call(source_.name + "::run", arguments));
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
  Source source_;
  std::set<std::string> taken_, members_ = {"prepared"};
  std::set<ValueId> read_;  // weights
  std::vector<std::string> names_;
  std::map<std::string, std::string> kernel_names_;
};

}  // namespace

Source emit(const Plan& plan, const std::string& name) { return Emitter(plan, name).run(); }

std::vector<std::vector<EmittedKernel>> groups_of_kernels(const Source& source) {
  // Functions that kernels call are in one unit with them.
  if (!source.called.empty()) return {};
  const size_t size = all_of(source.kernels).size(), count = std::min(kMostUnits, size / kUnitSize);
  std::vector<std::vector<EmittedKernel>> groups(count);
  size_t before = 0;
  for (const EmittedKernel& kernel : source.kernels) {
    if (count > 0) groups[std::min(count - 1, before * count / size)].push_back(kernel);
    before += kernel.definition.size() + 1;
  }
  std::erase_if(groups, [](const auto& group) { return group.empty(); });
  return groups;
}

std::string declarations_of(const std::vector<EmittedKernel>& kernels) {
  std::string text;
  for (const EmittedKernel& kernel : kernels) text += kernel.declaration;
  return text;
}

std::vector<toolchain::SourceFile> tile_units(const Plan& plan) {
  // All instantiations that are built on tiles are one more unit, not one each: the header takes as
  // long to compile as most of them.
  Units units;
  for (const auto* kernels : {&plan.prepare, &plan.run})
    for (const Kernel& kernel : *kernels)
      if (kernel.form->add_units != nullptr) kernel.form->add_units(plan, kernel, units);
  std::vector<toolchain::SourceFile> files;
  for (const auto& [name, statements] : units)
    files.push_back({name + ".cpp", fmt::format("{}#include \"{}\"\n\n{}", kTilesElsewhere,
                                                kRuntimeName, fmt::join(statements, ""))});
  return files;
}

}  // namespace flashlight::mosaic
