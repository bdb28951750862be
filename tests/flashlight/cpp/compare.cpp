#include "tests/flashlight/cpp/compare.h"

#include "composit/eval/evaluate.h"
#include "composit/ir/error.h"
#include "tests/agreement.h"
#include "tests/held_graph.h"

namespace flashlight::cpp::test {
namespace {

std::string difference(const Case& one, const Compiled& compiled, double times) {
  try {
    const std::vector<composit::Array> expected = composit::evaluate(one.graph, one.values),
                                       results = compiled(one.values);
    for (size_t i = 0; i < results.size(); ++i) {
      if (!expected[i].defined() && !results[i].defined()) continue;
      const std::string found = composit::test::difference(results[i], expected[i], times);
      if (!found.empty())
        return one.text + ", result " + std::to_string(i) + ": " + found + "\n" +
               compiled->source() + "\n";
    }
  } catch (const std::exception& error) {
    return one.text + ": " + error.what() + "\n";
  }
  return "";
}

}  // namespace

std::string differences(const std::vector<Case>& cases, double times,
                        const std::vector<std::string>& flags) {
  if (cases.empty()) return "";
  std::vector<composit::Graph> graphs;
  std::vector<std::string> names;
  for (const Case& one : cases) {
    graphs.push_back(one.graph);
    names.push_back("case_" + std::to_string(names.size()));
  }
  CompileOptions options = {.flags = {"-Wall", "-Wextra", "-Wconversion", "-Werror"}};
  options.flags.insert(options.flags.end(), flags.begin(), flags.end());
  std::vector<Compiled> compiled;
  try {
    compiled = compile(graphs, names, options);
  } catch (const composit::UserError& error) {
    if (cases.size() == 1) return cases[0].text + ": " + error.what() + "\n";
    // Each half, until the one that does not compile is alone.
    const auto middle = cases.begin() + static_cast<std::ptrdiff_t>(cases.size() / 2);
    return differences({cases.begin(), middle}, times, flags) +
           differences({middle, cases.end()}, times, flags);
  }
  std::string found;
  for (size_t i = 0; i < cases.size(); ++i) found += difference(cases[i], compiled[i], times);
  return found;
}

Case case_of(const std::string& text, const composit::LazyTensors& outputs) {
  auto [graph, values] = composit::test::held_graph(outputs);
  return {text, std::move(graph), std::move(values)};
}

}  // namespace flashlight::cpp::test
