#include "composit/passes/spelling.h"

#include <algorithm>
#include <numeric>

#include "composit/ir/transform.h"
#include "composit/op/promotion.h"
#include "composit/ops/native.h"
#include "composit/passes/canonicalize.h"
#include "composit/passes/definition.h"

namespace composit {
namespace {

const Type& type_of(const Node& node) { return node.outputs()[0]; }
bool is_plain(const Type& type) {
  return type.layout == Layout::strided && type.device == Device() && !type.conj && !type.neg;
}

std::vector<ArgumentValue> arguments_of(const Call& call) {
  std::vector<ArgumentValue> arguments;
  for (size_t i = 0; i < call.size(); ++i) arguments.push_back(call[i]);
  return arguments;
}

// A candidate for `node`, accepted if it has the same loop form.
NodePtr if_same(const Node& node, const NodePtr& candidate) {
  return same_loops(node, *candidate) ? candidate : nullptr;
}

// ---- by what the loop form does -----------------------------------------------------------------

NodePtr as_reshape(const Node& node, const Call& call) {
  static const Symbol kReshape("aten::reshape"), kPermute("aten::permute");
  if (call.tensors().size() != 1 || node.op() == kReshape || node.op() == kPermute) return nullptr;
  const LazyTensor x = call.tensors()[0];
  const Type& type = type_of(node);
  if (x.dtype() != type.dtype || x.numel() != type.numel() || x.type().sizes == type.sizes)
    return nullptr;
  return if_same(node, respelled(node, "aten::reshape", {x, type.sizes}));
}

NodePtr as_cast(const Node& node, const Call& call) {
  if (call.tensors().empty() || !call.tensors()[0].defined()) return nullptr;
  const LazyTensor x = call.tensors()[0];
  const Type& type = type_of(node);
  if (x.dtype() == type.dtype || x.type().sizes != type.sizes || !is_plain(type)) return nullptr;
  return if_same(node, respelled(node, "aten::to.dtype", {x, type.dtype}));
}

// The value of every element, where the loop form has just that.
std::optional<Scalar> filling(const Loops& loops) {
  if (loops.statements.size() != 1 || loops.statements[0].stores.size() != 1) return std::nullopt;
  const Expr value = cast(loops.statements[0].stores[0].value, loops.results[0].dtype);
  if (value.kind() != ExprKind::literal) return std::nullopt;
  return Scalar(value.value());
}

NodePtr as_full(const Node& node) {
  const std::string_view name = node.op().base_name();
  const bool unset = name.starts_with("empty") || name.starts_with("new_empty");
  if (unset || !is_plain(type_of(node))) return nullptr;
  const auto loops = loops_of(node);
  const auto value = loops ? filling(*loops) : std::nullopt;
  if (!value) return nullptr;
  const Type& type = type_of(node);
  return if_same(node, respelled(node, "aten::full", {type.sizes, *value, type.dtype}));
}

// ---- by name ------------------------------------------------------------------------------------

NodePtr as_permute(const Node& node, const Call& call) {
  const LazyTensor& x = call.tensors()[0];
  Ints order(static_cast<size_t>(x.rank()));
  std::iota(order.begin(), order.end(), int64_t{0});
  const auto axis = [&](const char* name) {
    return static_cast<size_t>(wrap_axis(call[name].data().as_int(), x.rank()));
  };
  if (!order.empty()) std::swap(order[axis("dim0")], order[axis("dim1")]);
  return respelled(node, "aten::permute", {x, order});
}

NodePtr as_split_with_sizes(const Node& node, const Call& call) {
  const LazyTensor& x = call.tensors()[0];
  const int64_t axis = wrap_axis(call["dim"].data().as_int(), x.rank());
  Ints sizes;
  for (const Type& part : node.outputs()) sizes.push_back(part.sizes[static_cast<size_t>(axis)]);
  return respelled(node, "aten::split_with_sizes", {x, sizes, axis});
}

NodePtr as_sub(const Node& node, const Call& call) {
  return respelled(node, "aten::sub.Tensor", {call[1], call[0], call[2]});
}

NodePtr as_slice(const Node& node, const Call& call) {
  const LazyTensor& x = call.tensors()[0];
  const int64_t axis = wrap_axis(call["dim"].data().as_int(), x.rank()), size = x.size(axis);
  const auto clamped = [&](const char* name, int64_t fallback) {
    const ArgumentValue& value = call[name];
    const int64_t place = value.is_none() ? fallback : value.data().as_int();
    return std::clamp<int64_t>(place < 0 ? place + size : place, 0, size);
  };
  const int64_t begin = clamped("start", 0);
  return respelled(node, "aten::slice.Tensor",
                   {x, axis, begin, std::max(begin, clamped("end", size)), call["step"]});
}

NodePtr as_select(const Node& node, const Call& call) {
  const LazyTensor& x = call.tensors()[0];
  const int64_t axis = wrap_axis(call["dim"].data().as_int(), x.rank());
  const int64_t index = call["index"].data().as_int();
  return respelled(node, "aten::select.int", {x, axis, index < 0 ? index + x.size(axis) : index});
}

NodePtr with_sizes(const Node& node, const Call& call) {
  return respelled(node, node.op().str(), {call.tensors()[0], type_of(node).sizes});
}

NodePtr as_sum_of_axes(const Node& node, const Call& call) {
  return respelled(node, "aten::sum.dim_IntList", {call[0], Ints{}, false, call[1]});
}

NodePtr as_mm(const Node& node, const Call& call) {
  const LazyTensor &a = call.tensors()[0], &b = call.tensors()[1];
  if (a.rank() != 2 || b.rank() != 2) return nullptr;
  return if_same(node, respelled(node, "aten::mm", {a, b}));
}

using Respell = NodePtr (*)(const Node&, const Call&);

Respell named_rule(Symbol op) {
  static const FlatMap<Symbol, Respell> rules = [] {
    FlatMap<Symbol, Respell> table;
    const auto add = [&](const char* name, Respell rule) { table.insert(Symbol(name), rule); };
    add("aten::transpose.int", as_permute);
    add("aten::split.Tensor", as_split_with_sizes);
    add("aten::rsub.Tensor", as_sub);
    add("aten::slice.Tensor", as_slice);
    add("aten::select.int", as_select);
    add("aten::reshape", with_sizes);
    add("aten::expand", with_sizes);
    add("aten::sum", as_sum_of_axes);
    add("aten::matmul", as_mm);
    return table;
  }();
  const Respell* found = rules.find(op);
  return found == nullptr ? nullptr : *found;
}

// ---- numbers beside tensors ---------------------------------------------------------------------

// `mul.Scalar` -> `mul.Tensor`: an overload that takes a tensor where this one takes a number.
const Operation* tensor_overload(const Operation& operation) {
  std::string name = operation.schema.name.str();
  const size_t dot = name.find(".Scalar");
  if (dot == std::string::npos) return nullptr;
  const Operation* other = find_operation(Symbol(name.replace(dot, 7, ".Tensor")));
  if (other == nullptr) return nullptr;
  const auto &from = operation.schema.arguments, &to = other->schema.arguments;
  if (from.size() != to.size()) return nullptr;
  for (size_t i = 0; i < from.size(); ++i) {
    const bool number = from[i].type == ArgumentType::scalar && to[i].is_tensor();
    if (from[i].name != to[i].name || (from[i].type != to[i].type && !number)) return nullptr;
    if (number && from[i].name != "other") return nullptr;
  }
  return other;
}

bool gives(const Node& candidate, const Type& type) {
  const Operation& operation = operation_named(candidate.op().str());
  const Type now = infer(operation, call_of(candidate, operation.schema)).at(0);
  return now.dtype == type.dtype && now.sizes == type.sizes;
}

// The one value of a float constant, `torch.tensor(1.0)`.
std::optional<Scalar> only_element(const Node& node) {
  if (node.op() != ops::kConstant || type_of(node).numel() != 1) return std::nullopt;
  if (category(type_of(node).dtype) != DTypeCategory::floating) return std::nullopt;
  const auto* value = node.attribute("value").get_if<Array>();
  if (value == nullptr) return std::nullopt;
  return Scalar(elements<double>(*value)[0]);
}

// The number that `tensor` is beside `other`: full(…) of its dtype or a constant of one element, or
// a wrapped integer beside a float, which becomes one. Not beside halves: LibTorch computes with
// the number in float32 there, but with the tensor rounded.
std::optional<Scalar> number_beside(const LazyTensor& tensor, const LazyTensor& other) {
  static const Symbol kFull("aten::full");
  const Node &node = *tensor.node, &partner = *other.node;
  if (is_wrapped_number(other) || partner.op() == kFull) return std::nullopt;
  if (!is_defined(tensor.type()) || !is_defined(other.type())) return std::nullopt;
  if (tensor.dtype() == other.dtype() && item_size(tensor.dtype()) >= 4 &&
      !is_wrapped_number(tensor)) {
    if (node.op() == kFull) return node.attribute("fill_value").as<Scalar>();
    if (const auto value = only_element(node)) return value;
  }
  constexpr int64_t kExact = int64_t{1} << 53;
  if (!is_wrapped_number(tensor) || tensor.dtype() != DType::int64 ||
      category(other.dtype()) != DTypeCategory::floating)
    return std::nullopt;
  const int64_t value = elements<int64_t>(node.attribute("value").as<Array>())[0];
  if (std::abs(value) > kExact) return std::nullopt;
  return Scalar(static_cast<double>(value));
}

NodePtr with_number(const Node& node, const Call& call) {
  static const Symbol kAdd("aten::add.Tensor"), kSub("aten::sub.Tensor"), kMul("aten::mul.Tensor"),
      kDiv("aten::div.Tensor");
  const Symbol op = node.op();
  if (op != kAdd && op != kSub && op != kMul && op != kDiv) return nullptr;
  for (size_t i = 0; i < 2; ++i) {
    const LazyTensor& other = call.tensors()[1 - i];
    const auto number = number_beside(call.tensors()[i], other);
    if (!number || other.type().sizes != type_of(node).sizes) continue;
    auto arguments = arguments_of(call);
    arguments[i] = *number;
    const NodePtr candidate = respelled(node, op.str(), std::move(arguments));
    if (gives(*candidate, type_of(node))) return candidate;
  }
  return nullptr;
}

// ---- arguments ----------------------------------------------------------------------------------

bool means_axes(const SchemaArgument& argument) {
  return argument.type == ArgumentType::integer && argument.name.starts_with("dim");
}

enum class Axes { from_front, in_order };  // in order: and all of them for none

Attribute plain_axes(const Attribute& axes, int64_t rank, Axes how) {
  const auto from_front = [&](int64_t axis) { return axis < 0 ? axis + rank : axis; };
  if (axes.kind() == AttributeKind::dim) return Attribute(from_front(axes.as_int()));
  if (axes.is_none() && how == Axes::from_front) return axes;
  Ints plain = axes.is_none() ? Ints{} : to_ints(axes);
  for (int64_t& axis : plain) axis = from_front(axis);
  if (how == Axes::from_front) return int_list(plain);
  std::sort(plain.begin(), plain.end());
  if (plain.empty()) {
    plain.resize(static_cast<size_t>(rank));
    std::iota(plain.begin(), plain.end(), int64_t{0});
  }
  return int_list(plain);
}

// `node` itself where nothing changes.
NodePtr with_axes(const NodePtr& node, const Operation& operation, Axes how) {
  const Call call = call_of(*node, operation.schema);
  if (call.tensors().empty() || !call.tensors()[0].defined()) return node;
  auto arguments = arguments_of(call);
  for (size_t i = 0; i < arguments.size(); ++i) {
    const SchemaArgument& argument = operation.schema.arguments[i];
    if (!means_axes(argument) || (arguments[i].is_none() && !argument.list)) continue;
    arguments[i] = plain_axes(arguments[i].data(), call.tensors()[0].rank(), how);
  }
  const NodePtr now = respelled(*node, node->op().str(), std::move(arguments));
  return now->hash() == node->hash() ? node : now;
}

bool same_definition(const Node& a, const Node& b) {
  const auto x = decomposition(a), y = decomposition(b);
  if (!x || !y) return same_loops(a, b);
  const auto plain = [](const Graph& parts) { return canonicalize(parts, {.exact = true}); };
  return plain(*x) == plain(*y);
}

// Axes in the plainest way that the definition says is the same. What a native function makes of
// their order is not known.
NodePtr with_plain_axes(const NodePtr& node, const Operation& operation) {
  if (operation.row.native) return with_axes(node, operation, Axes::from_front);
  for (const Axes how : {Axes::in_order, Axes::from_front}) {
    const NodePtr plain = with_axes(node, operation, how);
    if (plain == node || same_definition(*node, *plain)) return plain;
  }
  return node;
}

// "int[2]" takes a list of one for both.
std::vector<ArgumentValue> full_length(const Schema& schema, std::vector<ArgumentValue> arguments) {
  for (size_t i = 0; i < arguments.size(); ++i) {
    const SchemaArgument& argument = schema.arguments[i];
    if (argument.is_tensor() || !argument.length || arguments[i].is_none()) continue;
    const List* list = arguments[i].data().get_if<List>();
    if (list != nullptr && list->items.size() == 1 && *argument.length > 1)
      arguments[i] = list->items[0];
  }
  return arguments;
}

// ---- all of it ----------------------------------------------------------------------------------

// Another operation that gives the same as `node`, or nothing.
NodePtr other_operation(const Node& node, const Operation& operation) {
  const Call call = call_of(node, operation.schema);
  if (const Operation* other = tensor_overload(operation)) {
    const NodePtr candidate = respelled(node, other->schema.name.str(), arguments_of(call));
    if (gives(*candidate, type_of(node))) return candidate;
  }
  if (const Respell rule = named_rule(operation.schema.name))
    if (NodePtr found = rule(node, call)) return found;
  if (operation.row.loops && operation.row.nondifferentiable.empty() &&
      node.outputs().size() == 1) {
    if (NodePtr found = as_reshape(node, call)) return found;
    if (NodePtr found = as_cast(node, call)) return found;
    if (NodePtr found = as_full(node)) return found;
  }
  return with_number(node, call);
}

// The one operation that `node` is defined as.
std::optional<Spelling> only_part(const Node& node) {
  const auto parts = decomposition(node);
  if (!parts) return std::nullopt;
  const auto& nodes = parts->nodes();
  const auto inner = std::count_if(nodes.begin(), nodes.end(), [](const NodePtr& part) {
    return !is_input(*part) && part->op() != ops::kConstant;
  });
  if (inner != 1) return std::nullopt;
  Spelling spelling;
  for (const LazyTensor& output : in_place_of(node, *parts)) {
    if (!output || (spelling.node && spelling.node != output.node)) return std::nullopt;
    spelling.node = output.node;
    spelling.outputs.push_back(output.index);
  }
  return spelling;
}

// By its row's name, all arguments written out.
NodePtr written_out(const Node& node, const Operation& operation) {
  const auto arguments = arguments_of(call_of(node, operation.schema));
  return respelled(node, operation.schema.name.str(), full_length(operation.schema, arguments));
}

Spelling then(const Spelling& first, const Spelling& second) {
  Spelling both{second.node, {}};
  for (uint32_t output : first.outputs)
    both.outputs.push_back(second.outputs.empty() ? output : second.outputs.at(output));
  return both;
}

}  // namespace

Spelling canonical_spelling(const NodePtr& node) {
  Spelling now{node, {}};
  now.outputs.resize(node->outputs().size());
  std::iota(now.outputs.begin(), now.outputs.end(), 0U);
  if (find_operation(node->op()) == nullptr) {  // in place: the functional one, where it is one
    const auto part = only_part(*node);
    if (!part || find_operation(part->node->op()) == nullptr) return now;
    now = then(now, *part);
  }
  // Each step leads to an operation nearer to the canonical one; the bound is for rows of users.
  for (int step = 0; step < 16; ++step) {
    const Operation& operation = operation_named(now.node->op().str());
    now.node = written_out(*now.node, operation);
    Spelling next{other_operation(*now.node, operation), {}};
    if (!next.node || next.node->hash() == now.node->hash()) {
      const auto part = only_part(*now.node);
      if (!part || find_operation(part->node->op()) == nullptr) break;
      next = *part;
    }
    now = then(now, next);
  }
  const Operation& operation = operation_named(now.node->op().str());
  now.node = with_plain_axes(now.node, operation);
  return now;
}

}  // namespace composit
