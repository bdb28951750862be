// Every case of tests/numpy/make_cases.py: values, dtypes and shapes as NumPy's, to the bit where
// they are no floats; what NumPy refuses is a UserError here.
#include <gtest/gtest.h>

#include <iostream>
#include <map>

#include "composit/ir/error.h"
#include "tests/agreement.h"
#include "tests/io/command.h"
#include "tests/io/temporary_folder.h"
#include "tests/numpy/case.h"

namespace composit::numpy::test {
namespace {

// Both are refused; ours in the name of a function of NumPy, or of the operation when it was run.
std::string refusal_problem(const Case& one, const UserError& error, const char* prefix) {
  const std::string text = error.what();
  return !one.error.empty() && text.starts_with(prefix) ? "" : text;
}

// The fault of our side of a case; empty if there is none.
std::string problem(const Case& one) {
  const Function function = find_function(one.name);
  if (function == nullptr) return "there is no such function";
  NdArrays graph;
  std::vector<Array> ours;
  try {
    graph = function(one);
  } catch (const UserError& error) {
    return refusal_problem(one, error, "[numpy.");
  }
  try {
    ours = evaluate(graph);
  } catch (const UserError& error) {
    return refusal_problem(one, error, "[aten::");
  }
  if (!one.error.empty()) return "NumPy refuses it: " + one.error;
  if (ours.size() != one.results.size()) return "another number of results";
  for (size_t i = 0; i < ours.size(); ++i)
    if (std::string found = composit::test::difference(ours[i], one.results[i]); !found.empty())
      return found;
  return "";
}

TEST(numpy_cases, are_as_numpys) {
  using composit::test::run;
  const composit::test::TemporaryFolder folder;
  const std::string file = (folder / "cases.json").string();
  if (run({FLASHLIGHT_PYTHON, "-c", "import numpy"}).status != 0)
    GTEST_SKIP() << FLASHLIGHT_PYTHON << " has no numpy";
  const auto made =
      run({FLASHLIGHT_PYTHON, FLASHLIGHT_SOURCE_DIR "/tests/numpy/make_cases.py", file});
  ASSERT_EQ(made.status, 0) << made.output;
  const std::vector<Case> cases = read_cases(file);
  EXPECT_GT(cases.size(), 10000u);
  std::map<std::string, size_t> failures;
  for (const Case& one : cases) {
    const std::string found = problem(one);
    if (!found.empty() && ++failures[one.name] <= 5) ADD_FAILURE() << one.text() << ": " << found;
  }
  for (const auto& [name, count] : failures)
    std::cout << name << ": " << count << " cases differ\n";
  std::cout << cases.size() << " cases\n" << made.output;
}

}  // namespace
}  // namespace composit::numpy::test
