// Writes, views and shared memory: what was hard, one program each.
#include <ATen/ATen.h>
#include <gtest/gtest.h>

#include "tests/tracer/capture_helpers.h"
#include "tracer/convert.h"

namespace flashlight::testing {
namespace {

at::Tensor values(c10::IntArrayRef sizes, at::ScalarType dtype = at::kFloat) {
  return at::arange(c10::multiply_integers(sizes), at::kFloat).reshape(sizes).add(0.25).to(dtype);
}

TEST(Memory, one_tensor_twice_in_a_list_is_written_twice) {
  expect_replays(
      [](Tensors& in) -> Tensors {
        at::Tensor x = in[0].clone(), v = x.select(0, 0);
        at::_foreach_add_({x, x}, 1);
        at::_foreach_mul_(at::TensorList({x, v}), 2);
        return {x, v};
      },
      {values({2, 3})});
}

TEST(Memory, a_written_tensor_is_read_through_another_view) {
  expect_replays(
      [](Tensors& in) -> Tensors {
        at::Tensor x =
            in[0].slice(1, 0, 6, 2);  // LibTorch cannot tell whether it overlaps its rows
        x.add_(x[0]);
        x.addcmul_(x.select(1, 1).unsqueeze(1), x);
        return {x};
      },
      {values({3, 6})});
}

// On some processors MKL adds in another order where memory is aligned otherwise.
TEST(Memory, a_sum_over_memory_that_was_written_where_it_lies) {
  for (int64_t offset = 0; offset < 8; ++offset)
    for (uint64_t seed = 0; seed < 5; ++seed) {
      const at::Tensor x = at::zeros({16}, at::kDouble).slice(0, offset, offset + 3);
      expect_replays(
          [](Tensors& in) -> Tensors {
            in[0].mul_(1.1);
            return {in[0].dot(in[0])};
          },
          {x}, random_like({x}, seed));
    }
}

TEST(Memory, elements_that_lie_on_each_other) {
  expect_replays(
      [](Tensors& in) -> Tensors {
        at::Tensor windows = in[0].unfold(0, 2, 1);
        windows.masked_fill_(in[1], 5.0);
        return {windows, in[0] + 1};
      },
      {values({4}), at::ones({2}, at::kBool)});
}

TEST(Memory, as_strided_reads_the_whole_storage) {
  expect_replays(
      [](Tensors& in) -> Tensors {
        at::Tensor x = in[0].clone(), row = x[2];
        at::Tensor all = row.as_strided({2, 4}, {4, 1}, 0);
        all.mul_(3);
        return {x, row.as_strided_scatter(at::zeros({2}), {2}, {1}, 1), all};
      },
      {values({3, 4})});
}

TEST(Memory, complex_numbers_as_pairs) {
  expect_replays(
      [](Tensors& in) -> Tensors {
        at::Tensor z = in[0].clone(), pairs = at::view_as_real(z);
        pairs.select(-1, 1).mul_(2);
        at::Tensor part = z.slice(1, 0, 3, 2);
        part.mul_(part[1]);
        z.conj().add_(1);
        at::imag(z).neg_();
        return {z, pairs, z.conj(), at::_neg_view(pairs)};
      },
      {values({3, 3}, at::kComplexFloat)});
}

TEST(Memory, a_write_through_a_lazy_negation_keeps_the_sign_of_zero) {
  expect_replays(
      [](Tensors& in) -> Tensors {
        at::Tensor x = in[0].clone();
        at::_neg_view(x).mul_(0);
        return {x};
      },
      {values({4}) - 2});
}

TEST(Memory, bits_read_as_another_type) {
  expect_replays(
      [](Tensors& in) -> Tensors {
        at::Tensor x = in[0].clone(), bits = x.view(at::kInt);
        bits.bitwise_and_(0x7fffffff);
        x.view(at::kShort).select(1, 0).zero_();
        return {x, bits};
      },
      {values({3, 4}) - 5});
}

// A gradient that is zero everywhere.
TEST(Memory, zeros_without_memory) {
  const at::Tensor zeros = at::_efficientzerotensor({2, 3}, at::kFloat);
  ASSERT_TRUE(zeros._is_zerotensor());
  EXPECT_TRUE(at::equal(tracer::to_tensor(tracer::to_array(zeros)), at::zeros({2, 3})));
}

TEST(Memory, resize_and_set_data) {
  expect_replays(
      [](Tensors& in) -> Tensors {
        at::Tensor x = in[0].clone(), old = x.view(-1);
        x.resize_({4, 4});
        x.fill_(2);
        at::Tensor y = in[0].clone(), alias = y.detach();
        y.set_data(x.t());
        y.add_(1);
        at::Tensor z = in[0].clone();
        z.data().mul_(3);
        return {x, old, y, alias, z};
      },
      {values({2, 3})});
}

TEST(Memory, out_arguments_that_grow_and_overlap) {
  expect_replays(
      [](Tensors& in) -> Tensors {
        at::Tensor x = in[0].clone(), row = x[0];
        at::add_out(row, x, 1);  // grows over the other rows
        at::Tensor sum = in[0].clone();
        at::sum_out(sum, sum, at::IntArrayRef{0});
        at::Tensor half = at::empty({0}, at::kDouble);
        at::mul_out(half, in[0], in[0]);
        return {x, row, sum, half};
      },
      {values({3, 4})});
}

TEST(Memory, inputs_and_parameters_are_written_back) {
  expect_replays(
      [](Tensors& in) -> Tensors {
        in[0].select(1, 0).add_(in[1]);
        in[1].t_().mul_(2);
        return {in[0] * 2, in[0].select(0, 0)};
      },
      {values({3, 3}), values({3})});
}

TEST(Memory, inputs_that_share_memory) {
  const at::Tensor x = values({3, 4}), y = values({3, 4}) * 2;
  const auto program = [](Tensors& in) -> Tensors {
    in[1].mul_(2);
    return {in[0] + in[1].t(), in[1]};
  };
  const Captured captured = expect_replays(program, {x, x.t()}, {y, y.t()});
  Tensors apart = {values({3, 4}), values({3, 4}).t()};
  const std::string message = user_error([&] { captured.replay(apart); });
  EXPECT_NE(message.find(
                "inputs '0' and '1' lay in the same memory when they were captured, 0 bytes apart"),
            std::string::npos)
      << message;
  EXPECT_EQ(difference(apart[1], values({3, 4}).t()), "");
}

TEST(Memory, inputs_that_overlap_lie_elsewhere_in_their_storage) {
  const auto at_place = [](const at::Tensor& memory, int64_t first) -> Tensors {
    return {memory.slice(0, first, first + 8), memory.slice(0, first + 6, first + 10)};
  };
  const auto program = [](Tensors& in) -> Tensors {
    in[0].add_(1);
    const at::Tensor z = in[1] * 2;
    in[1].mul_(3);
    return {z, in[0] * 1};
  };
  const Captured captured =
      expect_replays(program, at_place(values({20}), 2), at_place(values({24}) * 2, 4));
  ASSERT_EQ(captured.count("composit::storage"), 1u);
  const at::Tensor memory = values({20});  // 8 bytes too few at the end
  const std::string message = user_error([&] { captured.replay(at_place(memory, 4)); });
  EXPECT_NE(
      message.find("input '0': when it was captured, its storage had 8 bytes before its first "
                   "element and 72 from there on"),
      std::string::npos)
      << message;
  EXPECT_EQ(difference(memory, values({20})), "");
}

TEST(Memory, a_written_input_must_not_overlap_another_one_later) {
  const auto program = [](Tensors& in) -> Tensors { return {in[0].add_(1) + in[1]}; };
  const Captured captured = expect_replays(program, {values({4}), values({4})});
  const at::Tensor both = values({4});
  EXPECT_NE(user_error([&] {
              captured.replay({both, both});
            }).find("overlap in memory"),
            std::string::npos);
  EXPECT_EQ(difference(both, values({4})), "");
  // Nobody writes: they may.
  const Captured pure =
      expect_replays([](Tensors& in) -> Tensors { return {in[0] + in[1]}; }, {values({4}), both});
  EXPECT_EQ(difference(pure.replay({both, both}), {both + both}), "");
}

TEST(Memory, two_tensors_over_one_buffer_of_the_host) {
  float buffer[6] = {0, 1, 2, 3, 4, 5};
  const auto program = [&](Tensors& in) -> Tensors {
    at::Tensor all = at::from_blob(buffer, {6}), tail = at::from_blob(buffer + 2, {4});
    all.mul_(1);
    tail.add_(in[0]);
    return {all * 1, tail.sum()};
  };
  // The buffer is state: a mutated buffer of the capture.
  const Captured captured = capture(program, {values({4})});
  std::iota(buffer, buffer + 6, 0.f);
  const Tensors received = captured.replay({at::ones({4})});
  const std::vector<float> after(buffer, buffer + 6);
  EXPECT_EQ(after, (std::vector<float>{0, 1, 3, 4, 5, 6}));
  std::iota(buffer, buffer + 6, 0.f);
  Tensors in = {at::ones({4})};
  EXPECT_EQ(difference(received, program(in)), "");
}

TEST(Memory, freed_memory_is_used_again) {
  expect_replays(
      [](Tensors& in) -> Tensors {
        at::Tensor x = in[0];
        for (int i = 0; i < 2000; ++i) x = (x * 1.01).sub_(x.select(0, i % 3).clone());
        return {x};
      },
      {values({3, 3})});
}

TEST(Memory, a_cache_is_filled_in_a_loop) {
  const auto program = [](Tensors& in) -> Tensors {
    at::Tensor cache = in[0], token = in[1];
    Tensors results;
    for (int64_t i = 0; i < 4; ++i) {
      cache.select(0, i).copy_(token);
      token = at::softmax(at::matmul(cache.slice(0, 0, i + 1), token), 0).sum() + token;
      results.push_back(token);
    }
    return results;
  };
  const Captured captured = expect_replays(program, {at::zeros({4, 3}), values({3})});
  EXPECT_EQ(captured.count("aten::select_scatter"), 4u);
  EXPECT_EQ(captured.count("composit::storage_scatter"), 0u);
  expect_replays(program, {at::zeros({4, 3}), values({3})}, {.options = {.chains = false}});
}

TEST(Memory, tied_weights_are_one_input) {
  at::Tensor weight = values({3, 3}).requires_grad_();
  const auto program = [&](Tensors& in) -> Tensors {
    return {at::linear(at::linear(in[0], weight), weight.t())};
  };
  const Captured captured =
      capture(program, {values({2, 3})}, {}, {{"in.weight", weight}, {"out.weight", weight}});
  ASSERT_EQ(captured.published.inputs.size(), 2u);
  const auto& parameter = captured.published.inputs[1];
  EXPECT_EQ(parameter.name, "in.weight");
  EXPECT_EQ(parameter.tied, std::vector<std::string>{"out.weight"});
  Tensors fresh = {values({2, 3}) * 3};
  const at::NoGradGuard no_grad;
  EXPECT_EQ(difference(captured.replay(fresh), program(fresh)), "");
}

TEST(Memory, a_storage_nobody_writes_through_a_view_costs_nothing) {
  const Captured captured = expect_replays(
      [](Tensors& in) -> Tensors {
        return {in[0].t().select(0, 1).unsqueeze(0) + in[0].view(-1).slice(0, 0, 3)};
      },
      {values({3, 3})});
  for (const char* op : {"aten::as_strided", "composit::storage", "composit::storage_view"})
    EXPECT_EQ(captured.count(op), 0u) << op;
}

TEST(Memory, empty_and_scalar_tensors) {
  expect_replays(
      [](Tensors& in) -> Tensors {
        at::Tensor none = in[0].slice(0, 1, 1), one = in[0].sum();
        none.add_(1);
        one.mul_(2);
        return {none, one, at::cat({none, in[0]}), at::stack({one, one}), none.sum(), none.t()};
      },
      {values({2, 3})});
}

TEST(Memory, layouts) {
  expect_replays(
      [](Tensors& in) -> Tensors {
        at::Tensor x = in[0].contiguous(at::MemoryFormat::ChannelsLast);
        return {at::relu(x), x.sum({2}), at::gelu(x.permute({0, 3, 1, 2})), x.add_(in[0]),
                at::empty_like(x).normal_()};
      },
      {values({2, 3, 4, 4})});
}

TEST(Memory, a_step_that_throws_halfway_and_is_caught) {
  expect_replays(
      [](Tensors& in) -> Tensors {
        at::Tensor x = in[0].clone();
        try {
          x.index_put_({at::tensor({0, 9})}, at::ones({2}));
        } catch (const c10::Error&) {
        }
        at::Tensor leaf = in[0].clone().requires_grad_();
        try {
          leaf.add_(1);  // autograd refuses before anything happens
        } catch (const c10::Error&) {
        }
        return {x, leaf.detach() * 2};
      },
      {values({4})});
}

TEST(Memory, what_autograd_keeps_of_an_overwritten_tensor) {
  expect_replays(
      [](Tensors& in) -> Tensors {
        at::Tensor x = in[0].detach().requires_grad_(), y = x * 2;
        y.mul_(in[1]);
        y.div_(x);
        y.select(0, 1).pow_(3);
        y.sum().backward();
        return {x.grad()};
      },
      {values({3}), values({3})});
}

TEST(Memory, an_input_keeps_its_type) {
  EXPECT_NE(user_error([] {
              capture([](Tensors& in) -> Tensors { return {in[0].resize_({5})}; }, {values({2})});
            }).find("input '0' was float32[2] and is float32[5] at the end of the scope"),
            std::string::npos);
}

TEST(Memory, numbers_of_the_program_become_constants) {
  const Captured captured = expect_replays(
      [](Tensors& in) -> Tensors {
        at::Tensor x = in[0].clone();
        x.index_put_({at::indexing::TensorIndex(1)}, 5.0);
        x[0] = 3;
        return {x * at::tensor({1.0f, 2.0f, 4.0f})};
      },
      {values({3})});
  EXPECT_LE(captured.published.constants.size(), 3u);
}

}  // namespace
}  // namespace flashlight::testing
