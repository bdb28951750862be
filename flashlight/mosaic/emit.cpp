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
#include "flashlight/mosaic/side_by_side.h"
#include "flashlight/text/code.h"
#include "flashlight/text/literal.h"
#include "flashlight/text/open_numbers.h"
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

// The first line of a kernel whose numbers are open: a SizedSource declares them there.
const std::string kDeclarations(1, kDeclarationsMark);

std::string opening_of(const Source& source) {
  Code code = text::directive(fmt::format("#include \"{}\"", kRuntimeName));
  for (const std::string& header : source.headers)
    code += text::directive(fmt::format("#include \"{}\"", header));
  code += text::blank();
  code += statement("namespace " + source.name + " {");
  return text::str(code);
}
std::string closing_of(const Source& source) { return "\n}  // namespace " + source.name + "\n"; }

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

  OpenSource run() {
    source_.tiles = tile_units(plan_);
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
    source_.prepare_kernels = source_.kernels.size();
    const std::set<ValueId> read_before = std::exchange(read_, {});
    const Code body = calls(plan_.run, true);
    for (size_t i = 0; i < routine.inputs.size(); ++i) {
      const ValueId value = routine.inputs[i];
      if (read_.contains(value) || read_before.contains(value)) add_weight(i);
    }
    source_.called = functions();
    source_.run = function("run", run_parameters(), body);
    source_.prepare = function("prepare", prepare_parameters(), prepare);
    source_.structs = text::str(weights());
    source_.entries = text::str(entries());
    source_.names = std::move(names_);
    return std::move(source_);
  }

 private:
  // Kernels that call functions have their sizes as types, and so have these.
  std::string functions() const {
    const text::OpenNumbers closed(false);
    std::string all;
    for (const text::Function& one : called_functions(plan_))
      all += "\n" + text::str(definition(one));
    return all;
  }

  void add_weight(size_t input) {
    const ValueId value = plan_.routine.inputs[input];
    source_.weights.push_back(input);
    source_.constants.push_back(plan_.routine.values[value].constant);
    source_.members.push_back(names_[value]);
    source_.is_read_by_run.push_back(read_.contains(value));
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
    if (is_open_) return open_kernel(text);
    const auto [known, is_new] = kernel_names_.try_emplace(text_without_name(*text.function));
    if (!is_new) return known->second;
    known->second = composit::unused_name(text.name, taken_);
    text::Function function = *text.function;
    function.name = known->second;
    function.heading = comment_of(plan_, kernel);
    source_.kernels.push_back({text::str(definition(function)), text::str(declaration(function))});
    return known->second;
  }

  // At other sizes other kernels are equal.
  std::string open_kernel(const KernelText& text) {
    text::Function function = *text.function;
    function.name = fmt::format("{}_{}", source_.name, source_.kernels.size());
    function.parameters.insert(function.parameters.begin(), "[[maybe_unused]] const int64_t* N");
    Code body = statement(kDeclarations);
    body += function.body;
    function.body = std::move(body);
    source_.kernels.push_back({text::str(definition(function)), text::str(declaration(function))});
    source_.kernel_names.push_back(function.name);
    return function.name;
  }

  // The argument that a call passes for a value: an array, or the address of its first element.
  std::string passed(ValueId number, bool by_pointer) {
    const loops::Value& one = value(number);
    const std::string element = text::type_name(one.type.dtype), array = closed_array(one.type);
    if (one.role == Role::weight) {
      read_.insert(number);
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
                       memory, text::open_number(plan_.offsets[number]));
  }
  // Sizes of an array are a part of its type.
  static std::string closed_array(const composit::Type& type) {
    const text::OpenNumbers closed(false);
    return text::array_type(type);
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
                         passed(panels->value, true), text::open_number(panels->columns),
                         text::open_number(panels->terms));
    }
    return "{}";
  }

  Code calls(const std::vector<Kernel>& kernels, bool timed) {
    Code code;
    if (timed) code += statement("fl::start_times(team, times);");
    std::vector<KernelText> texts;
    texts.resize(kernels.size());
    side_by_side(kernels.size(), [&](size_t i) {
      const text::OpenNumbers open(is_open_);
      texts[i] = kernels[i].form->write(plan_, kernels[i]);
    });
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
      if (is_open_ && text.function) arguments.push_back("N + at_" + name);
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
    std::vector<std::string> list = {"const fl::Team& team", "const Weights& weights",
                                     "std::byte* prepared"};
    if (is_open_) list.push_back("const int64_t* N");
    return list;
  }
  std::vector<std::string> run_parameters() const {
    std::vector<std::string> list = {"const fl::Team& team", "const Weights& weights",
                                     "const std::byte* prepared", "std::byte* arena",
                                     "int64_t* times"};
    if (is_open_) list.push_back("const int64_t* N");
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
    if (is_open_) arguments.push_back("N");
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
    if (is_open_) {
      for (auto* list : {&of_prepare, &of_run}) list->push_back("const int64_t* N");
      passed.push_back("N");
    }
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
  const bool is_open_ = text::has_open_numbers();
  OpenSource source_;
  std::set<std::string> taken_, members_ = {"prepared"};
  std::set<ValueId> read_;  // weights
  std::vector<std::string> names_;
  std::map<std::string, std::string> kernel_names_;
};

}  // namespace

Source emit(const Plan& plan, const std::string& name) {
  OpenSource source = Emitter(plan, name).run();
  arrange(source);
  return source;
}

OpenSource emit_open(const Plan& plan, const std::string& name) {
  const text::OpenNumbers open;
  return Emitter(plan, name).run();
}

void arrange(OpenSource& source) {
  const std::string opening = opening_of(source), closing = closing_of(source),
                    main =
                        "\n" + source.prepare + "\n" + source.run + closing + "\n" + source.entries;
  source.text = opening + source.structs + source.called + all_of(source.kernels) + main;
  source.units = {source.text};
  const auto groups = groups_of_kernels(source);
  if (groups.empty()) return;
  source.units = {opening + source.structs + "\n" + declarations_of(source.kernels) + main};
  for (const std::vector<EmittedKernel>& group : groups)
    source.units.push_back(opening + all_of(group) + closing);
}

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
