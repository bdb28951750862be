#include "composit/family/cases.h"

#include <algorithm>
#include <numeric>
#include <set>

#include "composit/family/bind.h"
#include "composit/family/case_finder.h"
#include "composit/family/merge_branches.h"
#include "composit/ir/error.h"

namespace composit {

namespace {

// Each number that somebody gives is used, and had several values in each case.
void expect_numbers_shown(const Cases& cases, const NumbersShown& numbers) {
  const auto all = numbers_of(cases);
  for (const NumberLeaf& leaf : numbers.given)
    if (!all.contains(leaf.name))
      throw UserError("[unify] '" + leaf.name +
                      "' differs between examples, and no number of an operator follows from it: "
                      "what it decides is not seen; pass it as a tensor");
  for (const Family& family : cases.cases)
    if (!all.empty() && !family.value_sizes.empty())
      throw UserError("[unify] '" + family.value_sizes[0].name +
                      "' depends on values, in a program whose number '" + all.begin()->first +
                      "' differs between calls: only one of both is supported");
  for (size_t c = 0; c < cases.cases.size() && cases.cases.size() > 1 && !all.empty(); ++c) {
    std::vector<size_t> members;
    for (size_t i = 0; i < cases.case_of_example.size(); ++i)
      if (cases.case_of_example[i] == c) members.push_back(i);
    for (const NumberLeaf& leaf : numbers.of(members).given)
      if (std::set<double>(leaf.values.begin(), leaf.values.end()).size() < 2)
        throw UserError("[unify] expected several numbers '" + leaf.name + "' in case " +
                        std::to_string(c + 1) + ": add an example of it with another one");
    if (members.size() < kLeastExamples)
      throw UserError("[unify] expected at least " + std::to_string(kLeastExamples) +
                      " examples of case " + std::to_string(c + 1) +
                      ", since numbers differ between calls, received " +
                      std::to_string(members.size()));
  }
}

// Ways that cannot be arms of one branch are refused before anybody calls.
void expect_branches(const Cases& cases) {
  std::set<SizeValues> known;
  if (has_numbers(cases))
    throw UserError(
        "[unify] numbers that differ between calls are not supported in a program that "
        "takes other ways at a bool: pass them as tensors");
  for (const Family& family : cases.cases)
    for (size_t i = 0; i == 0 || (!family.sizes.empty() && i < family.sizes[0].shown.size()); ++i) {
      SizeValues sizes;
      for (const FreeSize& size : family.sizes) sizes[size.name] = size.shown.at(i);
      if (known.insert(sizes).second) graph_at(cases, sizes);
    }
}

}  // namespace

Cases unify_cases(const std::vector<Graph>& examples, const UnifyOptions& options) {
  if (examples.empty()) expect_examples(examples);
  std::vector<Graph> closed;
  for (const Graph& example : examples) closed.push_back(without_incidentals(example));
  expect_places(closed, options.predicates);
  for (Graph& example : closed) example = with_predicates(example, options.predicates);
  const std::vector<LoopShape> loops = loops_of(closed);
  for (Graph& example : closed) example = rolled(example, loops);
  const std::vector<ScanShape> scans = roll_scans(closed);
  std::vector<FreeSize> sizes = free_sizes(closed);
  set_names(sizes, options.names);
  if (!sizes.empty()) expect_examples(examples);
  Cases cases = CaseFinder(closed, std::move(sizes), options.numbers).find();
  expect_numbers_shown(cases, options.numbers);
  if (cases.cases.size() == 1) {
    if (loops.empty()) expect_examples(examples);
    expect_shown_apart(cases.cases[0].sizes);
  }
  if (has_branches(cases)) expect_branches(cases);
  cases.loops = loops;
  cases.scans = scans;
  cases.predicates = options.predicates;
  return cases;
}

std::vector<size_t> cases_at(const Cases& cases, const SizeValues& sizes) {
  std::vector<size_t> found;
  std::vector<Way> ways = {{cases.forks.empty(), 0}};
  while (!ways.empty()) {
    const Way way = ways.back();
    ways.pop_back();
    if (way.is_case) {
      found.push_back(way.index);
      continue;
    }
    const Fork& fork = cases.forks[way.index];
    if (fork.by_value) {
      ways.push_back(fork.fails);
      ways.push_back(fork.holds);
    } else {
      const auto size_of = sizes_before(cases.cases[fork.reader], {fork.condition}, sizes);
      ways.push_back(holds(fork.condition, size_of) ? fork.holds : fork.fails);
    }
  }
  return found;
}

std::vector<size_t> shown_cases_at(const Cases& cases, const SizeValues& sizes) {
  const std::vector<size_t> all = cases_at(cases, sizes);
  std::vector<size_t> shown;
  for (const size_t number : all)
    if (is_within(cases.cases[number], sizes)) shown.push_back(number);
  return shown.empty() ? all : shown;
}

Graph graph_at(const Cases& cases, const SizeValues& sizes, const NumberValues& numbers) {
  std::vector<Graph> ways;
  for (const size_t number : shown_cases_at(cases, sizes)) {
    const Family& family = cases.cases[number];
    NumberValues own;  // another case may have others
    for (const auto& [name, value] : numbers)
      if (std::any_of(family.numbers.begin(), family.numbers.end(),
                      [&name = name](const FreeNumber& one) { return one.name == name; }))
        own.emplace(name, value);
    ways.push_back(composit::bind(family, sizes, own));
  }
  return merge_branches(ways);
}

bool has_numbers(const Cases& cases) {
  return std::any_of(cases.cases.begin(), cases.cases.end(),
                     [](const Family& family) { return !family.numbers.empty(); });
}

std::map<std::string, NumberOrigin> numbers_of(const Cases& cases) {
  std::map<std::string, NumberOrigin> numbers;
  for (const Family& family : cases.cases)
    for (const FreeNumber& number : family.numbers) numbers.emplace(number.name, number.origin);
  return numbers;
}

Graph in_form(const Cases& cases, const Graph& graph) {
  const Graph asked = with_predicates(without_incidentals(graph), cases.predicates);
  return rolled(rolled(asked, cases.loops), cases.scans);
}

bool has_branches(const Cases& cases) {
  return std::any_of(cases.forks.begin(), cases.forks.end(),
                     [](const Fork& fork) { return fork.by_value; });
}

std::vector<bool> answers_of(const Graph& graph) {
  std::vector<bool> answers;
  for (const NodePtr& effect : graph.effects())
    if (const std::optional<bool> answer = bool_read_by(*effect)) answers.push_back(*answer);
  return answers;
}

std::optional<size_t> case_of_answers(const Cases& cases, const SizeValues& sizes,
                                      const std::vector<bool>& answers) {
  for (const size_t number : cases_at(cases, sizes))
    if (answers_of(cases.cases[number].example) == answers) return number;
  return std::nullopt;
}

std::vector<FreeSize> hull_of(const Cases& cases) {
  std::vector<FreeSize> hull = cases.cases.at(0).sizes;
  for (size_t c = 1; c < cases.cases.size(); ++c)
    for (size_t i = 0; i < hull.size(); ++i) {
      const FreeSize& other = cases.cases[c].sizes.at(i);
      FreeSize& size = hull[i];
      size.shown.insert(size.shown.end(), other.shown.begin(), other.shown.end());
      const int64_t step = free_size(size.name, size.shown).step;
      size.step = std::gcd(step, std::gcd(size.low - other.low, size.high - other.high));
      size.low = std::min(size.low, other.low);
      size.high = std::max(size.high, other.high);
    }
  return hull;
}

std::string print(const Cases& cases, const PrintOptions& options) {
  if (cases.cases.size() == 1) return print(cases.cases[0], options);
  std::string text;
  for (size_t i = 0; i < cases.cases.size(); ++i)
    text += "case " + std::to_string(i + 1) + "\n" + print(cases.cases[i], options) + "\n";
  for (const std::string& line : fork_lines(cases)) text += line + "\n";
  return text;
}

size_t first_example_of(const Cases& cases, size_t number) {
  size_t first = 0;
  while (cases.case_of_example.at(first) != number) ++first;
  return first;
}

std::vector<std::string> fork_lines(const Cases& cases) {
  const auto text = [](const Way& way) {
    return (way.is_case ? "case " : "fork ") + std::to_string(way.index + 1);
  };
  std::vector<std::string> lines;
  for (const Fork& fork : cases.forks)
    lines.push_back(
        (cases.forks.size() == 1 ? "" : text({false, lines.size()}) + ": ") +
        (fork.by_value
             ? fork.place + " reads true: " + text(fork.holds) + ", false: " + text(fork.fails)
             : print(fork.condition, Names(cases.cases[fork.reader].example)) + ": " +
                   text(fork.holds) + ", otherwise " + text(fork.fails) + ", from " + fork.place +
                   " on"));
  return lines;
}

}  // namespace composit
