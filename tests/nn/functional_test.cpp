// Functions and layers of composit::nn, and chains of operations: values and gradients are torch's.
#include "composit/nn/functional.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "composit/ad/chain_rule.h"
#include "composit/eval/evaluate.h"
#include "composit/nn/layers.h"
#include "tests/agreement.h"
#include "tests/nn/functional_cases.h"
#include "tests/nn/torch_file.h"
#include "tests/test_name.h"
#include "tests/user_error.h"

namespace composit::test {
namespace {

struct Inputs {
  LazyTensors tensors;
  Values values;
};

std::string part(const char* kind, size_t i) { return kind + std::to_string(i); }

LazyTensor add_input(const std::string& name, const Parts& parts, Values& values) {
  const Array& value = parts.at(name);
  LazyTensor tensor = input(name, value.type());
  values.set(tensor, value);
  return tensor;
}

// A chain of operations, and sums over up to a thousand terms. The derivative of torch's
// hardsigmoid has a sixth in float32 even for float64.
double times(const std::string& name) { return name == "hardsigmoid" ? 1e4 : 4; }

void expect_torch(const LazyTensors& tensors, const std::vector<std::string>& names,
                  const Parts& parts, const Values& values, double times) {
  const auto ours = evaluate(tensors, values);
  for (size_t i = 0; i < names.size(); ++i)
    EXPECT_EQ(difference(ours[i], parts.at(names[i]), times), "") << names[i];
}

void check(const Case& build, const Parts& parts, double times) {
  Values values;
  LazyTensors inputs;
  for (size_t i = 0; parts.contains(part("input.", i)); ++i)
    inputs.emplace_back(add_input(part("input.", i), parts, values));
  const LazyTensors results = build(inputs);
  LazyTensors tensors, wanted;
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

class FunctionalTest : public testing::TestWithParam<std::string> {
  void SetUp() override {
    if (torch_cases().empty()) GTEST_SKIP() << FLASHLIGHT_PYTHON << " has no torch";
  }
};

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
                         [](const auto& one) { return test_name(one.param); });

TEST(Functional, all_of_torchs_cases_are_compared) {
  for (const auto& [name, parts] : torch_cases()) {
    if (name.starts_with("optimizer ")) continue;
    EXPECT_TRUE(functional_cases().contains(name.substr(0, name.find('|')))) << name;
  }
}

// ---- what users are told ------------------------------------------------------------------------

LazyTensor some(const Ints& sizes, DType dtype = DType::float32) {
  return input("x", tensor_type(dtype, {sizes.begin(), sizes.end()}));
}

struct Mistake {
  const char* message;  // a part of it
  std::function<void()> work;
};

TEST(Functional, says_what_is_wrong) {
  const LazyTensor image = some({2, 3, 8, 8}), row = some({4});
  const Mistake mistakes[] = {
      {"[aten::conv2d]",
       [&] {
         nn::conv2d(image, some({4, 2, 3, 3}));
       }},
      {"[channels_last] expected an input of 3 or 4 axes, received sizes [4]",
       [&] {
         nn::conv2d(row, some({4, 2, 3, 3}), {.channels_last = true});
       }},
      {"received one of them", [&] { nn::batch_norm(image, {.running_mean = some({3})}); }},
      {"expected as many random numbers as elements", [&] { nn::dropout(image, 0.5, row); }},
      {"a probability from 0 to 1, received 1.5", [&] { nn::dropout(image, 1.5); }},
      {"a weight of 2 axes", [&] { nn::embedding(some({2}, DType::int64), row); }},
      {"a padding_idx among 5 rows, received 5",
       [&] {
         nn::embedding(some({2}, DType::int64), some({5, 3}), {.padding_idx = 5});
       }},
      {"either size or scale_factor, received neither", [&] { nn::interpolate(image, {}); }},
      {"a mode for inputs of 4 axes, received 'linear'",
       [&] { nn::interpolate(image, {.size = {4}, .mode = "linear"}); }},
      {"with align_corners, received 'nearest'",
       [&] { nn::interpolate(image, {.size = {4}, .align_corners = true}); }},
      {"[aten::group_norm]", [&] { nn::group_norm(image, 2); }},
      {"[aten::cross_entropy_loss]",
       [&] {
         nn::cross_entropy(some({3, 4}), some({3}));
       }},
      {"floating point", [&] { nn::mse_loss(some({3}, DType::int64), some({3})); }},
      {"weights for each layer and direction", [&] { nn::gru(image, image, {}); }},
      {"a stride for each of 0 blocks, received 1", [&] { nn::resnet_module(image, {}, {1}); }},
  };
  for (const Mistake& mistake : mistakes)
    EXPECT_THAT(user_error(mistake.work).value_or("no error"), testing::HasSubstr(mistake.message));
}

TEST(Functional, heads_must_divide_the_projections) {
  nn::Initializer init(1);
  const auto layer = nn::multi_head_attention_layer(init, "attention", 6);
  const LazyTensor x = some({2, 5, 6});
  EXPECT_THAT(
      user_error([&] { nn::multi_head_attention(x, x, x, layer, {.head_size = 4}); }).value(),
      testing::HasSubstr("a head_size that divides 6, received 4"));
}

TEST(Functional, layers_make_parameters_named_as_torch_names_them) {
  nn::Initializer init(1);
  nn::encoder_layer(init, "encoder.layers.0", 6, 10);
  nn::resnet_block(init, "layer1.0", 3, 4, 2);
  std::vector<std::string> names;
  for (const LazyTensor& parameter : init.parameters())
    names.push_back(input_name(*parameter.node));
  EXPECT_THAT(names,
              testing::IsSupersetOf({"encoder.layers.0.self_attn.out_proj.weight",
                                     "encoder.layers.0.linear1.bias",
                                     "encoder.layers.0.norm2.weight", "layer1.0.conv1.weight",
                                     "layer1.0.bn2.bias", "layer1.0.downsample.0.weight"}));
  EXPECT_EQ(names.size(), 16u + 9u);
}

}  // namespace
}  // namespace composit::test
