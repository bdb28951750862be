#include "flashlight/followed_numbers.h"

#include <algorithm>
#include <bit>
#include <set>
#include <unordered_map>

#include "composit/family/number_inputs.h"
#include "composit/ir/error.h"
#include "tracer/convert.h"

namespace flashlight {
namespace {

using composit::NumberFormula;
using tracer::GivenNumber;
using tracer::Record;
using tracer::RecordId;
using tracer::Recording;
using tracer::RecordKind;
using Numbers = std::vector<FollowedNumber>;

std::set<std::string> names_in(const NumberFormula& formula) {
  std::set<std::string> names;
  formula.for_each_name([&](const std::string& name) { names.insert(name); });
  return names;
}

bool same_number(double a, double b) {
  return std::bit_cast<uint64_t>(a) == std::bit_cast<uint64_t>(b);
}

bool is_number(const c10::IValue& value, double number) {
  return value.isDouble() && same_number(value.toDouble(), number);
}

// Where this number stands in what records from `begin` to `end` are given, in their order.
Numbers find_number(const Recording& recording, RecordId begin, RecordId end, double number) {
  Numbers found;
  for (RecordId id = begin; id < std::min(end, recording.records.size()); ++id) {
    const Record& record = recording.records[id];
    if (record.kind == RecordKind::constant) {
      const tracer::RecordedConstant& constant = recording.constants[record.index];
      if (constant.number && constant.tensor.numel() == 1 &&
          constant.tensor.scalar_type() == c10::kDouble &&
          same_number(*constant.tensor.const_data_ptr<double>(), number))
        found.push_back({id});
    }
    if (record.kind != RecordKind::op) continue;
    for (uint32_t i = 0; i < record.attribute_count; ++i) {
      const c10::IValue& attribute = recording.attributes[record.attributes + i];
      if (is_number(attribute, number)) found.push_back({id, i});
      if (!attribute.isList()) continue;
      const auto items = attribute.toListRef();
      for (size_t element = 0; element < items.size(); ++element)
        if (is_number(items[element], number)) found.push_back({id, i, element});
    }
  }
  return found;
}

// The places of the numbers that one call was given and that have the value of `given[first]`, for
// as many of them as there are; nothing where there are more places or fewer.
Numbers places_of(const Recording& recording, const std::vector<size_t>& group) {
  const GivenNumber& first = recording.given[group[0]];
  Numbers places = find_number(recording, first.begin, first.end, first.value);
  if (places.size() != group.size()) return {};
  for (size_t i = 0; i < group.size(); ++i) places[i].formula = recording.given[group[i]].formula;
  return places;
}

// Numbers of equal value that one call was given, by their indices.
std::vector<std::vector<size_t>> groups_of(const std::vector<GivenNumber>& given) {
  std::vector<std::vector<size_t>> groups;
  for (size_t i = 0; i < given.size(); ++i) {
    const auto same = std::find_if(groups.begin(), groups.end(), [&](const auto& group) {
      const GivenNumber& first = given[group[0]];
      return first.begin == given[i].begin && first.end == given[i].end &&
             same_number(first.value, given[i].value);
    });
    // Calls come one after the other, so an older group is no candidate.
    same == groups.end() ? groups.push_back({i}) : same->push_back(i);
  }
  return groups;
}

bool same_given(const Recording& a, const Recording& b) {
  return std::equal(a.given.begin(), a.given.end(), b.given.begin(), b.given.end(),
                    [](const GivenNumber& x, const GivenNumber& y) {
                      return x.begin == y.begin && x.end == y.end && x.formula == y.formula;
                    });
}

bool same_places(const Numbers& a, const Numbers& b) {
  return std::equal(a.begin(), a.end(), b.begin(), b.end(), [](const auto& x, const auto& y) {
    return x.record == y.record && x.attribute == y.attribute && x.element == y.element;
  });
}

void erase_reads(Numbers& numbers, std::set<std::string> lost,
                 const std::vector<GivenNumber>& given) {
  // A read that is lost for one number is a guard again, and what else is made of it is fixed.
  for (bool more = true; more;) {
    more = false;
    for (const GivenNumber& one : given) {
      const std::set<std::string> names = names_in(one.formula);
      const bool fixed = std::any_of(names.begin(), names.end(),
                                     [&](const auto& name) { return lost.contains(name); });
      if (!fixed) continue;
      for (const std::string& name : names) more = lost.insert(name).second || more;
    }
  }
  std::erase_if(numbers, [&](const FollowedNumber& number) {
    const std::set<std::string> names = names_in(number.formula);
    return std::any_of(names.begin(), names.end(),
                       [&](const auto& name) { return lost.contains(name); });
  });
}

std::string name_of_attribute(const Recording& recording, const FollowedNumber& number) {
  const Record& record = recording.records[number.record];
  if (record.kind == RecordKind::constant) return "value";
  uint32_t next = 0;
  for (size_t i = 0; i < record.info->arguments.size(); ++i)
    if (record.info->arguments[i] == tracer::ArgumentKind::other && next++ == number.attribute)
      return record.info->argument_names[i].str();
  COMPOSIT_ASSERT(false, "an attribute that the operator does not have");
  return {};
}

}  // namespace

Numbers find_followed(const Recording& before, const Recording& now) {
  if (now.given.empty() || !same_given(before, now)) return {};
  Numbers numbers;
  std::set<std::string> lost;
  for (const std::vector<size_t>& group : groups_of(now.given)) {
    const Numbers places = places_of(now, group), old = places_of(before, group);
    if (!places.empty() && same_places(places, old))
      numbers.insert(numbers.end(), places.begin(), places.end());
    else
      for (const size_t i : group) lost.merge(names_in(now.given[i].formula));
  }
  erase_reads(numbers, std::move(lost), now.given);
  return numbers;
}

void follow(Recording& recording, const Numbers& numbers) {
  std::set<std::string> names;
  for (const FollowedNumber& number : numbers) names.merge(names_in(number.formula));
  for (RecordId id = 0; id < recording.records.size(); ++id)
    if (recording.records[id].expected != tracer::kNone)
      recording.records[id].followed = names.contains(tracer::name_of_read(id));
}

Numbers without_inner_reads(Numbers numbers, const tracer::Published& published) {
  std::set<std::string> outside;
  for (const auto& [id, value] : published.reads) outside.insert(tracer::name_of_read(id));
  std::set<std::string> lost;
  std::vector<GivenNumber> given;
  for (const FollowedNumber& number : numbers) {
    given.push_back({.formula = number.formula});
    for (const std::string& name : names_in(number.formula))
      if (!outside.contains(name)) lost.insert(name);
  }
  erase_reads(numbers, std::move(lost), given);
  return numbers;
}

std::vector<ChangingPlace> changing_places(const Numbers& numbers, const Recording& recording,
                                           const tracer::Published& published) {
  std::unordered_map<const composit::Node*, size_t> index;
  size_t count = 0;  // a node that regions share comes several times
  for_each_node(published.graph,
                [&](const composit::Node& node) { index.emplace(&node, count++); });
  std::map<std::string, composit::LazyTensor> reads;
  for (const auto& [id, value] : published.reads) reads.emplace(tracer::name_of_read(id), value);
  std::vector<ChangingPlace> places;
  for (const FollowedNumber& number : numbers) {
    const auto node = published.nodes.find(number.record);
    if (node == published.nodes.end()) continue;  // nobody needs what the operator computes
    composit::NumberKey key(name_of_attribute(recording, number));
    key.element = number.element;
    ChangingPlace place{index.at(node->second.get()), print(key), number.formula};
    for (const std::string& name : names_in(number.formula))
      place.reads.emplace(name, reads.at(name));
    places.push_back(std::move(place));
  }
  return places;
}

std::vector<composit::Difference> without_places(std::vector<composit::Difference> differences,
                                                 const composit::Graph& graph,
                                                 const std::vector<ChangingPlace>& places) {
  std::vector<const composit::Node*> nodes;
  for_each_node(graph, [&](const composit::Node& node) { nodes.push_back(&node); });
  std::set<std::pair<const composit::Node*, std::string>> known;
  for (const ChangingPlace& place : places)
    known.emplace(nodes.at(place.node), composit::NumberKey(place.key).name);
  std::erase_if(differences, [&](const composit::Difference& difference) {
    return difference.before != nullptr && difference.after != nullptr &&
           difference.kind == composit::DifferenceKind::attribute &&
           known.contains({difference.after.get(), difference.key});
  });
  return differences;
}

composit::Graph with_numbers_inside(const composit::Graph& graph,
                                    const std::vector<ChangingPlace>& places) {
  std::vector<const composit::Node*> nodes;
  for_each_node(graph, [&](const composit::Node& node) { nodes.push_back(&node); });
  std::vector<composit::NumberInside> numbers;
  for (const ChangingPlace& place : places)
    numbers.push_back({nodes.at(place.node), place.key, place.formula, place.reads});
  return composit::with_numbers_inside(graph, numbers);
}

}  // namespace flashlight
