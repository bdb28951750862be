// Functions and layers of composit::nn, and chains of operations: values and gradients are torch's.
#include <gtest/gtest.h>

#include "composit/ad/chain_rule.h"
#include "composit/eval/evaluate.h"
#include "tests/nn/functional_cases.h"
#include "tests/nn/torch_file.h"

namespace composit::test {
namespace {

struct Inputs {
  Tensors tensors;
  Values values;
};

std::string part(const char* kind, size_t i) { return kind + std::to_string(i); }

LazyTensor add_input(const std::string& name, const Parts& parts, Values& values) {
  const Array& value = parts.at(name);
  const LazyTensor tensor = input(name, value.type());
  values.set(tensor, value);
  return tensor;
}

// A chain of operations, and sums over up to a thousand terms. The derivative of torch's
// hardsigmoid has a sixth in float32 even for float64.
double times(const std::string& name) { return name == "hardsigmoid" ? 1e4 : 4; }

void expect_torch(const std::vector<LazyTensor>& tensors, const std::vector<std::string>& names,
                  const Parts& parts, const Values& values, double times) {
  const auto ours = evaluate(tensors, values);
  for (size_t i = 0; i < names.size(); ++i)
    EXPECT_EQ(difference(ours[i], parts.at(names[i]), times), "") << names[i];
}

void check(const Case& build, const Parts& parts, double times) {
  Values values;
  Tensors inputs;
  for (size_t i = 0; parts.contains(part("input.", i)); ++i)
    inputs.emplace_back(add_input(part("input.", i), parts, values));
  const Tensors results = build(inputs);
  std::vector<LazyTensor> tensors, wanted;
  std::vector<std::string> names;
  std::vector<Seed> seeds;
  for (size_t i = 0; i < results.size(); ++i) {
    tensors.push_back(results[i]);
    names.push_back(part("result.", i));
    if (parts.contains(part("cotangent.", i)))
      seeds.push_back({results[i], add_input(part("cotangent.", i), parts, values)});
  }
  for (size_t i = 0; i < inputs.size(); ++i) {
    if (!parts.contains(part("gradient.", i))) continue;
    wanted.push_back(inputs[i]);
    names.push_back(part("gradient.", i));
  }
  for (const LazyTensor& gradient : chain_rule(seeds, wanted)) tensors.push_back(gradient);
  expect_torch(tensors, names, parts, values, times);
}

class FunctionalTest : public testing::TestWithParam<std::string> {};

TEST_P(FunctionalTest, is_torchs) {
  for (const char* dtype : {"|float32", "|float64"}) {
    SCOPED_TRACE(GetParam() + dtype);
    check(functional_cases().at(GetParam()), torch_cases().at(GetParam() + dtype),
          times(GetParam()));
  }
}

std::vector<std::string> case_names() {
  std::vector<std::string> names;
  for (const auto& [name, build] : functional_cases()) names.push_back(name);
  return names;
}

INSTANTIATE_TEST_SUITE_P(all, FunctionalTest, testing::ValuesIn(case_names()),
                         [](const testing::TestParamInfo<std::string>& info) {
                           std::string name = info.param;
                           std::replace(name.begin(), name.end(), ' ', '_');
                           return name;
                         });

TEST(Functional, all_of_torchs_cases_are_compared) {
  for (const auto& [name, parts] : torch_cases())
    if (!name.starts_with("optimizer "))
      EXPECT_TRUE(functional_cases().contains(name.substr(0, name.find('|')))) << name;
}

}  // namespace
}  // namespace composit::test
