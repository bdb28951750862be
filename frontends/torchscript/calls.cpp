// Nodes of TorchScript that are no operators: calls, attributes, tuples, lists.
#include <ATen/core/function.h>

#include "composit/ops/control_flow.h"
#include "composit/ops/functions.h"
#include "frontends/torchscript/interpreter.h"

namespace flashlight::torchscript {

using composit::LazyTensors;

void Interpreter::constant(Node* node) {
  const c10::TypePtr& type = node->output()->type();
  if (type->kind() == c10::TypeKind::FunctionType) return;  // call_function asks the type
  const auto value = torch::jit::toIValue(node->output());
  COMPOSIT_ASSERT(value.has_value(), "a constant of TorchScript without a value");
  set_output(node, registered(*value));
}

void Interpreter::call_function(Node* node) {
  const auto type = node->input(0)->type()->expect<c10::FunctionType>();
  Values arguments;
  for (size_t i = 1; i < node->inputs().size(); ++i) arguments.push_back(get(node->input(i)));
  set_output(node, called_at(node->sourceRange(),
                             [&] { return call(*type->function(), std::move(arguments)); }));
}

void Interpreter::call_method(Node* node) {
  Values arguments = inputs_of(node);
  const auto& object = arguments.at(0).toObjectRef();
  torch::jit::Function& method = object.type()->getMethod(node->s(c10::attr::name));
  const auto module = names_.modules.find(arguments.at(0).internalToPointer());
  const std::string outer = scope_;
  if (module != names_.modules.end()) scope_ = module->second;
  const IValue result = called_at(node->sourceRange(), [&] { return call(method, arguments); });
  scope_ = outer;
  set_output(node, result);
}

void Interpreter::call_recursive(Node* node) {
  const std::string name = node->s(c10::attr::name);
  int64_t& depth = depth_[name];
  if (depth >= limits_.depth) {
    set_output(node, beyond_depth(node, name));
    return;
  }
  ++depth;
  set_output(node, call(*functions_.find(name), inputs_of(node)));
  --depth_[name];
}

// A call so deep is an error while the graph is made, or where a condition that is computed decides
// whether it happens, when it happens: a loop that does not end after its one trip.
IValue Interpreter::beyond_depth(Node* node, const std::string& name) {
  const auto dtype = dtype_of(node->output()->type());
  if (branches_ == 0 || !dtype)
    throw composit::UserError("'" + name + "' calls itself more than " +
                              std::to_string(limits_.depth) +
                              " times within itself; raise `depth`");
  const auto goes_on = [](const LazyTensors&) {
    return composit::full({}, 1, composit::DType::bool_);
  };
  const auto again = [](const LazyTensors& x) { return x; };
  return state_.number(
      composit::while_loop(goes_on, again, {composit::zeros({}, *dtype)}, {.limit = 1})[0]);
}

void Interpreter::get_attribute(Node* node) {
  const IValue object = get(node->input());
  set_output(node, registered(object.toObjectRef().getAttr(node->s(c10::attr::name))));
}

void Interpreter::set_attribute(Node* node) {
  const IValue object = get(node->input(0)), value = get(node->input(1));
  const std::string& name = node->s(c10::attr::name);
  if (!object.toObjectRef().type()->is_module()) {
    state_.will_change(object);
    object.toObject()->setAttr(name, value);
    return;
  }
  const IValue old = registered(object.toObjectRef().getAttr(name));
  if (!old.isTensor() || !value.isTensor())
    throw Unsupported("'" + name + "' of a module is changed, and is no tensor");
  const composit::LazyTensor now = state_.value(value.toTensor());
  const composit::Type before = state_.value(old.toTensor()).type();
  if (now.type().sizes != before.sizes || now.dtype() != before.dtype)
    throw Unsupported("'" + name + "' of a module becomes a tensor of another type");
  state_.write(old.toTensor(), now);
}

void Interpreter::create_object(Node* node) {
  const auto type = node->output()->type()->expect<c10::ClassType>();
  const IValue object = c10::ivalue::Object::create(
      c10::StrongTypePtr(type->compilation_unit(), type), type->numAttributes());
  state_.made(object);
  set_output(node, object);
}

void Interpreter::make_list(Node* node) {
  c10::impl::GenericList list(node->output()->type()->expectRef<c10::ListType>().getElementType());
  for (const IValue& item : inputs_of(node)) list.push_back(item);
  state_.made(list);
  set_output(node, list);
}

void Interpreter::make_tuple(Node* node) {
  const auto type = node->output()->type()->expect<c10::TupleType>();
  set_output(node, type->name() ? IValue(c10::ivalue::Tuple::createNamed(inputs_of(node), type))
                                : IValue(c10::ivalue::Tuple::create(inputs_of(node))));
}

void Interpreter::make_dict(Node* node) {
  const auto& type = node->output()->type()->expectRef<c10::DictType>();
  c10::impl::GenericDict dict(type.getKeyType(), type.getValueType());
  const Values items = inputs_of(node);
  for (size_t i = 0; i + 1 < items.size(); i += 2) {
    if (is_computed(items[i], state_))
      throw Unsupported("expected keys of a dict that are known while the graph is made");
    dict.insert_or_assign(items[i], items[i + 1]);
  }
  state_.made(dict);
  set_output(node, dict);
}

void Interpreter::unpack(Node* node) {
  const IValue whole = get(node->input());
  state_.read(whole);
  const Values items = whole.isTuple() ? whole.toTupleRef().elements().vec() : whole.toList().vec();
  if (items.size() != node->outputs().size())
    throw composit::UserError("expected " + std::to_string(node->outputs().size()) +
                              " items to unpack, received " + std::to_string(items.size()));
  set(node, items);
}

void Interpreter::slice_tuple(Node* node) {
  const IValue whole = get(node->input());
  const Values items = whole.toTupleRef().elements().vec();
  const auto begin = items.begin() + node->i(c10::attr::beg);
  const auto end = items.begin() + node->i(c10::attr::end);
  set_output(node, c10::ivalue::Tuple::create(Values(begin, end)));
}

void Interpreter::not_assigned(Node* node) { set_output(node, uninitialized()); }

void Interpreter::pass_on(Node* node) { set_output(node, get(node->input(0))); }

void Interpreter::is_instance(Node* node) {
  const IValue value = get(node->input());
  const c10::TypePtr type = state_.is_number(value) ? node->input()->type() : value.type();
  bool is = false;
  for (const c10::TypePtr& wanted : node->tys(c10::attr::types))
    is = is || type->isSubtypeOf(*wanted);
  set_output(node, is);
}

void Interpreter::raise(Node* node) {
  const IValue message = get(node->input(0));
  const std::string text = message.isString() ? message.toStringRef() : "an exception";
  if (branches_ > 0)
    throw Unsupported("an exception that is raised where what is computed says so: '" + text + "'");
  throw composit::UserError("the program raises: " + text);
}

void Interpreter::refuse(Node* node) {
  const std::string name = node->kind().toUnqualString();
  const std::string what = node->kind() == c10::prim::Print
                               ? "print: a graph computes, it shows nothing"
                           : node->kind() == c10::prim::Enter ? "`with`"
                                                              : "`" + name + "`";
  throw Unsupported("not supported: " + what);
}

// Tensors of the program have no elements: LibTorch would say "meta".
void Interpreter::device(Node* node) { set_output(node, c10::Device(c10::kCPU)); }

}  // namespace flashlight::torchscript
