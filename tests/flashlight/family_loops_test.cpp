// Programs that repeat steps as often as a size says: examples of other lengths are one family, in
// which the steps are a scan, with the bits of eager at lengths that nobody showed.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <torch/torch.h>

#include <filesystem>

#include "flashlight/compiled_family.h"
#include "flashlight/family.h"

namespace flashlight {
namespace {

using testing::Contains;
using testing::HasSubstr;
using Tensors = std::vector<at::Tensor>;

at::Tensor sequence(int64_t batch, int64_t time) { return torch::randn({batch, time, 4}); }

const std::vector<std::pair<int64_t, int64_t>> kLengths = {{4, 21}, {2, 7}, {5, 13}};

template <class Program>
auto loop_family(const Program& program) {
  return trace_family(program, example(sequence(2, 16)), example(sequence(3, 23)),
                      example(sequence(5, 6)), example(sequence(4, 12)));
}

// Equal to the last bit, and one loop.
template <class Program>
void expect_bits(const Program& program) {
  torch::NoGradGuard no_grad;
  const auto family = loop_family(program);
  EXPECT_THAT(family.assumptions(), Contains(HasSubstr("loop at ")));
  for (const auto& [batch, time] : kLengths) {
    const at::Tensor x = sequence(batch, time);
    EXPECT_TRUE(torch::equal(family(x), program(x))) << batch << "x" << time;
  }
  const CheckReport report = family.check(sequence(3, 9));
  EXPECT_TRUE(report) << str(report);
}

// States of LSTM cells over time, which the cell makes itself at first.
struct Lstm {
  mutable torch::nn::LSTMCell cell{4, 6};
  mutable torch::nn::Linear last{6, 3};

  at::Tensor operator()(const at::Tensor& x) const {
    torch::optional<std::tuple<at::Tensor, at::Tensor>> state;
    Tensors outputs;
    for (int64_t t = 0; t < x.size(1); ++t) {
      state = cell->forward(x.select(1, t), state);
      outputs.push_back(std::get<0>(*state));
    }
    return last->forward(torch::stack(outputs, 1));
  }
};

// GRU cells forward, whose states are written into memory, and backward.
struct Gru {
  mutable torch::nn::GRUCell there{4, 6}, back{4, 6};

  at::Tensor operator()(const at::Tensor& x) const {
    const int64_t length = x.size(1);
    at::Tensor all = torch::zeros({x.size(0), length, 6});
    at::Tensor h = torch::zeros({x.size(0), 6}), g = h;
    Tensors from_the_end;
    for (int64_t t = 0; t < length; ++t) {
      h = there->forward(x.select(1, t), h);
      all.select(1, t).copy_(h);
    }
    for (int64_t t = length - 1; t >= 0; --t)
      from_the_end.push_back(g = back->forward(x.select(1, t), g));
    return torch::cat({all, torch::stack(from_the_end, 1).flip(1)}, 2);
  }
};

// Euler's method: the derivative is a layer, the steps are those between points in time.
struct Euler {
  mutable torch::nn::Linear layer{4, 4};

  at::Tensor operator()(const at::Tensor& x) const {
    const at::Tensor times = x.abs().sum({0, 2}).cumsum(0);
    at::Tensor y = x.mean(1);
    for (int64_t i = 0; i + 1 < times.size(0); ++i)
      y = y + (times[i + 1] - times[i]) * torch::tanh(layer->forward(y)) * 0.1;
    return y;
  }
};

class Loops : public testing::Test {
 protected:
  struct Seed {
    Seed() { torch::manual_seed(5); }
  } seed_;  // before weights are made
};

TEST_F(Loops, Lstm) { expect_bits(Lstm()); }
TEST_F(Loops, Gru) { expect_bits(Gru()); }
TEST_F(Loops, Euler) { expect_bits(Euler()); }

TEST_F(Loops, SavedAndLoaded) {
  torch::NoGradGuard no_grad;
  const Lstm program;
  const auto folder = std::filesystem::path(testing::TempDir()) / "family_with_loops";
  loop_family(program).save(folder);
  const auto loaded = load_family(folder);
  for (const auto& [batch, time] : kLengths) {
    const at::Tensor x = sequence(batch, time);
    EXPECT_TRUE(torch::equal(loaded(x).at(0), program(x))) << batch << "x" << time;
  }
}

TEST_F(Loops, BothBackends) {
  torch::NoGradGuard no_grad;
  const Lstm program;
  const auto family = loop_family(program);
  for (const CompileSettings& settings :
       {CompileSettings{.backend = Cpp{}}, CompileSettings{.backend = Mosaic{}}}) {
    const auto fast = compile(family, settings);
    for (const auto& [batch, time] : kLengths) {
      const at::Tensor x = sequence(batch, time);
      EXPECT_TRUE(torch::allclose(fast(x), program(x), 1e-5, 1e-6)) << batch << "x" << time;
    }
  }
}

TEST_F(Loops, GradientsAreAutograds) {
  const Lstm program;
  const auto compiled = compile(loop_family(program), {.backend = Mosaic{}});
  for (const auto& [batch, time] : kLengths) {
    const at::Tensor x = sequence(batch, time);
    const Tensors weights = program.cell->parameters();
    const Tensors expected = torch::autograd::grad({program(x).square().sum()}, weights);
    const Tensors received = torch::autograd::grad({compiled(x).square().sum()}, weights);
    for (size_t i = 0; i < weights.size(); ++i)
      EXPECT_TRUE(torch::allclose(received[i], expected[i], 1e-4, 1e-5));
  }
}

}  // namespace
}  // namespace flashlight
