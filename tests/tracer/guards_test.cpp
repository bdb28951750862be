// Assumptions of a capture: each replay checks them, and writes nothing when one does not hold.
#include <ATen/ATen.h>
#include <gtest/gtest.h>

#include "tests/tracer/capture_helpers.h"

namespace flashlight::testing {
namespace {

// Captures on `good`, replays on `bad`: the guard of `op` fires, `bad` is as it was.
void expect_guard(const Function& function, const Tensors& good, const Tensors& bad,
                  const std::string& op) {
  const Captured captured = expect_replays(function, good, copies(good));
  const Tensors received = copies(bad);
  const std::string message = user_error([&] { captured.replay(received); });
  EXPECT_NE(message.find("[replay] guard: "), std::string::npos) << message;
  EXPECT_NE(message.find(op), std::string::npos) << message;
  EXPECT_EQ(difference(received, bad), "") << "an input was written";
}

const at::Tensor kOnes = at::ones({3});

TEST(Guard, item) {
  expect_guard([](Tensors& in) -> Tensors { return {in[0].add_(in[0].sum().item<double>())}; },
               {kOnes}, {kOnes * 2},
               "aten::_local_scalar_dense gave 3 when it was captured and gives 6. now");
}
TEST(Guard, if_on_a_tensor) {
  expect_guard(
      [](Tensors& in) -> Tensors { return {in[0].add_(in[0].sum().gt(2).item<bool>() ? 1 : 2)}; },
      {kOnes}, {kOnes * -1}, "aten::_local_scalar_dense");
}
TEST(Guard, equal_and_allclose) {
  expect_guard([](Tensors& in) -> Tensors { return {in[0].add_(at::equal(in[0], in[1]) ? 1 : 2)}; },
               {kOnes, kOnes * 1}, {kOnes, kOnes * 2}, "aten::equal");
  expect_guard(
      [](Tensors& in) -> Tensors { return {in[0].add_(at::allclose(in[0], in[1]) ? 1 : 2)}; },
      {kOnes, kOnes * 1}, {kOnes, kOnes * 2}, "aten::allclose");
}
TEST(Guard, index_by_a_tensor_number) {
  expect_guard(
      [](Tensors& in) -> Tensors { return {in[0].add_(1).index({in[1].item<int64_t>()})}; },
      {kOnes, at::tensor(1)}, {kOnes, at::tensor(2)}, "aten::_local_scalar_dense");
}
TEST(Guard, slice_bounds_from_a_tensor) {
  expect_guard(
      [](Tensors& in) -> Tensors { return {at::tensor_split(in[0].add_(1), in[1], 0)[0]}; },
      {kOnes, at::tensor({1}, at::kLong)}, {kOnes, at::tensor({2}, at::kLong)}, "");
}
TEST(Guard, not_a_number_equals_itself) {
  const at::Tensor nan = at::full({3}, std::numeric_limits<float>::quiet_NaN());
  expect_replays([](Tensors& in) -> Tensors { return {in[0] * in[0].sum().item<double>()}; }, {nan},
                 {nan});
}
TEST(Guard, sizes_that_depend_on_values) {
  const at::Tensor two = at::tensor({1, 0, 2}), one = at::tensor({0, 0, 2});
  expect_guard(
      [](Tensors& in) -> Tensors {
        return {in[0].nonzero(), in[0].add_(1)};
      },
      {two}, {one}, "aten::nonzero");
  expect_guard(
      [](Tensors& in) -> Tensors {
        return {in[0].masked_select(in[0].gt(0)), in[0].add_(1)};
      },
      {two}, {one}, "aten::masked_select");
  expect_guard(
      [](Tensors& in) -> Tensors {
        return {std::get<0>(at::_unique(in[0])), in[0].add_(1)};
      },
      {two}, {one}, "aten::_unique");
  expect_guard(
      [](Tensors& in) -> Tensors {
        return {in[0].index({in[0].gt(0)}), in[0].add_(1)};
      },
      {two}, {one}, "aten::index.Tensor");
  expect_guard(
      [](Tensors& in) -> Tensors {
        return {at::repeat_interleave(in[0]), in[0].add_(1)};
      },
      {two}, {one}, "aten::repeat_interleave");
  expect_guard(
      [](Tensors& in) -> Tensors {
        return {at::where(in[0])[0], in[0].add_(1)};
      },
      {two}, {one}, "aten::nonzero");
}
TEST(Guard, a_size_is_used_and_nothing_else) {
  expect_guard([](Tensors& in) -> Tensors { return {in[0].add_(in[0].nonzero().size(0))}; },
               {at::tensor({1, 0, 2})}, {at::tensor({0, 0, 2})}, "aten::nonzero");
}
TEST(Guard, a_call_that_threw) {
  expect_guard(
      [](Tensors& in) -> Tensors {
        try {
          in[1].clone().index_fill_(0, in[0], 1);
          return {in[1].add_(1)};
        } catch (const c10::Error&) {
          return {in[1].add_(2)};
        }
      },
      {at::tensor({7}, at::kLong), kOnes}, {at::tensor({1}, at::kLong), kOnes},
      "aten::index_fill_.int_Scalar threw when it was captured");
}
TEST(Guard, an_input_of_another_type) {
  const Captured captured =
      expect_replays([](Tensors& in) -> Tensors { return {in[0].add_(1)}; }, {kOnes});
  EXPECT_EQ(user_error([&] { captured.replay({at::ones({4})}); }),
            "[replay] input '0': expected float32 [3] with strides [1] on cpu, received float32 "
            "[4] with strides [1] on "
            "cpu; capture again for these inputs: trace(model, inputs…)");
  EXPECT_NE(user_error([&] { captured.replay({at::ones({3}, at::kDouble)}); }).find("float64"),
            std::string::npos);
}

}  // namespace
}  // namespace flashlight::testing
