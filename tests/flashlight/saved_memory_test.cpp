// Inputs that share memory, saved and loaded: views of one another, written or read, and tied.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <torch/torch.h>

#include "composit/io/saved_capture.h"
#include "flashlight/trace.h"
#include "tests/io/temporary_folder.h"

namespace flashlight {
namespace {

using composit::InputKind;
using Program = std::function<std::vector<at::Tensor>(const at::Tensor&)>;

// Captures `program`, saves and loads it, and calls the loaded capture beside the program: the same
// results and buffers, call by call.
void expect_like_the_program(const Program& program, const std::vector<NamedTensor>& named) {
  std::vector<at::Tensor> before;
  for (const NamedTensor& one : named) before.push_back(one.tensor.detach().clone());
  TraceSettings settings;
  settings.named = named;
  torch::manual_seed(1);
  const auto captured = trace(settings, program, torch::randn({2, 4}));
  const torch::NoGradGuard no_grad;
  for (size_t i = 0; i < named.size(); ++i)
    if (!named[i].tensor.equal(before[i])) named[i].tensor.copy_(before[i]);
  const composit::test::TemporaryFolder folder;
  captured.save(folder / "model");
  const auto loaded = load<std::vector<at::Tensor>(at::Tensor)>(folder / "model");
  for (int call = 0; call < 3; ++call) {
    SCOPED_TRACE(call);
    const at::Tensor x = torch::randn({2, 4});
    const std::vector<at::Tensor> actual = loaded(x), expected = program(x);
    ASSERT_EQ(actual.size(), expected.size());
    for (size_t i = 0; i < actual.size(); ++i) EXPECT_TRUE(at::equal(actual[i], expected[i])) << i;
    for (const NamedTensor& one : loaded.state())
      for (const NamedTensor& original : named)
        if (original.name == one.name)
          EXPECT_TRUE(at::equal(one.tensor, original.tensor)) << one.name;
  }
}

std::vector<NamedTensor> buffers(const std::map<std::string, at::Tensor>& tensors) {
  std::vector<NamedTensor> named;
  for (const auto& [name, tensor] : tensors) named.push_back({name, tensor, InputKind::buffer});
  return named;
}

TEST(SavedMemory, ViewsAreViewsAgain) {
  const at::Tensor upper = torch::ones({4, 4}).triu(1), lower = upper.t(), row = upper.select(0, 1);
  const at::Tensor wide = row.expand({2, 4});
  expect_like_the_program(
      [=](const at::Tensor& x) -> std::vector<at::Tensor> {
        return {x.matmul(upper), x.matmul(lower), x * row, x + wide};
      },
      buffers({{"upper", upper}, {"lower", lower}, {"row", row}, {"wide", wide}}));
}

TEST(SavedMemory, AWriteToOneIsSeenThroughTheOther) {
  const at::Tensor upper = torch::randn({4, 4}), lower = upper.t(), row = upper.select(0, 1);
  expect_like_the_program(
      [=](const at::Tensor& x) -> std::vector<at::Tensor> {
        upper.add_(1);
        row.mul_(2);
        return {x.matmul(lower), x * row};
      },
      buffers({{"upper", upper}, {"lower", lower}, {"row", row}}));
}

TEST(SavedMemory, ViewsBeforeTheFirstOneAndOfOtherTypes) {
  const at::Tensor memory = torch::randn({24});  // no view shows the last five, nobody reads them
  const at::Tensor behind = memory.slice(0, 11, 19), before = memory.slice(0, 0, 8);
  const at::Tensor complex = torch::view_as_complex(memory.slice(0, 2, 10).view({4, 2}));
  const at::Tensor row = memory.slice(0, 4, 8);
  expect_like_the_program(
      [=](const at::Tensor& x) -> std::vector<at::Tensor> {
        behind.add_(1);
        const at::Tensor y = x * row + before.view({2, 4});
        before.mul_(0.5);
        return {y, x * at::view_as_real(complex).sum(-1), x + behind.view({2, 4})};
      },
      buffers({{"a_behind", behind}, {"before", before}, {"complex", complex}, {"row", row}}));
}

TEST(SavedMemory, WhatNoBufferShowsIsNotSavedInSilence) {
  const at::Tensor memory = torch::randn({12});
  const at::Tensor row = memory.slice(0, 4, 8);
  TraceSettings settings;
  settings.named = buffers({{"row", row}});
  const auto captured = trace(
      settings,
      [=](const at::Tensor& x) {
        row.add_(1);
        return x * row.as_strided({4}, {2}, 3);
      },
      torch::randn({2, 4}));
  const composit::test::TemporaryFolder folder;
  try {
    captured.save(folder / "model");
    ADD_FAILURE() << "it was saved";
  } catch (const composit::UserError& error) {
    EXPECT_THAT(error.what(), testing::HasSubstr("uses memory around 'row' that no parameter or "
                                                 "buffer shows"));
  }
  EXPECT_FALSE(std::filesystem::exists(folder / "model"));
}

// Parameters in one flat buffer, as some optimizers keep them.
TEST(SavedMemory, ATrainingStepOverAFlatBuffer) {
  const at::Tensor flat = torch::randn({20});
  const at::Tensor weight = flat.slice(0, 0, 16).view({4, 4}).detach().requires_grad_(true);
  const at::Tensor bias = flat.slice(0, 16, 20).detach().requires_grad_(true);
  expect_like_the_program(
      [=](const at::Tensor& x) -> std::vector<at::Tensor> {
        const at::AutoGradMode with_grad(true);
        const at::Tensor loss = (x.matmul(weight) + bias).pow(2).mean();
        const auto gradients = torch::autograd::grad({loss}, {weight, bias});
        const torch::NoGradGuard no_grad;
        flat.sub_(0.1 * at::cat({gradients[0].flatten(), gradients[1]}));
        return {loss.detach(), flat.norm()};
      },
      {{"flat", flat, InputKind::buffer}, {"weight", weight}, {"bias", bias}});
}

TEST(SavedMemory, ExampleArgumentsShareTheirs) {
  const at::Tensor x = torch::randn({3, 3});
  const auto captured =
      trace([](at::Tensor a, at::Tensor b) { return a.add_(1).matmul(b); }, x, x.t());
  const composit::test::TemporaryFolder folder;
  captured.save(folder / "model");
  const auto loaded = load(folder / "model");
  const auto results = loaded.replay(loaded.example_arguments());
  EXPECT_TRUE(at::equal(results[0], loaded.example_results()[0]));
}

TEST(SavedMemory, TiedNamesAreKept) {
  torch::nn::Embedding embedding(7, 4);
  torch::nn::Linear head(torch::nn::LinearOptions(4, 7).bias(false));
  head->weight = embedding->weight;
  const auto run = [&](at::Tensor ids) {
    return head->forward(embedding->forward(ids).tanh()).pow(2).mean();
  };
  TraceSettings settings;
  settings.named = {{"embedding.weight", embedding->weight}, {"head.weight", head->weight}};
  const at::Tensor tokens = torch::tensor({1, 5, 1, 3});
  const auto captured = trace(settings, run, tokens);
  const composit::test::TemporaryFolder folder;
  captured.save(folder / "model");
  const auto loaded = load(folder / "model");
  EXPECT_TRUE(at::equal(loaded(tokens)[0], run(tokens)));
  const auto by_name = [&](const CaptureBase& capture, const char* name) {
    return capture.grad(0, {name})({tokens}).gradients[0];
  };
  for (const char* name : {"embedding.weight", "head.weight"})
    EXPECT_TRUE(at::equal(by_name(loaded, name), by_name(captured, name))) << name;
}

}  // namespace
}  // namespace flashlight
