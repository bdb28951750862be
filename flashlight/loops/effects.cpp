#include "flashlight/loops/effects.h"

#include <algorithm>
#include <numeric>

#include "composit/ir/transform.h"
#include "composit/ops/functions.h"
#include "composit/passes/definition.h"
#include "flashlight/loops/runtime_call.h"

namespace flashlight::loops {
namespace {

using composit::Attribute;
using composit::DType;
using composit::Graph;
using composit::LazyTensor;
using composit::LazyTensors;
using composit::Node;
using composit::NodePtr;
using composit::NodeSpec;
using composit::Scalar;
using composit::Symbol;
using composit::Type;

using Operands = LazyTensors;

const Symbol kNumber("aten::_local_scalar_dense"), kEqual("aten::equal"),
    kAllClose("aten::allclose"), kErrors("aten::_linalg_check_errors"), kNonzero("aten::nonzero"),
    kMaskedSelect("aten::masked_select"), kNativeDropout("aten::native_dropout"),
    kMetadata("aten::_assert_tensor_metadata"), kMultinomial("aten::multinomial"),
    kNormalAround("aten::normal.Tensor_float"), kNormalOfDeviation("aten::normal.float_Tensor"),
    kNormal("aten::normal.Tensor_Tensor");

const Graph* body_with_effects(const Node& node) {
  const Attribute* body = node.find_run("body");
  if (body == nullptr || node.effect() < 0) return nullptr;
  const auto& region = body->as<composit::Region>();
  return region->effects().empty() ? nullptr : region.get();
}

// Makes the nodes that replace one node that has an effect.
class Opener {
 public:
  std::optional<composit::Replacement> replacement(const Node& node, const Operands& operands) {
    if (node.effect() < 0) return std::nullopt;
    effects_.clear();
    composit::Replacement result;
    result.outputs = opened(node, operands, node.place());
    result.effects = effects_;
    return result;
  }

 private:
  Operands opened(const Node& node, const Operands& operands, uint64_t place) {
    if (const Graph* body = body_with_effects(node)) return parts_of(*body, operands, place);
    if (node.op() == kMetadata) return {};  // nothing to check: types are fixed
    NodeSpec spec = composit::copy_of(node, operands);
    spec.place = place;
    const NodePtr now = std::move(spec).make_node();
    if (node.op() == kEqual || node.op() == kAllClose) return all(*now);
    if (node.op() == kErrors) return no_errors(*now);
    if (node.op() == kNonzero) return nonzero(*now);
    if (node.op() == kMaskedSelect) return masked_select(*now);
    if (node.op() == kNativeDropout) return dropout(*now);
    if (node.op() == kMultinomial && is_draw_without_return(*now)) return multinomial(*now);
    if (node.op() == kNormal || node.op() == kNormalAround || node.op() == kNormalOfDeviation)
      return normal(*now);
    if (is_draw(*now) && !composit::is_contiguous(now->outputs()[0])) return in_memory_order(*now);
    return outputs(effect(composit::copy_of(*now, operands)));
  }

  Operands parts_of(const Graph& body, const Operands& operands, uint64_t place) {
    composit::FlatMap<const Node*, Operands> made;
    Operands given;
    for (const LazyTensor& operand : operands)
      if (operand) given.push_back(operand);
    for (size_t i = 0; i < body.inputs().size(); ++i)
      made.insert(body.inputs()[i].node.get(), {given.at(i)});
    const auto value = [&](const LazyTensor& old) {
      return old ? made.find(old.node.get())->at(old.index) : LazyTensor();
    };
    for (const NodePtr& node : body.nodes()) {
      if (composit::is_input(*node)) continue;
      Operands inner;
      for (const LazyTensor& operand : node->operands()) inner.push_back(value(operand));
      if (node->effect() >= 0) {
        made.insert(node.get(), opened(*node, inner, place));
        continue;
      }
      NodeSpec spec = composit::copy_of(*node, inner);
      spec.place = place;
      made.insert(node.get(), outputs(std::move(spec).make_node()));
    }
    Operands results;
    for (const LazyTensor& output : body.outputs()) results.push_back(value(output));
    return results;
  }

  static Operands outputs(const NodePtr& node) {
    Operands list;
    for (uint32_t i = 0; i < node->outputs().size(); ++i) list.push_back({node, i});
    return list;
  }

  // Makes a node with the next number in the order of effects.
  NodePtr effect(NodeSpec spec) {
    static const Symbol kEffect("effect");
    std::erase_if(spec.execution, [](const auto& entry) { return entry.name == kEffect; });
    spec.run("effect", next_effect_++);
    effects_.push_back(std::move(spec).make_node());
    return effects_.back();
  }

  // Starts a node that has the graph position and the annotations of `node`.
  static NodeSpec in_place_of(const Node& node, Symbol op, const Operands& operands) {
    NodeSpec spec(op);
    spec.place = node.place();
    spec.annotations = node.annotations();
    for (const LazyTensor& operand : operands) spec.tensor(operand);
    return spec;
  }

  // Adds a guard, which fails at run time unless `number` is `expected`.
  void guard(const Node& node, const LazyTensor& number, Scalar::Value expected) {
    NodeSpec spec = in_place_of(node, kNumber, {number});
    spec.run("expected", composit::List{composit::AttributeKind::scalar, {Scalar(expected)}});
    spec.annotate("guard", node.op().str());
    effect(std::move(spec));
  }

  // The results of `compute` on `operands`, as nodes at the graph position of `node`.
  template <class Compute>
  static Operands computed(const Node& node, const Operands& operands, Compute compute) {
    LazyTensors blocks;
    Graph::Parts parts;
    for (const LazyTensor& operand : operands) {
      blocks.emplace_back(composit::input(std::to_string(blocks.size()), operand.type(),
                                          composit::InputKind::block));
      parts.inputs.push_back(blocks.back());
    }
    for (const LazyTensor& result : compute(blocks)) parts.outputs.push_back(result);
    const NodePtr whole = in_place_of(node, node.op(), operands).make_node();
    return composit::in_place_of(*whole, Graph(std::move(parts)));
  }

  // Replaces `equal` and `allclose` by a guard of whether all elements agree.
  Operands all(const Node& node) {
    const auto& operands = node.operands();
    const auto& list = node.find_run("expected")->as<composit::List>().items;
    if (node.op() == kEqual && operands[0].sizes() != operands[1].sizes()) return {};
    const Operands all = computed(node, node.operands(), [&](const LazyTensors& x) {
      const LazyTensor one_by_one =
          node.op() == kEqual
              ? composit::eq(x[0], x[1])
              : composit::apply_one(
                    "aten::isclose",
                    {x[0], x[1], node.attribute("rtol").as<double>(),
                     node.attribute("atol").as<double>(), node.attribute("equal_nan").as<bool>()});
      return LazyTensors{composit::apply_one("aten::all", {one_by_one})};
    });
    guard(node, all[0], list.at(0).as<Scalar>().value);
    return {};
  }

  // A factorisation gives a number per matrix, 0 on success: guards that all are 0.
  Operands no_errors(const Node& node) {
    const Operands count = computed(node, node.operands(), [](const LazyTensors& info) {
      return LazyTensors{composit::sum(composit::ne(info[0], 0))};
    });
    guard(node, count[0], int64_t{0});
    return {};
  }

  static int64_t captured_count(const Node& node) { return node.outputs()[0].sizes[0]; }

  Operands nonzero(const Node& node) {
    const Operands found = computed(node, node.operands(), [&](const LazyTensors& x) {
      return LazyTensors{composit::apply_one("aten::nonzero_static", {x[0], captured_count(node)}),
                         composit::sum(composit::ne(x[0], 0))};
    });
    guard(node, found[1], captured_count(node));
    return {found[0]};
  }

  Operands masked_select(const Node& node) {
    const Operands found = computed(node, node.operands(), [&](const LazyTensors& x) {
      const composit::Ints sizes = composit::broadcast_sizes({x[0].sizes(), x[1].sizes()});
      const LazyTensor mask = composit::reshape(composit::expand(x[1], sizes), {-1}),
                       flat = composit::reshape(composit::expand(x[0], sizes), {-1});
      const LazyTensor places =
          composit::apply_one("aten::nonzero_static", {mask, captured_count(node)});
      return LazyTensors{composit::apply_one("aten::take", {flat, composit::reshape(places, {-1})}),
                         composit::sum(mask)};
    });
    guard(node, found[1], captured_count(node));
    return {found[0]};
  }

  // Draws a mask that keeps with probability 1 - p; the result is input * mask / (1 - p).
  Operands dropout(const Node& node) {
    const auto p = node.attribute("p").as<double>();
    NodeSpec draw = in_place_of(node, Symbol("aten::bernoulli.p"), {node.operands()[0]});
    draw.attribute("p", 1 - p).output(node.outputs()[1]);
    const LazyTensor mask = {effect(std::move(draw)), 0};
    const Operands y = computed(node, {node.operands()[0], mask}, [&](const LazyTensors& x) {
      return LazyTensors{x[0] * x[1] * (p < 1 ? 1 / (1 - p) : 0)};
    });
    return {y[0], mask};
  }

  // Draws numbers of the dtype and sizes of `type` with `op`.
  LazyTensor drawn(const Node& node, Symbol op, const Type& type) {
    NodeSpec draw = in_place_of(node, op, {node.operands()[0]});
    if (const Attribute* generator = node.find_attribute("generator"))
      draw.attribute("generator", *generator);
    return {effect(std::move(draw.output(composit::tensor_type(type.dtype, type.sizes)))), 0};
  }

  // LibTorch draws elements in the order of memory; a permutation then restores the sizes.
  Operands in_memory_order(const Node& node) {
    const Type& type = node.outputs()[0];
    composit::Ints order(type.rank()), back(type.rank());
    std::iota(order.begin(), order.end(), int64_t{0});
    const auto at = [](auto& list, int64_t i) -> auto& { return list[static_cast<size_t>(i)]; };
    std::stable_sort(order.begin(), order.end(), [&](int64_t a, int64_t b) {
      return at(type.strides, a) > at(type.strides, b);
    });
    Type memory = type;
    for (size_t i = 0; i < order.size(); ++i) {
      memory.sizes[i] = at(type.sizes, order[i]);
      memory.strides[i] = at(type.strides, order[i]);
      at(back, order[i]) = static_cast<int64_t>(i);
    }
    NodeSpec draw = composit::copy_of(node, node.operands());
    draw.outputs = {memory};
    if (is_normal(node) && type.numel() >= 16) draw.op = Symbol("flashlight::normal_singly");
    const LazyTensor drawn = {effect(std::move(draw)), 0};
    if (!composit::is_contiguous(memory)) return {drawn};  // lower() refuses it
    return computed(node, {drawn}, [&](const LazyTensors& x) {
      return LazyTensors{composit::permute(x[0], back)};
    });
  }
  static bool is_normal(const Node& node) {
    static const Symbol kLike("aten::randn_like"), kInPlace("aten::normal_functional");
    return node.op() == kLike || node.op() == kInPlace;
  }

  static bool is_draw_without_return(const Node& node) {
    const Attribute* replacement = node.find_attribute("replacement");
    return node.attribute("num_samples").as_int() == 1 || replacement == nullptr ||
           !replacement->as<bool>();
  }
  // The samples are the indices of the largest p / q, where q is exponentially distributed.
  Operands multinomial(const Node& node) {
    const LazyTensor& p = node.operands()[0];
    const LazyTensor q = drawn(node, Symbol("aten::exponential"), p.type());
    const int64_t count = node.attribute("num_samples").as_int();
    return computed(node, {p, q}, [&](const LazyTensors& x) {
      if (count == 1)
        return LazyTensors{composit::apply_one("aten::argmax", {x[0] / x[1], int64_t{-1}, true})};
      return LazyTensors{composit::apply("aten::topk", {x[0] / x[1], count})[1]};
    });
  }

  // Normal draws with one mean or one standard deviation per element.
  Operands normal(const Node& node) {
    const LazyTensor z = drawn(node, Symbol("aten::normal_functional"), node.outputs()[0]);
    Operands operands = node.operands();
    operands.push_back(z);
    return computed(node, operands, [&](const LazyTensors& x) {
      if (node.op() == kNormal) return LazyTensors{x[2] * x[1] + x[0]};
      if (node.op() == kNormalAround)
        return LazyTensors{x[1] * node.attribute("std").as<double>() + x[0]};
      return LazyTensors{x[1] * x[0] + node.attribute("mean").as<double>()};
    });
  }

  int64_t next_effect_ = 0;
  std::vector<NodePtr> effects_;
};

}  // namespace

Graph with_open_effects(const Graph& graph) {
  Opener opener;
  return composit::rebuild(graph, [&](const Node& node, const Operands& operands) {
    return opener.replacement(node, operands);
  });
}

}  // namespace flashlight::loops
