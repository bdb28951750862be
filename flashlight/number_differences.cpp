#include "flashlight/number_differences.h"

#include <algorithm>
#include <set>
#include <unordered_map>

#include "composit/family/numbers.h"
#include "composit/ir/integers.h"
#include "tracer/convert.h"
#include "tracer/replay.h"

namespace flashlight {
namespace {

using composit::Attribute;
using composit::CountKind;
using composit::CountOptions;
using composit::Difference;
using composit::DifferenceKind;
using composit::Node;

std::vector<const Node*> nodes_of(const composit::Graph& graph) {
  std::vector<const Node*> nodes;
  for_each_node(graph, [&](const Node& node) { nodes.push_back(&node); });
  return nodes;
}

// True if a replay can put another number there: in arguments of LibTorch's operators, and
// constants. Not in guards: the program read that number, and may take another path with others.
bool is_replaceable(const Difference& difference) {
  const Node& node = *difference.after;
  if (difference.kind != DifferenceKind::attribute) return false;
  if (node.op() == composit::ops::kConstant ? difference.key != "value"
                                            : node.op().domain() == "composit")
    return false;
  const Attribute *before = difference.before->find_attribute(difference.key),
                  *after = node.find_attribute(difference.key);
  return before != nullptr && after != nullptr && real_number_of(*before) && real_number_of(*after);
}

}  // namespace

std::optional<std::vector<NumberPlace>> number_differences(
    const composit::Graph& before, const composit::Graph& after,
    const std::vector<Difference>& differences) {
  const std::vector<const Node*> old_nodes = nodes_of(before), new_nodes = nodes_of(after);
  if (old_nodes.size() != new_nodes.size()) return std::nullopt;
  std::unordered_map<const Node*, size_t> index;
  for (size_t i = 0; i < new_nodes.size(); ++i) index.emplace(new_nodes[i], i);
  std::vector<NumberPlace> places;
  for (const Difference& difference : differences) {
    if (!difference.before || !difference.after || !is_replaceable(difference)) return std::nullopt;
    const auto found = index.find(difference.after.get());
    if (found == index.end() || old_nodes[found->second] != difference.before.get())
      return std::nullopt;
    places.push_back({found->second, difference.key, tracer::place_of(*difference.after)});
  }
  return places;
}

std::optional<double> number_at(const composit::Graph& graph, const NumberPlace& place) {
  const std::vector<const Node*> nodes = nodes_of(graph);
  if (place.node >= nodes.size()) return std::nullopt;
  const Attribute* attribute = nodes[place.node]->find_attribute(place.key);
  return attribute == nullptr ? std::nullopt : real_number_of(*attribute);
}

CountedNumbers count_calls(const std::vector<composit::Graph>& graphs,
                           const std::vector<NumberPlace>& places, bool python) {
  std::vector<std::vector<double>> values(places.size());
  CountedNumbers result;
  for (size_t i = 0; i < places.size(); ++i)
    for (const composit::Graph& graph : graphs) {
      const auto number = number_at(graph, places[i]);
      if (!number) {
        result.unexplained = places[i];
        return result;
      }
      values[i].push_back(*number);
    }
  const CountOptions plain{
      .bases = composit::bases_of(graphs.back()), .counts = {}, .python = python};
  CountOptions options = plain;
  // A count that is found in some numbers helps to find it in others.
  for (const auto& numbers : values)
    if (const auto form = fit_count(numbers, plain);
        form && form->c == 1 && (form->kind != CountKind::count || form->b == 1))
      options.counts.insert(options.counts.begin(), form->k);
  for (size_t i = 0; i < places.size(); ++i) {
    const auto form = fit_count(values[i], options);
    if (!form) {
      result.unexplained = places[i];
      return result;
    }
    result.only_counts = result.only_counts && form->kind == CountKind::count;
    result.places.push_back({places[i].node, places[i].key, formula_of(*form)});
  }
  return result;
}

namespace {

bool comes_from_outside(const Difference& difference) {
  return difference.after && difference.region.empty() &&
         (composit::is_input(*difference.after) ||
          difference.after->op() == composit::ops::kConstant);
}

// True if the same operator on the same operands gave another size, which depends on their values:
// a replay is refused there.
bool is_size_of_values(const Difference& difference, const std::vector<Difference>& all) {
  return difference.kind == DifferenceKind::type && difference.before && difference.after &&
         !composit::is_input(*difference.after) &&
         difference.after->op() != composit::ops::kConstant &&
         std::none_of(all.begin(), all.end(), [&](const Difference& other) {
           return other.after == difference.after && other.kind != DifferenceKind::type;
         });
}

}  // namespace

bool begins_with_guard(const std::vector<Difference>& differences) {
  // If an input from outside has another size, other sizes follow from that.
  const bool by_values = std::none_of(differences.begin(), differences.end(), [](const auto& one) {
    return one.kind == DifferenceKind::type && comes_from_outside(one);
  });
  const Difference* guard = nullptr;
  for (const Difference& difference : differences) {
    const bool expected =
        difference.kind == DifferenceKind::execution && difference.key == "expected";
    if (!expected && !by_values) continue;
    if (guard != nullptr && difference.after && difference.after->place() >= guard->after->place())
      continue;
    if (expected || is_size_of_values(difference, differences)) guard = &difference;
  }
  if (guard == nullptr) return false;
  return std::all_of(differences.begin(), differences.end(), [&](const Difference& difference) {
    const Node* node = difference.node();
    if (node == nullptr || composit::is_input(*node)) return true;  // they follow from others
    return difference.after ? difference.after->place() >= guard->after->place()
                            : difference.before->place() > guard->before->place();
  });
}

}  // namespace flashlight
