// Gradients of captures against autograd's.
#include "flashlight/gradient.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <torch/nn.h>
#include <torch/optim.h>

#include "composit/ir/error.h"
#include "composit/ir/print.h"
#include "flashlight/trace.h"
#include "tests/user_error.h"

namespace flashlight {
namespace {

using testing::HasSubstr;

// Largest difference between our gradients and autograd's, relative to the largest element of all:
// those of a bias in front of a batch norm are zero but for rounding.
double difference(const Gradient& gradient, const std::vector<at::Tensor>& arguments,
                  const at::Tensor& loss, const std::vector<NamedTensor>& named) {
  std::vector<at::Tensor> leaves;
  for (const std::string& name : gradient.names())
    for (const NamedTensor& tensor : named)
      if (tensor.name == name) leaves.push_back(tensor.tensor);
  EXPECT_EQ(leaves.size(), gradient.names().size());
  // First: our run writes batch norm's statistics, which autograd's graph holds.
  const auto expected = torch::autograd::grad({loss}, leaves, {}, {}, false, true);
  const auto ours = gradient(arguments);
  EXPECT_TRUE(at::allclose(ours.loss, loss));
  double worst = 0, scale = 0;
  for (size_t i = 0; i < leaves.size(); ++i) {
    const at::Tensor& g = ours.gradients[i];
    EXPECT_EQ(g.sizes(), leaves[i].sizes()) << gradient.names()[i];
    const at::Tensor e = expected[i].defined() ? expected[i] : at::zeros_like(leaves[i]);
    scale = std::max(scale, e.abs().max().item<double>());
    worst = std::max(worst, (g - e).abs().max().item<double>());
  }
  EXPECT_GT(scale, 0);
  return worst / scale;
}

TEST(Gradient, OfAPerceptron) {
  torch::nn::Sequential model(torch::nn::Linear(5, 7), torch::nn::Tanh(), torch::nn::Linear(7, 1));
  model->to(torch::kDouble);
  const at::Tensor x = torch::randn({4, 5}, torch::kDouble);
  const auto run = [&](at::Tensor input) { return model->forward(input).pow(2).mean(); };
  TraceSettings settings;
  settings.named = named_tensors(*model);
  const auto captured = trace(settings, run, x);
  const at::Tensor other = torch::randn({4, 5}, torch::kDouble);
  EXPECT_LT(difference(captured.grad(), {other}, run(other), settings.named), 1e-12);
}

TEST(Gradient, OfAConvolutionalNetworkInTraining) {
  torch::nn::Sequential model(
      torch::nn::Conv2d(torch::nn::Conv2dOptions(3, 8, 3).stride(2).padding(1)),
      torch::nn::BatchNorm2d(8), torch::nn::ReLU(), torch::nn::MaxPool2d(2),
      torch::nn::Conv2d(torch::nn::Conv2dOptions(8, 6, 3).padding(1).groups(2).bias(false)),
      torch::nn::AdaptiveAvgPool2d(1), torch::nn::Flatten(), torch::nn::Linear(6, 3));
  model->to(torch::kDouble);
  const at::Tensor x = torch::randn({4, 3, 16, 16}, torch::kDouble);
  const at::Tensor target = torch::tensor({0, 2, 1, 1});
  const auto run = [&](at::Tensor input, at::Tensor labels) {
    return torch::nn::functional::cross_entropy(model->forward(input), labels);
  };
  TraceSettings settings;
  settings.named = named_tensors(*model);
  const auto captured = trace(settings, run, x, target);
  EXPECT_LT(difference(captured.grad(), {x, target}, run(x, target), settings.named), 1e-10);
}

TEST(Gradient, ByAnArgumentByName) {
  const at::Tensor x = torch::rand({3}, torch::kDouble);
  const auto captured = trace([](at::Tensor v) { return (v * v).sum(); }, x);
  const auto gradient = captured.grad(0, {"input_0"});
  EXPECT_TRUE(at::allclose(gradient({x}).gradients[0], 2 * x));
}

TEST(Gradient, DetachedAndNoGradPartsPassNothing) {
  const at::Tensor x = torch::rand({3}, torch::kDouble).requires_grad_(true);
  const auto run = [](at::Tensor v) {
    at::Tensor constant;
    {
      torch::NoGradGuard guard;
      constant = v * 3;
    }
    return (v * v.detach() * constant).sum();
  };
  const auto captured = trace(run, x);
  const auto ours = captured.grad(0, {"input_0"})({x}).gradients[0];
  EXPECT_TRUE(at::allclose(ours, torch::autograd::grad({run(x)}, {x})[0]));
}

// The loss is of `model(x)`; `use` makes a tensor that depends on the model by its type alone.
void expect_gradients_through(const std::function<at::Tensor(const at::Tensor&)>& use) {
  torch::manual_seed(1);
  torch::nn::Linear model(3, 4);
  model->to(torch::kDouble);
  const at::Tensor x = torch::randn({5, 3}, torch::kDouble);
  const auto run = [&](at::Tensor input) {
    const at::Tensor y = model->forward(input);
    return (y + use(y)).square().mean();
  };
  TraceSettings settings;
  settings.named = named_tensors(*model);
  const auto captured = trace(settings, run, x);
  const at::Tensor other = torch::randn({5, 3}, torch::kDouble);
  torch::manual_seed(2);
  const auto expected = torch::autograd::grad({run(other)}, model->parameters());
  torch::manual_seed(2);
  const auto ours = captured.grad()({other}).gradients;
  ASSERT_EQ(ours.size(), expected.size());
  for (size_t i = 0; i < ours.size(); ++i)
    EXPECT_TRUE(at::allclose(ours[i], expected[i], 1e-10, 1e-12)) << ours[i] << expected[i];
}

struct Use {
  const char* name;
  std::function<at::Tensor(const at::Tensor&)> make;
};
void PrintTo(const Use& use, std::ostream* out) { *out << use.name; }

class GradientOfUses : public testing::TestWithParam<Use> {};
TEST_P(GradientOfUses, OfATensorForItsTypeIsNone) { expect_gradients_through(GetParam().make); }
INSTANTIATE_TEST_SUITE_P(
    All, GradientOfUses,
    testing::Values(
        Use{"zeros_like", [](const at::Tensor& y) { return at::zeros_like(y); }},
        Use{"ones_like", [](const at::Tensor& y) { return at::ones_like(y); }},
        Use{"full_like", [](const at::Tensor& y) { return at::full_like(y, 0.5); }},
        Use{"empty_like", [](const at::Tensor& y) { return at::empty_like(y).fill_(0.5); }},
        Use{"new_zeros",
            [](const at::Tensor& y) {
              return y.new_zeros({5, 4});
            }},
        Use{"new_ones",
            [](const at::Tensor& y) {
              return y.new_ones({5, 4});
            }},
        Use{"new_full",
            [](const at::Tensor& y) {
              return y.new_full({5, 4}, 0.5);
            }},
        Use{"new_empty",
            [](const at::Tensor& y) {
              return y.new_empty({5, 4}).fill_(0.5);
            }},
        Use{"new_empty_strided",
            [](const at::Tensor& y) {
              return y.new_empty_strided({5, 4}, {1, 5}).zero_();
            }},
        Use{"fill", [](const at::Tensor& y) { return y.clone().fill_(0.5); }},
        Use{"zero", [](const at::Tensor& y) { return y.clone().zero_(); }},
        Use{"copy", [](const at::Tensor& y) { return y.clone().copy_(at::ones({4})); }},
        Use{"expand_as", [](const at::Tensor& y) { return at::ones({4}, y.dtype()).expand_as(y); }},
        Use{"type_as", [](const at::Tensor& y) { return at::ones({4}).type_as(y); }},
        Use{"rand_like", [](const at::Tensor& y) { return at::rand_like(y); }},
        Use{"randn_like", [](const at::Tensor& y) { return at::randn_like(y); }},
        Use{"bernoulli", [](const at::Tensor& y) { return at::bernoulli(y.sigmoid()); }},
        Use{"bernoulli_in_place", [](const at::Tensor& y) { return y.clone().bernoulli_(0.5); }},
        Use{"bernoulli_tensor",
            [](const at::Tensor& y) { return y.clone().bernoulli_(y.sigmoid()); }},
        Use{"normal_in_place", [](const at::Tensor& y) { return y.clone().normal_(); }},
        Use{"normal_of_means", [](const at::Tensor& y) { return at::normal(y, 0.5); }},
        Use{"normal_of_deviations", [](const at::Tensor& y) { return at::normal(0.5, y.exp()); }},
        Use{"normal_of_both", [](const at::Tensor& y) { return at::normal(y, y.exp()); }},
        Use{"uniform", [](const at::Tensor& y) { return y.clone().uniform_(); }},
        Use{"exponential", [](const at::Tensor& y) { return y.clone().exponential_(); }},
        Use{"log_normal", [](const at::Tensor& y) { return y.clone().log_normal_(0, 0.1); }},
        Use{"cauchy", [](const at::Tensor& y) { return y.clone().cauchy_(0, 0.1); }},
        Use{"geometric", [](const at::Tensor& y) { return y.clone().geometric_(0.5); }},
        Use{"random", [](const at::Tensor& y) { return y.clone().random_(-5, 5); }},
        Use{"poisson", [](const at::Tensor& y) { return at::poisson(y.exp()); }},
        Use{"histc", [](const at::Tensor& y) { return at::histc(y, 4, -1, 1); }}),
    [](const auto& one) { return std::string(one.param.name); });

// y = x³, with a derivative of its own.
struct Cube : torch::autograd::Function<Cube> {
  static at::Tensor forward(torch::autograd::AutogradContext* context, const at::Tensor& x) {
    context->save_for_backward({x});
    return x * x * x;
  }
  static torch::autograd::variable_list backward(torch::autograd::AutogradContext* context,
                                                 torch::autograd::variable_list gradients) {
    const at::Tensor x = context->get_saved_variables()[0];
    return {gradients[0] * 3 * x * x};
  }
};

TEST(Gradient, OfTiedWeightsIsTheSumOfTheirUses) {
  torch::nn::Embedding embedding(7, 4);
  torch::nn::Linear head(torch::nn::LinearOptions(4, 7).bias(false));
  head->weight = embedding->weight;
  embedding->to(torch::kDouble);
  torch::nn::Sequential model(embedding, head);
  const at::Tensor tokens = torch::tensor({1, 5, 1, 3});
  const auto run = [&](at::Tensor ids) {
    return head->forward(embedding->forward(ids).tanh()).pow(2).mean();
  };
  TraceSettings settings;
  settings.named = {{"embedding.weight", embedding->weight}, {"head.weight", head->weight}};
  const auto captured = trace(settings, run, tokens);
  const Gradient gradient = captured.grad();
  EXPECT_THAT(gradient.names(), testing::ElementsAre("embedding.weight"));
  EXPECT_LT(difference(gradient, {tokens}, run(tokens), settings.named), 1e-12);
  EXPECT_LT(difference(captured.grad(0, {"head.weight"}), {tokens}, run(tokens), settings.named),
            1e-12);
}

TEST(Gradient, ThroughACustomAutogradFunctionIsRefusedByName) {
  const at::Tensor x = torch::rand({3}, torch::kDouble).requires_grad_(true);
  const auto captured = trace([](at::Tensor v) { return Cube::apply(v).sum(); }, x);
  EXPECT_THAT(composit::user_error([&] { captured.grad(0, {"input_0"}); }).value_or(""),
              testing::AllOf(HasSubstr("Cube"), HasSubstr("custom autograd function")));
}

TEST(Gradient, BesideACustomAutogradFunctionIsAutograds) {
  const at::Tensor x = torch::rand({3}, torch::kDouble).requires_grad_(true);
  const at::Tensor y = torch::rand({3}, torch::kDouble).requires_grad_(true);
  const auto run = [](at::Tensor v, at::Tensor w) { return (Cube::apply(v) * w).sum(); };
  const auto captured = trace(run, x, y);
  const auto ours = captured.grad(0, {"input_1"})({x, y}).gradients[0];
  EXPECT_TRUE(at::allclose(ours, torch::autograd::grad({run(x, y)}, {y})[0]));
}

TEST(Gradient, IsWhatBackwardInsideTheScopeComputed) {
  torch::nn::Sequential model(torch::nn::Linear(5, 7), torch::nn::Tanh(), torch::nn::Linear(7, 1));
  model->to(torch::kDouble);
  const at::Tensor weight = model->parameters()[0];
  const auto run = [&](at::Tensor input) {
    const at::Tensor loss = Cube::apply(model->forward(input)).mean();
    return std::vector<at::Tensor>{loss, torch::autograd::grad({loss}, {weight})[0]};
  };
  const auto plain = [&](at::Tensor input) { return model->forward(input).pow(3).mean(); };
  TraceSettings settings;
  settings.named = named_tensors(*model);
  const at::Tensor x = torch::randn({4, 5}, torch::kDouble), other = torch::randn_like(x);
  const auto with_backward = trace(settings, run, x);  // by the custom function's own rule
  const auto captured = trace(settings, plain, x);
  const std::string name = settings.named[0].name;
  EXPECT_TRUE(at::allclose(captured.grad(0, {name})({other}).gradients[0], with_backward(other)[1],
                           1e-10, 1e-12));
}

TEST(Gradient, OfWhatIsRewrittenUnderNoGradIsAutograds) {
  const at::Tensor x = torch::rand({3}, torch::kDouble).requires_grad_(true);
  const auto run = [](at::Tensor v) {
    at::Tensor y = v * 2;
    {
      torch::NoGradGuard guard;
      y.mul_(3);  // as if it were a constant's value: autograd does not see it
      y[1].fill_(1);
    }
    return (y * y).sum();
  };
  const auto captured = trace(run, x);
  const auto ours = captured.grad(0, {"input_0"})({x}).gradients[0];
  EXPECT_TRUE(at::allclose(ours, torch::autograd::grad({run(x)}, {x})[0]))
      << ours << composit::print(captured.graph());
}

TEST(CheckGrad, ComparesWithAutogradOnTheProgram) {
  torch::nn::Sequential model(torch::nn::Conv2d(3, 4, 3), torch::nn::BatchNorm2d(4),
                              torch::nn::ReLU());
  const auto run = [&](at::Tensor x) { return model->forward(x).pow(2).mean(); };
  TraceSettings settings;
  settings.named = named_tensors(*model);
  const at::Tensor x = torch::randn({2, 3, 8, 8});
  const auto captured = trace(settings, run, x);
  const at::Tensor statistics = settings.named.back().tensor.clone();
  const auto report = captured.check_grad({torch::randn({2, 3, 8, 8})});
  EXPECT_TRUE(report.ok()) << str(report);
  EXPECT_EQ(report.differences.size(), 4u);
  EXPECT_EQ(report.oracle, "autograd on the program");
  EXPECT_FALSE(model->parameters()[0].grad().defined());
  EXPECT_TRUE(at::equal(settings.named.back().tensor, statistics));  // left as they were
  EXPECT_TRUE(captured.check_grad({x}, 0, {"input_0"}).ok());
}

TEST(CheckGrad, ComparesWithTheBackwardInsideTheProgram) {
  torch::nn::Linear model(5, 1);
  torch::optim::SGD optimizer(model->parameters(), 0.1);
  const auto step = [&](at::Tensor x) {
    optimizer.zero_grad();
    const at::Tensor loss = model->forward(x).pow(2).mean();
    loss.backward();
    optimizer.step();
    return loss;
  };
  TraceSettings settings;
  settings.named = named_tensors(*model);
  const auto captured = trace(settings, step, torch::randn({4, 5}));
  const auto report = captured.check_grad({torch::randn({4, 5})});
  EXPECT_TRUE(report.ok()) << str(report);
  EXPECT_THAT(report.oracle, HasSubstr("backward() inside the program"));
}

TEST(CheckGrad, FindsAGradientThatIsWrong) {
  const at::Tensor x = torch::rand({3}, torch::kDouble).requires_grad_(true);
  bool doubled = false;  // a host value the capture bakes in
  const auto captured =
      trace([&](at::Tensor v) { return (v * v * (doubled ? 2.0 : 1.0)).sum(); }, x);
  EXPECT_TRUE(captured.check_grad({x}, 0, {"input_0"}).ok());
  doubled = true;
  const auto report = captured.check_grad({x}, 0, {"input_0"});
  EXPECT_FALSE(report.ok());
  EXPECT_THAT(str(report), HasSubstr("different: 1 gradients"));
  EXPECT_NEAR(report.differences.at(0).relative, 0.5, 1e-9);
}

TEST(CheckGrad, OfALoadedCaptureComparesWithAutogradOnAReplay) {
  torch::nn::Sequential model(torch::nn::Linear(5, 7), torch::nn::ReLU(), torch::nn::Linear(7, 1));
  TraceSettings settings;
  settings.named = named_tensors(*model);
  const auto captured = trace(
      settings, [&](at::Tensor x) { return model->forward(x).relu_().mul_(3).mean(); },
      torch::randn({4, 5}));
  const std::string folder = testing::TempDir() + "check_grad";
  captured.save(folder);
  const auto report = CaptureBase::load(folder).check_grad({torch::randn({4, 5})});
  EXPECT_TRUE(report.ok()) << str(report);
  EXPECT_EQ(report.differences.size(), 4u);
  EXPECT_EQ(report.oracle, "autograd on a replay");
}

TEST(Gradient, SaysWhatIsWrong) {
  const at::Tensor x = torch::rand({3});
  const auto captured = trace([](at::Tensor v) { return v * v; }, x);
  const auto message = [&](const std::vector<std::string>& wrt, size_t loss) {
    return composit::user_error([&] { captured.grad(loss, wrt); }).value_or("");
  };
  EXPECT_THAT(message({"input_0"}, 0), HasSubstr("a loss of one element, received float32[3]"));
  EXPECT_THAT(message({"weight"}, 0), HasSubstr("no input 'weight'; it has 'input_0'"));
  EXPECT_THAT(message({}, 0), HasSubstr("has no parameter"));
  EXPECT_THAT(message({"input_0"}, 3), HasSubstr("there is no result 3"));
}

}  // namespace
}  // namespace flashlight
