// Every case of tests/numpy/make_cases.py: values, dtypes and shapes as NumPy's, to the bit where
// they are no floats; what NumPy refuses is a UserError here.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <map>

#include "composit/ir/error.h"
#include "composit/ir/print.h"
#include "composit/op/promotion.h"
#include "composit/ops/native.h"
#include "tests/io/command.h"
#include "tests/io/temporary_folder.h"
#include "tests/numpy/case.h"

namespace composit::numpy::test {
namespace {

// Relative to the number, and absolute: a few units in the last place of the dtype.
struct Bounds {
  double relative, absolute;
};
Bounds bounds(DType dtype) {
  switch (real_dtype(dtype)) {
    case DType::float16:
      return {2e-3, 2e-3};
    case DType::float32:
      return {4e-6, 2e-6};
    case DType::float64:
      return {1e-13, 1e-14};
    default:
      return {0, 0};
  }
}

bool close(double ours, double theirs, Bounds bounds) {
  if (std::isnan(theirs) || std::isinf(theirs) || std::isnan(ours))
    return std::isnan(theirs) ? std::isnan(ours) : ours == theirs;
  return std::abs(ours - theirs) <= bounds.absolute + bounds.relative * std::abs(theirs);
}

std::vector<double> parts(const Array& array) {
  const NdArray x = asarray(array);
  if (!is_complex(array.type().dtype)) return elements<double>(array);
  std::vector<double> both;
  for (const Array& part : evaluate(real(x), imag(x)))
    for (double number : elements<double>(part)) both.push_back(number);
  return both;
}

// Empty where they agree.
std::string difference(const Array& ours, const Array& theirs) {
  const DType dtype = theirs.type().dtype;
  if (ours.type().dtype != dtype || ours.type().sizes != theirs.type().sizes)
    return "expected " + print(theirs.type()) + ", received " + print(ours.type());
  if (category(dtype) < DTypeCategory::floating)
    return elements<int64_t>(ours) == elements<int64_t>(theirs) ? "" : "other integers";
  const std::vector<double> left = parts(ours), right = parts(theirs);
  for (size_t i = 0; i < left.size(); ++i)
    if (!close(left[i], right[i], bounds(dtype)))
      return "element " + std::to_string(i) + ": expected " + std::to_string(right[i]) +
             ", received " + std::to_string(left[i]);
  return "";
}

// Both are refused; ours in the name of a function of NumPy, or of the operation when it was run.
std::string refusal_problem(const Case& one, const UserError& error, const char* prefix) {
  const std::string text = error.what();
  return !one.error.empty() && text.starts_with(prefix) ? "" : text;
}

// What is wrong with our side of a case; empty where nothing is.
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
    if (std::string found = difference(ours[i], one.results[i]); !found.empty()) return found;
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
