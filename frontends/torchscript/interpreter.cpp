#include "frontends/torchscript/interpreter.h"

#include <ATen/core/function_schema.h>
#include <torch/csrc/jit/api/function_impl.h>

#include "composit/ir/annotation_scope.h"
#include "tracer/convert.h"

namespace flashlight::torchscript {
namespace {

using torch::jit::Value;

// Operators that ask what a tensor is, not what it holds.
bool asks_for_type(const std::string& name) {
  static const std::set<std::string> kNames = {
      "aten::size",       "aten::dim",           "aten::numel",      "aten::len",
      "aten::stride",     "aten::is_contiguous", "prim::dtype",      "prim::layout",
      "prim::shape",      "aten::is_complex",    "prim::is_cuda",    "aten::is_floating_point",
      "aten::__is__",     "aten::__isnot__",     "aten::is_signed",  "aten::element_size",
      "prim::is_sparse",  "prim::requires_grad", "prim::is_mkldnn",  "prim::is_quantized",
      "aten::ndimension", "prim::is_meta",       "aten::get_device", "aten::storage_offset",
      "prim::ndim",       "prim::itemsize",      "prim::is_nested"};
  return kNames.contains(name);
}

bool gives_tensors(const c10::FunctionSchema& schema) {
  for (const c10::Argument& result : schema.returns()) {
    c10::TypePtr type = result.type();
    if (const auto optional = type->cast<c10::OptionalType>()) type = optional->getElementType();
    if (const auto list = type->cast<c10::ListType>()) type = list->getElementType();
    if (type->kind() == c10::TypeKind::TensorType) return true;
  }
  return false;
}

std::shared_ptr<torch::jit::Graph> graph_of(torch::jit::Function& function) {
  function.ensure_defined();
  return torch::jit::toGraphFunction(function).graph();
}

// Annotates the nodes that are made for a node of TorchScript.
composit::LazyTensor annotated(const torch::jit::Node& node, const std::string& scope) {
  composit::NodeSpec spec("composit::source");
  if (!scope.empty()) spec.annotate("scope", scope);
  spec.annotate("source", place_of(node.sourceRange()));
  return std::move(spec.output(composit::tensor_type(composit::DType::bool_, {}))).make();
}

}  // namespace

const std::unordered_map<c10::Symbol, Interpreter::Handler>& Interpreter::handlers() {
  namespace prim = c10::prim;
  static const std::unordered_map<c10::Symbol, Handler> kHandlers = {
      {prim::Constant, &Interpreter::constant},
      {prim::If, &Interpreter::branch},
      {prim::Loop, &Interpreter::loop},
      {prim::CallFunction, &Interpreter::call_function},
      {prim::CallMethod, &Interpreter::call_method},
      {c10::Symbol::fromQualString(kRecursiveCall), &Interpreter::call_recursive},
      {prim::GetAttr, &Interpreter::get_attribute},
      {prim::SetAttr, &Interpreter::set_attribute},
      {prim::CreateObject, &Interpreter::create_object},
      {prim::ListConstruct, &Interpreter::make_list},
      {prim::TupleConstruct, &Interpreter::make_tuple},
      {prim::DictConstruct, &Interpreter::make_dict},
      {prim::ListUnpack, &Interpreter::unpack},
      {prim::TupleUnpack, &Interpreter::unpack},
      {prim::TupleSlice, &Interpreter::slice_tuple},
      {prim::Uninitialized, &Interpreter::not_assigned},
      {prim::unchecked_cast, &Interpreter::pass_on},
      {prim::unchecked_unwrap_optional, &Interpreter::pass_on},
      {c10::Symbol::fromQualString("prim::data"), &Interpreter::pass_on},
      {prim::isinstance, &Interpreter::is_instance},
      {prim::RaiseException, &Interpreter::raise},
      {prim::Print, &Interpreter::refuse},
      {prim::Enter, &Interpreter::refuse},
      {prim::fork, &Interpreter::refuse},
      {prim::device, &Interpreter::device},
  };
  return kHandlers;
}

IValue Interpreter::call(torch::jit::Function& function, std::vector<IValue> arguments) {
  const auto graph = graph_of(function);
  Environment own;
  Environment* outer = std::exchange(environment_, &own);
  const Values results = run(graph->block(), arguments);
  environment_ = outer;
  return results.at(0);
}

Interpreter::Values Interpreter::run(Block* block, const Values& arguments) {
  for (size_t i = 0; i < block->inputs().size(); ++i)
    environment_->insert_or_assign(block->inputs()[i], arguments.at(i));
  for (Node* node : block->nodes()) run(node);
  Values results;
  for (const Value* output : block->outputs()) results.push_back(get(output));
  return results;
}

void Interpreter::run(Node* node) {
  at_place(node->sourceRange(), [&] {
    const composit::LazyTensor source = annotated(*node, scope_);
    const composit::AnnotationScope scope(*source.node);
    const auto handler = handlers().find(node->kind());
    if (handler != handlers().end())
      (this->*handler->second)(node);
    else
      run_operator(node);
  });
}

Interpreter::Values Interpreter::inputs_of(const Node* node) const {
  Values values;
  for (const Value* input : node->inputs()) values.push_back(get(input));
  return values;
}

void Interpreter::set(Node* node, const Values& values) {
  for (size_t i = 0; i < node->outputs().size(); ++i)
    environment_->insert_or_assign(node->outputs()[i], values.at(i));
}

void Interpreter::set_output(Node* node, IValue value) {
  environment_->insert_or_assign(node->output(), std::move(value));
}

// Tensors of modules and constants become values of the graph.
IValue Interpreter::registered(const IValue& value) {
  for_each_leaf(value, "", [&](const IValue& leaf, const std::string&) {
    if (leaf.isTensor() && leaf.toTensor().defined() && !state_.knows(leaf.toTensor()))
      register_tensor(leaf.toTensor());
  });
  return value;
}

void Interpreter::register_tensor(const at::Tensor& tensor) {
  const composit::Array array = tracer::to_array(tensor.detach());
  const auto named = names_.tensors.find(tensor.unsafeGetTensorImpl());
  if (named == names_.tensors.end()) {
    state_.outer(composit::constant(array), tensor);
    return;
  }
  const NamedInput& input = named->second;
  const LazyTensor held(composit::held_input(input.name, array, input.kind));
  state_.outer(held, tensor);
  parameters_.push_back({tensor, held});
}

void Interpreter::run_operator(Node* node) {
  const Values inputs = inputs_of(node);
  if (node->maybeOperator() == nullptr)
    throw Unsupported(std::string(node->kind().toQualString()) + " is not supported");
  if (gives_tensors(node->schema()))
    run_tensor_operator(node, inputs);
  else if (!run_number_operator(node, inputs))
    run_native(node, inputs);
}

// LibTorch's own code, on values that are known, or that it does not look into.
void Interpreter::run_native(Node* node, Values inputs) {
  const c10::FunctionSchema& schema = node->schema();
  const std::string name = node->kind().toQualString();
  check_numbers_known(node, inputs);
  const bool appends = name == "aten::append";
  for (size_t i = 0; i < std::min(inputs.size(), schema.arguments().size()); ++i) {
    const c10::Argument& argument = schema.arguments()[i];
    const bool written = argument.alias_info() != nullptr && argument.alias_info()->isWrite();
    if (argument.type()->kind() == c10::TypeKind::TensorType && !asks_for_type(name))
      throw Unsupported(schema.operator_name().name +
                        " reads the values of a tensor, which are not known while the graph is "
                        "made");
    if (written) state_.will_change(inputs[i]);
    if (!written || !appends) state_.read(inputs[i]);
  }
  torch::jit::Stack stack(inputs.begin(), inputs.end());
  if (schema.is_vararg()) stack.emplace_back(static_cast<int64_t>(inputs.size()));
  node->getOperation()(stack);
  for (size_t i = 0; i < stack.size() && i < schema.returns().size(); ++i)
    if (schema.returns()[i].alias_info() == nullptr) state_.made(stack[i]);
  set(node, {stack.begin(), stack.end()});
}

}  // namespace flashlight::torchscript
