// Threads that no scope records: what they do to the scope's values is refused, all else is theirs.
#include <ATen/ATen.h>
#include <ATen/Parallel.h>
#include <c10/util/ParallelGuard.h>
#include <gtest/gtest.h>
#include <torch/csrc/autograd/autograd.h>

#include <atomic>
#include <future>
#include <thread>

#include "tests/tracer/capture_helpers.h"

namespace flashlight::testing {
namespace {

void on_a_thread(const std::function<void()>& work) { std::thread(work).join(); }

void expect_refused(const Function& program, const Tensors& inputs, const std::string& op,
                    const std::string& what) {
  const std::string error = user_error([&] { capture(program, inputs); });
  EXPECT_TRUE(contains(error, op)) << error;
  EXPECT_TRUE(contains(error, what)) << error;
  EXPECT_TRUE(contains(error, " on thread ")) << error;
  EXPECT_TRUE(contains(error, "do this work on the thread that is captured")) << error;
}

// ---- what is refused ----------------------------------------------------------------------------

TEST(ForeignThreads, make_no_operand) {
  expect_refused(
      [](Tensors& in) -> Tensors {
        at::Tensor y;
        on_a_thread([&] { y = in[0] + 1; });
        return {y * 2};
      },
      {ones()}, "was made by aten::add", "aten::mul.Scalar: an argument of sizes [3]");
}

TEST(ForeignThreads, make_no_result) {
  expect_refused(
      [](Tensors& in) -> Tensors {
        return {in[0] * 2, std::async(std::launch::async, [&] { return in[0].exp(); }).get()};
      },
      {ones()}, "was made by aten::exp", "the end of the scope");
}

TEST(ForeignThreads, make_nothing_of_data_of_their_own) {
  expect_refused(
      [](Tensors& in) -> Tensors {
        at::Tensor noise;
        on_a_thread([&] { noise = at::rand({3}); });
        return {in[0] + noise};
      },
      {ones()}, "was made by aten::rand", "aten::add.Tensor");
}

TEST(ForeignThreads, make_no_view_of_what_they_made) {
  expect_refused(
      [](Tensors& in) -> Tensors {
        at::Tensor y;
        on_a_thread([&] { y = in[0].clone(); });
        return {in[0] + y.view({3, 1})};
      },
      {ones()}, "was made by aten::clone", "aten::view");
}

TEST(ForeignThreads, make_no_sparse_operand) {
  expect_refused(
      [](Tensors& in) -> Tensors {
        at::Tensor y;
        on_a_thread([&] { y = at::eye(3).to_sparse(); });
        return {at::_sparse_mm(y, in[0].view({3, 1}))};
      },
      {ones()}, "was made by aten::", "an argument of sizes [3, 3]");
}

TEST(ForeignThreads, write_no_argument) {
  expect_refused(
      [](Tensors& in) -> Tensors {
        on_a_thread([&] { in[0].add_(1); });
        return {in[0] * 2};
      },
      {ones()}, "aten::add_", "writes a tensor that the scope uses");
}

TEST(ForeignThreads, write_no_parameter) {
  const at::Tensor weight = ones().requires_grad_();
  expect_refused(
      [&](Tensors& in) -> Tensors {
        at::Tensor y = in[0] * weight;
        on_a_thread([&] {
          const at::NoGradGuard no_grad;
          weight.detach().zero_();
        });
        return {y};
      },
      {ones()}, "aten::zero_", "writes a tensor that the scope uses");
}

TEST(ForeignThreads, write_nothing_that_the_scope_reads_later) {
  const at::Tensor buffer = at::zeros({3});
  expect_refused(
      [&](Tensors& in) -> Tensors {
        on_a_thread([&] { buffer.copy_(in[0]); });
        return {in[0] * buffer};
      },
      {ones()}, "was made by aten::copy_", "aten::mul.Tensor");
}

TEST(ForeignThreads, write_no_value_of_the_scope) {
  expect_refused(
      [](Tensors& in) -> Tensors {
        at::Tensor y = in[0] + 1;
        on_a_thread([&] { at::mul_out(y, y, y); });
        return {y};
      },
      {ones()}, "aten::mul.out", "writes a value of the scope");
}

TEST(ForeignThreads, read_no_value_of_the_scope) {
  expect_refused(
      [](Tensors& in) -> Tensors {
        at::Tensor y = in[0] + 1;
        double sum = 0;
        on_a_thread([&] { sum = y.sum().item<double>(); });
        return {in[0] * sum};
      },
      {ones()}, "aten::sum", "reads a value of the scope");
}

TEST(ForeignThreads, run_no_backward_of_the_scope) {
  const at::Tensor weight = ones().requires_grad_();
  expect_refused(
      [&](Tensors& in) -> Tensors {
        const at::Tensor loss = (in[0] * weight).exp().sum();
        at::Tensor grad;
        on_a_thread([&] { grad = torch::autograd::grad({loss}, {weight})[0]; });
        return {grad};
      },
      {ones()}, "aten::", "a value of the scope");
}

// The work of at::parallel_for in a loop that the program began, and no kernel.
TEST(ForeignThreads, do_no_part_of_a_parallel_loop) {
  expect_refused(
      [](Tensors& in) -> Tensors {
        at::Tensor part;
        on_a_thread([&] {
          const c10::ParallelGuard in_loop(true);
          part = in[0] * 2;
        });
        return {in[0] + part};
      },
      {ones()}, "was made by aten::mul", "aten::add.Tensor");
}

// ---- what is not
// ---------------------------------------------------------------------------------

TEST(ForeignThreads, may_use_the_same_weights) {
  const at::Tensor weight = at::randn({8, 8}), x = at::randn({8, 8});
  std::atomic<bool> stop = false;
  std::atomic<int> rounds = 0;
  std::thread server([&] {
    const at::NoGradGuard no_grad;
    while (!stop) {
      at::Tensor y = at::randn({8, 8});
      for (int i = 0; i < 4; ++i) y = at::relu(y.mm(weight)).add_(1);
      ++rounds;
    }
  });
  while (rounds == 0) std::this_thread::yield();
  for (int i = 0; i < 20; ++i) {
    const int before = rounds;
    expect_replays(
        [&](Tensors& in) -> Tensors {
          at::Tensor y = in[0].mm(weight);
          while (rounds == before) std::this_thread::yield();
          return {y.mm(weight).relu_()};
        },
        {x});
  }
  stop = true;
  server.join();
}

TEST(ForeignThreads, may_capture_and_replay_at_the_same_time) {
  const at::Tensor weight = at::randn({4, 4});
  std::vector<std::future<void>> threads;
  for (int t = 0; t < 3; ++t)
    threads.push_back(std::async(std::launch::async, [&] {
      for (int i = 0; i < 30; ++i)
        expect_replays(
            [&](Tensors& in) -> Tensors {
              at::Tensor y = in[0].mm(weight).relu();
              y.select(0, 1).add_(1);
              return {y.mm(weight)};
            },
            {at::randn({4, 4})});
    }));
  for (auto& thread : threads) thread.get();
}

TEST(ForeignThreads, that_record_for_a_scope_of_their_own_are_foreign_to_others) {
  expect_refused(
      [](Tensors& in) -> Tensors {
        at::Tensor y;
        on_a_thread([&] {
          TraceScope scope;
          y = in[0] + 1;
          scope.finish({});
        });
        return {y * 2};
      },
      {ones()}, "was made by aten::add", "aten::mul.Scalar");
}

TEST(ForeignThreads, of_a_kernel_belong_to_it) {
  if (at::get_num_threads() < 2) at::set_num_threads(2);
  const at::NoGradGuard no_grad;
  const at::Tensor weight = at::randn({4, 3, 3, 3});
  expect_replays(
      [&](Tensors& in) -> Tensors {
        const at::Tensor x = in[0] + 1;
        return {at::thnn_conv2d(x, weight, {3, 3}, {}, {1, 1}, {1, 1}),
                at::reflection_pad2d(x, {1, 1, 1, 1}).cumsum(0)};
      },
      {at::randn({8, 3, 12, 12})});
}

TEST(ForeignThreads, of_the_past_made_constants) {
  at::Tensor made;
  on_a_thread([&] { made = at::full({3}, 5.f); });
  const Captured captured =
      capture([&](Tensors& in) -> Tensors { return {in[0] * made}; }, {ones()});
  EXPECT_EQ(difference(captured.replay({ones()}), {at::full({3}, 5.f)}), "");
}

TEST(ForeignThreads, may_make_what_an_excerpt_is_given) {
  const TraceOptions excerpt{.excerpt = true};
  at::Tensor batch;
  const Function program = [&](Tensors& in) -> Tensors {
    on_a_thread([&] { batch = at::full({3}, 2.f) + 1; });
    return {in[0] * batch};
  };
  const Captured captured = capture(program, {ones()}, excerpt);
  EXPECT_EQ(captured.published.inputs.size(), 2u);
  const Function reads = [&](Tensors& in) -> Tensors {
    const at::Tensor y = in[0] + 1;
    on_a_thread([&] { batch = in[0] + 1; });
    return {y * batch};
  };
  EXPECT_TRUE(
      contains(user_error([&] { capture(reads, {ones()}, excerpt); }), "was made by aten::add"));
}

}  // namespace
}  // namespace flashlight::testing
