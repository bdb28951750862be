#include "tracer/replay.h"

#include <ATen/autocast_mode.h>
#include <ATen/core/LegacyTypeDispatch.h>
#include <ATen/core/stack.h>
#include <ATen/ops/zeros.h>
#include <c10/core/GradMode.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <unordered_map>

#include "composit/ir/error.h"
#include "tracer/control_flow.h"
#include "tracer/convert.h"
#include "tracer/definition.h"
#include "tracer/distributed.h"
#include "tracer/generator_watch.h"
#include "tracer/geometry.h"
#include "tracer/guard_message.h"
#include "tracer/input_check.h"
#include "tracer/plan.h"

namespace flashlight::tracer {
namespace {

using composit::UserError;

class Run {
 public:
  Run(const Plan::Impl& plan, const std::vector<at::Tensor>& inputs, const Plan::Observer& observer,
      const composit::NumberFormula::NumberOf& number_of)
      : plan_(plan), observer_(observer), number_of_(number_of), slots_(plan.initial) {
    expect_inputs(plan, inputs);
    for (const ChangingNumber& number : plan.numbers)
      numbers_.push_back(number.reads.empty() ? number.formula.evaluate(number_of) : 0);
    for (const auto& [slot, number] : plan.changing_constants)
      slots_[slot] = with_number(plan.initial[slot], numbers_[number]);
    for (size_t i = 0; i < inputs.size(); ++i) slots_[plan.inputs[i]] = inputs[i];
    for (const auto& mutation : plan.mutations)
      if (const at::Tensor& input = inputs[mutation.input]; input.has_storage())
        written_inputs_.emplace(input.storage().unsafeGetStorageImpl(), uses_of(input, mutation));
  }

  std::vector<at::Tensor> operator()(const std::vector<at::Tensor>& inputs) {
    std::vector<at::Tensor> outputs;
    {
      const c10::impl::ExcludeDispatchKeyGuard no_autocast(c10::autocast_dispatch_keyset);
      const c10::AutoGradMode restore_grad_mode(c10::GradMode::is_enabled());
      {
        const BelowAutograd below(!plan_.autograd && !plan_.as_program);
        for (const Step& step : plan_.steps) run(step);
      }
      const BelowAutograd below(!plan_.autograd);
      c10::GradMode::set_enabled(plan_.autograd);
      outputs = take_outputs();
      write_inputs(inputs);
    }
    return outputs;
  }

 private:
  // Leaves autograd out where it has no part.
  class BelowAutograd {
   public:
    explicit BelowAutograd(bool below) {
      if (below) guard_.emplace();
    }

   private:
    std::optional<at::AutoDispatchBelowADInplaceOrView> guard_;
  };

  void run(const Step& step) {
    buffers_.clear();
    written_.clear();
    objects_.clear();
    stack_.clear();
    if (c10::GradMode::is_enabled() != step.grad) c10::GradMode::set_enabled(step.grad);
    if (!step.reads.empty()) read_numbers(step);
    if (step.kind == StepKind::op)
      run_operator(step);
    else
      run_memory_operation(step);
    if (observer_) observe(step);
    for (Slot slot : step.last_uses) slots_[slot].reset();
    for (Slot slot : step.unused) slots_[slot].reset();
  }

  void observe(const Step& step) const {
    std::vector<at::Tensor> outputs;
    for (Slot slot : step.outputs) outputs.push_back(slots_[slot]);
    observer_(static_cast<size_t>(&step - plan_.steps.data()), *step.node, outputs);
  }

  // ---- buffers ----------------------------------------------------------------------------------

  // The holders of a written input outside of this run.
  struct Uses {
    const c10::TensorImpl* tensor = nullptr;  // may be written in place
    size_t of_tensor = 0, of_storage = 0;
  };
  static Uses uses_of(const at::Tensor& input, const Plan::Impl::Mutation& mutation) {
    return {mutation.alone ? input.unsafeGetTensorImpl() : nullptr, input.use_count(),
            input.storage().use_count()};
  }

  // A buffer that holds the value of `slot` and may be written: its own if no later step needs it
  // and no other value of this run has the memory, a copy otherwise. Memory of an input only when
  // nothing can fail any more.
  at::Tensor writable(const Step& step, Slot slot) {
    const at::Tensor& tensor = slots_[slot];
    const bool dies =
        std::find(step.last_uses.begin(), step.last_uses.end(), slot) != step.last_uses.end();
    const bool own = dies && tensor.has_storage() && (is_alone(tensor) || is_own(step, tensor));
    return own ? tensor : copied(step, tensor);
  }
  // As the program runs, what is written in place goes on to require a gradient.
  at::Tensor copied(const Step& step, const at::Tensor& tensor) const {
    if (!plan_.as_program || !step.grad || !tensor.requires_grad())
      return copy_keeping_strides(tensor);
    return empty_of(type_of(tensor)).copy_(tensor);
  }
  static bool is_alone(const at::Tensor& tensor) {
    return tensor.use_count() == 1 && tensor.storage().use_count() == 1;
  }
  bool is_own(const Step& step, const at::Tensor& tensor) const {
    if (&step < &plan_.steps[0] + plan_.steady_from || observer_) return false;
    const auto input = written_inputs_.find(tensor.storage().unsafeGetStorageImpl());
    return input != written_inputs_.end() && input->second.tensor == tensor.unsafeGetTensorImpl() &&
           input->second.of_tensor == tensor.use_count() &&
           input->second.of_storage == tensor.storage().use_count();
  }

  // ---- operators --------------------------------------------------------------------------------

  void run_operator(const Step& step) {
    prepare_bases(step);
    size_t next_out = 0;
    for (const StepArgument& argument : step.arguments) push(step, argument, next_out);
    set_numbers(step);
    const bool threw = call(step);
    if (threw != step.throws)
      throw UserError("[replay] guard: " + place_of(*step.node) +
                      " threw when it was captured and does not now");
    size_t next = 0;
    if (!threw) take_results(step, next);
    for (const at::Tensor& buffer : written_) store_written(step, next++, buffer);
  }

  // One writable copy per storage that several arguments share.
  void prepare_bases(const Step& step) {
    if (step.views.empty()) return;
    for (const StepArgument& argument : step.arguments)
      for (size_t i = 0; i < argument.slots.size(); ++i) {
        const bool viewed =
            find_view(step, argument.position + static_cast<uint32_t>(i)) != nullptr;
        if (viewed && argument.written && buffer_of(argument.slots[i]) == nullptr)
          buffers_.emplace_back(argument.slots[i], writable(step, argument.slots[i]));
      }
  }
  static const StepView* find_view(const Step& step, uint32_t position) {
    for (const StepView& view : step.views)
      if (view.position == position) return &view;
    return nullptr;
  }
  const at::Tensor* buffer_of(Slot slot) const {
    for (const auto& [from, buffer] : buffers_)
      if (from == slot) return &buffer;
    return nullptr;
  }

  // The tensor that is passed to the operator for one operand. Collects the buffers that it writes,
  // in the order of the node's outputs.
  at::Tensor operand(const Step& step, Slot slot, uint32_t position, bool written) {
    if (slot == kNoSlot) return {};
    if (const StepView* view = find_view(step, position)) {
      const at::Tensor* buffer = buffer_of(slot);
      const at::Tensor& base = buffer ? *buffer : slots_[slot];
      const bool first = std::none_of(written_.begin(), written_.end(),
                                      [&](const at::Tensor& other) { return other.is_same(base); });
      if (written && first) written_.push_back(base);
      return view_object(base, *view);
    }
    const at::Tensor* buffer = buffer_of(slot);
    if (buffer == nullptr && written) {
      buffers_.emplace_back(slot, writable(step, slot));
      buffer = &buffers_.back().second;
    }
    if (written) written_.push_back(*buffer);
    return buffer ? *buffer : slots_[slot];
  }

  // Operators ask whether two arguments are one tensor, and then allow them to overlap.
  at::Tensor view_object(const at::Tensor& base, const StepView& view) {
    for (const auto& [object, tensor] : objects_)
      if (object == view.object) return tensor;
    objects_.emplace_back(view.object, view_memory(base, view.dtype, view.sizes, view.strides,
                                                   view.offset, view.conj, view.neg));
    return objects_.back().second;
  }

  void push(const Step& step, const StepArgument& argument, size_t& next_out) {
    switch (argument.kind) {
      case StepArgument::Kind::value:
        stack_.push_back(argument.value);
        break;
      case StepArgument::Kind::tensor:
        stack_.emplace_back(operand(step, argument.slots[0], argument.position, argument.written));
        break;
      case StepArgument::Kind::out: {
        const size_t fresh_results = step.outputs.size() - count_out(step);
        written_.push_back(empty_of(step.node->outputs()[fresh_results + next_out++]));
        stack_.emplace_back(written_.back());
        break;
      }
      case StepArgument::Kind::list:
        push_list(step, argument);
    }
  }
  static size_t count_out(const Step& step) {
    size_t count = 0;
    for (const StepArgument& argument : step.arguments)
      count += argument.kind == StepArgument::Kind::out ? 1 : 0;
    return count;
  }
  void push_list(const Step& step, const StepArgument& argument) {
    const auto element = [&](size_t i) {
      return operand(step, argument.slots[i], argument.position + static_cast<uint32_t>(i),
                     argument.written);
    };
    if (argument.optional_list) {
      c10::List<std::optional<at::Tensor>> list;
      list.reserve(argument.slots.size());
      for (size_t i = 0; i < argument.slots.size(); ++i)
        list.push_back(argument.slots[i] == kNoSlot ? std::optional<at::Tensor>() : element(i));
      stack_.emplace_back(std::move(list));
      return;
    }
    c10::List<at::Tensor> list;
    list.reserve(argument.slots.size());
    for (size_t i = 0; i < argument.slots.size(); ++i) list.push_back(element(i));
    stack_.emplace_back(std::move(list));
  }

  // Numbers that differ from call to call take the places of those that were recorded.
  void set_numbers(const Step& step) {
    const Step::Changing* before = nullptr;
    for (const Step::Changing& one : step.numbers) {
      c10::IValue& argument = stack_[one.position];
      const double number = numbers_[one.number];
      if (one.element && (before == nullptr || before->position != one.position))
        argument = argument.toList().copy();  // the plan's own list stays as it is
      if (one.element) {
        argument.toList().set(*one.element, number);
      } else {
        argument = argument.isInt() ? c10::IValue(static_cast<int64_t>(number)) : number;
      }
      before = &one;
    }
  }

  void read_numbers(const Step& step) {
    const auto evaluate = [&](size_t number) {
      const auto& reads = plan_.reads[number];
      bool finite = true;
      numbers_[number] = plan_.numbers[number].formula.evaluate([&](const std::string& name) {
        const auto read = reads.find(name);
        const double value =
            read == reads.end() ? number_of_(name) : slots_[read->second].item().toDouble();
        finite = finite && std::isfinite(value);
        return value;
      });
      if (finite) expect_finite(step, plan_.numbers[number], numbers_[number]);
    };
    for (const Step::Changing& one : step.numbers) evaluate(one.number);
    for (const auto& [slot, number] : step.constants_read) {
      evaluate(number);
      slots_[slot] = with_number(plan_.initial[slot], numbers_[number]);
    }
  }

  bool call(const Step& step) {
    if (!step.throws) {
      step.op->handle.callBoxed(&stack_);
      if (step.op->asynchronous) wait_for_work(*step.op, stack_);
      return false;
    }
    try {
      step.op->handle.callBoxed(&stack_);
    } catch (const std::exception&) {
      return true;
    }
    return false;
  }

  void take_results(const Step& step, size_t& next) {
    size_t number = 0;
    for (size_t i = 0; i < stack_.size(); ++i) {
      if (step.op->returns_written[i]) continue;
      take(step, stack_[i], next, number);
    }
    stack_.clear();  // results must not look shared
  }
  void take(const Step& step, const c10::IValue& result, size_t& next, size_t& number) {
    if (result.isTensor()) return store(step, next++, result.toTensor());
    if (result.isTensorList()) {
      for (const at::Tensor& tensor : result.toTensorVector()) store(step, next++, tensor);
      return;
    }
    if (result.isNone() && next < step.outputs.size()) return store(step, next++, at::Tensor());
    if (!step.guards) return;
    const size_t i = number++;
    if (i >= step.expected.size() || !same_number(result, step.expected[i]))
      fail_guard(step, i, result);
  }
  [[noreturn]] void fail_guard(const Step& step, size_t i, const c10::IValue& received) const {
    const std::string expected = i < step.expected.size() ? c10::str(step.expected[i]) : "nothing";
    throw UserError(number_differs(plan_, step, expected, c10::str(received)));
  }

  // A storage that several arguments shared may have grown: it is bytes then.
  void store_written(const Step& step, size_t index, const at::Tensor& buffer) {
    const bool grown = !step.views.empty() && index < step.outputs.size() &&
                       !same_sizes(buffer, step.node->outputs()[index]);
    store(step, index, grown ? all_bytes(buffer) : buffer);
  }

  // Pins the output's type: sizes that depend on values are guards, strides are restored.
  void store(const Step& step, size_t index, const at::Tensor& tensor) {
    if (index >= step.outputs.size())
      throw UserError("[replay] guard: " + place_of(*step.node) +
                      " gives more tensors than when it was captured");
    at::Tensor& slot = slots_[step.outputs[index]];
    if (!plan_.pin_types) {
      slot = tensor;
      return;
    }
    const composit::Type& type = step.node->outputs()[index];
    if (is_defined(type) != tensor.defined() ||
        (tensor.defined() &&
         (!same_sizes(tensor, type) || to_composit(tensor.scalar_type()) != type.dtype)))
      throw UserError(sizes_differ(*step.node, index, describe(type), describe(tensor)));
    const bool restore =
        plan_.pin_strides && tensor.defined() && !keeps_strides(step, tensor, type);
    slot = restore ? with_strides(tensor, type) : tensor;
  }

  // Under autograd's keys a view of a parameter is one only as the operator made it.
  // Nor do results of a branch, which lie as its arms leave them, have others.
  bool keeps_strides(const Step& step, const at::Tensor& tensor, const composit::Type& type) const {
    return step.kind == StepKind::control ||
           (plan_.as_program && type.layout == composit::Layout::strided &&
            lies_in_order(tensor, type));
  }

  // ---- operations on memory ---------------------------------------------------------------------

  // Captures of former versions do not say where in it the operand lies.
  static at::Tensor storage_around(const Step& step, const at::Tensor& operand) {
    const composit::Attribute* begin = step.node->find_attribute("begin");
    if (begin == nullptr) return all_bytes(operand);
    const int64_t count = step.node->outputs()[0].sizes[0];
    if (!has_bytes_around(operand, begin->as_int(), count))
      throw UserError(lies_elsewhere("[replay] " + place_of(*step.node), begin->as_int(), count));
    return bytes_around(operand, begin->as_int(), count);
  }

  std::vector<at::Tensor> operands_of(const Step& step) const {
    std::vector<at::Tensor> operands;
    for (const StepArgument& argument : step.arguments)
      operands.push_back(argument.slots[0] == kNoSlot ? at::Tensor() : slots_[argument.slots[0]]);
    return operands;
  }
  void store_all(const Step& step, const std::vector<at::Tensor>& results) {
    for (size_t i = 0; i < results.size(); ++i) store(step, i, results[i]);
  }

  void run_memory_operation(const Step& step) {
    const auto operand = [&](size_t i) -> const at::Tensor& {
      return slots_[step.arguments[i].slots[0]];
    };
    const StepView& view = step.view;
    switch (step.kind) {
      case StepKind::memory_view:
        return store(step, 0,
                     view_memory(operand(0), view.dtype, view.sizes, view.strides, view.offset,
                                 view.conj, view.neg));
      case StepKind::memory_scatter: {
        const at::Tensor base = take_writable(step);
        view_memory(base, view.dtype, view.sizes, view.strides, view.offset, view.conj, view.neg)
            .copy_(operand(1));
        return store(step, 0, base);
      }
      case StepKind::scatter: {
        at::Tensor base = take_writable(step);
        const composit::Type& type = step.node->outputs()[0];
        if (base.strides() != type.strides || base.is_conj() != type.conj ||
            base.is_neg() != type.neg) {
          base = empty_of(type);
          base.copy_(operand(0));
        }
        stack_.clear();
        stack_.emplace_back(base);
        for (const c10::IValue& attribute : step.attributes) stack_.push_back(attribute);
        set_numbers(step);
        step.op->handle.callBoxed(&stack_);
        stack_[0].toTensor().copy_(operand(1));
        stack_.clear();
        return store(step, 0, base);
      }
      case StepKind::storage:
        return store(step, 0, storage_around(step, operand(0)));
      case StepKind::storage_zeros:
        return store(step, 0, at::zeros(step.node->outputs()[0].sizes, c10::kByte));
      case StepKind::storage_resize: {
        const at::Tensor bytes = at::zeros(step.node->outputs()[0].sizes, c10::kByte);
        const at::Tensor old = all_bytes(operand(0));
        const int64_t kept = std::min(old.numel(), bytes.numel());
        bytes.narrow(0, 0, kept).copy_(old.narrow(0, 0, kept));
        return store(step, 0, bytes);
      }
      case StepKind::definition:
        return store_all(step, run_definition(*step.node, operands_of(step)));
      case StepKind::control:
        return store_all(step, step.control_flow->run(*step.node, operands_of(step)));
      case StepKind::generator_state:
        return store(step, 0, get_state(step.generator));
      default:
        set_state(step.generator, step.kind == StepKind::set_generator ? step.state : operand(0));
    }
  }
  at::Tensor take_writable(const Step& step) { return writable(step, step.arguments[0].slots[0]); }

  // ---- the end ----------------------------------------------------------------------------------

  bool in_written_input(const at::Tensor& tensor) const {
    return tensor.has_storage() &&
           written_inputs_.count(tensor.storage().unsafeGetStorageImpl()) > 0;
  }
  // Outputs that lie in an input must not change with it.
  std::vector<at::Tensor> take_outputs() const {
    std::vector<at::Tensor> outputs;
    for (Slot output : plan_.outputs) {
      outputs.push_back(output == kNoSlot ? at::Tensor() : slots_[output]);
      if (outputs.back().defined() && in_written_input(outputs.back()))
        outputs.back() = copy_keeping_strides(outputs.back());
      else if (plan_.as_program && !plan_.region && outputs.back().defined())
        outputs.back() = outputs.back().detach();  // a view of a parameter requires a gradient
    }
    return outputs;
  }
  void write_inputs(const std::vector<at::Tensor>& inputs) {
    std::vector<at::Tensor> values;
    for (const auto& mutation : plan_.mutations) {
      at::Tensor value = slots_[mutation.value];
      // The new value of one input may lie in the memory of another one.
      if (!value.is_same(inputs[mutation.input]) && in_written_input(value))
        value = copy_keeping_strides(value);
      values.push_back(std::move(value));
    }
    for (size_t i = 0; i < values.size(); ++i)
      write_input(inputs[plan_.mutations[i].input], values[i]);
  }

  static void write_input(const at::Tensor& target, const at::Tensor& value) {
    // An input that got another geometry inside (`x.t_()`, `p.set_data(q)`) lies in memory of its
    // own afterwards.
    if (type_of(target) != type_of(value))
      return at::Tensor(target).set_data(copy_keeping_strides(value));
    if (!value.is_same(target)) copy_bits(target, value);
    if (!target.is_inference()) target.unsafeGetTensorImpl()->bump_version();
  }

  const Plan::Impl& plan_;
  const Plan::Observer& observer_;
  const composit::NumberFormula::NumberOf& number_of_;
  std::vector<double> numbers_;  // of plan_.numbers, for this call
  std::vector<at::Tensor> slots_;
  std::unordered_map<const c10::StorageImpl*, Uses> written_inputs_;
  torch::jit::Stack stack_;
  std::vector<std::pair<Slot, at::Tensor>> buffers_;
  std::vector<at::Tensor> written_;
  std::vector<std::pair<uint32_t, at::Tensor>>
      objects_;  // by the first operand that is this tensor
};

}  // namespace

std::vector<at::Tensor> Plan::run(const std::vector<at::Tensor>& inputs, const Observer& observer,
                                  const composit::NumberFormula::NumberOf& number_of) const {
  if (!impl_->numbers.empty() && !number_of)
    throw UserError("[replay] expected the numbers that differ from call to call");
  return Run(*impl_, inputs, observer, number_of)(inputs);
}

void Plan::expect(const std::vector<at::Tensor>& inputs) const { expect_inputs(*impl_, inputs); }

}  // namespace flashlight::tracer
