#include "composit/interchange/onnx/block_products.h"

#include "composit/interchange/onnx/ops.h"
#include "composit/ir/transform.h"
#include "composit/op/call.h"
#include "composit/ops/operations.h"

namespace composit::onnx {
namespace {

bool is(const LazyTensor& x, std::string_view op) {
  return x && x.index == 0 && x.node->op().str() == op;
}

// The bytes that are taken apart to x; absent where that is something else.
LazyTensor bytes_of(const LazyTensor& x) {
  return is(x, "composit::unpack_int4") ? x.node->operands()[0] : LazyTensor();
}
LazyTensor without_sign(const LazyTensor& bytes) {
  return binary("BitwiseXor", bytes, number(0x88, DType::uint8));
}

// A weight [columns, terms] and its groups.
struct Weight {
  LazyTensor bytes, scales, zeros;  // zeros: bytes; absent: 0
  int64_t columns = 0, terms = 0, group = 0;
};

std::optional<Weight> weight_of(const LazyTensor& x) {
  if (!is(x, "quantized_decomposed::dequantize_per_channel_group") || x.dtype() != DType::float32)
    return std::nullopt;
  const std::vector<LazyTensor>& operands = x.node->operands();
  Weight weight{.bytes = bytes_of(operands[0]),
                .scales = operands[1],
                .zeros = {},
                .columns = x.size(0),
                .terms = x.size(1),
                .group = x.node->attribute("group_size").as_int()};
  const bool is_power = weight.group >= 16 && (weight.group & (weight.group - 1)) == 0;
  if (!weight.bytes || !is_power || weight.terms % weight.group != 0 ||
      weight.scales.dtype() != DType::float32)
    return std::nullopt;
  const int64_t groups = weight.terms / weight.group;
  if (weight.scales.sizes() != Dims{weight.columns, groups}) return std::nullopt;
  if (operands.size() > 2 && operands[2]) {
    weight.zeros = bytes_of(operands[2]);
    if (!weight.zeros || operands[2].sizes() != weight.scales.sizes()) return std::nullopt;
  }
  return weight;
}

// The matrix on the right of a product as [columns, terms]; absent where there is none.
LazyTensor matrix_of(const Node& node, const LazyTensors& operands) {
  const std::string& op = node.op().str();
  if (op == "aten::linear") return operands[1];
  if (op != "aten::matmul" && op != "aten::mm") return {};
  LazyTensor right = operands[1];
  if (right.rank() != 2) return {};
  while (is(right, "aten::contiguous")) right = LazyTensor(right.node->operands()[0]);
  if (is(right, "aten::t")) return right.node->operands()[0];
  if (!is(right, "aten::transpose.int")) return {};
  const auto axis = [&](const char* name) { return right.node->attribute(name).as_int() & 1; };
  return axis("dim0") != axis("dim1") ? right.node->operands()[0] : LazyTensor();
}

LazyTensor product(const LazyTensor& x, const Weight& weight, const LazyTensor& bias,
                   const Type& result) {
  const int64_t groups = weight.terms / weight.group;
  const LazyTensor blocks =
      reshaped(without_sign(weight.bytes), {weight.columns, groups, weight.group / 2});
  LazyTensors operands = {x, blocks, weight.scales};
  operands.push_back(weight.zeros ? without_sign(weight.zeros) : LazyTensor());
  if (bias) operands.insert(operands.end(), {LazyTensor(), bias});
  return call(kMatMulNBits, operands,
              {attribute("K", weight.terms), attribute("N", weight.columns),
               attribute("bits", int64_t{4}), attribute("block_size", weight.group)},
              tensor_type(result.dtype, result.sizes));
}

}  // namespace

Graph with_block_products(const Graph& graph) {
  return rebuild(graph, [](const Node& node, const LazyTensors& operands) {
    std::optional<Replacement> replacement;
    const LazyTensor matrix = matrix_of(node, operands);
    const std::optional<Weight> weight = matrix ? weight_of(matrix) : std::nullopt;
    if (!weight || operands[0].dtype() != DType::float32 || operands[0].rank() < 2)
      return replacement;
    const LazyTensor bias = operands.size() > 2 ? operands[2] : LazyTensor();
    const LazyTensor made = product(operands[0], *weight, bias, node.outputs()[0]);
    NodeSpec spec = copy_of(*made.node, made.node->operands());
    spec.place = node.place();
    spec.annotations = node.annotations();
    replacement = replace_by(std::move(spec).make_node());
    return replacement;
  });
}

}  // namespace composit::onnx
