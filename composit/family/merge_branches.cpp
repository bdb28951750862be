#include "composit/family/merge_branches.h"

#include <algorithm>
#include <limits>
#include <map>

#include "composit/family/family.h"
#include "composit/family/local_hash.h"
#include "composit/ir/error.h"
#include "composit/ir/flat_map.h"
#include "composit/ir/transform.h"
#include "composit/op/call.h"
#include "composit/ops/control_flow.h"
#include "composit/ops/functions.h"
#include "composit/ops/guards.h"

namespace composit {
namespace {

const Symbol kEffectPlace("effect"), kRead("aten::_local_scalar_dense");

constexpr size_t kNowhere = std::numeric_limits<size_t>::max();

std::string place_of(const Graph& graph, const Node& node) { return describe(node, Names(graph)); }

// The number that a guard of these operands asks about.
LazyTensor number_of(const Guard& guard, const Node& node, const LazyTensors& operands) {
  if (!guard.answer || guard.expected != Guard::Expected::captured) return operands.at(0);
  const NodePtr copy = copy_of(node, operands).make_node();
  const Call call = call_of(*copy, guard.schema);
  const LazyTensor answer = guard.answer({.call = &call});
  return answer ? answer : full({}, 0, DType::bool_);  // of other sizes: not equal
}

// One of the two captures: what it does behind the branch.
class Side {
 public:
  Side(const Graph& graph, const NodePtr& question, const FlatMap<Hash, std::monostate>& others)
      : graph(graph) {
    FlatMap<const Node*, std::monostate> before;
    for (const NodePtr& node : graph.nodes()) {
      const bool early = node->effect() < question->effect();  // or without effect
      const bool shared =
          is_input(*node) ||
          (early && others.contains(node->hash()) &&
           std::all_of(node->operands().begin(), node->operands().end(),
                       [&](const auto& x) { return !x || before.contains(x.node.get()); }));
      if (shared)
        before.insert(node.get(), {});
      else if (node != question)
        rest.push_back(node);
    }
    for (size_t i = 0; i < rest.size(); ++i) depths_.insert(rest[i].get(), rest.size() - 1 - i);
  }

  // How many nodes stand behind the one that makes the value; kNowhere: it is made before the
  // branch.
  size_t depth(const LazyTensor& value) const {
    const size_t* found = value ? depths_.find(value.node.get()) : nullptr;
    return found == nullptr ? kNowhere : *found;
  }
  const Node& from_end(size_t depth) const { return *rest[rest.size() - 1 - depth]; }

  const Graph& graph;
  std::vector<NodePtr> rest;  // behind the branch, in order

 private:
  FlatMap<const Node*, size_t> depths_;
};

bool same_values(const LazyTensor& x, const LazyTensor& y) {
  return x.defined() == y.defined() && (!x || x.type() == y.type());
}

// A result or a written value of both.
struct End {
  LazyTensor first, second;
};

// What is written at the end: by target, the values of both ways.
std::vector<std::pair<LazyTensor, End>> mutations_of(const Graph& a, const Graph& b) {
  std::vector<std::pair<LazyTensor, End>> all;
  for (const auto& [target, value] : a.mutations()) all.emplace_back(target, End{value, target});
  for (const auto& [target, value] : b.mutations()) {
    const auto known = std::find_if(all.begin(), all.end(),
                                    [&, t = target](const auto& one) { return one.first == t; });
    if (known == all.end())
      all.emplace_back(target, End{target, value});
    else
      known->second.second = value;
  }
  return all;
}

class Merger {
 public:
  Merger(const Graph& a, const Graph& b, const BranchPoint& point)
      : question_(a.effects().at(point.effect)),
        first_is_true_(point.first_answer),
        a_(a, question_, hashes_of(b)),
        b_(b, b.effects().at(point.effect), hashes_of(a)) {
    if (a.outputs().size() != b.outputs().size())
      refuse("they give " + std::to_string(a.outputs().size()) + " and " +
             std::to_string(b.outputs().size()) + " results");
    for (size_t i = 0; i < a.outputs().size(); ++i)
      ends_.push_back({a.outputs()[i], b.outputs()[i]});
    mutations_ = mutations_of(a, b);
    for (const auto& [target, end] : mutations_) ends_.push_back(end);
  }

  Graph run() {
    for (const NodePtr& node : b_.graph.nodes())
      if (b_.depth({node, 0}) == kNowhere) shared_.insert(node->hash(), node);
    for (const NodePtr& node : a_.graph.nodes())
      if (a_.depth({node, 0}) == kNowhere) shared_[node->hash()] = node;
    tail_ = length_of_tail();
    find_guards();
    find_joins();
    make_branch();
    make_tail();
    return Graph(parts());
  }

 private:
  static FlatMap<Hash, std::monostate> hashes_of(const Graph& graph) {
    FlatMap<Hash, std::monostate> hashes;
    for (const NodePtr& node : graph.nodes()) hashes.insert(node->hash(), {});
    return hashes;
  }

  [[noreturn]] void refuse(const std::string& why) const {
    throw UserError("[unify] the ways behind " + place_of(a_.graph, *question_) +
                    " cannot be one program: " + why);
  }

  // ---- the common end ---------------------------------------------------------------------------

  bool outside(const LazyTensor& x, const LazyTensor& y, size_t tail) const {
    const size_t dx = a_.depth(x), dy = b_.depth(y);
    return (dx == kNowhere || dx >= tail) && (dy == kNowhere || dy >= tail);
  }

  // The tail that is left where a node of depth `user`, or an end (kNowhere), uses these two.
  size_t tail_with(size_t tail, size_t user, const LazyTensor& x, const LazyTensor& y) const {
    if (!outside(x, y, tail)) {
      const size_t dx = a_.depth(x), dy = b_.depth(y);
      return dx == dy && x.index == y.index ? tail : std::min(dx, dy);
    }
    return user == kNowhere || same_values(x, y) ? tail : user;
  }

  size_t length_of_tail() const {
    size_t tail = 0;
    const size_t most = std::min(a_.rest.size(), b_.rest.size());
    while (tail < most && local_hash(a_.from_end(tail)) == local_hash(b_.from_end(tail))) ++tail;
    for (size_t before = tail + 1; before != tail;) {
      before = tail;
      for (const End& end : ends_) tail = tail_with(tail, kNowhere, end.first, end.second);
      for (size_t depth = 0; depth < tail; ++depth) {
        const LazyTensors &x = a_.from_end(depth).operands(), &y = b_.from_end(depth).operands();
        for (size_t i = 0; i < x.size(); ++i) tail = tail_with(tail, depth, x[i], y[i]);
      }
    }
    return tail;
  }

  // ---- guards -----------------------------------------------------------------------------------

  struct ArmGuard {
    const Guard* guard;
    NodePtr node;
    bool of_first;
    size_t join = 0;  // the result of the branch that it reads
  };

  void find_guards() {
    for (const Side* way : {&a_, &b_})
      for (size_t i = 0; i + tail_ < way->rest.size(); ++i) {
        const NodePtr& node = way->rest[i];
        if (node->effect() < 0) continue;
        const Guard* guard = node->find_run("body") == nullptr ? guard_of(*node) : nullptr;
        if (guard == nullptr || node->find_run("throws") != nullptr)
          refuse(place_of(way->graph, *node) +
                 " draws, or has another effect, in one of them only");
        if (guard->expected != Guard::Expected::types) guards_.push_back({guard, node, way == &a_});
      }
  }

  // What the other arm gives, so that the guard holds.
  static LazyTensor neutral(const ArmGuard& guard, const Type& type) {
    switch (guard.guard->expected) {
      case Guard::Expected::captured:
        return full(type.sizes, expected_of(*guard.guard, *guard.node), type.dtype);
      case Guard::Expected::nonzero:
        return full(type.sizes, 1, type.dtype);
      default:
        return full(type.sizes, 0, type.dtype);
    }
  }

  // ---- the branch -------------------------------------------------------------------------------

  using Copies = FlatMap<const Node*, NodePtr>;

  LazyTensor shared(const LazyTensor& value) const {
    return {*shared_.find(value.node->hash()), value.index};
  }

  // A pair of values that the end of the program takes from the arms.
  size_t join_of(const LazyTensor& x, const LazyTensor& y) {
    const auto found = std::find_if(joins_.begin(), joins_.end(), [&](const End& one) {
      return one.first.node == x.node && one.first.index == x.index && one.second.node == y.node &&
             one.second.index == y.index;
    });
    if (found != joins_.end()) return static_cast<size_t>(found - joins_.begin());
    joins_.push_back({x, y});
    return joins_.size() - 1;
  }

  bool is_joined(const LazyTensor& x, const LazyTensor& y) const {
    return x && outside(x, y, tail_) &&
           !(a_.depth(x) == kNowhere && b_.depth(y) == kNowhere && x == y);
  }

  void find_joins() {
    const auto visit = [&](const LazyTensor& x, const LazyTensor& y) {
      if (x && is_joined(x, y)) join_of(x, y);
    };
    for (const End& end : ends_) {
      const auto &x = end.first, &y = end.second;
      const bool alike =
          x.defined() == y.defined() && (!x || (x.dtype() == y.dtype() && x.sizes() == y.sizes()));
      if (!alike)
        refuse("a result, or what is written, is " + (x ? print(x.type()) : "none") +
               " in one of them and " + (y ? print(y.type()) : "none") + " in the other");
      visit(x, y);
    }
    for (size_t depth = tail_; depth-- > 0;) {
      const LazyTensors &x = a_.from_end(depth).operands(), &y = b_.from_end(depth).operands();
      for (size_t i = 0; i < x.size(); ++i) visit(x[i], y[i]);
    }
  }

  // The nodes of an arm made anew, with what both ways share taken from the first.
  Copies copies_of(const Side& way) const {
    Copies copies;
    for (size_t i = 0; i + tail_ < way.rest.size(); ++i) {
      const Node& node = *way.rest[i];
      if (node.effect() >= 0) continue;
      NodeSpec spec = copy_of(node, operands_in(way, copies, node));
      spec.place = 0;
      copies.insert(&node, std::move(spec).make_node());
    }
    return copies;
  }
  LazyTensor value_in(const Side& way, const Copies& copies, const LazyTensor& value) const {
    if (!value) return {};
    if (way.depth(value) == kNowhere) return shared(value);
    return {*copies.find(value.node.get()), value.index};
  }
  LazyTensors operands_in(const Side& way, const Copies& copies, const Node& node) const {
    LazyTensors operands;
    for (const LazyTensor& operand : node.operands())
      operands.push_back(value_in(way, copies, operand));
    expect_plain_memory(way, node);
    return operands;
  }

  void expect_plain_memory(const Side& way, const Node& node) const {
    if (!views_memory(node)) return;
    for (const LazyTensor& operand : node.operands())
      if (operand && way.depth(operand) == kNowhere && !is_contiguous(operand.type()))
        refuse(place_of(way.graph, node) +
               " reads memory of a value from before, which is not dense");
  }

  void make_branch() {
    const auto arm = [&](const Side& way, bool is_first) {
      return [this, &way, is_first](const LazyTensors&) {
        const Copies copies = copies_of(way);
        LazyTensors results;
        for (const End& join : joins_)
          results.push_back(value_in(way, copies, is_first ? join.first : join.second));
        for (const ArmGuard& guard : guards_) {
          const Side& own = guard.of_first ? a_ : b_;
          if (guard.of_first == is_first)
            results.push_back(
                number_of(*guard.guard, *guard.node, operands_in(own, copies, *guard.node)));
          else
            results.push_back(neutral(guard, number_type(guard)));
        }
        return results;
      };
    };
    if (joins_.empty() && guards_.empty()) return;
    const auto first = arm(a_, true), second = arm(b_, false);
    LazyTensors asked;
    for (const LazyTensor& operand : question_->operands()) asked.push_back(shared(operand));
    const LazyTensor predicate = number_of(*guard_of(*question_), *question_, asked);
    branch_ = first_is_true_ ? cond(predicate, first, second) : cond(predicate, second, first);
    give_types();
    for (size_t i = 0; i < guards_.size(); ++i) guards_[i].join = joins_.size() + i;
  }

  static Type number_type(const ArmGuard& guard) {
    const bool is_bool = guard.guard->answer && guard.guard->expected == Guard::Expected::captured;
    const Type& type = guard.node->operands().at(0).type();
    return is_bool ? tensor_type(DType::bool_, {}) : tensor_type(type.dtype, type.sizes);
  }

  // The results lie in memory as the first way's do.
  void give_types() {
    const NodePtr node = branch_.at(0).node;
    NodeSpec spec = copy_of(*node, node->operands());
    spec.place = 0;
    for (size_t i = 0; i < joins_.size(); ++i) {
      const Type &x = joins_[i].first.type(), &y = joins_[i].second.type();
      if (x == y) spec.outputs[i] = x;
    }
    for (const std::string_view key : {"scope", "source"})
      if (const std::string_view remark = question_->annotation(key); !remark.empty())
        spec.annotate(key, std::string(remark));
    const NodePtr typed = std::move(spec).make_node();
    for (LazyTensor& result : branch_) result.node = typed;
  }

  // ---- behind it --------------------------------------------------------------------------------

  void make_tail() {
    int64_t place = question_->effect();
    for (const ArmGuard& guard : guards_) {
      const bool is_read =
          guard.guard->answer && guard.guard->expected == Guard::Expected::captured;
      NodeSpec spec = copy_of(*guard.node, guard.node->operands());
      if (is_read)
        spec = NodeSpec(kRead).tensor({}).run("expected", *guard.node->find_run("expected"));
      if (is_read) spec.run("effect", int64_t{0});
      if (is_read)
        for (const Annotation& annotation : guard.node->annotations())
          spec.annotations.push_back(annotation);
      spec.place = 0;
      spec.operands = {branch_.at(guard.join)};
      spec.arguments = {{Argument::Kind::tensor, 0, 1}};
      add_effect(std::move(spec), place++);
    }
    for (size_t depth = tail_; depth-- > 0;) {
      const Node &x = a_.from_end(depth), &y = b_.from_end(depth);
      LazyTensors operands;
      for (size_t i = 0; i < x.operands().size(); ++i)
        operands.push_back(behind(x.operands()[i], y.operands()[i]));
      NodeSpec spec = copy_of(x, std::move(operands));
      spec.place = 0;
      const bool acts = x.effect() >= 0;
      tail_nodes_.insert(&x,
                         acts ? add_effect(std::move(spec), place++) : std::move(spec).make_node());
    }
  }

  NodePtr add_effect(NodeSpec spec, int64_t place) {
    for (NamedAttribute& attribute : spec.execution)
      if (attribute.name == kEffectPlace) attribute.value = place;
    effects_.push_back(std::move(spec).make_node());
    return effects_.back();
  }

  // A value behind the branch.
  LazyTensor behind(const LazyTensor& x, const LazyTensor& y) {
    if (!x) return {};
    if (is_joined(x, y)) return branch_.at(join_of(x, y));
    if (a_.depth(x) == kNowhere) return shared(x);
    return {*tail_nodes_.find(x.node.get()), x.index};
  }

  Graph::Parts parts() {
    Graph::Parts parts;
    parts.inputs = a_.graph.inputs();
    for (const LazyTensor& input : b_.graph.inputs()) {
      const std::string& name = input_name(*input.node);
      const auto found =
          std::find_if(parts.inputs.begin(), parts.inputs.end(),
                       [&](const LazyTensor& other) { return input_name(*other.node) == name; });
      if (found == parts.inputs.end())
        parts.inputs.push_back(input);
      else if (*found != input)
        refuse("input '" + name + "' is " + print(found->type()) + " in one of them and " +
               print(input.type()) + " in the other");
    }
    for (size_t i = 0; i < a_.graph.outputs().size(); ++i)
      parts.outputs.push_back(behind(a_.graph.outputs()[i], b_.graph.outputs()[i]));
    for (const auto& [target, end] : mutations_)
      parts.mutations.push_back({shared(target), behind(end.first, end.second)});
    for (const NodePtr& effect : a_.graph.effects())
      if (effect->effect() < question_->effect()) parts.effects.push_back(effect);
    parts.effects.insert(parts.effects.end(), effects_.begin(), effects_.end());
    return parts;
  }

  const NodePtr question_;
  const bool first_is_true_;
  const Side a_, b_;
  std::vector<End> ends_;  // results, then what is written
  std::vector<std::pair<LazyTensor, End>> mutations_;
  FlatMap<Hash, NodePtr> shared_;  // nodes before the branch, one of each
  size_t tail_ = 0;                // nodes at the end that are one
  std::vector<ArmGuard> guards_;
  std::vector<End> joins_;
  LazyTensors branch_;  // results of the cond
  std::vector<NodePtr> effects_;
  FlatMap<const Node*, NodePtr> tail_nodes_;
};

}  // namespace

std::optional<Scalar> scalar_read_by(const Node& node) {
  const Guard* guard = node.find_run("body") == nullptr ? guard_of(node) : nullptr;
  if (guard == nullptr || guard->expected != Guard::Expected::captured) return std::nullopt;
  return expected_of(*guard, node);
}

std::optional<bool> bool_read_by(const Node& node) {
  const std::optional<Scalar> read = scalar_read_by(node);
  const bool* answer = read ? std::get_if<bool>(&read->value) : nullptr;
  return answer == nullptr ? std::nullopt : std::optional(*answer);
}

BranchPoint branch_point(const Graph& a, const Graph& b) {
  const size_t most = std::min(a.effects().size(), b.effects().size());
  size_t at = 0;
  while (at < most && a.effects()[at]->hash() == b.effects()[at]->hash()) ++at;
  if (at == most)
    throw UserError(
        "[unify] the ways part though they read the same numbers: what decides is "
        "nothing that the program reads from a tensor");
  const Node &x = *a.effects()[at], &y = *b.effects()[at];
  const std::optional<bool> of_x = bool_read_by(x), of_y = bool_read_by(y);
  if (!of_x || !of_y || *of_x == *of_y || x.op() != y.op() || x.operands() != y.operands())
    throw UserError("[unify] the ways part at " + place_of(a, x) + " and " + place_of(b, y) +
                    ", which are no bool that both read: write a comparison of a number with "
                    "operators, as `(x > 0).item<bool>()`");
  return {at, *of_x};
}

Graph merge_branches(const std::vector<Graph>& ways) {
  const Graph& first = ways.at(0);
  std::optional<BranchPoint> point;
  for (const Graph& way : ways)
    if (way != first)
      if (const BranchPoint other = branch_point(first, way);
          !point || other.effect < point->effect)
        point = other;
  if (!point) return first;
  std::vector<Graph> sides[2];  // by whether the answer is the first's
  for (const Graph& way : ways) {
    const bool parts = way != first && branch_point(first, way).effect == point->effect;
    sides[parts ? 1 : 0].push_back(way);
  }
  return Merger(merge_branches(sides[0]), merge_branches(sides[1]), *point).run();
}

}  // namespace composit
