// Programs and their derivatives, compiled by both backends, beside their values by definition.
#include <gtest/gtest.h>

#include <cmath>

#include "composit/ops/native.h"
#include "flashlight/backends/registry.h"
#include "tests/frontends/ks/programs.h"

namespace flashlight::ks::test {
namespace {

class KsCompiled : public testing::TestWithParam<TestProgram> {};

std::vector<Numbers> numbers(const std::vector<composit::Array>& arrays) {
  std::vector<Numbers> all;
  for (const composit::Array& one : arrays) all.push_back(composit::elements<double>(one));
  return all;
}

void expect_same_by_backends(const TestProgram& one, const std::string& function,
                             const std::vector<Input>& inputs) {
  const composit::Graph whole = graph(one.text, function, inputs);
  std::vector<composit::Array> arrays;
  for (const Input& input : inputs)
    if (!input.known)
      arrays.push_back(composit::Array::copy_of(
          composit::tensor_type(composit::DType::float64, input.sizes), input.values.data()));
  const std::vector<Numbers> expected = numbers(composit::evaluate(whole, arrays));
  for (const char* backend : {"cpp", "mosaic"}) {
    SCOPED_TRACE(function + " by " + backend);
    const std::vector<Numbers> received =
        numbers(backend_named(backend).compile(whole, {.name = one.name})(arrays));
    ASSERT_EQ(received.size(), expected.size());
    for (size_t i = 0; i < expected.size(); ++i) expect_near(received[i], expected[i], 1e-13);
  }
}

TEST_P(KsCompiled, HasItsValuesAndDerivatives) {
  const TestProgram& one = GetParam();
  expect_same_by_backends(one, one.function, one.inputs);
  std::vector<Input> with_cotangents = one.inputs;
  double dy = .5;
  const composit::Graph whole = graph(one.text, one.function, one.inputs);
  for (const composit::LazyTensor& output : whole.outputs())
    with_cotangents.push_back(
        {output.sizes(), Numbers(static_cast<size_t>(output.numel()), dy += .25), {}});
  expect_same_by_backends(one, "[rev " + one.function + "]", with_cotangents);
}

TEST_P(KsCompiled, IsTheSameProgramPrintedAndReadAgain) {
  const TestProgram& one = GetParam();
  const std::string printed = print(parse(one.text));
  EXPECT_EQ(print(parse(printed)), printed);
  EXPECT_EQ(run(printed, one.function, one.inputs), run(one.text, one.function, one.inputs));
}

INSTANTIATE_TEST_SUITE_P(All, KsCompiled, testing::ValuesIn(test_programs()),
                         [](const auto& one) { return one.param.name; });

}  // namespace
}  // namespace flashlight::ks::test
