#include "composit/family/case_finder.h"

#include <algorithm>
#include <cmath>
#include <iterator>
#include <map>
#include <numeric>
#include <optional>
#include <set>

#include "composit/family/bind.h"
#include "composit/family/structure.h"
#include "composit/family/unify_check.h"
#include "composit/ir/error.h"

namespace composit {
namespace {

using Values = std::vector<int64_t>;

bool all_equal(const Values& values) {
  return std::all_of(values.begin(), values.end(), [&](int64_t v) { return v == values[0]; });
}

int64_t count_of(const FreeSize& size) { return (size.high - size.low) / size.step + 1; }

SizeValues first_of(const std::vector<FreeSize>& sizes) {
  SizeValues values;
  for (const FreeSize& size : sizes) values[size.name] = size.shown.at(0);
  return values;
}

std::vector<SizeValues> all_points(const std::vector<FreeSize>& sizes) {
  std::vector<SizeValues> points = {{}};
  for (const FreeSize& size : sizes) {
    std::vector<SizeValues> more;
    for (const SizeValues& point : points)
      for (int64_t number = size.low; number <= size.high; number += size.step) {
        more.push_back(point);
        more.back()[size.name] = number;
      }
    points = std::move(more);
  }
  return points;
}

std::vector<SizeValues> some_points(const std::vector<FreeSize>& sizes) {
  constexpr int64_t kMost = 512;
  constexpr int64_t kPaces[] = {101, 211, 307, 401, 503, 601};
  std::vector<SizeValues> points;
  for (const FreeSize& size : sizes)
    for (int64_t i = 0; i < std::min(count_of(size), kMost); ++i) {
      const int64_t step = count_of(size) <= kMost ? i : i * count_of(size) / kMost;
      points.push_back(first_of(sizes));
      points.back()[size.name] = size.low + size.step * step;
    }
  for (int64_t i = 0; i < kMost; ++i) {
    SizeValues point;
    for (size_t s = 0; s < sizes.size(); ++s)
      point[sizes[s].name] =
          sizes[s].low + sizes[s].step * (i * kPaces[s % std::size(kPaces)] % count_of(sizes[s]));
    points.push_back(std::move(point));
  }
  return points;
}

// How far a point is from the nearest of those known, each size by its range; 0: it is one of them.
double distance_to(const std::vector<SizeValues>& known, const SizeValues& point,
                   const std::vector<FreeSize>& sizes) {
  double nearest = static_cast<double>(sizes.size()) + 1;
  for (const SizeValues& other : known) {
    double distance = 0;
    for (const FreeSize& size : sizes)
      if (size.high > size.low)
        distance += std::abs(static_cast<double>(point.at(size.name) - other.at(size.name))) /
                    static_cast<double>(size.high - size.low);
    nearest = std::min(nearest, distance);
  }
  return nearest;
}

// The point that is farthest from those known, if these are too few, or show too few numbers of
// some size.
std::optional<SizeValues> farthest_wanted(const std::vector<SizeValues>& known,
                                          const std::vector<SizeValues>& points,
                                          const std::vector<FreeSize>& sizes) {
  constexpr size_t kLeastPoints = 4, kLeastNumbers = 3;
  const auto numbers_of = [](const std::vector<SizeValues>& all, const std::string& name) {
    std::set<int64_t> numbers;
    for (const SizeValues& point : all) numbers.insert(point.at(name));
    return numbers;
  };
  std::map<std::string, std::set<int64_t>> lacking;  // the numbers that are known
  for (const FreeSize& size : sizes) {
    std::set<int64_t> numbers = numbers_of(known, size.name);
    if (numbers.size() < std::min(kLeastNumbers, numbers_of(points, size.name).size()))
      lacking[size.name] = std::move(numbers);
  }
  if (known.size() >= kLeastPoints && lacking.empty()) return std::nullopt;
  std::optional<SizeValues> wanted;
  double farthest = 0;
  for (const SizeValues& point : points) {
    const double distance = distance_to(known, point, sizes);
    const bool is_new =
        lacking.empty() || std::any_of(lacking.begin(), lacking.end(), [&](const auto& one) {
          return !one.second.contains(point.at(one.first));
        });
    if (distance <= farthest || !is_new) continue;
    farthest = distance;
    wanted = point;
  }
  return wanted;
}

// As many of the points as may be bound up to a graph's size; another part of them for each size.
std::vector<SizeValues> some_of(const std::vector<SizeValues>& points, size_t nodes) {
  constexpr size_t kMostNodes = 20'000, kLeast = 24, kPace = 7919;
  const size_t count = std::max(kLeast, kMostNodes / std::max<size_t>(nodes, 1));
  if (count >= points.size()) return points;
  std::vector<SizeValues> some;
  for (size_t i = 0; i < count; ++i) some.push_back(points[i * kPace % points.size()]);
  return some;
}

bool has_one(const SizeValues& sizes) {
  return std::any_of(sizes.begin(), sizes.end(), [](const auto& size) { return size.second <= 1; });
}

// Equal to a size of an input, or a multiple of one and a number.
bool is_plain(const Values& values, const std::vector<SizeLeaf>& inputs) {
  const std::vector<Fit> all = fits(values, inputs);
  return std::any_of(all.begin(), all.end(), [](const Fit& fit) {
    return fit.form == FitForm::size || fit.form == FitForm::shifted ||
           fit.form == FitForm::multiple || fit.form == FitForm::affine;
  });
}

// The nodes of a graph that are no inputs, in order.
std::vector<NodePtr> inner_nodes(const Graph& graph) {
  std::vector<NodePtr> nodes;
  for (const NodePtr& node : graph.nodes())
    if (!is_input(*node)) nodes.push_back(node);
  return nodes;
}

// The first nodes of a graph, `count` of them that are no inputs.
Graph beginning_of(const Graph& graph, size_t count) {
  LazyTensors outputs;
  const std::vector<NodePtr> nodes = inner_nodes(graph);
  for (size_t n = 0; n < count; ++n)
    for (uint32_t i = 0; i < nodes[n]->outputs().size(); ++i) outputs.push_back({nodes[n], i});
  return Graph({.inputs = graph.inputs(), .outputs = std::move(outputs)});
}

std::string place_of(const Graph& graph, size_t inner_node) {
  const std::vector<NodePtr> nodes = inner_nodes(graph);
  return inner_node < nodes.size() ? describe(*nodes[inner_node], Names(graph))
                                   : "what is returned or written";
}

std::string numbers_text(const std::vector<size_t>& members) {
  std::vector<int64_t> numbers;
  for (const size_t member : members) numbers.push_back(static_cast<int64_t>(member + 1));
  return list_of(numbers);
}

}  // namespace

std::vector<SizeValues> grid_of(const std::vector<FreeSize>& sizes) {
  constexpr double kMost = 2048;
  double count = 1;
  for (const FreeSize& size : sizes) count *= static_cast<double>(count_of(size));
  return count <= kMost ? all_points(sizes) : some_points(sizes);
}

SizeFormula::SizeOf sizes_before(const Family& family, const std::vector<SizeCondition>& conditions,
                                 const SizeValues& sizes) {
  std::vector<Type> types = types_at(family, sizes);
  LazyTensors read;
  for (const SizeCondition& condition : conditions)
    for_each_size(condition, [&](const LazyTensor& tensor, size_t) {
      if (!is_input(*tensor.node)) read.push_back(tensor);
    });
  Binding binding;
  if (!read.empty()) binding = bind_part(family, part_of(family, read), types, {});
  const LazyTensors& inputs = family.example.inputs();
  return [binding = std::move(binding), types = std::move(types), inputs](const LazyTensor& tensor,
                                                                          size_t axis) {
    for (size_t i = 0; i < inputs.size(); ++i)
      if (inputs[i].node == tensor.node) return types[i].sizes.at(axis);
    return binding.of(tensor).sizes().at(axis);
  };
}

CaseFinder::CaseFinder(const std::vector<Graph>& examples, std::vector<FreeSize> sizes)
    : examples_(examples), sizes_(std::move(sizes)), grid_(grid_of(sizes_)) {
  for (const Graph& example : examples) structures_.push_back(structure_of(example));
}

Cases CaseFinder::find() {
  std::set<std::string> structures;
  for (const auto& one : structures_) {
    Hasher hasher;
    for (const Hash& hash : one) hasher.add(hash);
    structures.insert(hasher.finish().str());
  }
  Members all(examples_.size());
  std::iota(all.begin(), all.end(), size_t{0});
  cases_.case_of_example.resize(examples_.size());
  // A program with another structure at each size is no matter of cases.
  constexpr size_t kEnoughToTell = 6;
  const bool too_many =
      examples_.size() >= kEnoughToTell && structures.size() * 2 > examples_.size();
  if (too_many) return {{unify_alike(examples_, sizes_of(all), {})}, {}, {}};
  way(all, {});
  return std::move(cases_);
}

Way CaseFinder::way(const Members& members, const Path& path) {
  const bool alike = std::all_of(members.begin(), members.end(), [&](size_t member) {
    return structures_[member] == structures_[members[0]];
  });
  if (alike) return new_case(members, path);
  auto [found, inside] = fork(members, path);
  const size_t index = cases_.forks.size();
  cases_.forks.push_back(std::move(found));
  Members outside;
  for (const size_t member : members)
    if (std::count(inside.begin(), inside.end(), member) == 0) outside.push_back(member);
  for (const bool holds : {true, false}) {
    Path next = path;
    next.emplace_back(index, holds);
    const Way there = way(holds ? inside : outside, next);
    (holds ? cases_.forks[index].holds : cases_.forks[index].fails) = there;
  }
  cases_.forks[index].reader = cases_.case_of_example[members[0]];
  return {false, index};
}

Way CaseFinder::new_case(const Members& members, const Path& path) {
  const std::vector<FreeSize> sizes = sizes_of(members);
  if (!path.empty()) expect_enough(sizes, path);
  std::vector<Graph> graphs;
  for (const size_t member : members) graphs.push_back(examples_[member]);
  Family family =
      unify_alike(graphs, sizes, [&](const SizeValues& numbers) { return is_on(path, numbers); });
  // Formulas before a fork are those that hold for the examples on both sides.
  for (const auto& [index, holds] : path) {
    const Family& shared = befores_[index];
    if (shared.example.inputs() != family.example.inputs()) continue;
    for (const NodePtr& node : shared.example.nodes())
      if (const NodeFormulas& formulas = shared.formulas_of(*node); !formulas.empty())
        family.formulas.insert(node.get(), formulas);
  }
  if (!path.empty()) expect_examples_again(family, graphs);
  for (const size_t member : members) cases_.case_of_example[member] = cases_.cases.size();
  cases_.cases.push_back(std::move(family));
  return {true, cases_.cases.size() - 1};
}

std::pair<Fork, CaseFinder::Members> CaseFinder::fork(const Members& members, const Path& path) {
  size_t common = 0;
  const auto& first = structures_[members[0]];
  while (std::all_of(members.begin(), members.end(),
                     [&](size_t member) { return structures_[member][common] == first[common]; }))
    ++common;
  std::vector<Members> parts;
  for (const size_t member : members) {
    const auto part = std::find_if(parts.begin(), parts.end(), [&](const Members& one) {
      return structures_[one[0]][common] == structures_[member][common];
    });
    if (part == parts.end())
      parts.push_back({member});
    else
      part->push_back(member);
  }
  const std::string place = place_of(examples_[members[0]], common);
  const std::string what =
      "examples " + numbers_text(parts[0]) + " and " + numbers_text(parts[1]) + " part at " + place;
  Family before_fork = before(members, common);
  const std::vector<SizeLeaf> leaves = leaves_of(members, before_fork);
  for (size_t p = 0; p < (parts.size() == 2 ? 1 : parts.size()); ++p) {
    std::vector<bool> inside;
    for (const size_t member : members)
      inside.push_back(std::count(parts[p].begin(), parts[p].end(), member) > 0);
    const std::vector<Separation> all = separations(leaves, inside);
    if (all.empty()) continue;
    const Separation taken = resolved(all, before_fork, path, what);
    expect_boundary(taken.condition, before_fork, members, path, what);
    befores_.push_back(std::move(before_fork));
    Members holding;
    for (size_t i = 0; i < members.size(); ++i)
      if (inside[i] == taken.holds_inside) holding.push_back(members[i]);
    return {Fork{0, taken.condition, {}, {}, place}, holding};
  }
  throw UserError("[unify] " + what +
                  "; no condition on sizes tells them apart. A branch on values has to be written "
                  "with operators, as torch::where");
}

Family CaseFinder::before(const Members& members, size_t common) const {
  std::vector<Graph> graphs;
  for (const size_t member : members) graphs.push_back(beginning_of(examples_[member], common));
  return unify_alike(graphs, sizes_of(members), {});
}

std::vector<SizeLeaf> CaseFinder::leaves_of(const Members& members, const Family& before) const {
  const std::vector<FreeSize> sizes = sizes_of(members);
  std::vector<SizeLeaf> leaves;
  for (const FreeSize& size : sizes)
    if (!all_equal(size.shown))
      leaves.push_back({examples_[members[0]].inputs().at(size.axes.at(0).input), size.axes[0].axis,
                        size.shown, true});
  if (!before.value_sizes.empty()) return leaves;
  // Of values before the fork those that say more than the inputs' sizes: a quotient, say.
  const std::vector<SizeLeaf> inputs = leaves;
  std::set<Values> known;
  std::vector<std::vector<NodePtr>> nodes;
  for (const size_t member : members) nodes.push_back(inner_nodes(examples_[member]));
  const size_t count = inner_nodes(before.example).size();
  for (size_t n = 0; n < count; ++n)
    for (uint32_t i = 0; i < nodes[0][n]->outputs().size(); ++i)
      for (size_t axis = 0; axis < nodes[0][n]->outputs()[i].rank(); ++axis) {
        Values values;
        for (const auto& of_member : nodes)
          values.push_back(of_member[n]->outputs()[i].sizes.at(axis));
        if (!all_equal(values) && known.insert(values).second && !is_plain(values, inputs))
          leaves.push_back({{nodes[0][n], i}, axis, values, false});
      }
  return leaves;
}

Separation CaseFinder::resolved(const std::vector<Separation>& all, const Family& before,
                                const Path& path, const std::string& what) const {
  std::vector<SizeCondition> conditions;
  for (const Separation& one : all) conditions.push_back(one.condition);
  std::optional<SizeValues> wanted;
  size_t best = 0, other = 0;
  for (const SizeValues& point : some_of(grid_, before.example.size())) {
    if (!is_on(path, point)) continue;
    std::vector<bool> inside;
    try {
      const SizeFormula::SizeOf size_of = sizes_before(before, conditions, point);
      for (const Separation& one : all)
        inside.push_back(holds(one.condition, size_of) == one.holds_inside);
    } catch (const UserError&) {  // no program has these sizes
      continue;
    }
    const auto in = static_cast<size_t>(std::count(inside.begin(), inside.end(), true));
    // How even the answers are; size 1 is asked for if nothing else tells them apart.
    const size_t score = 2 * std::min(in, all.size() - in) - (has_one(point) && in > 0 ? 1 : 0);
    if (in == 0 || in == all.size() || score <= best) continue;
    best = score;
    wanted = point;
    other =
        static_cast<size_t>(std::find(inside.begin(), inside.end(), !inside[0]) - inside.begin());
  }
  if (!wanted) return all[0];
  const Names names(before.example);
  throw ExampleWanted("[unify] " + what + ", which " + print(all[0].condition, names) + " or " +
                          print(all[other].condition, names) + " may decide: add an example at " +
                          text_of(*wanted),
                      *wanted);
}

// A condition that happens to fit is found out where it changes its answer: on both sides there
// some examples have to be, far from each other in the sizes that the condition does not read.
void CaseFinder::expect_boundary(const SizeCondition& condition, const Family& before,
                                 const Members& members, const Path& path,
                                 const std::string& what) const {
  std::map<SizeValues, std::optional<bool>> answers;
  const auto answer = [&](const SizeValues& point) -> std::optional<bool> {
    const auto [known, is_new] = answers.emplace(point, std::nullopt);
    try {
      if (is_new && is_on(path, point))
        known->second = holds(condition, sizes_before(before, {condition}, point));
    } catch (const UserError&) {  // no program has these sizes
    }
    return known->second;
  };
  const auto is_at_boundary = [&](const SizeValues& point, bool here) {
    for (const FreeSize& size : sizes_)
      for (const int64_t step : {-size.step, size.step}) {
        SizeValues next = point;
        next[size.name] += step;
        if (size.step == 0 || next[size.name] < size.low || next[size.name] > size.high) continue;
        if (answer(next).value_or(here) != here) return true;
      }
    return false;
  };
  std::vector<SizeValues> shown[2];
  for (const size_t member : members) {
    SizeValues point;
    for (const FreeSize& size : sizes_) point[size.name] = size.shown.at(member);
    const std::optional<bool> here = answer(point);
    if (here && is_at_boundary(point, *here)) shown[*here ? 0 : 1].push_back(point);
  }
  for (const bool side : {true, false}) {
    std::vector<SizeValues> there;
    for (const SizeValues& point : some_of(grid_, before.example.size()))
      if (!has_one(point) && answer(point) == side && is_at_boundary(point, side))
        there.push_back(point);
    if (const auto wanted = farthest_wanted(shown[side ? 0 : 1], there, sizes_))
      throw ExampleWanted("[unify] " + what + ", which " + print(condition, Names(before.example)) +
                              " seems to decide: add an example at " + text_of(*wanted),
                          *wanted);
  }
}

std::string CaseFinder::text_of_path(const Path& path) const {
  std::string text;
  for (const auto& [index, holds] : path)
    text += (text.empty() ? "" : " and ") + std::string(holds ? "" : "not ") +
            print(cases_.forks[index].condition, Names(befores_[index].example));
  return text;
}

bool CaseFinder::is_on(const Path& path, const SizeValues& sizes) const {
  return std::all_of(path.begin(), path.end(), [&](const auto& step) {
    const SizeCondition& condition = cases_.forks[step.first].condition;
    try {
      return holds(condition, sizes_before(befores_[step.first], {condition}, sizes)) ==
             step.second;
    } catch (const UserError&) {
      return false;
    }
  });
}

std::vector<FreeSize> CaseFinder::sizes_of(const Members& members) const {
  const Graph& first = examples_[members[0]];
  std::vector<FreeSize> sizes;
  for (const FreeSize& size : sizes_) {
    Values shown;
    for (const size_t member : members) shown.push_back(size.shown.at(member));
    sizes.push_back(free_size(size.name, std::move(shown)));
    for (const InputAxis& axis : size.axes)
      sizes.back().axes.push_back(
          {input_called(first, input_name(*examples_[0].inputs().at(axis.input).node)), axis.axis});
  }
  return sizes;
}

void CaseFinder::expect_enough(const std::vector<FreeSize>& sizes, const Path& path) const {
  std::map<std::string, std::set<int64_t>> there;
  size_t nodes = 1;  // that are bound for each point
  for (const auto& [index, holds] : path)
    for_each_size(cases_.forks[index].condition, [&, of = index](const LazyTensor& tensor, size_t) {
      if (!is_input(*tensor.node)) nodes = std::max(nodes, befores_[of].example.size());
    });
  const std::vector<SizeValues> looked_at = some_of(grid_, nodes);
  std::vector<const SizeValues*> points;
  for (const SizeValues& point : looked_at) {
    if (!is_on(path, point)) continue;
    points.push_back(&point);
    for (const auto& [name, number] : point) there[name].insert(number);
  }
  std::set<std::string> lacking;
  for (const FreeSize& size : sizes) {
    const std::set<int64_t> shown(size.shown.begin(), size.shown.end());
    if (shown.size() < std::min(there[size.name].size(), kLeastExamples)) lacking.insert(size.name);
    if (shown.size() > 1 && *shown.begin() <= 1) refuse_one(size.name, *shown.begin());
  }
  if (lacking.empty()) return;
  // The point that shows most new numbers, and leaves the least steps between them.
  const SizeValues* wanted = nullptr;
  std::pair<int64_t, int64_t> best{0, 0};
  for (const SizeValues* point : points) {
    std::pair<int64_t, int64_t> score{0, 0};
    for (const FreeSize& size : sizes) {
      const int64_t number = point->at(size.name);
      const bool is_new =
          std::find(size.shown.begin(), size.shown.end(), number) == size.shown.end();
      const bool may_be = number > 1 || size.high <= 1;
      if (is_new && may_be && lacking.contains(size.name)) ++score.first;
      if (!may_be) score.first -= 2;
      const int64_t step = size.high == size.low ? 0 : size.step;
      score.second -= std::gcd(step, number - size.low);
    }
    if (score.first > 0 && (wanted == nullptr || score > best)) {
      wanted = point;
      best = score;
    }
  }
  std::string names;
  for (const std::string& name : lacking) names += (names.empty() ? "" : ", ") + name;
  const std::string what = "[unify] expected at least " + std::to_string(kLeastExamples) +
                           " different numbers for " + names + " where " + text_of_path(path);
  if (wanted == nullptr) throw UserError(what);
  throw ExampleWanted(what + ": add an example at " + text_of(*wanted), *wanted);
}

}  // namespace composit
