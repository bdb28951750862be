#include "composit/family/case_finder.h"

#include <algorithm>
#include <map>
#include <numeric>
#include <optional>
#include <set>

#include "composit/family/bind.h"
#include "composit/family/grid.h"
#include "composit/family/merge_branches.h"
#include "composit/family/structure.h"
#include "composit/family/unify_check.h"
#include "composit/ir/error.h"

namespace composit {
namespace {

using Values = std::vector<int64_t>;

bool all_equal(const Values& values) {
  return std::all_of(values.begin(), values.end(), [&](int64_t v) { return v == values[0]; });
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

// The first nodes of a graph, `count` of them that are no inputs, with the inputs that they read
// and those of the caller.
Graph beginning_of(const Graph& graph, size_t count) {
  LazyTensors outputs;
  const std::vector<NodePtr> nodes = inner_nodes(graph);
  for (size_t n = 0; n < count; ++n)
    for (uint32_t i = 0; i < nodes[n]->outputs().size(); ++i) outputs.push_back({nodes[n], i});
  std::set<const Node*> read;
  const Graph part({.inputs = {}, .outputs = outputs});
  for (const NodePtr& node : part.nodes()) read.insert(node.get());
  LazyTensors inputs;
  for (const LazyTensor& input : graph.inputs())
    if (read.contains(input.node.get()) || input_kind(*input.node) == InputKind::user_input)
      inputs.push_back(input);
  return Graph({.inputs = std::move(inputs), .outputs = std::move(outputs)});
}

std::string place_of(const Graph& graph, size_t inner_node) {
  const std::vector<NodePtr> nodes = inner_nodes(graph);
  return inner_node < nodes.size() ? describe(*nodes[inner_node], Names(graph))
                                   : "what is returned or written";
}

// True if that node reads a float, which it expects to be what it was.
bool reads_number(const Graph& graph, size_t inner_node) {
  const std::vector<NodePtr> nodes = inner_nodes(graph);
  if (inner_node >= nodes.size()) return false;
  const std::optional<Scalar> read = scalar_read_by(*nodes[inner_node]);
  return read && std::holds_alternative<double>(read->value);
}

// The question of node `at`, by the places of what it reads: equal for examples that ask the same.
std::string question_text(const Graph& graph, const std::vector<NodePtr>& nodes, size_t at) {
  std::string text = nodes[at]->op().str();
  for (const LazyTensor& operand : nodes[at]->operands()) {
    const auto place = std::find(nodes.begin(), nodes.end(), operand.node);
    text += " " + (place == nodes.end() ? Names(graph).of(operand)
                                        : std::to_string(place - nodes.begin()));
    text += ":" + std::to_string(operand.index);
  }
  return text;
}

std::string numbers_text(const std::vector<size_t>& members) {
  std::vector<int64_t> numbers;
  for (const size_t member : members) numbers.push_back(static_cast<int64_t>(member + 1));
  return list_of(numbers);
}

}  // namespace

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

CaseFinder::CaseFinder(const std::vector<Graph>& examples, std::vector<FreeSize> sizes,
                       const NumbersShown& numbers)
    : examples_(examples), sizes_(std::move(sizes)), numbers_(numbers), grid_(grid_of(sizes_)) {
  for (const Graph& example : examples) structures_.push_back(structure_of(example));
}

Cases CaseFinder::find() {
  Members all(examples_.size());
  std::iota(all.begin(), all.end(), size_t{0});
  cases_.case_of_example.resize(examples_.size());
  // No matter of cases.
  if (has_other_structure_at_each_size()) {
    Cases one;
    one.cases = {unify_alike(examples_, sizes_of(all), {}, numbers_.of(all))};
    return one;
  }
  way(all, {});
  return std::move(cases_);
}

bool CaseFinder::has_other_structure_at_each_size() const {
  constexpr size_t kEnoughToTell = 6;
  std::map<std::vector<bool>, std::pair<size_t, std::set<std::string>>> by_answers;
  for (size_t i = 0; i < examples_.size(); ++i) {
    auto& [count, structures] = by_answers[answers_of(examples_[i])];
    Hasher hasher;
    for (const Hash& hash : structures_[i]) hasher.add(hash);
    structures.insert(hasher.finish().str());
    ++count;
  }
  return std::any_of(by_answers.begin(), by_answers.end(), [](const auto& one) {
    const auto& [count, structures] = one.second;
    return count >= kEnoughToTell && structures.size() * 2 > count;
  });
}

Way CaseFinder::way(const Members& members, const Path& path) {
  const bool alike = std::all_of(members.begin(), members.end(), [&](size_t member) {
    return structures_[member] == structures_[members[0]];
  });
  if (alike) return new_case(members, path);
  auto by_value = fork_by_value(members);
  auto [found, inside] = by_value ? std::move(*by_value) : fork(members, path);
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
  Family family = unify_alike(
      graphs, sizes, [&](const SizeValues& numbers) { return is_on(path, numbers); },
      numbers_.of(members));
  // Formulas before a fork are those that hold for the examples on both sides.
  for (const auto& [index, holds] : path) {
    const Family& shared = befores_[index];
    if (cases_.forks[index].by_value && !family.value_sizes.empty())
      throw UserError("[unify] '" + family.value_sizes[0].name +
                      "' depends on values, in a program that takes other ways at " +
                      cases_.forks[index].place + ": only one of both is supported");
    std::set<const Node*> own;
    for (const NodePtr& node : family.example.nodes()) own.insert(node.get());
    for (const NodePtr& node : shared.example.nodes())
      if (const NodeFormulas& formulas = shared.formulas_of(*node);
          own.contains(node.get()) && !formulas.empty())
        family.formulas.insert(node.get(), formulas);
  }
  if (!path.empty()) expect_examples_again(family, graphs);
  for (const size_t member : members) cases_.case_of_example[member] = cases_.cases.size();
  cases_.cases.push_back(std::move(family));
  return {true, cases_.cases.size() - 1};
}

size_t CaseFinder::common_nodes(const Members& members) const {
  size_t common = 0;
  const auto& first = structures_[members[0]];
  while (std::all_of(members.begin(), members.end(),
                     [&](size_t member) { return structures_[member][common] == first[common]; }))
    ++common;
  return common;
}

std::optional<std::pair<Fork, CaseFinder::Members>> CaseFinder::fork_by_value(
    const Members& members) {
  const size_t common = common_nodes(members);
  const Graph& first = examples_[members[0]];
  Members inside;
  std::set<std::string> questions;
  for (const size_t member : members) {
    const std::vector<NodePtr> nodes = inner_nodes(examples_[member]);
    const std::optional<bool> answer =
        common < nodes.size() ? bool_read_by(*nodes[common]) : std::nullopt;
    if (!answer) return std::nullopt;
    if (*answer) inside.push_back(member);
    questions.insert(question_text(examples_[member], nodes, common));
  }
  if (questions.size() > 1) return std::nullopt;
  befores_.push_back(before(members, common));
  return std::pair(Fork{0, {}, {}, {}, place_of(first, common), true}, inside);
}

std::pair<Fork, CaseFinder::Members> CaseFinder::fork(const Members& members, const Path& path) {
  const size_t common = common_nodes(members);
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
  const std::string both = "examples " + numbers_text(parts[0]) + " and " + numbers_text(parts[1]);
  const std::string what = both + " part at " + place;
  if (reads_number(examples_[members[0]], common))
    throw UserError(
        "[unify] " + both + " read other numbers at " + place +
        ": write the comparison that decides with operators, as `(x > 0).item<bool>()`, or "
        "state what the program asks of the number as a predicate: '> 0', or 'any' "
        "where it compares it with nothing");
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
                  "; no condition on sizes tells them apart, nor a bool that all of them read just "
                  "before: write the comparison that decides with operators, as "
                  "`(x > 0).item<bool>()`, or state it as a predicate");
}

Family CaseFinder::before(const Members& members, size_t common) const {
  std::vector<Graph> graphs;
  for (const size_t member : members) graphs.push_back(beginning_of(examples_[member], common));
  return unify_alike(graphs, sizes_in(graphs[0], members), {}, numbers_.of(members));
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
  for (const auto& [index, holds] : path) {
    const Fork& fork = cases_.forks[index];
    text += text.empty() ? "" : " and ";
    text += fork.by_value
                ? fork.place + " reads " + (holds ? "true" : "false")
                : (holds ? "" : "not ") + print(fork.condition, Names(befores_[index].example));
  }
  return text;
}

bool CaseFinder::is_on(const Path& path, const SizeValues& sizes) const {
  return std::all_of(path.begin(), path.end(), [&](const auto& step) {
    if (cases_.forks[step.first].by_value) return true;
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
  return sizes_in(examples_[members[0]], members);
}

std::vector<FreeSize> CaseFinder::sizes_in(const Graph& graph, const Members& members) const {
  std::vector<FreeSize> sizes;
  for (const FreeSize& size : sizes_) {
    Values shown;
    for (const size_t member : members) shown.push_back(size.shown.at(member));
    sizes.push_back(free_size(size.name, std::move(shown)));
    for (const InputAxis& axis : size.axes) {
      const std::string& name = input_name(*examples_[0].inputs().at(axis.input).node);
      if (const std::optional<size_t> input = find_input(graph, name))
        sizes.back().axes.push_back({*input, axis.axis});
    }
  }
  return sizes;
}

// Nobody can ask for an example that goes this way: sizes do not choose it.
void CaseFinder::expect_enough_by_value(const std::vector<FreeSize>& sizes,
                                        const Path& path) const {
  for (const FreeSize& size : sizes) {
    const std::set<int64_t> shown(size.shown.begin(), size.shown.end());
    if (shown.size() == 1) continue;
    if (shown.size() < kLeastExamples)
      throw UserError("[unify] expected one number or at least " + std::to_string(kLeastExamples) +
                      " different ones for " + size.name + " where " + text_of_path(path) +
                      ", received " + list_of({shown.begin(), shown.end()}) +
                      ": add an example that goes this way with another one");
    if (*shown.begin() <= 1) refuse_one(size.name, *shown.begin());
  }
}

void CaseFinder::expect_enough(const std::vector<FreeSize>& sizes, const Path& path) const {
  std::map<std::string, std::set<int64_t>> there;
  size_t nodes = 1;  // that are bound for each point
  bool by_value = false;
  for (const auto& [index, holds] : path) by_value = by_value || cases_.forks[index].by_value;
  if (by_value) return expect_enough_by_value(sizes, path);
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
