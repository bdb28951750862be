#include "composit/passes/outline_repeats.h"

#include <algorithm>
#include <set>

#include "composit/ir/error.h"
#include "composit/ir/scope.h"
#include "composit/ir/transform.h"
#include "composit/passes/inline_calls.h"

namespace composit {
namespace {

const Symbol kScope("scope"), kEffect("effect");

// True if effects run in the order of their nodes, as the effects of a piece do.
bool has_effects_in_order(const Graph& graph) {
  int64_t last = -1;
  for (const NodePtr& node : graph.nodes()) {
    if (node->effect() < 0) continue;
    if (node->effect() < last) return false;
    last = node->effect();
  }
  return true;
}

void set_effect(NodeSpec& spec, int64_t place) {
  std::erase_if(spec.execution, [](const auto& entry) { return entry.name == kEffect; });
  spec.run("effect", place);
}

std::string within(std::string_view scope, const std::string& outer) {
  if (outer.empty()) return std::string(scope);
  return std::string(scope.substr(std::min(scope.size(), outer.size() + 1)));
}

// "encoder.layer.3" -> "encoder_layer".
std::string name_from(std::string_view scope) {
  std::string name;
  while (!scope.empty()) {
    const size_t dot = std::min(scope.find('.'), scope.size());
    const std::string_view part = scope.substr(0, dot);
    scope.remove_prefix(std::min(dot + 1, scope.size()));
    if (part.find_first_not_of("0123456789") == std::string_view::npos) continue;
    name += (name.empty() ? "" : "_") + std::string(part);
  }
  return name.empty() ? "repeat" : name;
}

// `name`, numbered where that is taken.
// A parameter of the module is called as there, "attention.query.weight"; other arguments have
// numbers.
std::string argument_name(const LazyTensor& operand, const std::string& module, size_t number) {
  if (!is_input(*operand.node)) return std::to_string(number);
  const std::string& name = input_name(*operand.node);
  const bool own = !module.empty() && name.starts_with(module + ".");
  return own ? within(name, module) : std::to_string(number);
}

// Makes calls of the pieces of one repeat.
class Outliner {
 public:
  Outliner(const Graph& graph, const Sequence& sequence, const Repeat& repeat)
      : graph_(graph), sequence_(sequence), repeat_(repeat) {
    for (size_t piece = 0; piece < repeat.begins.size(); ++piece)
      for (size_t i = 0; i < repeat.length; ++i)
        places_.insert(node_at(piece, i).get(), {piece, i});
    find_arguments();
    find_results();
  }

  Graph run(const std::string& name) {
    const Region body = make_body();
    for (const NodePtr& node : graph_.nodes()) {
      const Place* place = places_.find(node.get());
      if (place == nullptr)
        now_.insert(node.get(), kept(node));
      else if (place->number == 0)
        call(place->piece, body, name);
    }
    Graph::Parts parts = graph_.parts();
    for (LazyTensor& output : parts.outputs) output = value(output);
    for (Mutation& mutation : parts.mutations) mutation.value = value(mutation.value);
    std::vector<NodePtr> effects;
    for (const NodePtr& effect : parts.effects) {
      const NodePtr& now = *effects_.find(effect.get());
      if (effects.empty() || effects.back() != now) effects.push_back(now);
    }
    parts.effects = std::move(effects);
    return Graph(std::move(parts));
  }

  std::string scope() const { return common_scope(sequence_, repeat_.begins[0], repeat_.length); }

 private:
  struct Place {
    size_t piece, number;
  };
  struct Slot {
    size_t number, operand;  // of the node in the piece
  };

  const NodePtr& node_at(size_t piece, size_t number) const {
    return sequence_.nodes[repeat_.begins[piece] + number];
  }
  const LazyTensor& operand_at(size_t piece, const Slot& slot) const {
    return node_at(piece, slot.number)->operands()[slot.operand];
  }
  bool is_within(const LazyTensor& tensor, size_t piece) const {
    const Place* place = places_.find(tensor.node.get());
    return place != nullptr && place->piece == piece;
  }

  // Operands from outside; those that are one tensor in each of the pieces are one argument.
  void find_arguments() {
    FlatMap<Hash, size_t> known;
    for (size_t number = 0; number < repeat_.length; ++number) {
      const Node& node = *node_at(0, number);
      for (size_t i = 0; i < node.operands().size(); ++i) {
        const LazyTensor& operand = node.operands()[i];
        if (!operand || is_part_of_piece(operand) || is_within(operand, 0)) continue;
        Hasher hasher;
        for (size_t piece = 0; piece < repeat_.begins.size(); ++piece)
          hasher.add(operand_at(piece, {number, i}).hash());
        const Hash key = hasher.finish();
        if (known.insert(key, arguments_.size())) arguments_.push_back({number, i});
        argument_at_.insert(slot_key({number, i}), *known.find(key));
      }
    }
  }
  static uint64_t slot_key(const Slot& slot) { return uint64_t{slot.number} << 32 | slot.operand; }

  // Outputs of the piece that nodes outside of it use, in any of the pieces.
  void find_results() {
    std::set<std::pair<size_t, uint32_t>> used;
    const auto use = [&](const LazyTensor& tensor, const Place* user) {
      const Place* place = tensor ? places_.find(tensor.node.get()) : nullptr;
      if (place != nullptr && (user == nullptr || user->piece != place->piece))
        used.insert({place->number, tensor.index});
    };
    for (const NodePtr& node : graph_.nodes())
      for (const LazyTensor& operand : node->operands()) use(operand, places_.find(node.get()));
    for (const LazyTensor& output : graph_.outputs()) use(output, nullptr);
    for (const Mutation& mutation : graph_.mutations()) use(mutation.value, nullptr);
    results_.assign(used.begin(), used.end());
  }

  LazyTensors make_blocks(const std::string& outer) const {
    LazyTensors blocks;
    std::set<std::string> taken;
    for (const Slot& slot : arguments_) {
      const LazyTensor& operand = operand_at(0, slot);
      const std::string name = unused_name(argument_name(operand, outer, blocks.size()), taken);
      blocks.push_back(input(name, operand.type(), InputKind::block));
    }
    return blocks;
  }

  Region make_body() const {
    const std::string outer = scope();
    Graph::Parts parts{.inputs = make_blocks(outer)};
    std::vector<NodePtr> made;
    for (size_t number = 0; number < repeat_.length; ++number) {
      const Node& node = *node_at(0, number);
      LazyTensors operands = node.operands();
      for (size_t i = 0; i < operands.size(); ++i) {
        if (const size_t* argument = argument_at_.find(slot_key({number, i})))
          operands[i] = parts.inputs[*argument];
        else if (operands[i] && is_within(operands[i], 0))
          operands[i].node = made[places_.find(operands[i].node.get())->number];
      }
      NodeSpec spec = copy_of(node, std::move(operands));
      spec.place = 0;  // after the blocks, in the order of the piece
      for (Annotation& annotation : spec.annotations)
        if (annotation.key == kScope) annotation.value = within(annotation.value, outer);
      std::erase_if(spec.annotations, [](const Annotation& one) { return one.value.empty(); });
      const bool has_effect = node.effect() >= 0;
      if (has_effect) set_effect(spec, static_cast<int64_t>(parts.effects.size()));
      made.push_back(std::move(spec).make_node());
      if (has_effect) parts.effects.push_back(made.back());
    }
    for (const auto& [number, index] : results_)
      parts.outputs.push_back(LazyTensor{made[number], index});
    return std::make_shared<const Graph>(std::move(parts));
  }

  void call(size_t piece, const Region& body, const std::string& name) {
    NodeSpec spec(ops::kCall);
    for (const Slot& slot : arguments_) spec.tensor(value(operand_at(piece, slot)));
    spec.attribute("name", name).run("body", body);
    for (const LazyTensor& output : body->outputs()) spec.output(output.type());
    const std::string scope = common_scope(sequence_, repeat_.begins[piece], repeat_.length);
    if (!scope.empty()) spec.annotate("scope", scope);
    spec.place = node_at(piece, 0)->place();
    if (const int64_t effect = first_effect_of(piece); effect >= 0) spec.run("effect", effect);
    const NodePtr made = std::move(spec).make_node();
    for (size_t number = 0; number < repeat_.length; ++number) {
      const NodePtr& node = node_at(piece, number);
      now_.insert(node.get(), {});
      if (node->effect() >= 0) effects_.insert(node.get(), made);
    }
    for (uint32_t i = 0; i < results_.size(); ++i) {
      const auto [number, index] = results_[i];
      auto& outputs = now_[node_at(piece, number).get()];
      outputs.resize(std::max<size_t>(outputs.size(), index + 1));
      outputs[index] = LazyTensor{made, i};
    }
  }

  LazyTensors kept(const NodePtr& node) {
    LazyTensors operands;
    bool same = true;
    for (const LazyTensor& operand : node->operands()) {
      operands.push_back(value(operand));
      same = same && operands.back().node == operand.node;
    }
    const NodePtr now = same ? node : copy_of(*node, std::move(operands)).make_node();
    if (node->effect() >= 0) effects_.insert(node.get(), now);
    return replace_by(now).outputs;
  }
  // Inputs and constants stay, and may come after the call that takes them.
  LazyTensor value(const LazyTensor& old) {
    const bool stays = !old || is_input(*old.node) || old.node->op() == ops::kConstant;
    return stays ? old : now_[old.node.get()].at(old.index);
  }
  int64_t first_effect_of(size_t piece) const {
    for (size_t number = 0; number < repeat_.length; ++number)
      if (const int64_t effect = node_at(piece, number)->effect(); effect >= 0) return effect;
    return -1;
  }

  const Graph& graph_;
  const Sequence& sequence_;
  const Repeat& repeat_;
  FlatMap<const Node*, Place> places_;
  std::vector<Slot> arguments_;
  FlatMap<uint64_t, size_t> argument_at_;  // by slot
  std::vector<std::pair<size_t, uint32_t>> results_;
  FlatMap<const Node*, LazyTensors> now_;
  FlatMap<const Node*, NodePtr> effects_;  // what stands for a node with an effect
};

}  // namespace

Graph outline_repeats(const Graph& graph, const RepeatLimits& limits) {
  std::set<std::string> taken;
  for (const NodePtr& node : graph.nodes())
    if (node->op() == ops::kCall) taken.insert(node->attribute("name").as<std::string>());
  const bool effects = limits.effects && has_effects_in_order(graph);
  Graph now = graph;
  while (true) {
    const Sequence sequence = sequence_of(now, effects);
    const auto repeat = best_repeat(sequence, limits);
    if (!repeat) return now;
    Outliner outliner(now, sequence, *repeat);
    now = outliner.run(unused_name(name_from(outliner.scope()), taken));
  }
}

}  // namespace composit
