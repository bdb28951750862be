#include "composit/interchange/onnx/lower.h"

#include "composit/interchange/checks.h"
#include "composit/interchange/onnx/block_products.h"
#include "composit/interchange/onnx/ops.h"
#include "composit/interchange/onnx/rows.h"
#include "composit/ir/error.h"
#include "composit/ir/transform.h"
#include "composit/passes/inline_calls.h"

namespace composit::onnx {
namespace {

const Symbol& non_zero() {
  static const Symbol op(std::string(kDomain) + "::NonZero");
  return op;
}

bool is_weight(const LazyTensor& x) {
  return is_input(*x.node) &&
         (input_kind(*x.node) == InputKind::parameter || input_kind(*x.node) == InputKind::buffer);
}

// ONNX has integers of 4 bits, two to a byte and low half first as well: weights of bytes that are
// taken apart are initializers of them, which model.cpp writes. Others are taken apart by the
// definition.
Graph with_int4_weights(const Graph& graph) {
  return rebuild(graph, [](const Node& node, const LazyTensors& operands) {
    std::optional<Replacement> replacement;
    if (node.op().str() != "composit::unpack_int4" || !is_weight(operands[0])) return replacement;
    const auto placed = [&](const LazyTensor& made) {
      NodeSpec spec = copy_of(*made.node, made.node->operands());
      spec.place = node.place();
      return std::move(spec).make();
    };
    const LazyTensor integers = placed(call(kInt4Initializer, {operands[0]}, {},
                                            tensor_type(DType::int4, node.outputs()[0].sizes)));
    replacement = replace_by(placed(cast_to(integers, DType::int8)).node);
    return replacement;
  });
}

// DequantizeLinear takes integers of 4 bits themselves, zero points as well.
Graph without_int4_casts(const Graph& graph) {
  return rebuild(graph, [](const Node& node, const LazyTensors& operands) {
    std::optional<Replacement> replacement;
    if (node.op().str() != std::string(kDomain) + "::DequantizeLinear") return replacement;
    NodeSpec spec = copy_of(node, operands);
    for (const size_t i : {size_t{0}, size_t{2}}) {
      if (i >= operands.size()) continue;
      const Node& cast = *operands[i].node;
      if (cast.op().str() != std::string(kDomain) + "::Cast" ||
          cast.operands()[0].dtype() != DType::int4)
        return replacement;
      spec.operands[i] = cast.operands()[0];
    }
    replacement = replace_by(std::move(spec).make_node());
    return replacement;
  });
}

// Sizes that follow from values have to be what they were.
void hold_sizes(Lowered& lowered) {
  Graph::Parts parts = lowered.graph.parts();
  for (const NodePtr& node : lowered.graph.nodes()) {
    if (!has_open_size(*node)) continue;
    parts.outputs.push_back(size_holds(node));
    lowered.guards.push_back(size_text(*node));
  }
  lowered.graph = Graph(std::move(parts));
}

// Within branches and loops nobody can ask.
Graph without_open_sizes(const Graph& region) {
  for (const NodePtr& node : region.nodes())
    if (node->op() == non_zero())
      throw UserError("within a branch or a loop nobody can ask how long a result is" +
                      interchange::place_of(*node));
  return rebuild_regions(region, without_open_sizes);
}

}  // namespace

bool has_open_size(const Node& node) { return node.op() == non_zero(); }

LazyTensor size_holds(const NodePtr& node) {
  const LazyTensor value{node, 0};
  const LazyTensor size = call("Size", {value}, {}, tensor_type(DType::int64, {}));
  return compare("Equal", size, number(static_cast<double>(value.type().numel()), DType::int64));
}

std::string size_text(const Node& node) {
  return "the number of elements of nonzero" + interchange::place_of(node) + " is " +
         std::to_string(node.outputs().at(0).numel());
}

Lowered lower_open(const Graph& given, int opset, const MayFold& may_fold, bool matmul_nbits) {
  const Graph graph = matmul_nbits ? with_block_products(inline_calls(given)) : given;
  const bool has_int4 = opset >= 21;
  const interchange::Target target{
      .name = "ONNX", .domain = kDomain, .rows = rows(opset), .has_complex = false};
  Lowered lowered = interchange::lower(has_int4 ? with_int4_weights(inline_calls(graph)) : graph,
                                       target, may_fold);
  if (has_int4) lowered.graph = without_int4_casts(lowered.graph);
  interchange::guard_checks(lowered, "onnx::And");
  rebuild_regions(lowered.graph, without_open_sizes);
  if (lowered.graph.outputs().empty() && lowered.graph.mutations().empty())
    throw UserError("it gives no tensor, and a model has at least one output");
  return lowered;
}

Lowered lower(const Graph& graph, int opset, const MayFold& may_fold, bool matmul_nbits) {
  Lowered lowered = lower_open(graph, opset, may_fold, matmul_nbits);
  hold_sizes(lowered);
  return lowered;
}

}  // namespace composit::onnx
