#include "composit/ir/transform.h"

#include <algorithm>
#include <variant>

#include "composit/ir/error.h"
#include "composit/ir/flat_map.h"

namespace composit {
namespace {

class Rebuilder {
 public:
  Rebuilder(const Graph& graph, const Rewrite& rewrite) : graph_(graph), rewrite_(rewrite) {}

  Graph run() {
    values_.reserve(graph_.size());
    for (const NodePtr& node : graph_.nodes()) values_.insert(node.get(), replacement_of(node));
    Graph::Parts parts;
    for (const LazyTensor& input : graph_.inputs()) {
      const LazyTensor now = value(input);
      parts.inputs.push_back(now && is_input(*now.node) ? now : input);
    }
    for (const LazyTensor& output : graph_.outputs()) parts.outputs.push_back(needed(output));
    for (const auto& [target, result] : graph_.mutations())
      parts.mutations.push_back({needed(target), needed(result)});
    for (const NodePtr& effect : graph_.effects()) {
      const auto& now = values_.find(effect.get())->effects;
      parts.effects.insert(parts.effects.end(), now.begin(), now.end());
    }
    return Graph(std::move(parts));
  }

 private:
  Replacement replacement_of(const NodePtr& node) {
    LazyTensors operands;
    operands.reserve(node->operands().size());
    bool same = true, complete = true;
    for (const LazyTensor& operand : node->operands()) {
      operands.push_back(value(operand));
      const LazyTensor& now = operands.back();
      same = same && now.node == operand.node && now.index == operand.index;
      complete = complete && (now || !operand);
    }
    if (auto replacement = rewrite_(*node, operands)) return std::move(*replacement);
    if (same) return replace_by(node);
    if (complete) return replace_by(copy_of(*node, std::move(operands)).make_node());
    COMPOSIT_ASSERT(node->effect() < 0, lacking(*node));
    return {};  // no node may use it either
  }

  LazyTensor value(const LazyTensor& old) const {
    if (!old) return {};
    const auto& outputs = values_.find(old.node.get())->outputs;
    return old.index < outputs.size() ? outputs[old.index] : LazyTensor();
  }
  LazyTensor needed(const LazyTensor& old) const {
    LazyTensor now = value(old);
    COMPOSIT_ASSERT(now || !old, lacking(*old.node));
    return now;
  }
  static std::string lacking(const Node& node) {
    return "a pass leaves out a value that '" + node.op().str() +
           "' makes or takes, and that is used";
  }

  const Graph& graph_;
  const Rewrite& rewrite_;
  FlatMap<const Node*, Replacement> values_;
};

// One result per region, also for a region that several nodes share.
class RegionRebuilder {
 public:
  explicit RegionRebuilder(const std::function<Graph(const Graph&)>& pass) : pass_(pass) {}

  std::optional<Replacement> operator()(const Node& node, const LazyTensors& operands) {
    bool any = false;
    for_each_region(node, [&](const Region&) { any = true; });
    if (!any) return std::nullopt;
    NodeSpec spec = copy_of(node, operands);
    const bool changed = update(spec.attributes) | update(spec.execution);
    if (!changed) return std::nullopt;
    return replace_by(std::move(spec).make_node());
  }

 private:
  bool update(Attributes& attributes) {
    bool changed = false;
    for (NamedAttribute& attribute : attributes) {
      const auto* region = attribute.value.get_if<Region>();
      if (region == nullptr || !*region) continue;
      const Region& now = result_for(*region);
      changed = changed || now != *region;
      attribute.value = now;
    }
    return changed;
  }
  const Region& result_for(const Region& region) {
    if (const Region* known = results_.find(&region->parts())) return *known;
    Graph now = pass_(*region);
    const bool same = now.nodes() == region->nodes() && now == *region;
    results_.insert(&region->parts(),
                    same ? region : std::make_shared<const Graph>(std::move(now)));
    return *results_.find(&region->parts());
  }

  const std::function<Graph(const Graph&)>& pass_;
  FlatMap<const Graph::Parts*, Region> results_;
};

void add_annotation(NodeSpec& spec, const Annotation& added) {
  if (added.operand < -1 || added.operand >= static_cast<int>(spec.operands.size()))
    throw UserError("[annotate] expected an operand of '" + spec.op.str() + "', which has " +
                    std::to_string(spec.operands.size()) + ", received number " +
                    std::to_string(added.operand));
  const auto same_place = [&](const Annotation& other) {
    return other.key == added.key && other.operand == added.operand;
  };
  std::erase_if(spec.annotations, same_place);
  spec.annotations.push_back(added);
}

class Annotator {
 public:
  explicit Annotator(const std::vector<NodeAnnotation>& annotations) {
    for (const auto& [node, annotation] : annotations) wanted_[node].push_back(annotation);
  }

  Graph run(const Graph& graph) {
    return rebuild(graph, [this](const Node& node, const LazyTensors& operands) {
      return annotated(node, operands);
    });
  }
  bool found_all() const { return found_.size() == wanted_.size(); }

 private:
  std::optional<Replacement> annotated(const Node& node, const LazyTensors& operands) {
    const std::vector<Annotation>* wanted = wanted_.find(&node);
    if (wanted == nullptr && !concerns_regions_of(node)) return std::nullopt;
    NodeSpec spec = copy_of(node, operands);
    annotate_regions(spec.attributes);
    annotate_regions(spec.execution);
    if (wanted != nullptr) {
      found_.insert(&node, {});
      for (const Annotation& annotation : *wanted) add_annotation(spec, annotation);
    }
    return replace_by(std::move(spec).make_node());
  }

  void annotate_regions(Attributes& attributes) {
    for (NamedAttribute& attribute : attributes)
      if (const auto* region = attribute.value.get_if<Region>(); region && concerns(**region))
        attribute.value = std::make_shared<const Graph>(run(**region));
  }

  bool concerns_regions_of(const Node& node) const {
    bool concerned = false;
    for_each_region(node,
                    [&](const Region& region) { concerned = concerned || concerns(*region); });
    return concerned;
  }
  bool concerns(const Graph& graph) const {
    const auto& nodes = graph.nodes();
    return std::any_of(nodes.begin(), nodes.end(), [this](const NodePtr& node) {
      return wanted_.contains(node.get()) || concerns_regions_of(*node);
    });
  }

  FlatMap<const Node*, std::vector<Annotation>> wanted_;
  FlatMap<const Node*, std::monostate> found_;
};

}  // namespace

Replacement replace_by(const NodePtr& node) {
  Replacement replacement;
  for (uint32_t i = 0; i < node->outputs().size(); ++i) replacement.outputs.push_back({node, i});
  if (node->effect() >= 0) replacement.effects.push_back(node);
  return replacement;
}

NodeSpec copy_of(const Node& node, LazyTensors operands) {
  NodeSpec spec(node.op());
  spec.arguments = node.arguments();
  spec.operands = std::move(operands);
  spec.attributes = node.attributes();
  spec.execution = node.execution();
  spec.outputs = node.outputs();
  spec.annotations = node.annotations();
  spec.held = node.held();
  spec.place = node.place();
  return spec;
}

Graph rebuild(const Graph& graph, const Rewrite& rewrite) {
  return Rebuilder(graph, rewrite).run();
}

Graph rebuild_regions(const Graph& graph, const std::function<Graph(const Graph&)>& pass) {
  RegionRebuilder rebuilder(pass);
  return rebuild(graph, [&](const Node& node, const LazyTensors& operands) {
    return rebuilder(node, operands);
  });
}

LazyTensors inlined(const Graph& body, const LazyTensors& arguments,
                    const std::function<void(NodeSpec&)>& edit) {
  FlatMap<const Node*, LazyTensors> now;
  for (size_t i = 0; i < body.inputs().size() && i < arguments.size(); ++i)
    now[body.inputs()[i].node.get()] = {arguments[i]};
  const auto value = [&](const LazyTensor& old) {
    return old ? now[old.node.get()].at(old.index) : LazyTensor();
  };
  for (const NodePtr& node : body.nodes()) {
    if (is_input(*node)) continue;
    LazyTensors operands;
    for (const LazyTensor& operand : node->operands()) operands.push_back(value(operand));
    NodeSpec spec = copy_of(*node, std::move(operands));
    if (edit) edit(spec);
    now[node.get()] = replace_by(std::move(spec).make_node()).outputs;
  }
  LazyTensors outputs;
  for (const LazyTensor& output : body.outputs()) outputs.push_back(value(output));
  return outputs;
}

Graph annotate(const Graph& graph, const std::vector<NodeAnnotation>& annotations) {
  Annotator annotator(annotations);
  Graph annotated = annotator.run(graph);
  if (!annotator.found_all())
    throw UserError("[annotate] expected nodes of the graph, received one that is not in it");
  return annotated;
}

}  // namespace composit
