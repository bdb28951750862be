// Operators on tensors: each becomes the node of its schema.
#include <ATen/core/function_schema.h>

#include "composit/op/nest.h"
#include "composit/op/promotion.h"
#include "composit/ops/functions.h"
#include "frontends/torchscript/interpreter.h"
#include "frontends/torchscript/views.h"
#include "tracer/convert.h"
#include "tracer/op_info.h"

namespace flashlight::torchscript {
namespace {

using composit::ArgumentValue;
using composit::DType;
using composit::LazyTensor;
using composit::LazyTensors;
using composit::Operation;
using composit::SchemaArgument;

std::string name_of(const c10::FunctionSchema& schema) {
  // torch.jit.trace records this operator; its further arguments are about cuDNN.
  if (schema.name() == "aten::_convolution") return "aten::convolution";
  return schema.overload_name().empty() ? schema.name()
                                        : schema.name() + "." + schema.overload_name();
}

bool has_computed_number(const std::vector<IValue>& inputs, const State& state) {
  return std::any_of(inputs.begin(), inputs.end(),
                     [&](const IValue& input) { return state.is_number(input); });
}

// The overload that takes tensors where `name` takes numbers; `name` where there is none.
std::string with_tensors(const std::string& name) {
  static const std::map<std::string, std::vector<std::string>> kOverloads = {
      {"", {".Tensor"}},
      {".Scalar", {".Tensor", ".Tensor_Tensor", ".self", ""}},
      {".Tensor_Scalar", {".Tensor_Tensor", ".Tensor"}},
      {".Scalar_Tensor", {".Tensor", ".Tensor_Tensor"}},
      {".Scalar_mode", {".Tensor_mode"}},
      {".ScalarOther", {".self"}},
      {".ScalarSelf", {".self"}},
      {".int_Scalar", {".int_Tensor"}}};
  const size_t dot = std::min(name.find('.'), name.size());
  const auto others = kOverloads.find(name.substr(dot));
  if (others != kOverloads.end())
    for (const std::string& overload : others->second)
      if (find_operation(composit::Symbol(name.substr(0, dot) + overload)))
        return name.substr(0, dot) + overload;
  return name;
}

// The dtype in which a number stands beside tensors whose dtypes promote to `tensors`: that of
// torch's wrapped numbers.
DType beside(const std::optional<composit::Promotion>& tensors, DType number) {
  using composit::category;
  if (tensors && category(number) <= category(tensors->result())) return tensors->result();
  return composit::is_floating_point(number) ? composit::kDefaultFloat : number;
}

bool is_in_place(const c10::FunctionSchema& schema) {
  if (schema.arguments().empty() || schema.name().back() != '_') return false;
  const auto* alias = schema.arguments()[0].alias_info();
  return alias != nullptr && alias->isWrite();
}

bool gives_views(const c10::FunctionSchema& schema) {
  const auto* alias = schema.returns().empty() ? nullptr : schema.returns()[0].alias_info();
  return alias != nullptr && !alias->isWrite();
}

// "aten::add.Tensor" for "aten::add_.Tensor". LibTorch's compiler has copies of numbers as well.
std::string functional_name(const c10::FunctionSchema& schema) {
  const std::string& name = schema.name();
  const std::string& overload = schema.overload_name();
  if (name == "aten::copy_" && !overload.empty())
    return overload == "Tensor" ? "aten::copy" : "aten::fill.Scalar";
  return name.substr(0, name.size() - 1) + (overload.empty() ? "" : "." + overload);
}

// Arguments of one call of `operation`, from what the program gives.
class Arguments {
 public:
  Arguments(State& state, const Operation& operation, const c10::FunctionSchema& schema)
      : state_(state), operation_(operation), schema_(schema) {}

  std::vector<ArgumentValue> of(const std::vector<IValue>& inputs) {
    for (const IValue& input : inputs)
      if (input.isTensor() && !state_.is_number(input) && input.toTensor().defined()) {
        if (!promotion_) promotion_.emplace();
        promotion_->add(state_.value(input.toTensor()).type());
      }
    std::vector<ArgumentValue> arguments;
    const size_t count = std::min(inputs.size(), operation_.schema.arguments.size());
    for (size_t i = 0; i < count; ++i)
      arguments.push_back(one(operation_.schema.arguments[i], i, inputs[i]));
    return arguments;
  }

 private:
  ArgumentValue one(const SchemaArgument& argument, size_t i, const IValue& input) {
    if (input.isNone()) return {};
    if (argument.is_tensor() && argument.list) return list(input);
    if (input.isTensor() && argument.is_tensor()) return tensor(input);
    if (is_computed(input, state_))
      throw not_known("argument '" + argument.name + "' of " + operation_.schema.name.str());
    return tracer::to_attribute(input, schema_.arguments().at(i).real_type());
  }
  ArgumentValue tensor(const IValue& input) {
    if (!input.toTensor().defined()) return {};
    const LazyTensor value = state_.value(input.toTensor());
    if (!state_.is_number(input)) return value;
    return composit::to(value, beside(promotion_, value.dtype()));
  }
  ArgumentValue list(const IValue& input) {
    LazyTensors items;
    for (const IValue& item : input.toList().vec())
      items.push_back(item.isNone() ? LazyTensor() : state_.value(item.toTensor()));
    return items;
  }

  State& state_;
  const Operation& operation_;
  const c10::FunctionSchema& schema_;
  std::optional<composit::Promotion> promotion_;
};

// Slots 0, 1, … of a tensor, all of them: the tensor.
LazyTensor whole_of(const LazyTensors& slots) {
  for (size_t i = 0; i < slots.size(); ++i) {
    const composit::Node& node = *slots[i].node;
    if (node.op().str() != "aten::select.int" || node.attribute("dim").as_int() != 0 ||
        node.attribute("index").as_int() != static_cast<int64_t>(i) ||
        !(node.operands()[0] == slots[0].node->operands()[0]))
      return {};
  }
  if (slots.empty()) return {};
  const LazyTensor whole = slots[0].node->operands()[0];
  return whole.size(0) == static_cast<int64_t>(slots.size()) ? whole : LazyTensor();
}

// x[mask] = number, of which sizes are known.
bool fills_mask(const std::vector<IValue>& inputs, State& state) {
  const auto indices = inputs[1].toList();
  if (indices.size() != 1 || indices.get(0).isNone() || inputs[3].toBool()) return false;
  const LazyTensor mask = state.value(indices.get(0).toTensor());
  return mask.dtype() == DType::bool_ &&
         mask.sizes() == state.value(inputs[0].toTensor()).sizes() &&
         state.value(inputs[2].toTensor()).numel() == 1;
}

}  // namespace

LazyTensors Interpreter::apply(Node* node, const std::string& name, const Values& inputs) {
  const bool numbers = has_computed_number(inputs, state_);
  const Operation* operation =
      find_operation(composit::Symbol(numbers ? with_tensors(name) : name));
  if (operation == nullptr)
    throw Unsupported(name + " is none of composit's operations, which `flashlight ops` lists");
  return composit::apply(operation->schema.name.str(),
                         Arguments(state_, *operation, node->schema()).of(inputs));
}

void Interpreter::run_tensor_operator(Node* node, const Values& inputs) {
  for (const IValue& input : inputs) state_.read(input);
  const c10::FunctionSchema& schema = node->schema();
  if (run_special(node, inputs)) return;
  if (is_in_place(schema))
    write_in_place(node, inputs);
  else
    return_results(node, inputs, apply(node, name_of(schema), inputs));
}

// Operators that LibTorch's compiler has beside ATen's, or that mean more with numbers that are
// computed.
bool Interpreter::run_special(Node* node, const Values& inputs) {
  const std::string name = node->kind().toQualString();
  if (name == "aten::to" || name == "aten::type_as" || name == "aten::cpu") {
    convert(node, inputs);
  } else if (name == "aten::tensor" || name == "aten::as_tensor" || name == "aten::scalar_tensor" ||
             name == "prim::NumToTensor") {
    make_tensor(node, inputs);
  } else if (name == "aten::select" && state_.is_number(inputs[2])) {
    select(node, inputs);
  } else if (name == "aten::requires_grad_") {
    set_output(node, inputs[0]);
  } else if ((name == "aten::full" || name == "aten::full_like" || name == "aten::new_full") &&
             has_computed_number(inputs, state_)) {
    const size_t filled = name == "aten::full" ? 1 : name == "aten::full_like" ? 1 : 2;
    Values known = inputs;
    const LazyTensor number = state_.value(inputs[filled].toTensor());
    known[filled] = composit::is_floating_point(number.dtype()) ? IValue(0.0) : IValue(int64_t{0});
    const LazyTensor full = apply(node, name_of(node->schema()), known)[0];
    set_output(node, state_.tensor(composit::apply_one("aten::fill.Tensor", {full, number})));
  } else if (name == "aten::index_put_" && fills_mask(inputs, state_)) {
    const LazyTensor x = state_.value(inputs[0].toTensor());
    const LazyTensor mask = state_.value(inputs[1].toList().get(0).toTensor());
    const LazyTensor number = composit::reshape(state_.value(inputs[2].toTensor()), {});
    state_.write(inputs[0].toTensor(), composit::where(mask, composit::to(number, x.dtype()), x));
    set_output(node, inputs[0]);
  } else if (name == "aten::stack" && inputs[1].toInt() == 0) {
    LazyTensors slots;
    for (const IValue& item : inputs[0].toList().vec())
      slots.push_back(state_.value(item.toTensor()));
    const LazyTensor whole = whole_of(slots);
    if (!whole.defined()) return false;
    set_output(node, state_.tensor(whole));
  } else {
    return false;
  }
  return true;
}

void Interpreter::return_results(Node* node, const Values& inputs, const LazyTensors& results) {
  const c10::FunctionSchema& schema = node->schema();
  if (gives_views(schema)) return return_views(node, inputs, results);
  if (node->outputs().size() == 1 && node->output()->type()->kind() == c10::TypeKind::ListType) {
    c10::impl::GenericList list(c10::TensorType::get());
    for (const LazyTensor& result : results) list.push_back(state_.tensor(result));
    state_.made(list);
    return set_output(node, list);
  }
  Values values;
  for (size_t i = 0; i < node->outputs().size(); ++i)
    values.push_back(results[i].defined() ? IValue(state_.tensor(results[i])) : at::Tensor());
  set(node, values);
  // Further results are new values of arguments that are written without the schema's saying so.
  size_t next = node->outputs().size();
  for (const auto& [op, written] : tracer::concealed_writes()) {
    if (op != schema.name() || next >= results.size()) continue;
    const size_t i = static_cast<size_t>(*schema.argumentIndexWithName(std::string(written)));
    const LazyTensor& result = results[next++];
    if (result.defined()) state_.write(inputs[i].toTensor(), result);
  }
}

// Finds the results that share memory with the first argument by running the operator on tensors
// without elements.
void Interpreter::return_views(Node* node, const Values& inputs, const LazyTensors& results) {
  const at::Tensor parent = inputs.at(0).toTensor();
  torch::jit::Stack stack(inputs.begin(), inputs.end());
  node->getOperation()(stack);
  const Operation& operation = *find_operation(composit::Symbol(name_of(node->schema())));
  std::vector<ArgumentValue> arguments = Arguments(state_, operation, node->schema()).of(inputs);
  arguments.erase(arguments.begin());
  const auto one = [&](const at::Tensor& at, size_t i) -> IValue {
    if (at.is_same(parent)) return parent;
    if (!at.is_alias_of(parent)) return state_.tensor(results[i]);
    return state_.view(results[i], at, parent, {operation.schema.name.str(), arguments, i});
  };
  const IValue& made = stack.at(0);
  if (made.isTensor()) return set_output(node, one(made.toTensor(), 0));
  c10::impl::GenericList list(c10::TensorType::get());
  const Values items = made.toList().vec();
  for (size_t i = 0; i < items.size(); ++i) list.push_back(one(items[i].toTensor(), i));
  state_.made(list);
  set_output(node, list);
}

void Interpreter::write_in_place(Node* node, const Values& inputs) {
  const at::Tensor& target = inputs[0].toTensor();
  const LazyTensor before = state_.value(target);
  const LazyTensor now =
      composit::to(apply(node, functional_name(node->schema()), inputs).at(0), before.dtype());
  if (now.sizes() != before.sizes())
    throw composit::UserError(std::string(node->kind().toQualString()) +
                              " would change the sizes of the tensor it writes");
  state_.write(target, now);
  set_output(node, target);
}

void Interpreter::convert(Node* node, const Values& inputs) {
  const c10::FunctionSchema& schema = node->schema();
  const LazyTensor x = state_.value(inputs[0].toTensor());
  DType dtype = x.dtype();
  bool copy = false;
  for (size_t i = 1; i < inputs.size(); ++i) {
    const std::string& name = schema.arguments()[i].name();
    if (name == "dtype" && inputs[i].isInt()) dtype = static_cast<DType>(inputs[i].toInt());
    if (name == "other") dtype = state_.value(inputs[i].toTensor()).dtype();
    if (name == "copy") copy = inputs[i].toBool();
    if (inputs[i].isDevice() && !inputs[i].toDevice().is_cpu())
      throw Unsupported("device " + inputs[i].toDevice().str() + ": there is the CPU");
  }
  if (dtype == x.dtype() && !copy)
    set_output(node, inputs[0]);
  else
    set_output(node, state_.tensor(composit::to(x, dtype)));
}

// torch.tensor(data): numbers and lists of them.
void Interpreter::make_tensor(Node* node, const Values& inputs) {
  const c10::FunctionSchema& schema = node->schema();
  const std::string& name = schema.name();
  LazyTensor made = stacked(inputs[0]);
  DType dtype = made.dtype();
  // torch.tensor(1.5) is a float32; the number of an operator keeps its dtype.
  const bool is_data = !inputs[0].isTensor() || state_.is_number(inputs[0]);
  const bool rounds = name != "prim::NumToTensor" && is_data && composit::is_floating_point(dtype);
  if (rounds) dtype = composit::kDefaultFloat;
  for (size_t i = 1; i < inputs.size(); ++i)
    if (schema.arguments()[i].name() == "dtype" && inputs[i].isInt())
      dtype = static_cast<DType>(inputs[i].toInt());
  // LibTorch makes a float32 of Python's floats first, whatever `dtype` is.
  if (rounds && name != "aten::scalar_tensor") made = composit::to(made, composit::kDefaultFloat);
  set_output(node, state_.tensor(composit::to(made, dtype)));
}

LazyTensor Interpreter::stacked(const IValue& data) {
  if (!data.isList()) return tensor_of(data);
  LazyTensors items;
  for (const IValue& item : data.toList().vec()) items.push_back(stacked(item));
  if (items.empty()) return composit::zeros({0}, composit::kDefaultFloat);
  return composit::apply_one("aten::stack", {items, 0});
}

// ---- indices that are computed ------------------------------------------------------------------

void Interpreter::select(Node* node, const Values& inputs) {
  const at::Tensor& from = inputs[0].toTensor();
  const LazyTensor x = state_.value(from);
  const int64_t axis = composit::wrap_axis(inputs[1].toInt(), x.rank());
  const ViewStep step = item_step(x, axis, state_.value(inputs[2].toTensor()));
  set_output(node, state_.view(item_at(x, step), {}, from, step));
}

const Interpreter::Counter* Interpreter::counter_of(const LazyTensor& index) const {
  if (slots_.empty()) return nullptr;
  for (const Counter& counter : slots_.back()->counters)
    if (counter.index == index) return &counter;
  return nullptr;
}

ViewStep Interpreter::item_step(const LazyTensor& x, int64_t axis, const LazyTensor& index) {
  const Counter* counter = counter_of(index);
  const bool natural = counter != nullptr && counter->start >= 0 && counter->step > 0;
  return {kComputedItem,
          {axis, natural ? index : composit::where(index < 0, index + x.size(axis), index)}};
}

// The item that a loop's counter takes of a tensor from outside becomes a slot of a sequence, where
// the loop ends as a scan.
LazyTensor Interpreter::item_at(const LazyTensor& x, const ViewStep& step) {
  const LazyTensor item = shown(x, step);
  const int64_t axis = step.arguments[0].data().as_int();
  if (const Counter* counter = counter_of(step.arguments[1].tensor()))
    slots_.back()->taken.push_back(
        {item, axis == 0 ? x : composit::apply_one("aten::movedim.int", {x, axis, 0}),
         counter->start, counter->step});
  return item;
}

void Interpreter::item_of_list(Node* node, const Values& inputs) {
  const Values items = inputs[0].toList().vec();
  if (items.empty()) throw composit::UserError("an item of an empty list");
  const bool numbers = !items[0].isTensor() || state_.is_number(items[0]);
  const LazyTensor all = stacked(inputs[0]);
  const LazyTensor item = item_at(all, item_step(all, 0, state_.value(inputs[1].toTensor())));
  set_output(node, numbers ? state_.number(item) : IValue(state_.tensor(item)));
}

}  // namespace flashlight::torchscript
