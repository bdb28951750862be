// Functions of tensors whose sizes are types, as compiled code that takes LibTorch's tensors and is
// differentiated by autograd: against the function at once and against LibTorch.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <torch/torch.h>

#include "flashlight/compile.h"
#include "flashlight/fixed/traced.h"
#include "tests/flashlight/by_backend.h"
#include "tests/user_error.h"

namespace flashlight::fixed {
namespace {

using testing::HasSubstr;
using testing::Optional;

class FixedCompiled : public test::ByBackend {};
INSTANTIATE_TEST_SUITE_P(Backends, FixedCompiled, test::kBackends, test::name_of_backend);

using Tokens = Tensor<double, 5, 8>;
using Weight = Tensor<double, 3, 8>;

const auto classes = [](auto tokens, auto weight) { return softmax<-1>(linear(tokens, weight)); };
at::Tensor classes_of(const at::Tensor& tokens, const at::Tensor& weight) {
  return at::softmax(at::linear(tokens, weight), -1);
}

template <class X>
X fixed_of(const at::Tensor& x) {
  X result;
  std::copy_n(x.data_ptr<typename X::Element>(), X::kElements, result.data());
  return result;
}

TEST_P(FixedCompiled, GivesTheFunctionsValuesAndDerivatives) {
  const CompiledFunction f =
      compile(function_of<Tokens, Weight>(classes), by_backend("fixed_classes"));
  const at::Tensor tokens = test::leaf({5, 8}), weight = test::leaf({3, 8}),
                   change = test::doubles({5, 3});
  const at::Tensor received = f(tokens, weight), expected = classes_of(tokens, weight);
  EXPECT_TRUE(test::close(received, expected));
  const auto at_once = classes(fixed_of<Tokens>(tokens), fixed_of<Weight>(weight));
  EXPECT_TRUE(test::close(received.detach(),
                          at::from_blob(const_cast<double*>(at_once.data()), {5, 3}, at::kDouble)));
  const auto ours = torch::autograd::grad({received}, {tokens, weight}, {change}),
             theirs = torch::autograd::grad({expected}, {tokens, weight}, {change});
  for (size_t i = 0; i < 2; ++i) EXPECT_TRUE(test::close(ours[i], theirs[i])) << i;
}

TEST_P(FixedCompiled, GivesSeveralResults) {
  const CompiledFunction f = compile(
      function_of<Tokens>([](auto x) { return std::tuple(sum<0>(x), x * 2 - amax<-1>(x, keep)); }),
      by_backend("fixed_results"));
  const at::Tensor x = test::doubles({5, 8});
  const std::vector<at::Tensor> results = f.call({x});
  ASSERT_EQ(results.size(), 2U);
  EXPECT_TRUE(test::close(results[0], x.sum(0)));
  EXPECT_TRUE(test::close(results[1], x * 2 - x.amax(-1, true)));
}

TEST_P(FixedCompiled, RefusesOtherTypesAndSizes) {
  const CompiledFunction f = compile(function_of<Tokens, Weight>(classes), by_backend());
  EXPECT_THAT(composit::user_error([&] {
                f(test::doubles({5, 8}), test::doubles({3, 9}));
              }),
              Optional(HasSubstr("argument 1: expected float64[3, 8], received float64[3, 9]")));
  EXPECT_THAT(composit::user_error([&] {
                f(at::ones({5, 8}), test::doubles({3, 8}));
              }),
              Optional(HasSubstr("argument 0: expected float64[5, 8], received float32[5, 8]")));
  EXPECT_THAT(composit::user_error([&] {
                f(test::doubles({5, 8}));
              }),
              Optional(HasSubstr("expected 2 tensors, received 1")));
}

}  // namespace
}  // namespace flashlight::fixed
