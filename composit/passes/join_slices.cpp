#include "composit/passes/join_slices.h"

#include <algorithm>

#include "composit/ops/functions.h"
#include "composit/passes/definition.h"

namespace composit {
namespace {

const Symbol kAdd("aten::add.Tensor"), kSliceBackward("aten::slice_backward"),
    kSelectBackward("aten::select_backward");

// A stretch of the dimension that is cut.
struct Piece {
  int64_t begin, end;
  LazyTensor value;
  bool plus_zero = false;  // whether zeros were added to it

  LazyTensor part(int64_t from, int64_t to, int64_t dim) const {
    return from == begin && to == end ? value : slice(value, dim, from - begin, to - begin);
  }
};

// A tensor that is zero but for these pieces, which do not overlap and are in order.
struct Pieces {
  int64_t dim = 0;
  std::vector<Piece> list = {};
};

class Joiner {
 public:
  explicit Joiner(const Graph& graph) : graph_(graph) {
    for (const LazyTensor& output : graph.outputs()) mark(output);
    for (const Mutation& mutation : graph.mutations()) mark(mutation.value);
  }

  // `now` is `node` with the operands of the new graph.
  NodePtr joined(const Node& node, const Node& now) {
    const LazyTensor &x = now.operands()[0], &y = now.operands()[1];
    const bool plain = node.op() == kAdd &&
                       is_literal(Expr(now.attribute("alpha").as<Scalar>()), 1) &&
                       is_floating_point(x.dtype()) && x.type() == now.outputs()[0] &&
                       y.type() == now.outputs()[0];
    if (!plain || !is_only_use(node, 0) || !is_only_use(node, 1)) return nullptr;
    const auto left = pieces_of(x), right = pieces_of(y);
    if (!left || !right || left->dim != right->dim) return nullptr;
    Pieces sum = {left->dim, merged(*left, *right)};
    const NodePtr node_of_sum = written(now, sum);
    if (node_of_sum != nullptr) known_.insert(node_of_sum.get(), std::move(sum));
    return node_of_sum;
  }

 private:
  void mark(const LazyTensor& tensor) {
    if (tensor) outputs_.insert(tensor.node.get(), {});
  }
  bool is_only_use(const Node& node, size_t operand) const {
    const Node& before = *node.operands()[operand].node;
    return !outputs_.contains(&before) && graph_.successors(before).size() == 1;
  }

  std::optional<Pieces> pieces_of(const LazyTensor& x) const {
    const Node& node = *x.node;
    if (const Pieces* known = known_.find(&node)) return *known;
    const bool slice = node.op() == kSliceBackward, select = node.op() == kSelectBackward;
    if ((!slice && !select) || !is_replaceable(node)) return std::nullopt;
    const auto number = [&](const char* name) { return node.attribute(name).as<int64_t>(); };
    const int64_t dim = wrap_axis(number("dim"), static_cast<int64_t>(x.sizes().size()));
    const int64_t size = x.sizes()[static_cast<size_t>(dim)];
    const auto wrapped = [&](int64_t index) { return index < 0 ? index + size : index; };
    const LazyTensor value = node.operands()[0];
    if (select) {
      const int64_t index = wrapped(number("index"));
      return Pieces{dim, {{index, index + 1, unsqueeze(value, dim)}}};
    }
    if (number("step") != 1) return std::nullopt;
    const int64_t begin = std::clamp(wrapped(number("start")), int64_t{0}, size);
    if (value.size(dim) == 0) return std::nullopt;
    return Pieces{dim, {{begin, begin + value.size(dim), value}}};
  }

  static std::vector<Piece> merged(const Pieces& left, const Pieces& right) {
    std::vector<int64_t> cuts;
    for (const auto* side : {&left, &right})
      for (const Piece& piece : side->list) cuts.insert(cuts.end(), {piece.begin, piece.end});
    std::sort(cuts.begin(), cuts.end());
    cuts.erase(std::unique(cuts.begin(), cuts.end()), cuts.end());
    std::vector<Piece> list;
    for (size_t i = 0; i + 1 < cuts.size(); ++i) {
      const int64_t from = cuts[i], to = cuts[i + 1];
      const Piece *x = find(left, from), *y = find(right, from);
      if (x == nullptr) std::swap(x, y);
      if (x == nullptr) continue;
      const LazyTensor part = x->part(from, to, left.dim);
      if (y != nullptr)
        list.push_back({from, to, part + y->part(from, to, left.dim)});
      else
        list.push_back({from, to, x->plus_zero ? part : part + 0, true});
    }
    return list;
  }
  static const Piece* find(const Pieces& pieces, int64_t place) {
    for (const Piece& piece : pieces.list)
      if (piece.begin <= place && place < piece.end) return &piece;
    return nullptr;
  }

  static NodePtr written(const Node& now, const Pieces& pieces) {
    const Type& type = now.outputs()[0];
    LazyTensors parts;
    int64_t end = 0;
    const auto fill_up_to = [&](int64_t begin) {
      Ints sizes = now.operands()[0].sizes();
      sizes[static_cast<size_t>(pieces.dim)] = begin - end;
      if (begin > end) parts.push_back(zeros(sizes, type.dtype));
    };
    for (const Piece& piece : pieces.list) {
      fill_up_to(piece.begin);
      parts.push_back(piece.value);
      end = piece.end;
    }
    fill_up_to(type.sizes[static_cast<size_t>(pieces.dim)]);
    return respelled(now, "aten::cat", {parts, pieces.dim});
  }

  const Graph& graph_;
  FlatMap<const Node*, std::monostate> outputs_;
  FlatMap<const Node*, Pieces> known_;
};

}  // namespace

Graph join_slices(const Graph& graph) {
  const Graph inner = rebuild_regions(graph, join_slices);
  Joiner joiner(inner);
  const auto join = [&](const Node& node, const LazyTensors& operands) {
    std::optional<Replacement> replacement;
    if (!is_replaceable(node) || row_for(node) == nullptr || node.op() != kAdd) return replacement;
    const NodePtr now = copy_of(node, operands).make_node();
    if (const NodePtr sum = joiner.joined(node, *now)) replacement = replace_by(sum);
    return replacement;
  };
  return rebuild(inner, unless_refused(join));
}

}  // namespace composit
