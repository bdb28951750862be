#include "flashlight/mosaic/open_steps.h"

#include <spdlog/fmt/fmt.h>

#include <algorithm>
#include <map>
#include <optional>
#include <set>
#include <utility>

#include "composit/ir/side_by_side.h"
#include "flashlight/mosaic/called_functions.h"
#include "flashlight/mosaic/kernels/forms.h"
#include "flashlight/text/literal.h"
#include "flashlight/text/printer.h"

namespace flashlight::mosaic {
namespace {

using loops::Role;
using text::Code;
using text::statement;

constexpr size_t kIndent = 2;

// Functions of the model, as their kernels call them. Their sizes are types.
std::string functions_of(const Plan& plan) {
  const text::OpenNumbers closed(false);
  std::string all;
  for (text::Function& one : called_functions(plan)) {
    one.specifiers = "[[maybe_unused]] static " + one.specifiers;
    all += text::str(definition(one)) + "\n";
  }
  return all;
}

bool calls_functions(const Plan& plan, const Kernel& kernel) {
  for (const StepId step : kernel.steps)
    if (!loops::callees(plan.routine.steps[step]).empty()) return true;
  return false;
}

class StepsWriter {
 public:
  explicit StepsWriter(const Plan& plan) : plan_(plan), functions_(functions_of(plan)) {
    for (const ValueId value : plan.routine.values.ids())
      if (plan.homes[value] == Home::prepared) {
        prepared_.emplace(value, program_.prepared.size());
        program_.prepared.push_back({plan.routine.values[value].type.nbytes()});
      }
  }

  OpenProgram run() {
    program_.prepare = steps(plan_.prepare, "prepare");
    const std::set<size_t> read_before = std::exchange(read_, {});
    program_.run = steps(plan_.run, "run");
    program_.source = source_without_text(plan_, plan_.name, read_before, read_);
    program_.source.timed = std::move(timed_);
    for (auto* list : {&program_.prepare, &program_.run})
      for (OpenStep& step : *list)
        for (Place& place : step.places) number(place);
    for (const OpenStep& step : program_.run)
      for (const Place& place : step.places)
        if (place.in == Place::In::prepared) program_.prepared[place.index].stays = true;
    add_keys();
    return std::move(program_);
  }

 private:
  std::vector<OpenStep> steps(const std::vector<Kernel>& kernels, const char* part) {
    std::vector<KernelText> texts(kernels.size());
    composit::side_by_side(kernels.size(), [&](size_t i) {
      const text::OpenNumbers open;
      texts[i] = kernels[i].form->write(plan_, kernels[i]);
    });
    std::vector<OpenStep> all;
    for (size_t i = 0; i < kernels.size(); ++i) {
      all.push_back(step(kernels[i], texts[i], next_panels(plan_, texts, i)));
      if (!texts[i].function) all.back().is_waited_for = reads_before_end(plan_, kernels, i);
      if (texts[i].function && &kernels == &plan_.run)
        timed_.push_back(timed_kernel(plan_, kernels[i], texts[i]));
      const std::string site = fmt::format("{} {}", part, all.back().site);
      all.back().site = fmt::format("{} #{}", site, sites_[site]++);
    }
    return all;
  }

  OpenStep step(const Kernel& kernel, const KernelText& text, const std::optional<Panels>& next) {
    OpenStep step = {.name = text.name, .is_kernel = text.function.has_value()};
    if (text.function) step.kernel = text::open_text(kernel_text(kernel, text));
    step.entry = text::open_text(entry_text(text, next));
    for (const ValueId value : text.values) step.places.push_back(place_of(value));
    if (text.takes_next) step.places.push_back(next ? place_of(next->value) : Place());
    composit::Hasher hasher;
    hasher.add(step.kernel.text);
    hasher.add(step.entry.text);
    step.key = hasher.finish();
    step.site = kernel.form->name;
    if (!kernel.steps.empty())
      step.site += " in " + loops::origin_of(plan_.routine.steps[kernel.steps.back()]).module;
    for (const ValueId value : text.values) step.site += " " + plan_.routine.values[value].name;
    for (const ValueId value : kernel.form->written(plan_, kernel))
      if (const auto found = prepared_.find(value); found != prepared_.end())
        step.prepares.push_back(found->second);
    if (kernel.form->add_units != nullptr) kernel.form->add_units(plan_, kernel, step.tiles);
    return step;
  }

  // ---- texts ----

  std::string kernel_text(const Kernel& kernel, const KernelText& text) const {
    text::Function function = *text.function;
    function.name = kKernelName;
    function.specifiers = "static " + function.specifiers;
    function.parameters.insert(function.parameters.begin(), "[[maybe_unused]] const int64_t* N");
    Code body = statement(std::string(1, kDeclarationsMark));
    body += function.body;
    function.body = std::move(body);
    return (calls_functions(plan_, kernel) ? functions_ : "") + text::str(definition(function));
  }

  std::string entry_text(const KernelText& text, const std::optional<Panels>& next) const {
    const text::OpenNumbers open;
    std::vector<std::string> arguments;
    if (text.function) arguments.push_back("N");
    if (!text.first.empty()) arguments.push_back(text.first);
    for (size_t i = 0; i < text.values.size(); ++i)
      arguments.push_back(passed(plan_.routine.values[text.values[i]].type, i, text.by_pointer));
    arguments.insert(arguments.end(), text.last.begin(), text.last.end());
    if (text.takes_next) arguments.push_back(first_panel(text.values.size(), next));
    const Code call = text::call(text.function ? kKernelName : text.name, arguments);
    return text::str(text.first.empty() ? text::block(text::If{"team.thread() == 0"}, call) : call,
                     kIndent);
  }
  static std::string passed(const composit::Type& type, size_t place, bool by_pointer) {
    const std::string first =
        fmt::format("static_cast<{}*>(at[{}])", text::type_name(type.dtype), place);
    if (by_pointer) return first;
    const text::OpenNumbers closed(false);  // sizes of an array are a part of its type
    return fmt::format("fl::as<{}>({})", text::array_type(type), first);
  }

  // The same text whether there is such a kernel or not: the address of none is no address.
  std::string first_panel(size_t place, const std::optional<Panels>& next) const {
    const composit::DType dtype =
        next ? plan_.routine.values[next->value].type.dtype : composit::DType::float32;
    return fmt::format("fl::first_panel_or_none(team, {}, static_cast<const {}*>(at[{}]), {}, {})",
                       text::open_number(next && next->by_columns ? 1 : 0), text::type_name(dtype),
                       place, text::open_number(next ? next->columns : 0),
                       text::open_number(next ? next->terms : 0));
  }

  // ---- memory ----

  // For a weight or an argument, `index` is the routine's input, until all that are read are known.
  Place place_of(ValueId value) {
    const loops::Routine& routine = plan_.routine;
    const auto index_in = [&](const ValueIds& list) {
      return static_cast<size_t>(std::find(list.begin(), list.end(), value) - list.begin());
    };
    switch (routine.values[value].role) {
      case Role::weight: {
        const size_t input = index_in(routine.inputs);
        read_.insert(input);
        return {Place::In::weight, input};
      }
      case Role::argument:
        return {Place::In::argument, index_in(routine.inputs)};
      case Role::result:
        return {Place::In::result, index_in(routine.results)};
      default:
        break;
    }
    if (const auto found = prepared_.find(value); found != prepared_.end())
      return {Place::In::prepared, found->second};
    return {.in = Place::In::arena, .offset = plan_.offsets[value]};
  }
  void number(Place& place) const {
    const auto index_in = [&](const std::vector<size_t>& list) {
      return static_cast<size_t>(std::find(list.begin(), list.end(), place.index) - list.begin());
    };
    if (place.in == Place::In::weight) place.index = index_in(program_.source.weights);
    if (place.in == Place::In::argument) place.index = index_in(program_.source.arguments);
  }

  // What is prepared is what the steps that write it make of what they read.
  void add_keys() {
    const Source& source = program_.source;
    for (const OpenStep& step : program_.prepare) {
      composit::Hasher of_step;
      of_step.add(step.key);
      for (const auto* text : {&step.kernel, &step.entry})
        for (const int64_t number : text->numbers) of_step.add(static_cast<uint64_t>(number));
      for (const Place& place : step.places) {
        of_step.add(static_cast<uint64_t>(place.in));
        if (place.in == Place::In::prepared) of_step.add(program_.prepared[place.index].key);
        if (place.in != Place::In::weight) continue;
        const composit::Array& constant = source.constants[place.index];
        if (constant.defined())
          of_step.add(constant.content_hash());
        else
          of_step.add(static_cast<uint64_t>(source.weights[place.index]));
      }
      const composit::Hash hash = of_step.finish();
      for (size_t i = 0; i < step.prepares.size(); ++i) {
        PreparedValue& value = program_.prepared[step.prepares[i]];
        composit::Hasher hasher;
        hasher.add(value.key);
        hasher.add(hash);
        hasher.add(static_cast<uint64_t>(i));
        hasher.add(static_cast<uint64_t>(value.bytes));
        value.key = hasher.finish();
      }
    }
  }

  const Plan& plan_;
  const std::string functions_;
  OpenProgram program_;
  Profile timed_;
  std::map<ValueId, size_t> prepared_;  // among OpenProgram::prepared
  std::set<size_t> read_;               // inputs that are weights
  std::map<std::string, size_t> sites_;
};

}  // namespace

OpenProgram open_steps(const Plan& plan) { return StepsWriter(plan).run(); }

}  // namespace flashlight::mosaic
