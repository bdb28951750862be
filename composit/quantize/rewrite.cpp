#include "composit/quantize/rewrite.h"

#include <algorithm>
#include <functional>
#include <map>
#include <set>

#include "composit/ir/error.h"
#include "composit/ir/flat_map.h"
#include "composit/ir/transform.h"
#include "composit/ops/functions.h"
#include "composit/ops/native.h"
#include "composit/shipped/half_types.h"

namespace composit::quantization {
namespace {

// An array that owns a copy of these elements.
template <class T>
Array array_with(DType dtype, Dims sizes, const std::vector<T>& elements) {
  return Array::copy_of(tensor_type(dtype, std::move(sizes)), elements.data());
}

std::vector<float> scales_of(const Integers& integers) {
  std::vector<float> scales;
  for (const Step& step : integers.steps) scales.push_back(step.scale);
  return scales;
}
template <class T>
std::vector<T> zeros_of(const Integers& integers) {
  std::vector<T> zeros;
  for (const Step& step : integers.steps) zeros.push_back(static_cast<T>(step.zero));
  return zeros;
}

// The integers of a convolution have the sizes of its weight, those of a product [out, in].
Dims sizes_of(const Layer& layer, const Integers& integers) {
  return layer.is_convolution ? layer.weight.sizes() : Dims{integers.rows, integers.columns};
}

class Storing {
 public:
  Storing(const Layer& layer, const Integers& integers, const std::vector<float>& divisors)
      : layer_(layer), integers_(integers), divisors_(divisors) {}

  StoredWeight run() {
    const Limits limits = limits_of(integers_.format.bits);
    const LazyTensor integers = integers_.format.bits == 4 ? nibbles() : bytes();
    const bool by_channel = integers_.format.group == 0;
    const Dims sizes = by_channel ? Dims{integers_.rows} : Dims{integers_.rows, integers_.groups()};
    const LazyTensor scales = to(hold("scales", stored_scales(sizes)), DType::float32);
    const std::optional<LazyTensor> zeros = points(sizes);
    LazyTensor value =
        by_channel ? apply_one("quantized_decomposed::dequantize_per_channel",
                               {integers, scales, zeros, 0, int64_t{limits.low},
                                int64_t{limits.high}, DType::int8, layer_.weight.dtype()})
                   : apply_one("quantized_decomposed::dequantize_per_channel_group",
                               {integers, scales, zeros, int64_t{limits.low}, int64_t{limits.high},
                                DType::int8, integers_.group(), layer_.weight.dtype()});
    if (layer_.by_inputs) value = apply_one("aten::contiguous", {transpose(value, 0, 1)});
    stored_.value = value;
    if (!divisors_.empty()) {
      const auto count = static_cast<int64_t>(divisors_.size());
      stored_.divisors = hold("divisors", array_with(DType::float32, {count}, divisors_));
    }
    return std::move(stored_);
  }

 private:
  LazyTensor hold(const char* what, const Array& array) {
    stored_.bytes += array.type().nbytes();
    stored_.inputs.push_back(held_input(layer_.name() + "." + what, array, InputKind::buffer));
    return stored_.inputs.back();
  }
  Array stored_scales(const Dims& sizes) const {
    const std::vector<float> scales = scales_of(integers_);
    const DType dtype = integers_.format.scales;
    if (dtype == DType::float16)
      return array_with(dtype, sizes, std::vector<fl::float16>(scales.begin(), scales.end()));
    if (dtype == DType::bfloat16)
      return array_with(dtype, sizes, std::vector<fl::bfloat16>(scales.begin(), scales.end()));
    return array_with(dtype, sizes, scales);
  }
  LazyTensor bytes() {
    return hold("int8", array_with(DType::int8, sizes_of(layer_, integers_), integers_.values));
  }
  LazyTensor nibbles() {
    const Dims sizes{integers_.rows, integers_.columns / 2};
    return apply_one("composit::unpack_int4",
                     {hold("int4", array_with(DType::uint8, sizes, packed(integers_.values)))});
  }
  // Differences of two integers of 4 bits fit into int8, those of 8 bits do not.
  std::optional<LazyTensor> points(const Dims& sizes) {
    if (integers_.format.symmetric) return std::nullopt;
    if (integers_.format.bits == 8)
      return hold("zeros", array_with(DType::int32, sizes, zeros_of<int32_t>(integers_)));
    const std::vector<int8_t> zeros = zeros_of<int8_t>(integers_);
    if (sizes.back() % 2 != 0) return hold("zeros", array_with(DType::int8, sizes, zeros));
    Dims halves = sizes;
    halves.back() /= 2;
    return apply_one("composit::unpack_int4",
                     {hold("zeros", array_with(DType::uint8, halves, packed(zeros)))});
  }

  const Layer& layer_;
  const Integers& integers_;
  const std::vector<float>& divisors_;
  StoredWeight stored_;
};

class Rewriter {
 public:
  Rewriter(const SavedCapture& capture,
           const std::vector<std::pair<const Layer*, LayerChange>>& changes)
      : capture_(capture) {
    for (const auto& [layer, change] : changes) {
      weights_.insert(layer->weight.node.get(), &change);
      for (const Product& product : layer->products) {
        products_[product.node.get()] = {&change, product.x};
        if (!change.all_readers || change.stored.divisors) continue;
        const LazyTensor& x = product.node->operands()[product.x];
        rounded_.try_emplace({x.node.get(), x.index}, change.steps.at(product.node.get()));
      }
    }
  }

  SavedCapture run() {
    const Graph graph = rebuild(capture_.graph, [this](const Node& node, const LazyTensors& now) {
      return replacement(node, now);
    });
    Graph::Parts parts = graph.parts();
    parts.inputs.clear();
    SavedCapture result = capture_;
    for (const LazyTensor& input : capture_.graph.inputs()) {
      const LayerChange* const* change = weights_.find(input.node.get());
      if (change == nullptr) {
        parts.inputs.push_back(input);
        continue;
      }
      result.weights.erase(input_name(*input.node));
      drop_ties(result, input_name(*input.node));
      for (const LazyTensor& stored : inputs_.at(*change)) {
        parts.inputs.push_back(stored);
        result.weights[input_name(*stored.node)] = stored.node->held();
      }
    }
    expect_names(parts.inputs);
    result.graph = Graph(std::move(parts));
    result.example_outputs.clear();
    return result;
  }

 private:
  struct Factor {
    const LayerChange* change;
    size_t x;
  };

  std::optional<Replacement> replacement(const Node& node, const LazyTensors& now) {
    if (const LayerChange* const* change = weights_.find(&node)) {
      return Replacement{{placed_weight(**change, node)}};
    }
    const auto product = products_.find(&node);
    if (product == products_.end()) return reader(node, now);
    NodeSpec spec = copy_of(node, now);
    const auto [change, x] = product->second;
    set_operand(spec, x, factor(*change, node, now[x]));
    return replace_by(std::move(spec).make_node());
  }

  // A node that reads what a layer reads, and is to read it rounded.
  std::optional<Replacement> reader(const Node& node, const LazyTensors& now) {
    std::optional<NodeSpec> spec;
    for (size_t i = 0; i < node.operands().size(); ++i) {
      const LazyTensor& old = node.operands()[i];
      if (!old) continue;
      const auto step = rounded_.find({old.node.get(), old.index});
      if (step == rounded_.end()) continue;
      if (!spec) spec = copy_of(node, now);
      set_operand(*spec, i, placed(node, now[i], [&](const LazyTensor& x) {
        return through_step(x, step->second);
      }));
    }
    if (!spec) return std::nullopt;
    return replace_by(std::move(*spec).make_node());
  }

  // What `make` makes of x, where the node is.
  LazyTensor placed(const Node& node, const LazyTensor& x,
                    const std::function<LazyTensor(const LazyTensor&)>& make) {
    const LazyTensor block = input("x", x.type(), InputKind::block);
    const Graph body({.inputs = {block}, .outputs = {make(block)}});
    return inlined(body, {x}, [&](NodeSpec& spec) { spec.place = node.place(); })[0];
  }

  // Nodes take the place of what they stand for, so that effects keep their order.
  LazyTensor placed_weight(const LayerChange& change, const Node& old) {
    const uint64_t place = old.place();
    LazyTensors blocks, placed;
    FlatMap<const Node*, LazyTensor> by_input;
    for (const LazyTensor& input : change.stored.inputs) {
      NodeSpec spec = copy_of(*input.node, {});
      spec.place = place;
      placed.push_back(std::move(spec).make());
      by_input.insert(input.node.get(), placed.back());
    }
    inputs_[&change] = placed;
    const Graph body({.inputs = change.stored.inputs, .outputs = {change.stored.value}});
    return inlined(body, placed, [&](NodeSpec& spec) { spec.place = place; })[0];
  }

  LazyTensor factor(const LayerChange& change, const Node& node, const LazyTensor& x) {
    const LazyTensor block = input("x", x.type(), InputKind::block);
    const LazyTensor y = changed_factor(change, node, block);
    if (y == block) return x;
    LazyTensors blocks{block}, arguments{x};
    if (const LazyTensor& divisors = change.stored.divisors) {
      blocks.push_back(divisors);
      arguments.push_back(inputs_.at(&change).back());
    }
    const Graph body({.inputs = blocks, .outputs = {y}});
    return inlined(body, arguments, [&](NodeSpec& spec) { spec.place = node.place(); })[0];
  }
  static void expect_names(const LazyTensors& inputs) {
    std::set<std::string> names;
    for (const LazyTensor& input : inputs)
      if (!names.insert(input_name(*input.node)).second)
        throw UserError("[quantize] two inputs would be called '" + input_name(*input.node) +
                        "': values of weights need inputs with names of their own");
  }

  // A further name of a weight says where it is in the graph.
  static void drop_ties(SavedCapture& capture, const std::string& name) {
    std::erase_if(capture.properties, [&](const auto& property) {
      return property.first.starts_with("tied ") && property.second == name;
    });
  }

  const SavedCapture& capture_;
  FlatMap<const Node*, const LayerChange*> weights_;
  std::map<const Node*, Factor> products_;
  std::map<const LayerChange*, LazyTensors> inputs_;
  std::map<std::pair<const Node*, uint32_t>, Step> rounded_;  // by value: for all who read it
};

}  // namespace

StoredWeight stored_weight(const Layer& layer, const Integers& integers,
                           const std::vector<float>& divisors) {
  return Storing(layer, integers, divisors).run();
}

LazyTensor through_tokens(const LazyTensor& x) {
  const LazyTensors chosen =
      apply("quantized_decomposed::choose_qparams_per_token", {x, DType::int8});
  const LazyTensor integers = apply_one("quantized_decomposed::quantize_per_token",
                                        {x, chosen[0], chosen[1], -128, 127, DType::int8});
  return apply_one("quantized_decomposed::dequantize_per_token",
                   {integers, chosen[0], chosen[1], -128, 127, DType::int8, x.dtype()});
}

LazyTensor through_step(const LazyTensor& x, const Step& step) {
  const double scale = step.scale;
  const int64_t zero = step.zero;
  const LazyTensor integers = apply_one("quantized_decomposed::quantize_per_tensor",
                                        {x, scale, zero, -128, 127, DType::int8});
  return apply_one("quantized_decomposed::dequantize_per_tensor",
                   {integers, scale, zero, -128, 127, DType::int8, x.dtype()});
}

LazyTensor changed_factor(const LayerChange& change, const Node& node, const LazyTensor& x) {
  const LazyTensor& divisors = change.stored.divisors;
  const LazyTensor y = divisors ? x / to(divisors, x.dtype()) : x;
  if (change.activations == Activations::by_token) return through_tokens(y);
  if (change.activations == Activations::calibrated) return through_step(y, change.steps.at(&node));
  return y;
}

SavedCapture rewritten(const SavedCapture& capture,
                       const std::vector<std::pair<const Layer*, LayerChange>>& changes) {
  return Rewriter(capture, changes).run();
}

}  // namespace composit::quantization

namespace composit {
namespace {

LazyTensors held_inputs_of(const LazyTensor& value, const std::string& name) {
  const Graph needed = value.graph();
  LazyTensors inputs;
  for (const NodePtr& node : needed.nodes()) {
    if (!is_input(*node)) continue;
    if (!node->held().defined())
      throw UserError("[with_values] the value of '" + name + "' depends on the input '" +
                      input_name(*node) + "', which holds none");
    inputs.push_back({node, 0});
  }
  return inputs;
}

}  // namespace

SavedCapture with_values(const SavedCapture& capture,
                         const std::map<std::string, LazyTensor>& values) {
  std::vector<quantization::Layer> layers;
  std::vector<std::pair<const quantization::Layer*, quantization::LayerChange>> changes;
  layers.reserve(values.size());
  for (const auto& [name, value] : values) {
    const auto found = std::find_if(capture.graph.inputs().begin(), capture.graph.inputs().end(),
                                    [&](const LazyTensor& input) {
                                      return input_kind(*input.node) != InputKind::user_input &&
                                             input_name(*input.node) == name;
                                    });
    if (found == capture.graph.inputs().end())
      throw UserError("[with_values] no weight is called '" + name + "'");
    for (const Mutation& mutation : capture.graph.mutations())
      if (mutation.target == *found)
        throw UserError("[with_values] the program writes '" + name + "'");
    if (!is_contiguous(found->type()))
      throw UserError("[with_values] '" + name + "' does not lie row by row in memory");
    if (value.sizes() != found->sizes() || value.dtype() != found->dtype())
      throw UserError("[with_values] expected " + std::string(composit::name(found->dtype())) +
                      str(found->sizes()) + " for '" + name + "', received " +
                      std::string(composit::name(value.dtype())) + str(value.sizes()));
    layers.emplace_back().weight = *found;
    quantization::LayerChange change;
    change.stored.value = value;
    change.stored.inputs = held_inputs_of(value, name);
    changes.emplace_back(&layers.back(), std::move(change));
  }
  return quantization::rewritten(capture, changes);
}

}  // namespace composit
