#include "composit/family/cases.h"

#include <algorithm>
#include <numeric>

#include "composit/family/bind.h"
#include "composit/family/case_finder.h"
#include "composit/ir/error.h"

namespace composit {

Cases unify_cases(const std::vector<Graph>& examples, const UnifyOptions& options) {
  expect_examples(examples);
  std::vector<Graph> closed;
  for (const Graph& example : examples) closed.push_back(without_incidentals(example));
  std::vector<FreeSize> sizes = free_sizes(closed);
  set_names(sizes, options.names);
  Cases cases = CaseFinder(closed, std::move(sizes)).find();
  if (cases.cases.size() == 1) expect_shown_apart(cases.cases[0].sizes);
  return cases;
}

size_t case_at(const Cases& cases, const SizeValues& sizes) {
  Way way{cases.forks.empty(), 0};
  while (!way.is_case) {
    const Fork& fork = cases.forks[way.index];
    const auto size_of = sizes_before(cases.cases[fork.reader], {fork.condition}, sizes);
    way = holds(fork.condition, size_of) ? fork.holds : fork.fails;
  }
  return way.index;
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

void widen(Cases& cases, const SizeValues& sizes) {
  widen(cases.cases[case_at(cases, sizes)], sizes);
}

std::vector<std::string> fork_lines(const Cases& cases) {
  const auto text = [](const Way& way) {
    return (way.is_case ? "case " : "fork ") + std::to_string(way.index + 1);
  };
  std::vector<std::string> lines;
  for (const Fork& fork : cases.forks)
    lines.push_back((cases.forks.size() == 1 ? "" : text({false, lines.size()}) + ": ") +
                    print(fork.condition, Names(cases.cases[fork.reader].example)) + ": " +
                    text(fork.holds) + ", otherwise " + text(fork.fails) + ", from " + fork.place +
                    " on");
  return lines;
}

}  // namespace composit
