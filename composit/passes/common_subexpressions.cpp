#include "composit/passes/common_subexpressions.h"

#include <algorithm>

#include "composit/ir/flat_map.h"
#include "composit/ir/transform.h"

namespace composit {
namespace {

bool same_nodes(const std::vector<LazyTensor>& a, const std::vector<LazyTensor>& b) {
  return std::equal(a.begin(), a.end(), b.begin(), b.end(),
                    [](const LazyTensor& x, const LazyTensor& y) { return x.node == y.node; });
}

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
    size_t next = 0;
    return rebuild(shared, [&](const Node& node, const std::vector<LazyTensor>& operands) {
      NodePtr now = shared.nodes()[next++];
      if (is_input(node)) return std::optional<Replacement>();
      if (const NodePtr* first = firsts.find(node.hash())) return std::optional(replace_by(*first));
      if (!same_nodes(operands, node.operands())) now = copy_of(node, operands).make_node();
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
