#include "composit/passes/fuse_linear.h"

#include "composit/passes/definition.h"

namespace composit {
namespace {

const Symbol kMm("aten::mm"), kMatmul("aten::matmul"), kAddmm("aten::addmm"),
    kAdd("aten::add.Tensor"), kReshapeOp("aten::reshape"), kPermuteOp("aten::permute"),
    kLinear("aten::linear");

bool is_one(const Node& node, std::string_view attribute) {
  return is_literal(Expr(node.attribute(attribute).as<Scalar>()), 1);
}

class Fuser {
 public:
  explicit Fuser(const Graph& graph) : graph_(graph) {
    for (const LazyTensor& output : graph.outputs()) mark(output);
    for (const Mutation& mutation : graph.mutations()) mark(mutation.value);
  }

  // `now` is `node` with the operands of the new graph.
  NodePtr fused(const Node& node, const Node& now) const {
    const Symbol op = node.op();
    if (op == kMm || op == kMatmul) return product(now);
    if (op == kAddmm) return product_and_bias(now);
    if (op == kAdd && is_only_use(node)) return linear_and_bias(now);
    if (op == kReshapeOp && is_only_use(node)) return between_reshapes(now);
    return nullptr;
  }

 private:
  void mark(const LazyTensor& tensor) {
    if (tensor) leaves_.insert(tensor.node.get(), {});
  }
  // Nobody but `node` uses its first operand.
  bool is_only_use(const Node& node) const {
    const Node& operand = *node.operands()[0].node;
    return !leaves_.contains(&operand) && graph_.successors(operand).size() == 1;
  }

  // w where `tensor` is w transposed, computed in the same mode.
  static LazyTensor weight_of(const LazyTensor& tensor, const Node& user) {
    const Node& node = *tensor.node;
    if (node.op() != kPermuteOp || node.execution() != user.execution() ||
        to_ints(node.attribute("dims")) != Ints{1, 0})
      return {};
    return node.operands()[0];
  }
  static bool is_bias(const LazyTensor& bias, const LazyTensor& weight) {
    return bias.rank() == 1 && weight.rank() == 2 && bias.size(0) == weight.size(0) &&
           bias.dtype() == weight.dtype();
  }

  static NodePtr product(const Node& now) {
    const LazyTensor x = now.operands()[0], weight = weight_of(now.operands()[1], now);
    return weight.defined() ? respelled(now, "aten::linear", {x, weight}) : nullptr;
  }
  static NodePtr product_and_bias(const Node& now) {
    const LazyTensor bias = now.operands()[0], x = now.operands()[1];
    const LazyTensor weight = weight_of(now.operands()[2], now);
    if (!weight.defined() || !is_bias(bias, weight) || !is_one(now, "beta") ||
        !is_one(now, "alpha"))
      return nullptr;
    return respelled(now, "aten::linear", {x, weight, bias});
  }
  static NodePtr linear_and_bias(const Node& now) {
    const LazyTensor &sum = now.operands()[0], &bias = now.operands()[1];
    const Node& linear = *sum.node;
    if (linear.op() != kLinear || linear.operands().size() != 2 ||
        linear.execution() != now.execution() || sum.sizes() != now.outputs()[0].sizes ||
        !is_bias(bias, linear.operands()[1]) || !is_one(now, "alpha"))
      return nullptr;
    return respelled(now, "aten::linear", {linear.operands()[0], linear.operands()[1], bias});
  }
  static NodePtr between_reshapes(const Node& now) {
    const Node& linear = *now.operands()[0].node;
    if (linear.op() != kLinear || linear.execution() != now.execution()) return nullptr;
    const Node& before = *linear.operands()[0].node;
    if (before.op() != kReshapeOp || before.execution() != now.execution()) return nullptr;
    const LazyTensor x = before.operands()[0], weight = linear.operands()[1];
    if (x.rank() == 0 || weight.rank() != 2 || x.size(-1) != weight.size(1)) return nullptr;
    Dims sizes = x.type().sizes;
    sizes.back() = weight.size(0);
    if (now.outputs()[0].sizes != sizes) return nullptr;
    std::vector<ArgumentValue> arguments = {x, weight};
    if (linear.operands().size() == 3) arguments.emplace_back(linear.operands()[2]);
    return respelled(now, "aten::linear", std::move(arguments));
  }

  const Graph& graph_;
  FlatMap<const Node*, std::monostate> leaves_;
};

}  // namespace

Graph fuse_linear(const Graph& graph) {
  const Fuser fuser(graph);
  const auto fuse = [&](const Node& node, const LazyTensors& operands) {
    std::optional<Replacement> replacement;
    if (!is_replaceable(node) || row_for(node) == nullptr) return replacement;
    const NodePtr now = copy_of(node, operands).make_node();
    if (const NodePtr linear = fuser.fused(node, *now)) replacement = replace_by(linear);
    return replacement;
  };
  return rebuild(graph, unless_refused(fuse));
}

}  // namespace composit
