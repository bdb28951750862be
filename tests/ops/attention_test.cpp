// LibTorch's attention for CPUs: its rule for the gradient is for the result alone, where the walk
// over all rows looks at all results. The definition of attention is the oracle.
#include <gtest/gtest.h>

#include <cmath>

#include "composit/ad/chain_rule.h"
#include "composit/eval/evaluate.h"
#include "composit/ops/functions.h"
#include "composit/ops/native.h"

namespace composit {
namespace {

constexpr const char* kFlash = "aten::_scaled_dot_product_flash_attention_for_cpu";

struct Inputs {
  explicit Inputs(const std::vector<Ints>& sizes) {
    for (const Ints& size : sizes) {
      const Dims dims(size.begin(), size.end());
      const LazyTensor x =
          input("x" + std::to_string(list.size()), tensor_type(DType::float64, dims));
      std::vector<double> numbers;
      for (int64_t i = 0; i < x.type().numel(); ++i)
        numbers.push_back(std::sin(2.3 * static_cast<double>(i + 7 * list.size())));
      values.set(x, array_of(x.type(), numbers));
      list.push_back(x);
    }
  }
  LazyTensors list;
  Values values;
};

std::vector<Array> gradients(const LazyTensor& y, const Inputs& inputs) {
  const LazyTensor weights = reshape(cos(arange(y.numel(), y.dtype())), y.sizes());
  return evaluate(grad(sum(y * weights), {inputs.list[0], inputs.list[1], inputs.list[2]}),
                  inputs.values);
}

void expect_gradients_of_attention(const Inputs& in, bool causal, const ArgumentValue& mask) {
  const LazyTensor &q = in.list[0], &k = in.list[1], &v = in.list[2];
  const LazyTensor flash = apply(kFlash, {q, k, v, 0.0, causal, mask, 0.7})[0];
  const LazyTensor plain =
      apply_one("aten::scaled_dot_product_attention", {q, k, v, mask, 0.0, causal, 0.7});
  const auto ours = gradients(flash, in), expected = gradients(plain, in);
  for (size_t i = 0; i < 3; ++i) {
    const auto a = elements<double>(ours[i]), b = elements<double>(expected[i]);
    ASSERT_EQ(a.size(), b.size());
    for (size_t at = 0; at < a.size(); ++at)
      EXPECT_NEAR(a[at], b[at], 1e-13) << "input " << i << " elem " << at;
  }
}

TEST(Attention, gradients_of_flash_attention_are_those_of_the_definition) {
  const Ints queries{1, 2, 3, 4}, keys{1, 2, 5, 4}, mask{3, 5};
  const Inputs in({queries, keys, keys, mask});
  expect_gradients_of_attention(in, false, {});
  expect_gradients_of_attention(in, true, {});
  expect_gradients_of_attention(in, false, in.list[3]);
}

TEST(Attention, the_gradient_of_flash_attention_is_one_operation) {
  const Ints sizes{1, 1, 2, 3};
  const Inputs in({sizes, sizes, sizes});
  const LazyTensor y = apply(kFlash, {in.list[0], in.list[1], in.list[2]})[0];
  const LazyTensor gradient = grad(sum(y), {in.list[0]})[0];
  EXPECT_EQ(gradient.node->op().str(), std::string(kFlash) + "_backward");
}

}  // namespace
}  // namespace composit
