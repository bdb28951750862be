#include "composit/ops/tracing.h"

#include <atomic>
#include <numeric>

#include "composit/ir/error.h"
#include "composit/ir/flat_map.h"
#include "composit/ir/transform.h"

namespace composit {
namespace {

Type contiguous(const Type& type) { return tensor_type(type.dtype, type.sizes); }

uint64_t next_serial() { return fresh_block(tensor_type(DType::bool_, {})).node->serial(); }

// Makes one region; `outside` are what all of them take.
Region region_of(const Traced& function, const std::vector<size_t>& order,
                 const LazyTensors& outside) {
  Graph::Parts parts;
  FlatMap<Hash, LazyTensor> arguments;
  const auto add_argument = [&](const LazyTensor& tensor) {
    parts.inputs.push_back(
        input(std::to_string(parts.inputs.size()), contiguous(tensor.type()), InputKind::block));
    arguments[tensor.hash()] = parts.inputs.back();
  };
  for (size_t block : order) add_argument(function.blocks()[block]);
  for (const LazyTensor& tensor : outside) add_argument(tensor);
  FlatMap<const Node*, LazyTensors> now;
  const auto value = [&](const LazyTensor& old) {
    if (!old) return old;
    const LazyTensor* argument = arguments.find(old.hash());
    return argument != nullptr ? *argument : now[old.node.get()].at(old.index);
  };
  for (const NodePtr& node : function.nodes()) {
    LazyTensors operands;
    for (const LazyTensor& operand : node->operands()) operands.push_back(value(operand));
    NodeSpec spec = copy_of(*node, std::move(operands));
    spec.place = 0;
    now[node.get()] = replace_by(std::move(spec).make_node()).outputs;
  }
  for (const LazyTensor& output : function.outputs()) parts.outputs.push_back(value(output));
  return std::make_shared<const Graph>(std::move(parts));
}

}  // namespace

// No two blocks have one name while functions are traced: an input is its name and type, and a
// function may be traced within another one.
LazyTensor fresh_block(const Type& type) {
  static std::atomic<uint64_t> count = 0;
  return input("block " + std::to_string(count++), contiguous(type), InputKind::block);
}

std::vector<Type> tensor_types(const LazyTensors& tensors) {
  std::vector<Type> types;
  for (const LazyTensor& tensor : tensors) {
    if (!tensor.defined()) throw UserError("expected a tensor, received none");
    types.push_back(tensor.type());
  }
  return types;
}

Traced::Traced(const std::vector<Type>& types, const TensorFunction& f) : begin_(next_serial()) {
  for (const Type& type : types) blocks_.push_back(fresh_block(type));
  outputs_ = f(blocks_);
  for (size_t i = 0; i < outputs_.size(); ++i)
    if (!outputs_[i].defined())
      throw UserError("expected a tensor as result " + std::to_string(i) +
                      " of the function, received none");
  collect();
}

void Traced::give(const LazyTensors& outputs) {
  outputs_ = outputs;
  collect();
}

void Traced::cut(const LazyTensors& values) {
  blocks_.insert(blocks_.end(), values.begin(), values.end());
  collect();
}

bool Traced::is_outside(const LazyTensor& tensor) const {
  const Node& node = *tensor.node;
  if (node.op() == ops::kConstant) return false;
  return is_input(node) ? !is_block(tensor) : node.serial() < begin_;
}

// Depth first, not recursive.
void Traced::collect() {
  nodes_.clear();
  for (size_t i = 0; i < blocks_.size(); ++i) places_.insert(blocks_[i].hash(), i);
  FlatMap<const Node*, std::monostate> seen;
  std::vector<std::pair<NodePtr, size_t>> stack;
  const auto push = [&](const LazyTensor& tensor) {
    const bool own = tensor && !is_block(tensor) && !is_outside(tensor);
    if (own && seen.insert(tensor.node.get(), {})) stack.emplace_back(tensor.node, 0);
  };
  for (const LazyTensor& output : outputs_) {
    push(output);
    while (!stack.empty()) {
      auto& [node, next] = stack.back();
      if (next < node->operands().size()) {
        push(node->operands()[next++]);
        continue;
      }
      nodes_.push_back(node);
      stack.pop_back();
    }
  }
}

std::vector<bool> Traced::used() const {
  std::vector<bool> used(blocks_.size());
  const auto use = [&](const LazyTensor& tensor) {
    const size_t* place = tensor ? places_.find(tensor.hash()) : nullptr;
    if (place != nullptr) used[*place] = true;
  };
  for (const LazyTensor& output : outputs_) use(output);
  for (const NodePtr& node : nodes_)
    for (const LazyTensor& operand : node->operands()) use(operand);
  return used;
}

Closed close(const std::vector<Traced>& functions,
             const std::optional<std::vector<size_t>>& order) {
  Closed closed;
  FlatMap<Hash, std::monostate> seen;
  for (const Traced& function : functions) {
    const auto take = [&](const LazyTensor& tensor) {
      if (tensor && function.is_outside(tensor) && seen.insert(tensor.hash(), {}))
        closed.outside.emplace_back(tensor);
    };
    for (const NodePtr& node : function.nodes())
      for (const LazyTensor& operand : node->operands()) take(operand);
    for (const LazyTensor& output : function.outputs()) take(output);
  }
  for (const Traced& function : functions) {
    std::vector<size_t> all(function.blocks().size());
    std::iota(all.begin(), all.end(), size_t{0});
    closed.regions.push_back(region_of(function, order.value_or(all), closed.outside));
  }
  return closed;
}

LazyTensors call_region(const Graph& region, const LazyTensors& arguments) {
  const auto outputs =
      inlined(region, {arguments.begin(), arguments.end()}, [](NodeSpec& spec) { spec.place = 0; });
  return {outputs.begin(), outputs.end()};
}

}  // namespace composit
