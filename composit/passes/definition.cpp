#include "composit/passes/definition.h"

#include <algorithm>
#include <cmath>

#include "composit/ir/error.h"
#include "composit/ops/native.h"

namespace composit {
namespace {

bool same_values(const Type& a, const Type& b) { return a.dtype == b.dtype && a.sizes == b.sizes; }

// The outputs of `parts` with the types of the node's; nothing where that cannot be.
std::optional<Graph> with_types(const Graph& parts, const std::vector<Type>& types) {
  FlatMap<const Node*, std::vector<Type>> wanted;
  for (size_t i = 0; i < types.size(); ++i) {
    const LazyTensor& output = parts.outputs()[i];
    if (!output) {
      if (is_defined(types[i])) return std::nullopt;
      continue;
    }
    if (output.type() == types[i]) continue;
    const bool fixed = is_input(*output.node) || output.node->op() == ops::kConstant;
    if (fixed || !same_values(output.type(), types[i])) return std::nullopt;
    if (!wanted.contains(output.node.get()))
      wanted.insert(output.node.get(), output.node->outputs());
    wanted[output.node.get()][output.index] = types[i];
  }
  if (wanted.size() == 0) return parts;
  return rebuild(parts, [&](const Node& node, const LazyTensors& operands) {
    const auto* outputs = wanted.find(&node);
    if (outputs == nullptr) return std::optional<Replacement>();
    NodeSpec spec = copy_of(node, operands);
    spec.outputs = *outputs;
    return std::optional(replace_by(std::move(spec).make_node()));
  });
}

bool has_what_it_needs(const SchemaArgument& argument, const ArgumentValue& value) {
  if (!argument.is_tensor()) return true;
  if (argument.list) return value.is_list() || argument.optional;
  return value.is_tensor() && (value.tensor().defined() || argument.optional);
}

// The part of `execution` that holds however the value is computed.
Attributes kept_execution(const Node& node) {
  Attributes kept;
  if (const Attribute* grad = node.find_run("grad")) kept.push_back({Symbol("grad"), *grad});
  return kept;
}

void put_in_place_of(NodeSpec& spec, const Node& whole) {
  spec.place = whole.place();
  spec.execution = kept_execution(whole);
  spec.annotations.clear();
  for (const Annotation& annotation : whole.annotations())
    if (annotation.operand < 0) spec.annotations.push_back(annotation);
}

// A number that was just made, at `place`: a later node cannot be an operand.
LazyTensor not_behind(const LazyTensor& operand, uint64_t place) {
  if (operand.node->op() != ops::kConstant || operand.node->place() <= place) return operand;
  NodeSpec spec = copy_of(*operand.node, {});
  spec.place = place;
  return std::move(spec).make();
}

}  // namespace

LazyTensors blocks_for(const Node& node, LazyTensors& blocks) {
  LazyTensors operands;
  for (const LazyTensor& operand : node.operands()) {
    if (!operand) {
      operands.emplace_back();
      continue;
    }
    blocks.push_back(input(std::to_string(blocks.size()), operand.type(), InputKind::block));
    operands.push_back(is_wrapped_number(operand) ? operand : blocks.back());
  }
  return operands;
}

Rewrite unless_refused(Rewrite rewrite) {
  return [rewrite = std::move(rewrite)](const Node& node,
                                        const LazyTensors& operands) -> std::optional<Replacement> {
    try {
      return rewrite(node, operands);
    } catch (const UserError&) {
      return std::nullopt;
    }
  };
}

const Operation* row_for(const Node& node) {
  const Operation* operation = operation_of(node);
  if (operation == nullptr) return nullptr;
  const Call call = call_of(node, operation->schema);
  if (call.operand_types().size() != node.operands().size()) return nullptr;
  for (size_t i = 0; i < call.size(); ++i)
    if (!has_what_it_needs(operation->schema.arguments[i], call[i])) return nullptr;
  const auto& results = operation->schema.results;
  const bool as_written = results.size() == node.outputs().size() && !results[0].list;
  if (as_written || infer(*operation, call).size() == node.outputs().size()) return operation;
  return nullptr;
}

std::optional<Graph> decomposition(const Node& node) {
  const Operation* operation = row_for(node);
  if (operation == nullptr || !operation->row.decompose) return std::nullopt;
  LazyTensors blocks, outputs;
  const Call call = call_of(node, operation->schema, blocks_for(node, blocks));
  try {
    for (const LazyTensor& result : decompose(*operation, call)) outputs.push_back(result);
  } catch (const UserError&) {
    return std::nullopt;  // a case that the row does not define, as dropout in training
  }
  if (outputs.size() != node.outputs().size()) return std::nullopt;
  return with_types(Graph({.inputs = blocks, .outputs = outputs}), node.outputs());
}

LazyTensors in_place_of(const Node& whole, const Graph& parts) {
  LazyTensors arguments;
  for (const LazyTensor& operand : whole.operands())
    if (operand) arguments.push_back(operand);
  return inlined(parts, arguments, [&](NodeSpec& spec) {
    if (spec.op == ops::kConstant)
      spec.place = whole.place();
    else
      put_in_place_of(spec, whole);
  });
}

std::optional<Loops> loops_of(const Node& node) {
  const Operation* operation = row_for(node);
  if (operation == nullptr) return std::nullopt;
  auto loops = loops_of(*operation, call_of(node, operation->schema));
  if (loops) loops->operands.clear();
  return loops;
}

bool same_loops(const Node& a, const Node& b) {
  const auto x = loops_of(a), y = loops_of(b);
  return x && y && *x == *y;
}

bool is_replaceable(const Node& node, bool grad) {
  if (is_input(node) || node.op() == ops::kConstant) return false;
  return std::all_of(node.execution().begin(), node.execution().end(), [&](const auto& entry) {
    return entry.key() == "via" || entry.key() == "body" || entry.key() == "packed_for" ||
           (grad && entry.key() == "grad");
  });
}

bool is_filled_with(const LazyTensor& tensor, double value) {
  static const Symbol kFull("aten::full");
  const Node& node = *tensor.node;
  std::optional<double> found;
  if (node.op() == kFull) {
    const auto& scalar = node.attribute("fill_value").as<Scalar>().value;
    if (const auto* real = std::get_if<double>(&scalar)) found = *real;
    if (const auto* integer = std::get_if<int64_t>(&scalar)) found = static_cast<double>(*integer);
  } else if (node.op() == ops::kConstant && tensor.type().numel() == 1) {
    const auto* array = node.attribute("value").get_if<Array>();
    if (array != nullptr && !is_complex(tensor.dtype())) found = elements<double>(*array)[0];
  }
  return found && *found == value && !std::signbit(*found);
}

NodePtr respelled(const Node& node, std::string_view name, std::vector<ArgumentValue> arguments) {
  const Call call(operation_named(name).schema, std::move(arguments));
  const NodePtr fresh = call.node(node.outputs());
  LazyTensors operands;
  for (const LazyTensor& operand : fresh->operands())
    operands.push_back(operand ? not_behind(operand, node.place()) : operand);
  NodeSpec spec = copy_of(*fresh, std::move(operands));
  put_in_place_of(spec, node);
  return std::move(spec).make_node();
}

}  // namespace composit
