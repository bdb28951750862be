// Operators that are not LibTorch's own, and do other things than their schemas say.
#include <ATen/ATen.h>
#include <gtest/gtest.h>
#include <torch/csrc/autograd/autograd.h>
#include <torch/library.h>

#include "tests/tracer/capture_helpers.h"

namespace flashlight::testing {
namespace {

int calls = 0;

at::Tensor count_and_add(const at::Tensor& x) {
  ++calls;
  return x + 1;
}
// Writes what its schema does not mark.
at::Tensor accumulate(const at::Tensor& x, const at::Tensor& sum) {
  at::Tensor(sum).add_(x);
  return x * 2;
}
void overwrite(const at::Tensor& to, const at::Tensor& from) {
  auto* data = static_cast<float*>(to.data_ptr());
  const auto* given = static_cast<const float*>(from.const_data_ptr());
  for (int64_t i = 0; i < to.numel(); ++i) data[i] = given[i] + 1;
}
void overwrite_all(at::TensorList to, const at::Tensor& from) {
  for (const at::Tensor& tensor : to) overwrite(tensor, from);
}
void overwrite_last(const at::Tensor& to) {
  static_cast<float*>(to.data_ptr())[to.numel() - 1] += 1;
}
// Returns its argument, or a view of it, unmarked.
at::Tensor itself(const at::Tensor& x) { return x; }
at::Tensor first_row(const at::Tensor& x) { return x.select(0, 0); }
at::Tensor added_to(const at::Tensor& x) { return at::Tensor(x).add_(1); }
void resize(const at::Tensor& x) { x.resize_({7}); }
at::Tensor write_and_throw(const at::Tensor& x) {
  at::Tensor(x).add_(1);
  TORCH_CHECK(false, "thrown by the test");
}
// Without a key of its own.
at::Tensor scale_by_first(const at::Tensor& x) { return x * x.data_ptr<float>()[0]; }
at::Tensor scale_by_sum(const at::Tensor& x) { return x * x.sum().exp(); }
double sum_of(const at::Tensor& x) { return x.sum().item<double>(); }

TORCH_LIBRARY(flashlight_foreign, library) {
  library.def("count_and_add(Tensor x) -> Tensor");
  library.def("accumulate(Tensor x, Tensor sum) -> Tensor");
  library.def("overwrite(Tensor to, Tensor from) -> ()");
  library.def("overwrite_all(Tensor[] to, Tensor from) -> ()");
  library.def("overwrite_last(Tensor to) -> ()");
  library.def("itself(Tensor x) -> Tensor");
  library.def("first_row(Tensor x) -> Tensor");
  library.def("added_to(Tensor x) -> Tensor");
  library.def("resize(Tensor x) -> ()");
  library.def("write_and_throw(Tensor x) -> Tensor");
  library.def("take(Tensor[][] lists) -> Tensor");
  library.def("scale_by_first(Tensor x) -> Tensor", &scale_by_first);
  library.def("scale_by_sum(Tensor x) -> Tensor", &scale_by_sum);
  library.def("sum_of(Tensor x) -> float", &sum_of);
}
TORCH_LIBRARY_IMPL(flashlight_foreign, CPU, library) {
  library.impl("count_and_add", &count_and_add);
  library.impl("accumulate", &accumulate);
  library.impl("overwrite", &overwrite);
  library.impl("overwrite_all", &overwrite_all);
  library.impl("overwrite_last", &overwrite_last);
  library.impl("itself", &itself);
  library.impl("first_row", &first_row);
  library.impl("added_to", &added_to);
  library.impl("resize", &resize);
  library.impl("write_and_throw", &write_and_throw);
}

torch::jit::Stack call(const std::string& name, torch::jit::Stack arguments) {
  c10::Dispatcher::singleton()
      .findSchemaOrThrow(("flashlight_foreign::" + name).c_str(), "")
      .callBoxed(&arguments);
  return arguments;
}
at::Tensor tensor(const std::string& name, torch::jit::Stack arguments) {
  return call(name, std::move(arguments)).at(0).toTensor();
}

// ---- writes -------------------------------------------------------------------------------------

TEST(ForeignOperators, undeclared_writes_are_recorded) {
  const Captured captured = expect_replays(
      [](Tensors& in) -> Tensors {
        const at::Tensor y = tensor("accumulate", {in[0], in[1]});
        return {y, in[1] * 2, tensor("accumulate", {y, in[1]}) + in[1]};
      },
      {at::randn({3}), at::zeros({3})});
  EXPECT_EQ(captured.published.graph.mutations().size(), 1u);
  ASSERT_FALSE(captured.published.remarks.empty());
  EXPECT_TRUE(contains(captured.published.remarks[0], "writes its argument 'sum'"));
}

TEST(ForeignOperators, undeclared_writes_through_pointers_are_recorded) {
  expect_replays(
      [](Tensors& in) -> Tensors {
        const at::Tensor y = at::zeros({3}), before = y * 1;
        call("overwrite", {y, in[0]});
        return {before, y + 1};
      },
      {at::randn({3})});
}

TEST(ForeignOperators, undeclared_writes_into_views_are_recorded) {
  expect_replays(
      [](Tensors& in) -> Tensors {
        const at::Tensor x = in[0].clone();
        call("overwrite", {x.select(0, 1), in[0].select(0, 0).contiguous()});
        call("overwrite", {x.select(0, 0), x.select(0, 1)});
        return {x.sum(0), x};
      },
      {at::randn({2, 3})});
}

TEST(ForeignOperators, undeclared_writes_into_lists_are_recorded) {
  expect_replays(
      [](Tensors& in) -> Tensors {
        const at::Tensor a = at::zeros({3}), b = in[1];
        call("overwrite_all", {std::vector<at::Tensor>{a, b}, in[0]});
        return {a * 2, b * 3};
      },
      {at::randn({3}), at::randn({3})});
}

TEST(ForeignOperators, undeclared_writes_into_large_tensors_are_recorded) {
  expect_replays(
      [](Tensors& in) -> Tensors {
        const at::Tensor x = in[0] * 2;
        call("overwrite_last", {x});
        return {x + 1};
      },
      {at::randn({100000})});
}

TEST(ForeignOperators, an_undeclared_write_before_an_exception_is_replayed) {
  expect_replays(
      [](Tensors& in) -> Tensors {
        const at::Tensor x = in[0] * 2;
        try {
          call("write_and_throw", {x});
        } catch (const c10::Error&) {
        }
        return {x};
      },
      {at::randn({3})});
}

TEST(ForeignOperators, that_resize_in_secret_are_refused) {
  const std::string error = user_error([] {
    capture(
        [](Tensors& in) -> Tensors {
          const at::Tensor x = in[0] * 2;
          call("resize", {x});
          return {x};
        },
        {at::randn({3})});
  });
  EXPECT_TRUE(contains(error, "flashlight_foreign::resize gave its argument 'x'")) << error;
}

TEST(ForeignOperators, whose_tensors_no_operand_stands_for_are_refused) {
  const std::string error = user_error([] {
    capture(
        [](Tensors& in) -> Tensors {
          const std::vector<std::vector<at::Tensor>> lists = {{in[0]}};
          return {tensor("take", {lists})};
        },
        {at::randn({3})});
  });
  EXPECT_TRUE(contains(error, "flashlight_foreign::take: its argument 'lists' is of type"))
      << error;
}

// ---- aliases ------------------------------------------------------------------------------------

TEST(ForeignOperators, undeclared_aliases_are_found) {
  expect_replays(
      [](Tensors& in) -> Tensors {
        const at::Tensor x = in[0] * 2, y = tensor("itself", {x}), row = tensor("first_row", {x});
        y.add_(1);
        row.mul_(3);
        const at::Tensor z = tensor("added_to", {x});
        z.select(0, 1).zero_();
        return {x, y, row, z, tensor("itself", {in[0]})};
      },
      {at::randn({2, 3})});
}

// ---- effects ------------------------------------------------------------------------------------

TEST(ForeignOperators, are_called_though_nobody_uses_their_result) {
  const Captured captured = capture(
      [](Tensors& in) -> Tensors {
        tensor("count_and_add", {in[0]});
        return {in[0] * 2};
      },
      {at::ones({3})});
  EXPECT_EQ(captured.count("flashlight_foreign::count_and_add"), 1u);
  calls = 0;
  captured.replay({at::ones({3})});
  captured.replay({at::ones({3})});
  EXPECT_EQ(calls, 2);
}

TEST(ForeignOperators, are_called_as_often_as_by_the_program) {
  const Captured captured = capture(
      [](Tensors& in) -> Tensors {
        return {tensor("count_and_add", {in[0]}) + tensor("count_and_add", {in[0]})};
      },
      {at::ones({3})});
  calls = 0;
  captured.replay({at::ones({3})});
  EXPECT_EQ(calls, 2);
}

// ---- without a key of their own -----------------------------------------------------------------

TEST(ForeignOperators, without_a_key_are_one_node) {
  const Captured captured =
      expect_replays([](Tensors& in) -> Tensors { return {tensor("scale_by_first", {in[0] + 1})}; },
                     {at::randn({3})});
  EXPECT_EQ(captured.count("flashlight_foreign::scale_by_first"), 1u);
  EXPECT_EQ(captured.published.graph.nodes().back()->find_run("body"), nullptr);
}

TEST(ForeignOperators, without_a_key_that_give_a_number_are_guarded) {
  const auto program = [](Tensors& in) -> Tensors {
    return {in[0] * call("sum_of", {in[0]}).at(0).toDouble()};
  };
  const Captured captured = capture(program, {at::ones({3})});
  EXPECT_EQ(difference(captured.replay({at::ones({3})}), {at::ones({3}) * 3}), "");
  EXPECT_TRUE(contains(user_error([&] { captured.replay({at::zeros({3})}); }), "guard"));
}

TEST(ForeignOperators, without_a_key_are_differentiated_by_what_they_call) {
  const at::Tensor weight = at::randn({3}).requires_grad_();
  expect_replays(
      [&](Tensors& in) -> Tensors {
        const at::Tensor loss = tensor("scale_by_sum", {in[0] * weight}).sum();
        return {loss.detach(), torch::autograd::grad({loss}, {weight})[0]};
      },
      {at::randn({3})});
}

TEST(ForeignOperators, without_a_key_that_read_elements_are_refused_under_autograd) {
  const at::Tensor weight = at::randn({3}).requires_grad_(), x = at::randn({3});
  const Function program = [&](Tensors& in) -> Tensors {
    return {tensor("scale_by_first", {in[0] * weight})};
  };
  const std::string error = user_error([&] { capture(program, {x}); });
  EXPECT_TRUE(contains(error, "the kernel of flashlight_foreign::scale_by_first accesses elements"))
      << error;
  EXPECT_EQ(x.data_ptr<float>(), x.data_ptr<float>());  // is unlocked again
  const at::NoGradGuard no_grad;
  expect_replays(program, {x});
}

}  // namespace
}  // namespace flashlight::testing
