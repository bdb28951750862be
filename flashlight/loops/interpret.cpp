#include "flashlight/loops/interpret.h"

#include <cstring>

#include "composit/eval/statement.h"
#include "composit/ir/error.h"
#include "flashlight/loops/constants.h"
#include "flashlight/loops/sizes.h"

namespace flashlight::loops {
namespace {

// Points to the first element of a value.
using Memory = std::shared_ptr<std::byte>;
using composit::eval::zeros;

Memory from(const Memory& memory, int64_t elements, const Type& type) {
  const auto item = static_cast<int64_t>(composit::item_size(type.dtype));
  return {memory, memory.get() + elements * item};
}

class Interpreter {
 public:
  explicit Interpreter(const Program& program) : program_(program) {}

  // Runs a function; `inputs` and `results` are the memory of its own, in order.
  void call(FunctionId number, const std::vector<Memory>& inputs,
            const std::vector<Memory>& results) const {
    Frame frame = {program_.functions[number], {}};
    const Routine& function = frame.function;
    for (const Value& value : function.values)
      frame.memory.push_back(value.role == Role::constant ? constant(value) : zeros(value.type));
    for (size_t i = 0; i < inputs.size(); ++i) frame.memory[function.inputs[i]] = inputs[i];
    for (size_t i = 0; i < results.size(); ++i) frame.memory[function.results[i]] = results[i];
    for (const Step& step : function.steps)
      std::visit([&](const auto& one) { run(frame, one); }, step);
  }

 private:
  struct Frame {
    const Routine& function;
    Table<ValueId, Memory> memory;

    std::vector<Memory> of(const ValueIds& values) const {
      std::vector<Memory> list;
      for (const ValueId value : values) list.push_back(memory[value]);
      return list;
    }
    void clear(ValueId value) const {
      std::memset(memory[value].get(), 0,
                  static_cast<size_t>(function.values[value].type.nbytes()));
    }
    void copy(ValueId from, ValueId to) const {
      std::memcpy(memory[to].get(), memory[from].get(),
                  static_cast<size_t>(function.values[to].type.nbytes()));
    }
    int64_t number(ValueId value) const {
      const Array array(function.values[value].type, memory[value], memory[value].get());
      return std::get<int64_t>(element(array, 0));
    }
  };

  static Memory constant(const Value& value) {
    const Memory memory = zeros(value.type);
    const Array elements = value.constant.contiguous();
    std::memcpy(memory.get(), elements.data(), static_cast<size_t>(value.type.nbytes()));
    return memory;
  }

  static void run(const Frame& frame, const Nest& nest) {
    std::vector<Array> operands;
    std::vector<composit::eval::Result> results;
    for (const ValueId value : frame.function.values.ids()) {
      const Type& type = frame.function.values[value].type;
      operands.emplace_back(type, frame.memory[value], frame.memory[value].get());
      results.push_back({type, type.dtype, frame.memory[value]});
    }
    const Statement statement = composit::eval::with_wide_accumulators(nest.statement);
    composit::eval::StatementRun(statement, operands, results).run();
  }

  void run(const Frame& frame, const Invocation& step) const {
    call(step.function, frame.of(step.arguments), frame.of(step.results));
  }

  // Checks guards on whole numbers; throws for all other calls.
  static void run(const Frame& frame, const RuntimeCall& call) {
    if (call.function == composit::Symbol("guards::expect")) {
      const Type& type = frame.function.values[call.arguments[0]].type;
      const Memory& memory = frame.memory[call.arguments[0]];
      const auto given = element(Array(type, memory, memory.get()), 0);
      const auto& expected = call.options[0].value.as<composit::Scalar>().value;
      const bool whole =
          std::holds_alternative<bool>(given) || std::holds_alternative<int64_t>(given);
      if (whole && given == expected) return;
      if (whole)
        throw composit::UserError("[interpret] guard: " + place_of(call.origin) +
                                  " gave another number than when it was captured");
    }
    throw composit::UserError("[interpret] expected loops, received a call of " +
                              call.function.str() + " (" + place_of(call.origin) + ")");
  }

  void run(const Frame& frame, const Control& control) const {
    switch (control.kind) {
      case Control::Kind::branch: {
        const bool taken = *frame.memory[*control.predicate] != std::byte{0};
        return call(control.functions[taken ? 0 : 1], frame.of(control.outside),
                    frame.of(control.results));
      }
      case Control::Kind::blocks:
        return run_blocks(frame, control);
      case Control::Kind::map:
      case Control::Kind::scan:
      case Control::Kind::repeat:
        return run_trips(frame, control);
    }
  }

  void run_blocks(const Frame& frame, const Control& control) const {
    for (size_t i = 0; i < control.results.size(); ++i)
      if (!control.along[control.sequences.size() + i]) frame.clear(control.results[i]);
    // The memory of `value` from element `begin` of the axis on.
    const auto at = [&](ValueId value, size_t slot, int64_t begin) {
      const Type& type = frame.function.values[value].type;
      if (!control.along[slot]) return frame.memory[value];
      const int64_t stride = composit::contiguous_strides(type.sizes)[*control.along[slot]];
      return from(frame.memory[value], begin * stride, type);
    };
    for (int64_t begin = 0; begin < control.length; begin += control.block) {
      const bool whole = begin + control.block <= control.length;
      std::vector<Memory> inputs, results;
      for (size_t i = 0; i < control.sequences.size(); ++i)
        inputs.push_back(at(control.sequences[i], i, begin));
      for (const ValueId value : control.outside) inputs.push_back(frame.memory[value]);
      for (size_t i = 0; i < control.results.size(); ++i)
        results.push_back(at(control.results[i], control.sequences.size() + i, begin));
      call(control.functions[whole ? 0 : 1], inputs, results);
    }
  }

  void run_trips(const Frame& frame, const Control& control) const {
    const bool repeats = control.kind == Control::Kind::repeat;
    const auto carried = static_cast<std::ptrdiff_t>(control.carried.size());
    const ValueIds finals(control.results.begin(), control.results.begin() + carried),
        outputs(control.results.begin() + carried, control.results.end() - (repeats ? 1 : 0));
    for (size_t i = 0; i < finals.size(); ++i) frame.copy(control.carried[i], finals[i]);
    for (const ValueId value : outputs) frame.clear(value);
    const int64_t count = control.trips ? frame.number(*control.trips) : control.length;
    int64_t trip = 0;
    for (; repeats ? goes_on(frame, control, finals) : trip < count; ++trip) {
      if (repeats && control.limit && trip == *control.limit)
        throw composit::UserError("[interpret] a loop goes on after " + std::to_string(trip) +
                                  " trips");
      const int64_t slot = control.reverse ? count - 1 - trip : trip;
      std::vector<Memory> inputs = frame.of(finals), results = frame.of(control.next);
      for (const ValueId value : control.sequences)
        inputs.push_back(at(frame, control, value, slot));
      for (const ValueId value : control.outside) inputs.push_back(frame.memory[value]);
      for (const ValueId value : outputs) results.push_back(at(frame, control, value, slot));
      call(control.functions.back(), inputs, results);
      for (size_t i = 0; i < finals.size(); ++i) frame.copy(control.next[i], finals[i]);
    }
    if (repeats) std::memcpy(frame.memory[control.results.back()].get(), &trip, sizeof trip);
  }
  bool goes_on(const Frame& frame, const Control& control, const ValueIds& carried) const {
    std::vector<Memory> inputs = frame.of(carried);
    for (const ValueId value : control.outside) inputs.push_back(frame.memory[value]);
    const Memory answer = zeros(composit::tensor_type(composit::DType::bool_, {}));
    call(control.functions[0], inputs, {answer});
    return *answer != std::byte{0};
  }
  // The slice of a sequence that a trip reads or writes.
  static Memory at(const Frame& frame, const Control& control, ValueId value, int64_t slot) {
    const Type& type = frame.function.values[value].type;
    const int64_t length = std::max<int64_t>(control.length, 1);
    return from(frame.memory[value], slot * (type.numel() / length), type);
  }

  const Program& program_;
};

}  // namespace

std::vector<Array> interpret(const Program& program, const std::vector<Array>& inputs) {
  if (!program.sizes.empty())
    return interpret(bind_sizes(program, sizes_given(program, inputs)), inputs);
  const FunctionId last(program.functions.size() - 1);
  const Routine& function = program.functions[last];
  std::vector<Memory> given, made;
  size_t next = 0;
  for (const ValueId input : function.inputs) {
    const Type& type = function.values[input].type;
    const Array& known = function.values[input].constant;
    COMPOSIT_ASSERT(known.defined() || next < inputs.size(), "too few inputs");
    const Array elements = (known.defined() ? known : inputs[next++]).contiguous();
    COMPOSIT_ASSERT(elements.type().dtype == type.dtype && elements.type().numel() == type.numel(),
                    "the input for '" + function.values[input].name + "' is of another type");
    given.push_back(zeros(type));
    std::memcpy(given.back().get(), elements.data(), static_cast<size_t>(type.nbytes()));
  }
  COMPOSIT_ASSERT(next == inputs.size(), "too many inputs");
  for (const ValueId result : function.results) made.push_back(zeros(function.values[result].type));
  Interpreter(program).call(last, given, made);
  std::vector<Array> results;
  for (size_t i = 0; i < made.size(); ++i)
    results.emplace_back(function.values[function.results[i]].type, made[i], made[i].get());
  return results;
}

}  // namespace flashlight::loops
