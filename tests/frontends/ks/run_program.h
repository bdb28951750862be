// Runs functions of programs in float64, on lists of numbers.
#pragma once

#include <gtest/gtest.h>

#include <cmath>
#include <string>
#include <vector>

#include "composit/eval/evaluate.h"
#include "frontends/ks/graph.h"
#include "frontends/ks/parse.h"

namespace flashlight::ks::test {

using Numbers = std::vector<double>;

inline void expect_near(const Numbers& received, const Numbers& expected, double tolerance) {
  ASSERT_EQ(received.size(), expected.size());
  for (size_t i = 0; i < expected.size(); ++i)
    EXPECT_NEAR(received[i], expected[i], tolerance * (1 + std::abs(expected[i]))) << i;
}

// One input: Floats of these sizes, or an Integer that is known.
struct Input {
  composit::Dims sizes = {};
  Numbers values = {};
  std::optional<int64_t> known = {};
};
inline Input number(double value) { return {{}, {value}, {}}; }
inline Input vec(Numbers values) {
  return {{static_cast<int64_t>(values.size())}, std::move(values), {}};
}
inline Input matrix(int64_t rows, Numbers values) {
  const auto columns = static_cast<int64_t>(values.size()) / rows;
  return {{rows, columns}, std::move(values), {}};
}
inline Input integer(int64_t value) { return {{}, {}, value}; }

inline composit::Graph graph(const std::string& text, const std::string& function,
                             const std::vector<Input>& inputs) {
  std::vector<ArgumentLeaf> leaves;
  for (const Input& one : inputs)
    leaves.push_back(one.known ? ArgumentLeaf(*one.known)
                               : composit::tensor_type(composit::DType::float64, one.sizes));
  return graph_of(parse(text, "test.ks"), function, leaves, {.floating = composit::DType::float64});
}

// All Floats of the result, one after the other.
inline Numbers run(const std::string& text, const std::string& function,
                   const std::vector<Input>& inputs) {
  std::vector<composit::Array> arrays;
  for (const Input& one : inputs)
    if (!one.known)
      arrays.push_back(composit::Array::copy_of(
          composit::tensor_type(composit::DType::float64, one.sizes), one.values.data()));
  Numbers all;
  for (const composit::Array& result : composit::evaluate(graph(text, function, inputs), arrays))
    if (result.type().dtype == composit::DType::float64)
      for (int64_t i = 0; i < result.type().numel(); ++i)
        all.push_back(reinterpret_cast<const double*>(result.data())[i]);
  return all;
}

}  // namespace flashlight::ks::test
