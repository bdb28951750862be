#include "composit/quantize/layers.h"

#include <algorithm>
#include <cmath>
#include <cstring>

#include "composit/ir/error.h"
#include "composit/ir/flat_map.h"
#include "composit/ir/transform.h"
#include "composit/ops/native.h"

namespace composit::quantization {
namespace {

// The operands of an operation that multiplies.
struct Form {
  std::string_view op;
  uint32_t x, weight;
  bool by_inputs;  // the weight is [in, out]
  bool is_convolution;
};
constexpr Form kForms[] = {
    {"aten::linear", 0, 1, false, false},        {"aten::mm", 0, 1, true, false},
    {"aten::matmul", 0, 1, true, false},         {"aten::addmm", 1, 2, true, false},
    {"aten::conv1d", 0, 1, false, true},         {"aten::conv2d", 0, 1, false, true},
    {"aten::conv3d", 0, 1, false, true},         {"aten::conv1d.padding", 0, 1, false, true},
    {"aten::conv2d.padding", 0, 1, false, true}, {"aten::conv3d.padding", 0, 1, false, true},
    {"aten::convolution", 0, 1, false, true},    {"aten::_convolution", 0, 1, false, true},
};

const Form* form_of(const Node& node, uint32_t operand) {
  for (const Form& form : kForms)
    if (form.op == node.op().str() && form.weight == operand) {
      const Attribute* transposed = node.find_attribute("transposed");
      return transposed != nullptr && transposed->as<bool>() ? nullptr : &form;
    }
  return nullptr;
}

// A matrix transposed: `t(w)`, `transpose(w, 0, 1)`, `permute(w, [1, 0])`.
bool is_transpose(const Node& node) {
  const std::string& op = node.op().str();
  if (op != "aten::t" && op != "aten::transpose.int" && op != "aten::permute" &&
      op != "aten::numpy_T")
    return false;
  const Dims &before = node.operands()[0].sizes(), &after = node.outputs()[0].sizes;
  const auto& strides = node.operands()[0].type().strides;
  return before.size() == 2 && after == Dims{before[1], before[0]} &&
         node.outputs()[0].strides == std::vector<int64_t>{strides[1], strides[0]};
}

using Owners = FlatMap<const Node*, NodePtr>;

Owners owners_of(const Graph& graph) {
  Owners owners;
  for (const NodePtr& node : graph.nodes()) owners.insert(node.get(), node);
  return owners;
}

class Finder {
 public:
  Finder(const Graph& graph, const Owners& owners, Layer& layer)
      : graph_(graph), owners_(owners), layer_(layer) {}

  void run() { follow(*layer_.weight.node, false); }

 private:
  void follow(const Node& node, bool turned) {
    for (const Use& use : graph_.successors(node)) {
      if (const Form* form = form_of(*use.node, use.operand))
        add(*use.node, *form, turned);
      else if (!turned && is_transpose(*use.node))
        follow(*use.node, true);
      else
        layer_.has_other_readers = true;
    }
    for (const LazyTensor& output : graph_.outputs())
      if (output && output.node.get() == &node) layer_.has_other_readers = true;
  }
  void add(const Node& node, const Form& form, bool turned) {
    if (!form.is_convolution && layer_.weight.rank() != 2) {
      layer_.has_other_readers = true;
      return;
    }
    const bool by_inputs = form.by_inputs != turned;
    if (!layer_.products.empty() &&
        (by_inputs != layer_.by_inputs || form.is_convolution != layer_.is_convolution))
      layer_.refusal = "products along both of its axes";
    layer_.by_inputs = by_inputs;
    layer_.is_convolution = form.is_convolution;
    layer_.products.push_back({*owners_.find(&node), form.x, form.weight});
  }

  const Graph& graph_;
  const Owners& owners_;
  Layer& layer_;
};

bool is_written(const Graph& graph, const LazyTensor& input) {
  return std::any_of(graph.mutations().begin(), graph.mutations().end(),
                     [&](const Mutation& mutation) { return mutation.target == input; });
}

bool has_real_elements(DType dtype) { return dtype == DType::float32 || is_half(dtype); }

}  // namespace

std::vector<Layer> layers_of(const SavedCapture& capture) {
  std::vector<Layer> layers;
  const Owners owners = owners_of(capture.graph);
  for (const LazyTensor& input : capture.graph.inputs()) {
    const InputKind kind = input_kind(*input.node);
    if (kind == InputKind::block || input.rank() < 2 || !is_floating_point(input.dtype())) continue;
    const std::string& name = input_name(*input.node);
    const auto found = capture.weights.find(name);
    if (kind == InputKind::user_input && !input.node->held().defined()) continue;
    Layer layer;
    layer.weight = input;
    Finder(capture.graph, owners, layer).run();
    if (layer.products.empty()) continue;
    layer.value = found != capture.weights.end() ? found->second : input.node->held();
    if (!layer.value.defined()) throw UserError("[quantize] weight '" + name + "' has no value");
    if (is_written(capture.graph, input)) layer.refusal = "the program writes it";
    if (!is_contiguous(input.type())) layer.refusal = "it does not lie row by row in memory";
    if (!has_real_elements(input.dtype()))
      layer.refusal = "it is of " + std::string(composit::name(input.dtype()));
    layers.push_back(std::move(layer));
  }
  return layers;
}

Matrix matrix_of(const Layer& layer) {
  const std::vector<double> values = elements<double>(layer.value);
  const Dims& sizes = layer.weight.sizes();
  const int64_t numel = layer.weight.numel();
  for (size_t i = 0; i < values.size(); ++i)
    if (!std::isfinite(values[i]))
      throw UserError("[quantize] weight '" + layer.name() + "' has the element " +
                      std::to_string(values[i]) + " at place " + std::to_string(i) + " of " +
                      std::to_string(numel) + ": integers have no such number");
  Matrix matrix{layer.by_inputs ? sizes[1] : sizes[0], 0, std::vector<float>(values.size())};
  matrix.columns = matrix.rows == 0 ? 0 : numel / matrix.rows;
  for (int64_t i = 0; i < numel; ++i) {
    const int64_t at = layer.by_inputs ? i % matrix.rows * matrix.columns + i / matrix.rows : i;
    matrix.values[static_cast<size_t>(at)] = static_cast<float>(values[static_cast<size_t>(i)]);
  }
  return matrix;
}

Array array_of(const Layer& layer, const Matrix& matrix) {
  const int64_t numel = layer.weight.numel();
  std::vector<double> values(static_cast<size_t>(numel));
  for (int64_t i = 0; i < numel; ++i) {
    const int64_t at = layer.by_inputs ? i % matrix.rows * matrix.columns + i / matrix.rows : i;
    values[static_cast<size_t>(i)] = matrix.values[static_cast<size_t>(at)];
  }
  return composit::array_of(layer.weight.type(), values);
}

void set_operand(NodeSpec& spec, size_t operand, const LazyTensor& value) {
  if (value.type() != spec.operands[operand].type())
    std::erase_if(spec.execution, [](const auto& entry) { return entry.key() == "body"; });
  spec.operands[operand] = value;
}

LazyTensor product_with(const Product& product, const LazyTensor& x, const LazyTensor& weight) {
  NodeSpec spec = copy_of(*product.node, product.node->operands());
  set_operand(spec, product.x, x);
  const Node& old = *spec.operands[product.weight].node;
  set_operand(spec, product.weight,
              is_input(old) ? weight : LazyTensor{copy_of(old, {weight}).make_node(), 0});
  return {std::move(spec).make_node(), 0};
}

}  // namespace composit::quantization
