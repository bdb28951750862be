#include "composit/ir/compare.h"

#include <algorithm>
#include <array>
#include <variant>

#include "composit/ir/align.h"
#include "composit/ir/flat_map.h"
#include "composit/ir/hash.h"
#include "composit/ir/print.h"

namespace composit {
namespace {

constexpr std::string_view kAbsent = "(absent)";
constexpr std::array<std::string_view, 8> kDifferenceNames = {
    "added", "removed", "attribute", "execution attribute",
    "type",  "operand", "effect",    "signature"};

const Symbol kEffect("effect");

// ---- what nodes are aligned by ------------------------------------------------------------------

// From strict to loose: with neighbours and scope, with attributes, as an operation of such
// arguments.
enum class Strictness : uint8_t { neighbours, attributes, operation };

void add_attributes(Hasher& hasher, const Attributes& attributes) {
  for (const auto& [name, value] : attributes) {
    if (name == kEffect) continue;
    hasher.add(std::string_view(name.str()));
    value.add_to(hasher);
  }
}

void add_neighbours(Hasher& hasher, const Node& node) {
  hasher.add(node.annotation("scope"));
  for (const LazyTensor& operand : node.operands()) {
    hasher.add(uint64_t{operand.index});
    if (!operand) continue;
    hasher.add(std::string_view(operand.node->op().str()));
    if (is_input(*operand.node)) hasher.add(std::string_view(input_name(*operand.node)));
  }
}

uint64_t key_of(const Node& node, Strictness strictness) {
  Hasher hasher;
  hasher.add(std::string_view(node.op().str()));
  for (const Argument& argument : node.arguments())
    hasher.add(static_cast<uint64_t>(argument.kind) | uint64_t{argument.size} << 8);
  hasher.add(uint64_t{node.outputs().size()});
  if (strictness <= Strictness::attributes) {
    add_attributes(hasher, node.attributes());
    add_attributes(hasher, node.execution());
  }
  if (strictness == Strictness::neighbours) add_neighbours(hasher, node);
  return hasher.finish().low;
}

bool same_form(const Node& before, const Node& after) {
  return before.op() == after.op() && before.arguments() == after.arguments() &&
         before.outputs().size() == after.outputs().size();
}

using Nodes = std::vector<NodePtr>;

// Aligns [begin, end) of both; what lies between two pairs is aligned once more, less strictly.
struct Range {
  uint32_t begin, end;
  bool empty() const { return begin == end; }
};

std::vector<uint64_t> keys_of(const Nodes& nodes, Range range, Strictness strictness) {
  std::vector<uint64_t> keys;
  keys.reserve(range.end - range.begin);
  for (uint32_t i = range.begin; i < range.end; ++i) keys.push_back(key_of(*nodes[i], strictness));
  return keys;
}

void align_nodes(const Nodes& before, const Nodes& after, Range in_before, Range in_after,
                 Strictness strictness, std::vector<Match>& matches) {
  const auto loosen = [&](Range gap_before, Range gap_after) {
    if (gap_before.empty() || gap_after.empty() || strictness == Strictness::operation) return;
    const auto next = static_cast<Strictness>(static_cast<int>(strictness) + 1);
    align_nodes(before, after, gap_before, gap_after, next, matches);
  };
  Range gap_before = in_before, gap_after = in_after;
  for (const auto& [i, j] :
       align(keys_of(before, in_before, strictness), keys_of(after, in_after, strictness))) {
    const Match match{in_before.begin + i, in_after.begin + j};
    if (!same_form(*before[match.before], *after[match.after])) continue;  // one hash for two keys
    loosen({gap_before.begin, match.before}, {gap_after.begin, match.after});
    matches.push_back(match);
    gap_before.begin = match.before + 1;
    gap_after.begin = match.after + 1;
  }
  loosen(gap_before, gap_after);
}

// ---- values as text -----------------------------------------------------------------------------

std::string text_of(const Attribute* value) {
  return value == nullptr ? std::string(kAbsent) : print(*value, {.brief = true});
}

std::string indices_text(const Type& type, int64_t position) {
  std::string text;
  for (size_t axis = type.rank(); axis-- > 0;) {
    const int64_t size = type.sizes[axis];
    text.insert(0, std::to_string(position % size) + (text.empty() ? "" : ", "));
    position /= size;
  }
  return "[" + text + "]";
}

std::string element_text(const Array& array, int64_t position) {
  const auto size = static_cast<int64_t>(item_size(array.type().dtype));
  const Type scalar = tensor_type(array.type().dtype, {});
  const Array element(scalar, array.owner(), array.data() + position * size);
  const std::string text = print(Attribute(element));
  const size_t begin = text.rfind('[') + 1;
  return text.substr(begin, text.rfind(']') - begin);
}

// The first element in which two arrays of one type differ, if their text does not show it.
void add_first_difference(const Array& before, const Array& after, Difference& difference) {
  if (difference.old_value != difference.new_value || before.type() != after.type()) return;
  if (before.type() != without_repeats(before.type())) return;
  const Array a = before.contiguous(), b = after.contiguous();
  const auto bytes = static_cast<size_t>(a.type().nbytes());
  const auto* first = std::mismatch(a.data(), a.data() + bytes, b.data()).first;
  if (first == a.data() + bytes) return;
  const int64_t position = (first - a.data()) / static_cast<int64_t>(item_size(a.type().dtype));
  const std::string at = " with " + indices_text(a.type(), position) + " = ";
  difference.old_value += at + element_text(a, position);
  difference.new_value += at + element_text(b, position);
}

// ---- comparison ---------------------------------------------------------------------------------

struct Pair {
  NodePtr before, after;
};

class Comparison {
 public:
  Comparison(const Graph& before, const Graph& after, std::string region,
             std::vector<Difference>& differences)
      : before_(before),
        after_(after),
        region_(std::move(region)),
        differences_(differences),
        names_before_(before),
        names_after_(after) {}

  void run() {
    const size_t found = differences_.size();
    align_inputs();
    compare_nodes();
    compare_effects();
    compare_signature();
    if (differences_.size() == found) report_signature("places of effects", "", "");
  }

 private:
  // ---- reports ----
  Difference& report(DifferenceKind kind, const Pair& pair, std::string key, std::string old_value,
                     std::string new_value) {
    Difference difference{kind, std::move(key), std::move(old_value), std::move(new_value)};
    difference.before = pair.before;
    difference.after = pair.after;
    difference.region = region_;
    if (const Node* node = difference.node(); node != nullptr && !node->outputs().empty())
      difference.node_name = (pair.after ? names_after_ : names_before_).of(*node, 0);
    differences_.push_back(std::move(difference));
    return differences_.back();
  }
  void report_removed(const NodePtr& node) {
    const PrintOptions brief{.annotations = false, .brief = true};
    report(DifferenceKind::removed, {node, nullptr}, "", print(*node, names_before_, brief), "");
  }
  void report_added(const NodePtr& node) {
    const PrintOptions brief{.annotations = false, .brief = true};
    report(DifferenceKind::added, {nullptr, node}, "", "", print(*node, names_after_, brief));
  }

  // ---- inputs and nodes ----
  void align_inputs() {
    FlatMap<std::string, NodePtr> by_name;
    for (const LazyTensor& input : after_.inputs())
      by_name.insert(input_name(*input.node), input.node);
    FlatMap<const Node*, std::monostate> found;
    for (const LazyTensor& input : before_.inputs()) {
      const NodePtr* partner = by_name.find(input_name(*input.node));
      if (partner == nullptr) {
        report_removed(input.node);
        continue;
      }
      found.insert(partner->get(), {});
      partner_.insert(input.node.get(), *partner);
      compare_pair({input.node, *partner});
    }
    for (const LazyTensor& input : after_.inputs())
      if (!found.contains(input.node.get())) report_added(input.node);
  }

  void compare_nodes() {
    const auto without_inputs = [](const Graph& graph) {
      Nodes nodes;
      for (const NodePtr& node : graph.nodes())
        if (!is_input(*node)) nodes.push_back(node);
      return nodes;
    };
    const Nodes before = without_inputs(before_), after = without_inputs(after_);
    const auto size = [](const Nodes& nodes) { return static_cast<uint32_t>(nodes.size()); };
    std::vector<Match> matches;
    align_nodes(before, after, {0, size(before)}, {0, size(after)}, Strictness::neighbours,
                matches);
    for (const auto& [i, j] : matches) partner_.insert(before[i].get(), after[j]);
    matches.push_back({size(before), size(after)});
    uint32_t next_before = 0, next_after = 0;
    for (const auto& [i, j] : matches) {
      while (next_before < i) report_removed(before[next_before++]);
      while (next_after < j) report_added(after[next_after++]);
      if (i == size(before)) break;
      compare_pair({before[next_before++], after[next_after++]});
    }
  }

  void compare_pair(const Pair& pair) {
    const auto& [before, after] = pair;
    if ((before->effect() < 0) != (after->effect() < 0)) report_effect(pair);
    compare_attributes(DifferenceKind::attribute, pair, before->attributes(), after->attributes());
    compare_attributes(DifferenceKind::execution, pair, before->execution(), after->execution());
    for (size_t i = 0; i < before->outputs().size(); ++i)
      if (before->outputs()[i] != after->outputs()[i])
        report(DifferenceKind::type, pair, "output " + std::to_string(i),
               print(before->outputs()[i]), print(after->outputs()[i]));
    for (size_t i = 0; i < before->operands().size(); ++i)
      if (!same(before->operands()[i], after->operands()[i]))
        report(DifferenceKind::operand, pair, "operand " + std::to_string(i),
               names_before_.of(before->operands()[i]), names_after_.of(after->operands()[i]));
  }

  // True if a value of `before_` is aligned with that value of `after_`.
  bool same(const LazyTensor& before, const LazyTensor& after) const {
    if (!before || !after) return !before && !after;
    const NodePtr* partner = partner_.find(before.node.get());
    return partner != nullptr && *partner == after.node && before.index == after.index;
  }

  // ---- attributes ----
  void compare_attributes(DifferenceKind kind, const Pair& pair, const Attributes& before,
                          const Attributes& after) {
    std::string order_before, order_after;  // of the names in both
    const auto add = [](std::string& order, Symbol name) {
      order += (order.empty() ? "" : ", ") + name.str();
    };
    for (const auto& [name, value] : before) {
      if (name == kEffect) continue;
      const Attribute* other = find(after, name);
      compare_values(kind, pair, name, &value, other);
      if (other != nullptr) add(order_before, name);
    }
    for (const auto& [name, value] : after) {
      if (name == kEffect) continue;
      const bool added = find(before, name) == nullptr;
      if (added) compare_values(kind, pair, name, nullptr, &value);
      if (!added) add(order_after, name);
    }
    if (order_before != order_after) report(kind, pair, "(order)", order_before, order_after);
  }

  void compare_values(DifferenceKind kind, const Pair& pair, Symbol name, const Attribute* before,
                      const Attribute* after) {
    if (before != nullptr && after != nullptr) {
      if (*before == *after) return;
      const auto *old_region = before->get_if<Region>(), *new_region = after->get_if<Region>();
      if (old_region != nullptr && new_region != nullptr) {
        const std::string node = pair.after->outputs().empty() ? pair.after->op().str()
                                                               : names_after_.of(*pair.after, 0);
        const std::string inner = (region_.empty() ? "" : region_ + "/") + node + "." + name.str();
        Comparison(**old_region, **new_region, inner, differences_).run();
        return;
      }
    }
    Difference& difference = report(kind, pair, name.str(), text_of(before), text_of(after));
    if (before == nullptr || after == nullptr) return;
    const auto *old_array = before->get_if<Array>(), *new_array = after->get_if<Array>();
    if (old_array != nullptr && new_array != nullptr)
      add_first_difference(*old_array, *new_array, difference);
  }

  // ---- the graphs as a whole ----
  // Reports those of the nodes with an effect in both graphs that must move to make the orders
  // equal.
  void compare_effects() {
    FlatMap<const Node*, uint64_t> place_after;
    for (const NodePtr& node : after_.effects()) place_after.insert(node.get(), place_after.size());
    std::vector<Pair> pairs;
    std::vector<uint64_t> order;
    for (const NodePtr& node : before_.effects()) {
      const NodePtr* partner = partner_.find(node.get());
      const uint64_t* place = partner == nullptr ? nullptr : place_after.find(partner->get());
      if (place == nullptr) continue;
      pairs.push_back({node, *partner});
      order.push_back(*place);
    }
    std::vector<uint64_t> sorted = order;
    std::sort(sorted.begin(), sorted.end());
    std::vector<bool> stays(pairs.size(), false);
    for (const Match& match : align(order, sorted)) stays[match.before] = true;
    for (size_t i = 0; i < pairs.size(); ++i)
      if (!stays[i]) report_effect(pairs[i]);
  }

  void report_effect(const Pair& pair) {
    report(DifferenceKind::effect, pair, "effect", text_of(find(pair.before->execution(), kEffect)),
           text_of(find(pair.after->execution(), kEffect)));
  }

  void compare_signature() {
    const auto &old_outputs = before_.outputs(), &new_outputs = after_.outputs();
    if (old_outputs.size() != new_outputs.size())
      report_signature("number of outputs", std::to_string(old_outputs.size()),
                       std::to_string(new_outputs.size()));
    for (size_t i = 0; i < std::min(old_outputs.size(), new_outputs.size()); ++i)
      if (!same(old_outputs[i], new_outputs[i]))
        report_signature("output " + std::to_string(i), names_before_.of(old_outputs[i]),
                         names_after_.of(new_outputs[i]));
    compare_mutations();
    compare_input_order();
  }

  void compare_mutations() {
    FlatMap<std::string, LazyTensor> old_values, new_values;
    for (const auto& [target, value] : before_.mutations())
      old_values.insert(input_name(*target.node), value);
    for (const auto& [target, value] : after_.mutations())
      new_values.insert(input_name(*target.node), value);
    for (const auto& mutation : before_.mutations()) {
      const std::string& name = input_name(*mutation.target.node);
      const LazyTensor* now = new_values.find(name);
      if (now == nullptr || !same(mutation.value, *now))
        report_signature("mutation of " + name, names_before_.of(mutation.value),
                         now == nullptr ? std::string(kAbsent) : names_after_.of(*now));
    }
    for (const auto& mutation : after_.mutations()) {
      const std::string& name = input_name(*mutation.target.node);
      if (!old_values.contains(name))
        report_signature("mutation of " + name, std::string(kAbsent),
                         names_after_.of(mutation.value));
    }
  }

  void compare_input_order() {
    FlatMap<const Node*, std::monostate> common;
    std::vector<const Node*> expected, received;
    for (const LazyTensor& input : before_.inputs())
      if (const NodePtr* partner = partner_.find(input.node.get())) {
        expected.push_back(partner->get());
        common.insert(partner->get(), {});
      }
    for (const LazyTensor& input : after_.inputs())
      if (common.contains(input.node.get())) received.push_back(input.node.get());
    const auto text = [](const std::vector<const Node*>& inputs) {
      std::string names;
      for (const Node* node : inputs) names += (names.empty() ? "" : ", ") + input_name(*node);
      return names;
    };
    if (expected != received) report_signature("order of inputs", text(expected), text(received));
  }

  void report_signature(std::string key, std::string old_value, std::string new_value) {
    report(DifferenceKind::signature, {}, std::move(key), std::move(old_value),
           std::move(new_value));
  }

  const Graph &before_, &after_;
  std::string region_;
  std::vector<Difference>& differences_;
  Names names_before_, names_after_;
  FlatMap<const Node*, NodePtr> partner_;  // in `after_`, of nodes of `before_`
};

}  // namespace

std::string_view name(DifferenceKind kind) {
  return kDifferenceNames.at(static_cast<size_t>(kind));
}

std::string_view Difference::scope() const { return node() ? node()->annotation("scope") : ""; }
std::string_view Difference::source() const { return node() ? node()->annotation("source") : ""; }

std::vector<Difference> compare(const Graph& before, const Graph& after) {
  std::vector<Difference> differences;
  if (!(before == after)) Comparison(before, after, "", differences).run();
  return differences;
}

std::string str(const Difference& difference) {
  std::string text = difference.region.empty() ? "" : "in " + difference.region + ": ";
  if (difference.kind == DifferenceKind::added) {
    text = "+ " + text + difference.new_value;
  } else if (difference.kind == DifferenceKind::removed) {
    text = "- " + text + difference.old_value;
  } else {
    text = "~ " + text;
    if (!difference.node_name.empty()) text += difference.node_name + " = ";
    if (difference.node() != nullptr) text += difference.node()->op().str() + ": ";
    const bool named = difference.kind == DifferenceKind::attribute ||
                       difference.kind == DifferenceKind::execution;
    if (named) text.append(name(difference.kind)).append(" ");
    if (difference.kind == DifferenceKind::type) text += "type of ";
    text += difference.key;
    if (!difference.old_value.empty() || !difference.new_value.empty())
      text += ": " + difference.old_value + " -> " + difference.new_value;
  }
  if (!difference.scope().empty()) text.append("  # scope=").append(difference.scope());
  if (!difference.source().empty())
    text.append(difference.scope().empty() ? "  #" : "")
        .append(" source=")
        .append(difference.source());
  return text;
}

}  // namespace composit
