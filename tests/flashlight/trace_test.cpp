// flashlight::trace over every kind of argument and result, and the errors of a capture that is
// called wrong.
#include "flashlight/trace.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <torch/torch.h>

#include <filesystem>
#include <functional>
#include <map>

#include "composit/ir/error.h"

namespace user {

struct Batch {
  at::Tensor tokens;
  std::optional<at::Tensor> mask;
};
struct Output {
  at::Tensor hidden;
  std::map<std::string, at::Tensor> extras;
};

struct NetImpl : torch::nn::Module {
  at::Tensor forward(const at::Tensor& x) { return output(torch::relu(norm(hidden(x)))); }
  torch::nn::Linear hidden = register_module("hidden", torch::nn::Linear(4, 8));
  torch::nn::BatchNorm1d norm = register_module("norm", torch::nn::BatchNorm1d(8));
  torch::nn::Linear output = register_module("output", torch::nn::Linear(8, 2));
};
TORCH_MODULE(Net);

}  // namespace user

BOOST_HANA_ADAPT_STRUCT(user::Batch, tokens, mask);
BOOST_HANA_ADAPT_STRUCT(user::Output, hidden, extras);

namespace {

using flashlight::trace;
using ::testing::HasSubstr;

template <class F>
std::string error_of(F work) {
  try {
    work();
  } catch (const composit::UserError& error) {
    return error.what();
  }
  return "no error";
}

TEST(Trace, ModuleHolder) {
  user::Net net;
  net->eval();
  auto captured = trace(net, torch::randn({3, 4}));
  const at::Tensor x = torch::randn({3, 4});
  EXPECT_TRUE(torch::equal(captured(x), net(x)));
}

TEST(Trace, ModuleByReference) {
  user::NetImpl net;
  net.eval();
  auto captured = trace(net, torch::randn({3, 4}));
  const at::Tensor x = torch::randn({3, 4});
  EXPECT_TRUE(torch::equal(captured(x), net.forward(x)));
}

TEST(Trace, SharedPointerToModule) {
  auto net = std::make_shared<user::NetImpl>();
  net->eval();
  auto captured = trace(net, torch::randn({3, 4}));
  const at::Tensor x = torch::randn({3, 4});
  EXPECT_TRUE(torch::equal(captured(x), net->forward(x)));
}

TEST(Trace, ParametersAndBuffersHaveTheirNames) {
  user::Net net;
  auto captured = trace(net, torch::randn({3, 4}));
  std::vector<std::string> names;
  for (const auto& input : captured.graph().inputs()) names.push_back(input_name(*input.node));
  EXPECT_THAT(names, ::testing::IsSupersetOf(
                         {"input_0", "hidden.weight", "norm.running_mean", "output.bias"}));
}

TEST(Trace, BufferMutationsAreReplayed) {
  user::Net net;
  net->train();
  auto captured = trace(net, torch::randn({8, 4}));
  const at::Tensor x = torch::randn({8, 4});
  const at::Tensor before = net->norm->running_mean.clone();
  captured(x);
  const at::Tensor replayed = net->norm->running_mean.clone();
  net->norm->running_mean.copy_(before);
  net(x);
  EXPECT_TRUE(torch::equal(replayed, net->norm->running_mean));
  EXPECT_FALSE(torch::equal(replayed, before));
}

TEST(Trace, UserStructs) {
  const auto step = [](user::Batch batch, const std::vector<at::Tensor>& weights) {
    at::Tensor h = batch.tokens.matmul(weights[0]);
    if (batch.mask) h = h * *batch.mask;
    return user::Output{h, {{"sum", h.sum()}, {"max", std::get<0>(h.max(0))}}};
  };
  const auto make = [] { return user::Batch{torch::randn({3, 4}), torch::rand({3, 1})}; };
  const std::vector<at::Tensor> weights{torch::randn({4, 5})};
  auto captured = trace<user::Output(user::Batch, std::vector<at::Tensor>)>(step, make(), weights);
  const user::Batch batch = make();
  const user::Output replayed = captured(batch, weights), eager = step(batch, weights);
  EXPECT_TRUE(torch::equal(replayed.hidden, eager.hidden));
  EXPECT_TRUE(torch::equal(replayed.extras.at("sum"), eager.extras.at("sum")));
  EXPECT_TRUE(torch::equal(replayed.extras.at("max"), eager.extras.at("max")));
}

TEST(Trace, TuplesMapsOptionalsAndNumbers) {
  using Result = std::tuple<at::Tensor, std::pair<at::Tensor, double>, std::optional<at::Tensor>>;
  const auto step = [](std::map<std::string, at::Tensor> in, std::array<at::Tensor, 2> pair,
                       int64_t n) {
    return Result(in.at("a") * n, {pair[0] - pair[1], 0.1 * static_cast<double>(n)}, std::nullopt);
  };
  const std::map<std::string, at::Tensor> in{{"a", torch::randn({2})}, {"b", torch::randn({3})}};
  const std::array<at::Tensor, 2> pair{torch::randn({2, 2}), torch::randn({2, 2})};
  auto captured = trace(step, in, pair, int64_t{3});
  const Result replayed = captured(in, pair, int64_t{3}), eager = step(in, pair, 3);
  EXPECT_TRUE(torch::equal(std::get<0>(replayed), std::get<0>(eager)));
  EXPECT_TRUE(torch::equal(std::get<1>(replayed).first, std::get<1>(eager).first));
  EXPECT_EQ(std::get<1>(replayed).second, std::get<1>(eager).second);  // exact
  EXPECT_FALSE(std::get<2>(replayed).has_value());
  EXPECT_THAT(error_of([&] { captured(in, pair, int64_t{4}); }),
              HasSubstr("numbers and the number of tensors"));
}

TEST(Trace, WrongShapeNamesBothAndTheWayOut) {
  user::Net net;
  auto captured = trace(net, torch::randn({3, 4}));
  const std::string error = error_of([&] { captured(torch::randn({5, 4})); });
  EXPECT_THAT(error, HasSubstr("input 'input_0': expected float32 [3, 4]"));
  EXPECT_THAT(error, HasSubstr("received float32 [5, 4]"));
  EXPECT_THAT(error, HasSubstr("capture again for these inputs: trace("));
}

TEST(Trace, WrongDtype) {
  user::Net net;
  auto captured = trace(net, torch::randn({3, 4}));
  EXPECT_THAT(error_of([&] {
                captured(torch::randn({3, 4}, torch::kDouble));
              }),
              HasSubstr("received float64 [3, 4]"));
}

TEST(Trace, WrongStrides) {
  user::Net net;
  auto captured = trace(net, torch::randn({3, 4}));
  EXPECT_THAT(error_of([&] {
                captured(torch::randn({4, 3}).t());
              }),
              HasSubstr("received float32 [3, 4] with strides [1, 3]"));
}

TEST(Trace, GuardFiresAndNothingIsWritten) {
  const auto step = [](at::Tensor state, at::Tensor x) {
    state.add_(1);
    return x.sum().item<float>() > 0 ? x * 2 : x * 3;
  };
  at::Tensor state = torch::zeros({2});
  auto captured = trace(step, state, torch::ones({2}));
  const at::Tensor fresh = torch::zeros({2});
  EXPECT_THAT(error_of([&] { captured(fresh, torch::full({2}, 5.f)); }),
              HasSubstr("guard: aten::_local_scalar_dense"));
  EXPECT_TRUE(torch::equal(fresh, torch::zeros({2})));
  captured(fresh, torch::ones({2}));
  EXPECT_TRUE(torch::equal(fresh, torch::ones({2})));
}

TEST(Trace, AssumptionsNameGuardsAndUnnamedTensors) {
  user::Net net;
  const at::Tensor constant = torch::randn({2});
  auto captured = trace([&](at::Tensor x) { return net(x) + constant * x.max().item<double>(); },
                        torch::randn({3, 4}));
  const auto lines = captured.assumptions();
  EXPECT_THAT(lines, ::testing::Contains(HasSubstr("guard: aten::_local_scalar_dense")));
  EXPECT_THAT(lines, ::testing::Contains(HasSubstr("'parameter_0'")));
  EXPECT_THAT(lines, ::testing::Contains(HasSubstr("constant 'constant_0', float32[2]")));
}

struct Sine : torch::nn::Module {
  at::Tensor forward(const at::Tensor& x) {
    line = __LINE__ + 1;
    at::Tensor y = x.sin();
    return y;
  }
  int line = 0;
};

TEST(Trace, SourceLinesPointAtTheProgram) {
  flashlight::TraceSettings settings;
  settings.source_lines = true;
  Sine sine;
  int line = 0;
  const std::function<at::Tensor(const at::Tensor&)> cosine = [&](const at::Tensor& x) {
    line = __LINE__ + 1;
    at::Tensor y = x.cos();
    return y;
  };
  auto captured = trace(
      settings, [&](at::Tensor x) { return cosine(sine.forward(x)); }, torch::randn({3}));
  std::map<std::string, std::string> sources;
  for (const auto& node : captured.graph().nodes())
    if (!is_input(*node)) sources.emplace(node->op().str(), node->annotation("source"));
  const auto at_line = [](int number) {
    return ::testing::StartsWith("trace_test.cpp:" + std::to_string(number));
  };
  EXPECT_THAT(sources.at("aten::sin"), at_line(sine.line));
  EXPECT_THAT(sources.at("aten::cos"), at_line(line));
}

TEST(Trace, StatisticsCount) {
  user::Net net;
  net->eval();
  const auto statistics = trace(net, torch::randn({3, 4})).statistics();
  EXPECT_EQ(statistics.calls_by_op.at("aten::addmm"), 2u);
  EXPECT_EQ(statistics.parameters, 4u * 8 + 8 + 4 * 8 + 8 * 2 + 2);
}

TEST(Structure, ReadsBack) {
  std::vector<at::Tensor> tensors;
  const std::tuple<user::Batch, std::vector<double>> value{{torch::ones({1}), std::nullopt},
                                                           {0.1, -2}};
  const auto structure = flashlight::flatten(value, tensors);
  EXPECT_EQ(flashlight::parse_structure(str(structure)), structure);
  EXPECT_EQ(tensors.size(), 1u);
}

TEST(Structure, HostileTextIsAnError) {
  for (const std::string text :
       {"", "{", "[1]", R"({"map":[["a"]]})", R"({"tuple":3})", R"({"value":3})"})
    EXPECT_THROW(flashlight::parse_structure(text), composit::UserError) << text;
  EXPECT_THROW(flashlight::parse_structure(std::string(1000, '[') + std::string(1000, ']')),
               composit::UserError);
}

}  // namespace
