// Strict mode: memory that no operator touches is refused while the scope lives, and only then.
#include <ATen/ATen.h>
#include <ATen/Parallel.h>
#include <gtest/gtest.h>
#include <torch/csrc/autograd/autograd.h>
#include <torch/library.h>
#include <torch/nn.h>
#include <torch/optim.h>
#include <torch/serialize.h>

#include <future>
#include <thread>

#include "tests/tracer/capture_helpers.h"
#include "tracer/storage_lock.h"

namespace flashlight::testing {
namespace {

const TraceOptions kStrict{.strict = true};

// The message of the access that is refused; empty when it is granted.
std::string refusal(const std::function<void()>& access) {
  try {
    access();
  } catch (const c10::Error& error) {
    return tracer::refused_access(error).value_or(c10::str("another error: ", error.what()));
  }
  return {};
}
bool readable(const at::Tensor& tensor) {
  return refusal([&] { tensor.const_data_ptr(); }).empty();
}

void expect_strict_replays(const Function& function, const Tensors& inputs) {
  expect_replays(function, inputs, Check{kStrict});
}

// ---- what is refused ----------------------------------------------------------------------------

struct Access {
  const char* name;
  std::function<void(const at::Tensor&)> run;
};

const std::vector<Access>& accesses() {
  static const std::vector<Access> all = {
      {"data_ptr", [](const at::Tensor& t) { t.data_ptr<float>(); }},
      {"const_data_ptr", [](const at::Tensor& t) { t.const_data_ptr(); }},
      {"mutable_data_ptr", [](const at::Tensor& t) { t.mutable_data_ptr<float>()[0] = 5; }},
      {"item_ptr", [](const at::Tensor& t) { t.storage().data(); }},
      {"storage", [](const at::Tensor& t) { t.storage().mutable_data_ptr(); }},
      {"accessor", [](const at::Tensor& t) { t.accessor<float, 2>()[0][0] = 5; }},
      {"packed_accessor", [](const at::Tensor& t) { t.packed_accessor64<float, 2>(); }},
      {"cout", [](const at::Tensor& t) { c10::str(t); }},
      {"save",
       [](const at::Tensor& t) {
         std::ostringstream out;
         torch::save(t, out);
       }},
  };
  return all;
}

TEST(Strict, refuses_inputs_results_views_and_parameters) {
  const at::Tensor x = at::randn({2, 3}), weight = at::randn({3, 3}).requires_grad_();
  TraceScope scope(kStrict);
  scope.name(x, "x", composit::InputKind::user_input);
  EXPECT_TRUE(contains(refusal([&] { x.data_ptr(); }), "the memory of input 'x' was accessed"));
  const at::Tensor y = at::relu(x.mm(weight));
  EXPECT_TRUE(contains(refusal([&] { y.data_ptr(); }), "a tensor that aten::relu used last"));
  for (const at::Tensor& tensor : {y, y.t(), y.select(0, 0).unsqueeze(0), x, weight, y.detach()})
    for (const Access& access : accesses())
      EXPECT_TRUE(contains(refusal([&] { access.run(tensor); }), "without an operator"))
          << access.name;
}

TEST(Strict, refuses_nothing_when_it_is_off) {
  const at::Tensor x = at::randn({2, 3});
  TraceScope scope;
  scope.name(x, "x", composit::InputKind::user_input);
  const at::Tensor y = at::relu(x);
  for (const Access& access : accesses())
    for (const at::Tensor& tensor : {x, y})
      EXPECT_EQ(refusal([&] { access.run(tensor); }), "") << access.name;
}

// Without a key of its own, a kernel is taken for a composition of other operators.
at::Tensor times_first(const at::Tensor& x) { return x * x.const_data_ptr<float>()[0]; }
const at::Tensor& table() {
  static const at::Tensor table = at::ones({3});
  return table;
}
at::Tensor add_table(const at::Tensor& x) { return x + table(); }
at::Tensor add_first(const at::Tensor& x) {
  const at::Tensor copy = x.clone();
  return x.detach().add_(copy.const_data_ptr<float>()[0]);
}
TORCH_LIBRARY(flashlight_strict_test, library) {
  library.def("times_first(Tensor x) -> Tensor", &times_first);
  library.def("add_table(Tensor x) -> Tensor");
  library.def("add_first_(Tensor(a!) x) -> Tensor(a!)");
}
TORCH_LIBRARY_IMPL(flashlight_strict_test, CPU, library) {
  library.impl("add_table", &add_table);
  library.impl("add_first_", &add_first);
}
at::Tensor call(const char* op, const at::Tensor& x) {
  return c10::Dispatcher::singleton()
      .findSchemaOrThrow(op, "")
      .typed<at::Tensor(const at::Tensor&)>()
      .call(x);
}

TEST(Strict, names_the_kernel_that_reads_on_the_host) {
  const at::Tensor x = at::ones({3}) + table();
  TraceScope scope(kStrict);
  EXPECT_TRUE(contains(
      refusal([&] { call("flashlight_strict_test::times_first", (x + 1).requires_grad_()); }),
      "in the kernel of flashlight_strict_test::times_first, which is registered"));
  EXPECT_EQ(refusal([&] { call("flashlight_strict_test::times_first", x + 1); }), "");
  EXPECT_EQ(refusal([&] { call("flashlight_strict_test::add_table", x); }), "");
  x.add_(table());
  EXPECT_TRUE(contains(refusal([&] { call("flashlight_strict_test::add_table", x); }),
                       "add_table, which uses a tensor that is not its argument"));
}

// ---- what works ---------------------------------------------------------------------------------

TEST(Strict, values_may_be_asked_by_operators) {
  const at::Tensor x = at::ones({3});
  const Function program = [](Tensors& in) -> Tensors {
    at::Tensor y = in[0] * 2;
    if (y.sum().item<double>() > 0 && !at::equal(y, in[0]) && y.select(0, 0).is_nonzero())
      y = y + 1;
    return {y.to(at::kDouble), y.to(at::kCPU), y.cpu().contiguous()};
  };
  expect_replays(program, {x}, {x.clone()}, Check{kStrict});
}

TEST(Strict, programs_of_every_sort_run) {
  const at::Tensor x = at::randn({4, 4});
  expect_strict_replays(
      [](Tensors& in) -> Tensors {
        at::Tensor y = in[0].clone();
        y.select(0, 1).add_(1);
        y.t().slice(1, 0, 2).mul_(in[0].slice(1, 0, 2));
        y.index_put_({at::arange(2)}, at::scalar_tensor(3.));
        in[0].copy_(y.t());
        return {y, y.view(at::kInt)};
      },
      {x});
  expect_strict_replays(
      [](Tensors& in) -> Tensors {
        const Tensors parts = in[0].chunk(2);
        at::Tensor out = at::empty({0});
        at::cat_out(out, parts, 1);
        return {at::stack(parts), at::_foreach_add(parts, parts)[1], out, out.resize_({2, 2})};
      },
      {x});
  expect_strict_replays(
      [](Tensors& in) -> Tensors {
        const at::Tensor indices = in[0].sign().abs().to(at::kLong).flatten();
        return {at::embedding(in[0], indices), at::dropout(in[0], 0.5, true),
                at::conv2d(in[0].view({1, 1, 4, 4}), in[0].view({1, 1, 4, 4})),
                at::rrelu(in[0], 0.1, 0.3, true)};
      },
      {x});
}

// In grad mode the tracer sees a copy that a kernel makes of what it writes.
TEST(Strict, kernels_read_the_copies_they_make) {
  const at::Tensor weight = at::ones({3}).requires_grad_();
  TraceScope scope(kStrict);
  const at::Tensor y = weight * 2;
  EXPECT_EQ(refusal([&] { call("flashlight_strict_test::add_first_", y); }), "");
  EXPECT_EQ(y.sum().item<float>(), 12);
  EXPECT_FALSE(readable(y));
}

TEST(Strict, numbers_of_the_host_become_tensors) {
  expect_strict_replays(
      [](Tensors& in) -> Tensors {
        at::Tensor filled = at::empty({3});
        for (int i = 0; i < 3; ++i) filled.view({3}).data_ptr<float>()[i] = static_cast<float>(i);
        at::Tensor y = in[0] + filled + at::tensor({1., 2., 3.});
        y[0] = 7.;
        return {y, torch::tensor({1, 2}), torch::tensor({{1., 2.}, {3., 4.}}) + 1};
      },
      {at::randn({3})});
}

TEST(Strict, memory_that_an_operator_filled_is_not_the_hosts) {
  TraceScope scope(kStrict);
  at::Tensor x = at::empty({3});
  EXPECT_TRUE(readable(x));
  EXPECT_TRUE(readable(x.view({3})));
  const at::Tensor y = x + 1;
  EXPECT_FALSE(readable(x)) << "its content is a constant now";
  at::Tensor z = at::empty({3});
  z.normal_();
  EXPECT_FALSE(readable(z));
}

// Its kernels read tensors that are not their arguments.
TEST(Strict, parts_of_tensors_are_open_to_their_operators) {
  TraceScope scope(kStrict);
  const at::Tensor values = at::randn({2}) + 1, indices = at::arange(2).unsqueeze(0);
  const at::Tensor sparse = at::sparse_coo_tensor(indices, values, {3});
  EXPECT_EQ(refusal([&] { sparse.to_dense(); }), "");
  EXPECT_FALSE(readable(values));
  const at::Tensor scales = at::ones({2}) * 2, zeros = at::zeros({2}, at::kLong);
  const at::Tensor quantized =
      at::quantize_per_channel(at::ones({2, 2}), scales, zeros, 0, at::kQInt8);
  EXPECT_FALSE(readable(scales));
  EXPECT_EQ(refusal([&] { quantized.dequantize(); }), "");
}

struct Perceptron : torch::nn::Module {
  Perceptron() {
    register_module("in", in);
    register_module("norm", norm);
    register_module("out", out);
  }
  at::Tensor forward(const at::Tensor& x) {
    return out(torch::dropout(norm(in(x)).relu_(), 0.2, true));
  }
  torch::nn::Linear in{4, 6}, out{6, 2};
  torch::nn::BatchNorm1d norm{6};
};

TEST(Strict, a_training_step_runs) {
  torch::manual_seed(0);
  Perceptron model;
  torch::optim::SGD optimizer(model.parameters(), torch::optim::SGDOptions(0.1).momentum(0.9));
  const Function step = [&](Tensors& in) -> Tensors {
    optimizer.zero_grad();
    const at::Tensor loss = model.forward(in[0]).pow(2).mean();
    loss.backward();
    torch::nn::utils::clip_grad_norm_(model.parameters(), 1.0);
    optimizer.step();
    return {loss.detach()};
  };
  Tensors x = {at::randn({5, 4})};
  step(x);
  EXPECT_EQ(refusal([&] { capture(step, x, kStrict); }), "");
  for (const at::Tensor& parameter : model.parameters()) {
    EXPECT_TRUE(readable(parameter));
    EXPECT_TRUE(readable(parameter.grad()));
  }
  for (const at::Tensor& buffer : model.buffers()) EXPECT_TRUE(readable(buffer));
}

// ---- scopes and threads -------------------------------------------------------------------------

TEST(Strict, everything_is_readable_after_the_scope) {
  const at::Tensor x = at::randn({3});
  at::Tensor made;
  {
    TraceScope scope(kStrict);
    at::Tensor freed = x * 2;
    made = freed + 1;
    const auto memory = freed.storage().getWeakStorageImpl();
    EXPECT_FALSE(readable(freed));
    freed.reset();
    EXPECT_TRUE(memory.expired()) << "a lock keeps no memory";
    EXPECT_FALSE(readable(x));
    EXPECT_FALSE(readable(made));
    scope.finish({made});
    EXPECT_TRUE(readable(x));
    EXPECT_TRUE(readable(made));
  }
  {
    const TraceScope scope(kStrict);
    made.add_(x);
  }
  EXPECT_TRUE(readable(x));
  EXPECT_TRUE(readable(made));
}

TEST(Strict, values_are_shown_while_it_records) {
  const at::Tensor x = at::ones({3});
  TraceScope scope(kStrict);
  scope.name(x, "x", composit::InputKind::user_input);
  const at::Tensor y = x + at::ones({3}) * at::tensor({1., 2., 3.});
  EXPECT_EQ(scope.lazy(y).node->op().str(), "aten::add.Tensor");
  EXPECT_FALSE(readable(x));
}

TEST(Strict, ends_with_an_exception) {
  const at::Tensor x = at::randn({3});
  at::Tensor y;
  EXPECT_THROW(
      {
        TraceScope scope(kStrict);
        y = x + 1;
        y.add_(at::ones({2}));
      },
      c10::Error);
  EXPECT_TRUE(readable(x));
  EXPECT_TRUE(readable(y));
}

TEST(Strict, holds_after_an_exception_that_the_program_caught) {
  const at::Tensor x = at::randn({3}), two = at::ones({2});
  TraceScope scope(kStrict);
  EXPECT_THROW(x + two, c10::Error);
  EXPECT_FALSE(readable(x));
  EXPECT_FALSE(readable(two));
  EXPECT_NE(refusal([&] { x.data_ptr(); }), "");
  EXPECT_EQ(refusal([&] { x + 1; }), "") << "a refused access changes nothing";
}

TEST(Strict, nests) {
  const at::Tensor x = at::randn({3}), z = at::randn({3});
  at::Tensor y;
  TraceScope outer(kStrict);
  outer.name(x, "x", composit::InputKind::user_input);
  for (const bool strict : {true, false}) {
    TraceOptions options;
    options.strict = strict;
    TraceScope inner(options);
    inner.name(x, "x", composit::InputKind::user_input);
    y = x + z;
    EXPECT_FALSE(readable(y));
    inner.finish({y, x, z});
    for (const at::Tensor& tensor : {x, y, z}) EXPECT_FALSE(readable(tensor)) << "the outer's";
  }
  {
    const TraceScope unfinished(kStrict);
    y.add_(z);
  }
  for (const at::Tensor& tensor : {x, y, z}) EXPECT_FALSE(readable(tensor)) << "the outer's";
  outer.finish({y});
  for (const at::Tensor& tensor : {x, y, z}) EXPECT_TRUE(readable(tensor));
}

TEST(Strict, nests_in_a_scope_that_is_not) {
  const at::Tensor x = at::randn({3});
  TraceScope outer;
  {
    TraceScope inner(kStrict);
    const at::Tensor y = x + 1;
    EXPECT_FALSE(readable(x));
  }
  EXPECT_TRUE(readable(x));
}

TEST(Strict, leaves_the_guards_of_others) {
  const at::Tensor x = at::randn({3});
  x.storage().unsafeGetStorageImpl()->release_data_and_set_meta_custom_data_ptr_error_msg_("mine");
  {
    TraceScope scope(kStrict);
    EXPECT_TRUE(contains(refusal([&] { x + 1; }), "another error: mine"));
  }
  EXPECT_TRUE(contains(refusal([&] { x.data_ptr(); }), "another error: mine"));
}

TEST(Strict, kernels_read_from_the_threads_of_the_pool) {
  ASSERT_GT(at::get_num_threads(), 0);
  const int threads = at::get_num_threads();
  at::set_num_threads(4);
  expect_strict_replays(
      [](Tensors& in) -> Tensors {
        at::Tensor y = in[0].mm(in[0]).softmax(1);
        for (int i = 0; i < 3; ++i) y.mul_(in[0]).add_(in[0].t());
        return {y.sum(0), y};
      },
      {at::randn({300, 300})});
  at::set_num_threads(threads);
}

TEST(Strict, is_of_the_process) {
  const at::Tensor x = at::randn({3});
  TraceScope scope(kStrict);
  const at::Tensor y = x + 1;
  EXPECT_FALSE(std::async(std::launch::async, [&] { return readable(x); }).get());
}

TEST(Strict, two_threads_share_weights) {
  const at::Tensor weight = at::randn({64, 64}).requires_grad_();
  std::vector<std::future<std::string>> threads;
  for (int t = 0; t < 2; ++t)
    threads.push_back(std::async(std::launch::async, [&] {
      return refusal([&] {
        for (int i = 0; i < 100; ++i) {
          TraceScope scope(kStrict);
          scope.name(weight, "weight", composit::InputKind::parameter);
          const at::Tensor y = at::relu(at::linear(at::ones({8, 64}), weight)).sum();
          const at::Tensor gradient = torch::autograd::grad({y}, {weight})[0];
          scope.finish({gradient});
        }
      });
    }));
  for (auto& thread : threads) EXPECT_EQ(thread.get(), "");
  EXPECT_TRUE(readable(weight));
}

}  // namespace
}  // namespace flashlight::testing
