#include "flashlight/text/weights.h"

#include <algorithm>
#include <set>

#include "composit/ir/scope.h"
#include "flashlight/loops/names.h"
#include "flashlight/text/literal.h"

namespace flashlight::text {
namespace {

bool is_weight(const Routine& function, ValueId value) {
  return function.values[value].role == Role::weight;
}

// "encoder_layer" -> "EncoderLayer".
std::string struct_name(const std::string& function) {
  std::string name;
  bool capital = true;
  for (const char c : function) {
    if (c == '_')
      capital = true;
    else {
      name += capital ? static_cast<char>(std::toupper(static_cast<unsigned char>(c))) : c;
      capital = false;
    }
  }
  return name + "Weights";
}

void demote(Program& program) {
  for (FunctionId caller = program.functions.next(); caller-- > 0;)
    for (const Step& step : program.functions[caller].steps) {
      if (const auto* control = std::get_if<Control>(&step)) {
        for (FunctionId function : control->functions)
          for (ValueId value : program.functions[function].inputs)
            program.functions[function].values[value].role = Role::argument;
        continue;
      }
      const auto* call = std::get_if<Invocation>(&step);
      if (call == nullptr) continue;
      Routine& callee = program.functions[call->function];
      for (size_t i = 0; i < call->arguments.size(); ++i)
        if (!is_weight(program.functions[caller], call->arguments[i]) &&
            is_weight(callee, callee.inputs[i]))
          callee.values[callee.inputs[i]].role = Role::argument;
    }
}

// Weights that the nests of `function` read, or that it passes on as arguments.
std::set<ValueId> read_directly(const Program& program, const Routine& function) {
  std::set<ValueId> found;
  for (const Step& step : function.steps) {
    const auto* call = std::get_if<Invocation>(&step);
    const ValueIds read = reads(step);
    for (size_t i = 0; i < read.size(); ++i) {
      if (!is_weight(function, read[i])) continue;
      if (call != nullptr) {
        const Routine& callee = program.functions[call->function];
        if (is_weight(callee, callee.inputs[i])) continue;
      }
      found.insert(read[i]);
    }
  }
  return found;
}

void add_pointers(const Program& program, const std::vector<WeightStruct>& structs,
                  FunctionId function, const std::vector<size_t>& actual, const std::string& path,
                  std::vector<WeightPlace>& places) {
  const Routine& routine = program.functions[function];
  const auto input = [&](ValueId value) {
    const auto place = std::find(routine.inputs.begin(), routine.inputs.end(), value);
    return actual[static_cast<size_t>(place - routine.inputs.begin())];
  };
  for (const WeightMember& member : structs[function].members) {
    if (!member.is_struct()) {
      places.push_back({input(member.value), path + member.name});
      continue;
    }
    for (size_t i = 0; i < member.calls.size(); ++i) {
      const auto& call = std::get<Invocation>(routine.steps[member.calls[i]]);
      const std::string element = member.calls.size() == 1 ? "" : "[" + std::to_string(i) + "]";
      std::vector<size_t> passed;
      for (const ValueId argument : call.arguments)
        passed.push_back(is_weight(routine, argument) ? input(argument) : 0);
      add_pointers(program, structs, member.function, passed, path + member.name + element + ".",
                   places);
    }
  }
}

}  // namespace

std::vector<WeightStruct> plan_weights(Program& program) {
  demote(program);
  std::vector<WeightStruct> structs(program.functions.size());
  std::set<std::string> names = {"Weights"};
  for (const FunctionId i : program.functions.ids()) {
    const Routine& function = program.functions[i];
    WeightStruct& one = structs[i];
    std::set<std::string> taken, paths;
    const std::set<ValueId> direct = read_directly(program, function);
    for (ValueId value : direct) paths.insert(function.values[value].name);
    const auto short_name = short_names(paths, 2);  // module and parameter
    for (ValueId value : direct)
      one.members.push_back(
          {composit::unused_name(identifier(short_name.at(function.values[value].name)), taken),
           value});
    for (const StepId step : function.steps.ids()) {
      const auto* call = std::get_if<Invocation>(&function.steps[step]);
      if (call == nullptr || structs[call->function].members.empty()) continue;
      const auto same = std::find_if(one.members.begin(), one.members.end(), [&](const auto& m) {
        return m.is_struct() && m.function == call->function;
      });
      if (same != one.members.end())
        same->calls.push_back(step);
      else
        one.members.push_back(
            {composit::unused_name(identifier(program.functions[call->function].name), taken),
             {},
             {step},
             call->function});
    }
    const bool last = i + 1 == program.functions.size();
    one.name =
        last ? "Weights" : composit::unused_name(struct_name(identifier(function.name)), names);
  }
  return structs;
}

std::vector<WeightPlace> weight_places(const Program& program,
                                       const std::vector<WeightStruct>& structs) {
  std::vector<WeightPlace> places;
  std::vector<size_t> inputs;
  for (size_t i = 0; i < program.functions.back().inputs.size(); ++i) inputs.push_back(i);
  add_pointers(program, structs, FunctionId(program.functions.size() - 1), inputs, "", places);
  return places;
}

}  // namespace flashlight::text
