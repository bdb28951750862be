#include "composit/passes/common_subexpressions.h"

#include <algorithm>

#include "composit/ir/flat_map.h"
#include "composit/ir/scope.h"
#include "composit/ir/transform.h"

namespace composit {
namespace {

bool same_nodes(const LazyTensors& a, const LazyTensors& b) {
  return std::equal(a.begin(), a.end(), b.begin(), b.end(),
                    [](const LazyTensor& x, const LazyTensor& y) { return x.node == y.node; });
}

const Symbol kScope("scope");

// A node that several modules compute is moved to the module around them, before its first use.
class Places {
 public:
  explicit Places(const Graph& graph) : nodes_(graph.nodes()) {
    for (const NodePtr& node : nodes_) {
      const std::string_view scope = node->annotation("scope");
      if (scopes_.insert(node->hash(), scope)) continue;
      std::string_view& all = *scopes_.find(node->hash());
      all = all.substr(0, common_scope(all, scope).size());
    }
  }

  // Node number `number`, the first of its equals, with `operands`.
  NodeSpec spec_of(size_t number, const LazyTensors& operands) const {
    const Node& node = *nodes_[number];
    NodeSpec spec = copy_of(node, operands);
    const std::string_view own = node.annotation("scope"), shared = scope_of(node);
    if (!belongs_elsewhere(node)) return spec;
    const size_t begin = begin_of(own.substr(0, own.find('.', shared.size() + 1)), number);
    if (begin == 0 || nodes_[begin - 1]->place() == nodes_[begin]->place()) return spec;
    const uint64_t place = nodes_[begin - 1]->place();
    for (const LazyTensor& operand : operands)
      if (operand && operand.node->place() > place) return spec;
    spec.place = place;
    std::erase_if(spec.annotations, [](const Annotation& one) { return one.key == kScope; });
    if (!shared.empty()) spec.annotate("scope", std::string(shared));
    return spec;
  }
  bool belongs_elsewhere(const Node& node) const {
    return node.annotation("scope").size() != scope_of(node).size();
  }

 private:
  std::string_view scope_of(const Node& node) const { return *scopes_.find(node.hash()); }

  // The first of the consecutive nodes of `module` that end with node number `last`.
  size_t begin_of(std::string_view module, size_t last) const {
    size_t begin = last;
    for (size_t i = last; i-- > 0;) {
      if (is_input(*nodes_[i]) || nodes_[i]->op() == ops::kConstant) continue;
      if (!is_within(nodes_[i]->annotation("scope"), module)) break;
      begin = i;
    }
    return begin;
  }

  const std::vector<NodePtr>& nodes_;
  FlatMap<Hash, std::string_view> scopes_;  // that all equal nodes are within
};

// One object per region, within regions too.
class Sharing {
 public:
  Graph run(const Graph& graph) {
    const Graph shared = rebuild_regions(graph, [this](const Graph& region) {
      if (const Graph* first = regions_.find(region.hash())) return *first;
      Graph now = run(region);
      regions_.insert(region.hash(), now);
      return now;
    });
    FlatMap<Hash, NodePtr> firsts;
    const Places places(shared);
    size_t next = 0;
    return rebuild(shared, [&](const Node& node, const LazyTensors& operands) {
      NodePtr now = shared.nodes()[next++];
      if (is_input(node)) return std::optional<Replacement>();
      if (const NodePtr* first = firsts.find(node.hash())) return std::optional(replace_by(*first));
      if (places.belongs_elsewhere(node) || !same_nodes(operands, node.operands()))
        now = places.spec_of(next - 1, operands).make_node();
      firsts.insert(node.hash(), now);
      return std::optional(replace_by(now));
    });
  }

 private:
  FlatMap<Hash, Graph> regions_;
};

}  // namespace

Graph common_subexpressions(const Graph& graph) { return Sharing().run(graph); }

}  // namespace composit
