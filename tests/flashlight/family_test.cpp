// Families of programs at several sizes: their replays have the bits of eager at sizes that nobody
// showed, and everything that works on a capture works on one that is bound.
#include "flashlight/family.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <torch/torch.h>

#include "examples/models/bert.h"
#include "examples/models/resnet.h"
#include "flashlight/compiled_family.h"
#include "tests/user_error.h"

namespace flashlight {
namespace {

using composit::user_error;
using testing::Contains;
using testing::HasSubstr;
using Tensors = std::vector<at::Tensor>;

at::Tensor words(int64_t batch, int64_t tokens) {
  return torch::randint(0, 99, {batch, tokens}, torch::kInt64);
}
at::Tensor all_seen(int64_t batch, int64_t tokens) {
  at::Tensor seen = torch::ones({batch, tokens}, torch::kInt64);
  seen[-1].slice(0, tokens - 2).zero_();
  return seen;
}

models::BertModel small_bert() {
  torch::manual_seed(7);
  models::BertConfig config;
  config.vocab_size = 99;
  config.hidden_size = 32;
  config.num_hidden_layers = 2;
  config.num_attention_heads = 4;
  config.intermediate_size = 64;
  config.max_position_embeddings = 64;
  models::BertModel model(config);
  model->eval();
  return model;
}

template <class Model, class... Inputs>
auto bert_family(Model& model, const Inputs&... sizes) {
  const FamilySettings settings{.names = {"batch", "tokens"}, .trace = {{}, named_tensors(model)}};
  const auto run = [model = model.ptr()](const at::Tensor& ids, const at::Tensor& seen) {
    const models::BertOutput out = model->forward(ids, seen);
    return Tensors{out.last_hidden_state, out.pooler_output};
  };
  return trace_family(settings, run,
                      example(words(sizes[0], sizes[1]), all_seen(sizes[0], sizes[1]))...);
}
using Sizes = std::array<int64_t, 2>;

void expect_same_bits(const Tensors& actual, const Tensors& expected) {
  ASSERT_EQ(actual.size(), expected.size());
  for (size_t i = 0; i < actual.size(); ++i) EXPECT_TRUE(torch::equal(actual[i], expected[i]));
}

class FamilyOfBert : public testing::Test {
 protected:
  torch::NoGradGuard no_grad_;
  models::BertModel model_ = small_bert();
  Family<Tensors(at::Tensor, at::Tensor)> family_ =
      bert_family(model_, Sizes{2, 16}, Sizes{3, 23}, Sizes{5, 12});

  Tensors eager(const at::Tensor& ids, const at::Tensor& seen) {
    const models::BertOutput out = model_->forward(ids, seen);
    return {out.last_hidden_state, out.pooler_output};
  }
};

TEST_F(FamilyOfBert, HasEagersBitsAtSizesNobodyShowed) {
  for (const auto& [batch, tokens] : {Sizes{4, 21}, Sizes{2, 13}, Sizes{5, 23}, Sizes{3, 16}}) {
    const at::Tensor ids = words(batch, tokens), seen = all_seen(batch, tokens);
    expect_same_bits(family_(ids, seen), eager(ids, seen));
  }
}

TEST_F(FamilyOfBert, IsRefusedOutsideUntilItIsCheckedThere) {
  const at::Tensor ids = words(1, 9), seen = all_seen(1, 9);
  EXPECT_EQ(user_error([&] { family_(ids, seen); }).value_or(""),
            "[bind] batch = 1: shown from 2 to 5; add an example there");
  const CheckReport report = family_.check(ids, seen);
  EXPECT_TRUE(report) << str(report);
  const at::Tensor other = words(1, 9);
  expect_same_bits(family_(other, seen), eager(other, seen));
  EXPECT_THAT(family_.assumptions(), Contains("checked at batch = 1, tokens = 9"));
}

TEST_F(FamilyOfBert, SaysWhatWasShownFittedAndRefused) {
  const auto lines = family_.assumptions();
  EXPECT_THAT(lines, Contains("batch: shown 2, 3, 5; fitted from 2 to 5; refused elsewhere"));
  EXPECT_THAT(lines, Contains("tokens: shown 16, 23, 12; fitted from 12 to 23; refused elsewhere"));
}

TEST_F(FamilyOfBert, ABoundCaptureIsSavedDifferentiatedAndCompiled) {
  const auto captured = family_.at({{"batch", 4}, {"tokens", 21}});
  const at::Tensor ids = words(4, 21), seen = all_seen(4, 21);
  const Tensors expected = eager(ids, seen);
  expect_same_bits(captured(ids, seen), expected);
  const auto folder = std::filesystem::path(testing::TempDir()) / "bound_bert";
  captured.save(folder);
  expect_same_bits(load(folder)(ids, seen), expected);
  for (const CompileSettings& settings :
       {CompileSettings{.backend = Cpp{}}, CompileSettings{.backend = Mosaic{}}}) {
    const Tensors results = compile(captured, settings)(ids, seen);
    for (size_t i = 0; i < expected.size(); ++i)
      EXPECT_LT((results[i] - expected[i]).abs().max().item<float>(), 1e-5);
  }
}

TEST_F(FamilyOfBert, IsCompiledOncePerSizes) {
  const auto fast = compile(family_, {.backend = Cpp{}});
  for (const auto& [batch, tokens] : {Sizes{4, 21}, Sizes{2, 13}, Sizes{4, 21}}) {
    const at::Tensor ids = words(batch, tokens), seen = all_seen(batch, tokens);
    const Tensors results = fast(ids, seen), expected = eager(ids, seen);
    for (size_t i = 0; i < expected.size(); ++i)
      EXPECT_LT((results[i] - expected[i]).abs().max().item<float>(), 1e-5);
  }
  EXPECT_EQ(fast.programs(), 2U);
}

TEST_F(FamilyOfBert, OneMoreExampleWidensIt) {
  family_.extend(words(4, 40), all_seen(4, 40));
  const at::Tensor ids = words(3, 33), seen = all_seen(3, 33);
  expect_same_bits(family_(ids, seen), eager(ids, seen));
}

TEST_F(FamilyOfBert, GuardsStayGuards) {
  // All tokens are seen: the model takes the way without a mask.
  const at::Tensor ids = words(4, 21), seen = torch::ones({4, 21}, torch::kInt64);
  const auto error = user_error([&] { family_(ids, seen); });
  if (!error) expect_same_bits(family_(ids, seen), eager(ids, seen));
}

TEST(Family, OfResNetHoldsForAllImages) {
  torch::NoGradGuard no_grad;
  torch::manual_seed(7);
  models::ResNetConfig config;
  config.depths = {1, 1, 1, 1};
  config.num_classes = 10;
  models::ResNet model(config);
  model->eval();
  const auto image = [](int64_t batch, int64_t height, int64_t width) {
    return torch::randn({batch, 3, height, width});
  };
  auto family =
      trace_family(FamilySettings{.names = {"batch", "height", "width"}}, model,
                   example(image(2, 64, 97)), example(image(3, 75, 66)), example(image(5, 50, 83)));
  for (const at::Tensor& x : {image(4, 71, 90), image(2, 51, 67), image(3, 66, 66)})
    EXPECT_TRUE(torch::equal(family(x), model->forward(x)));
}

TEST(Family, OfATrainingStepHasAutogradsGradients) {
  torch::manual_seed(7);
  torch::nn::Sequential model(torch::nn::Linear(6, 8), torch::nn::Tanh(), torch::nn::Linear(8, 3));
  const auto step = [model = model.ptr()](const at::Tensor& x, const at::Tensor& y) {
    model->zero_grad();
    const at::Tensor loss = torch::nn::functional::cross_entropy(model->forward(x), y);
    loss.backward();
    return loss.detach();
  };
  const auto data = [](int64_t batch) {
    return std::pair{torch::randn({batch, 6}), torch::randint(0, 3, {batch})};
  };
  const auto [x2, y2] = data(4);
  const auto [x3, y3] = data(7);
  const auto [x5, y5] = data(12);
  auto family =
      trace_family(FamilySettings{.names = {"batch"}, .trace = {{}, named_tensors(*model)}}, step,
                   example(x2, y2), example(x3, y3), example(x5, y5));
  for (const int64_t batch : {5, 9, 11}) {
    const auto [x, y] = data(batch);
    const at::Tensor expected = step(x, y);
    Tensors gradients;
    for (const at::Tensor& parameter : model->parameters())
      gradients.push_back(parameter.grad().clone());
    model->zero_grad();
    EXPECT_TRUE(torch::equal(family(x, y), expected)) << batch;
    for (size_t i = 0; i < gradients.size(); ++i)
      EXPECT_TRUE(torch::equal(model->parameters()[i].grad(), gradients[i])) << batch << " " << i;
  }
}

// ---- wrong use ----------------------------------------------------------------------------------

std::string error_of(const std::function<at::Tensor(const at::Tensor&)>& program,
                     const std::vector<Sizes>& sizes) {
  return user_error([&] {
           const auto x = [](const Sizes& s) { return torch::randn({s[0], s[1]}); };
           trace_family(FamilySettings{.names = {"batch", "tokens"}}, program, example(x(sizes[0])),
                        example(x(sizes[1])), example(x(sizes[2])));
         })
      .value_or("");
}
const std::vector<Sizes> kSizes = {{2, 16}, {3, 23}, {5, 12}};

TEST(Family, AnotherPathAsksForExamples) {
  EXPECT_THAT(error_of([](const at::Tensor& x) { return x.size(1) % 8 == 0 ? x.relu() : x.tanh(); },
                       kSizes),
              HasSubstr("[unify] examples 1 and 2, 3 part at %relu = aten::relu"));
}

TEST(Family, PaddingToWindowsIsTwoCases) {
  torch::NoGradGuard no_grad;
  auto model = small_bert();
  const auto program = [&](const at::Tensor& ids) {
    const int64_t tokens = ids.size(1);
    const at::Tensor whole =
        tokens % 4 == 0 ? ids : torch::constant_pad_nd(ids, {0, 4 - tokens % 4});
    return model->forward(whole, torch::ones_like(whole)).last_hidden_state.slice(1, 0, tokens);
  };
  auto family = trace_family(FamilySettings{.trace = {{}, named_tensors(model)},
                                            .ranges = {{"batch", 2, 6}, {"tokens", 2, 40}}},
                             program, [](const composit::SizeValues& sizes) {
                               return std::tuple(words(sizes.at("batch"), sizes.at("tokens")));
                             });
  EXPECT_EQ(family.cases().cases.size(), 2U);
  EXPECT_THAT(family.assumptions(),
              Contains(HasSubstr("mod(size(%input_0, 1), 4) == 0: case 1, otherwise case 2")));
  for (int64_t tokens = 2; tokens <= 40; ++tokens) {
    const at::Tensor ids = words(3, tokens);
    EXPECT_TRUE(torch::equal(family(ids), program(ids))) << tokens;
  }
  auto fast = compile(family, {.backend = Cpp{}});
  for (const int64_t tokens : {7, 8}) {
    const at::Tensor ids = words(4, tokens);
    EXPECT_TRUE(torch::allclose(fast(ids), program(ids), 1e-4, 1e-5));
  }
  EXPECT_THAT(user_error([&] { family(words(3, 41)); }).value_or(""),
              HasSubstr("[bind] tokens = 41: shown from 2 to "));
}

// What is behind the third row has no rows at the least size.
TEST(Family, TensorsMayBeEmpty) {
  const torch::NoGradGuard no_grad;
  const auto program = [](const at::Tensor& x) {
    const at::Tensor rest = x.slice(0, 3);
    return Tensors{rest.relu() + 1, rest.sum(0), torch::cat({rest, x.exp()}), rest.reshape({-1})};
  };
  const auto family = trace_family(FamilySettings{.ranges = {{"rows", 3, 12}}}, program,
                                   [](const composit::SizeValues& sizes) {
                                     return std::tuple(torch::randn({sizes.at("rows"), 4}));
                                   });
  const auto fast = compile(family, {.backend = Mosaic{}});
  for (int64_t rows = 3; rows <= 12; ++rows) {
    const at::Tensor x = torch::randn({rows, 4});
    const Tensors expected = program(x), results = fast(x);
    expect_same_bits(family(x), expected);
    ASSERT_EQ(results.size(), expected.size());
    for (size_t i = 0; i < expected.size(); ++i)
      EXPECT_TRUE(torch::allclose(results[i], expected[i], 1e-4, 1e-5)) << rows << ", " << i;
  }
}

TEST(Family, APieceOnOneSideIsRefused) {
  EXPECT_THAT(
      error_of(
          [](const at::Tensor& x) { return x.slice(0, 0, std::max<int64_t>(x.size(0) - 2, 1)); },
          kSizes),
      HasSubstr("expected an expression of sizes for 'end', received 1, 1, 3"));
}

TEST(Family, AFloatOfASizeIsRefused) {
  EXPECT_THAT(
      error_of([](const at::Tensor& x) { return x / std::sqrt(static_cast<double>(x.size(1))); },
               kSizes),
      HasSubstr("to differ in integers only"));
}

TEST(Family, ACheckFindsWhatNobodyShowed) {
  torch::NoGradGuard no_grad;
  const auto program = [](const at::Tensor& x) {
    return x.new_full({std::max<int64_t>(x.size(0), 3)}, 1.0) * x.sum();
  };
  auto family = trace_family(FamilySettings{.names = {"batch", "tokens"}}, program,
                             example(torch::randn({4, 16})), example(torch::randn({6, 23})),
                             example(torch::randn({7, 12})));
  EXPECT_TRUE(family.check(torch::randn({5, 20})));
  EXPECT_FALSE(family.check(torch::randn({2, 20})));
  EXPECT_TRUE(user_error([&] { family(torch::randn({2, 20})); }));
}

TEST(Family, ArgumentsAreThoseOfTheExamples) {
  torch::NoGradGuard no_grad;
  const auto program = [](const at::Tensor& x) { return x.relu(); };
  auto family =
      trace_family(FamilySettings{.names = {"batch"}}, program, example(torch::randn({4, 3})),
                   example(torch::randn({6, 3})), example(torch::randn({7, 3})));
  EXPECT_EQ(user_error([&] {
              family(torch::randn({5, 4}));
            }).value_or(""),
            "[bind] input 'input_0': expected float32[5, 3], received float32[5, 4]");
  EXPECT_THAT(user_error([&] {
                family(torch::randn({5, 3, 1}));
              }).value_or(""),
              HasSubstr("expected 2 axes, received 3"));
}

// LibTorch's linear chooses its kernel by what requires a gradient, and so does that of a loaded
// family.
TEST(Family, LoadedHasEagersBitsOfALinearOverWhatIsNotContiguous) {
  torch::manual_seed(5);
  torch::NoGradGuard no_grad;
  torch::nn::Linear first(8, 8), second(8, 8);
  const auto program = [&](const at::Tensor& x) {
    const at::Tensor y = torch::relu(first->forward(x)).transpose(0, 1).contiguous();
    return second->forward(y.transpose(0, 1));
  };
  const auto input = [](int64_t batch, int64_t tokens) { return torch::rand({batch, tokens, 8}); };
  const auto family =
      trace_family(program, example(input(2, 4)), example(input(3, 7)), example(input(5, 6)));
  const auto folder = std::filesystem::path(testing::TempDir()) / "family_of_linears";
  family.save(folder);
  const auto loaded = load_family(folder);
  for (int i = 0; i < 4; ++i) {
    const at::Tensor x = input(3, 4 + i);
    EXPECT_TRUE(torch::equal(loaded(x).at(0), program(x)));
  }
}

}  // namespace
}  // namespace flashlight
