#include "flashlight/loops/effects.h"

#include <algorithm>
#include <numeric>

#include "composit/ir/transform.h"
#include "composit/ops/draws.h"
#include "composit/ops/functions.h"
#include "composit/ops/guards.h"
#include "composit/ops/operations.h"
#include "composit/passes/definition.h"

namespace flashlight::loops {
namespace {

using composit::Attribute;
using composit::Graph;
using composit::Guard;
using composit::LazyTensor;
using composit::LazyTensors;
using composit::Node;
using composit::NodePtr;
using composit::NodeSpec;
using composit::Scalar;
using composit::Symbol;
using composit::Type;

using Operands = LazyTensors;

const Graph* body_with_effects(const Node& node) {
  const Attribute* body = node.find_run("body");
  if (body == nullptr || node.effect() < 0) return nullptr;
  const auto& region = body->as<composit::Region>();
  return region->effects().empty() ? nullptr : region.get();
}

// Makes the nodes that replace one node that has an effect.
class EffectOpener {
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
    NodeSpec spec = composit::copy_of(node, operands);
    spec.place = place;
    const NodePtr now = std::move(spec).make_node();
    if (const Guard* guard = composit::guard_of(node);
        guard != nullptr && (guard->answer || guard->expected == Guard::Expected::types))
      return asked(*now, *guard);
    const composit::Draw* draw = composit::find_draw(node.op());
    const composit::Operation* operation = composit::find_operation(node.op());
    if (draw != nullptr && draw->row.opened)
      if (auto parts = by_rule(*now, draw->schema, draw->row.opened)) return *parts;
    if (operation != nullptr && operation->row.opened)
      if (auto parts = by_rule(*now, operation->schema, operation->row.opened)) return *parts;
    if (draw != nullptr && !draw->row.runtime.empty() &&
        !composit::is_contiguous(now->outputs()[0]))
      return in_memory_order(*now, draw->row);
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

  // Fails where `number` is another than `expected`.
  void expect(const Node& node, const LazyTensor& number, Scalar::Value expected) {
    NodeSpec spec = in_place_of(node, Symbol("aten::_local_scalar_dense"), {number});
    spec.run("expected", composit::List{composit::AttributeKind::scalar, {Scalar(expected)}});
    spec.annotate("guard", node.op().str());
    effect(std::move(spec));
  }

  static LazyTensor block(size_t number, const Type& type) {
    return composit::input(std::to_string(number), type, composit::InputKind::block);
  }
  // The nodes that `rule` makes in the place of `node`, of blocks that stand for the operands;
  // nothing if the rule has no parts for this case.
  template <class Rule>
  std::optional<Operands> by_rule(const Node& node, const composit::Schema& schema, Rule rule) {
    Operands operands = node.operands();
    LazyTensors blocks, numbers;
    for (const LazyTensor& operand : operands)
      blocks.push_back(block(blocks.size(), operand.type()));
    std::vector<Scalar::Value> expected;
    const composit::Opening opening{
        .results = node.outputs(),
        .draw =
            [&](const char* name, composit::Attributes attributes, const Type& type) {
              operands.push_back(drawn(node, name, std::move(attributes), type));
              return blocks.emplace_back(block(blocks.size(), type));
            },
        .expect =
            [&](const LazyTensor& number, Scalar::Value value) {
              numbers.push_back(number);
              expected.push_back(value);
            }};
    const composit::Call call = composit::call_of(node, schema, blocks);
    LazyTensors results = rule({.call = &call, .opening = &opening});
    const size_t count = results.size();
    results.insert(results.end(), numbers.begin(), numbers.end());
    if (results.empty()) return std::nullopt;
    Operands made = computed(node, operands, blocks, results);
    for (size_t i = 0; i < expected.size(); ++i) expect(node, made[count + i], expected[i]);
    made.resize(count);
    return made;
  }
  // `results` of `blocks`, which stand for `operands`, in the place of `node`.
  static Operands computed(const Node& node, const Operands& operands, const LazyTensors& blocks,
                           const LazyTensors& results) {
    const NodePtr whole = in_place_of(node, node.op(), operands).make_node();
    return composit::in_place_of(*whole, Graph({.inputs = blocks, .outputs = results}));
  }

  Operands asked(const Node& node, const Guard& guard) {
    const auto make = [&](const composit::RuleContext& context) {
      const LazyTensor answer = guard.answer ? guard.answer(context) : LazyTensor();
      if (answer) context.opening->expect(answer, composit::expected_of(guard, node).value);
      return LazyTensors();
    };
    return by_rule(node, guard.schema, make).value_or(Operands());
  }

  LazyTensor drawn(const Node& node, const char* name, composit::Attributes attributes,
                   const Type& type) {
    NodeSpec draw = in_place_of(node, Symbol(name), {node.operands()[0]});
    if (const Attribute* generator = node.find_attribute("generator"))
      draw.attribute("generator", *generator);
    for (const composit::NamedAttribute& one : attributes) draw.attribute(one.key(), one.value);
    return {effect(std::move(draw.output(type))), 0};
  }

  // LibTorch draws the elements as they lie in memory.
  Operands in_memory_order(const Node& node, const composit::DrawRow& row) {
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
    if (!row.not_row_major.empty() && type.numel() >= 16) draw.op = Symbol(row.not_row_major);
    const LazyTensor drawn = {effect(std::move(draw)), 0};
    if (!composit::is_contiguous(memory)) return {drawn};  // which there is no code for
    const LazyTensor x = block(0, memory);
    return computed(node, {drawn}, {x}, {composit::permute(x, back)});
  }

  int64_t next_effect_ = 0;
  std::vector<NodePtr> effects_;
};

}  // namespace

Graph with_open_effects(const Graph& graph) {
  EffectOpener opener;
  return composit::rebuild(graph, [&](const Node& node, const Operands& operands) {
    return opener.replacement(node, operands);
  });
}

}  // namespace flashlight::loops
