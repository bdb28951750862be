// Arguments of every kind a schema can have, tensors of every kind, operators the tracer has never
// met.
#include <ATen/ATen.h>
#include <gtest/gtest.h>
#include <torch/library.h>
#include <torch/script.h>

#include <sstream>

#include "tests/tracer/capture_helpers.h"

namespace flashlight::testing {
namespace {

TEST(Arguments, of_every_kind) {
  expect_replays(
      [](Tensors& in) -> Tensors {
        const at::Tensor x = in[0];
        c10::List<std::optional<at::Tensor>> indices({std::nullopt, at::tensor({0, 2})});
        return {
            at::add(x, x, 1.5),                                        // Scalar
            at::add(x, 2),                                             // wrapped number
            at::sum(x, at::IntArrayRef{0, -1}, true, at::kDouble),     // int[], bool, ScalarType
            at::mean(x, at::OptionalIntArrayRef(), false),             // absent int[]
            at::clamp(x, c10::nullopt, 1),                             // optional Scalar
            at::gelu(x, "tanh"),                                       // string
            at::index(x, indices),                                     // Tensor?[]
            at::cat({x, x}, -1),                                       // Tensor[]
            at::linear(x, in[1], {}),                                  // Tensor?
            at::upsample_nearest2d(in[2], {4, 4}, 2.0, c10::nullopt),  // float
            at::einsum("ij,kj->ik", {x, in[1]}, at::OptionalIntArrayRef()),
            at::full({2, 2}, c10::complex<double>(1, -2)),  // complex
            at::quantile(x, 0.25, 1, false, "linear"),
            at::empty_like(x, at::kLong).fill_(7),             // dtype, layout, device
            x.to(at::kCPU, at::kHalf, false, true),            // Device
            in[2].contiguous(at::MemoryFormat::ChannelsLast),  // MemoryFormat
            std::get<0>(
                at::histogramdd(x.slice(1, 0, 2), {2, 2}, c10::ArrayRef<double>{-3, 3, -3, 3})),
            at::pad(x, {1, 1}, "constant", 0.5),
            std::get<0>(at::native_layer_norm(x, {3}, {}, {}, 1e-5)),  // several results
        };
      },
      {at::randn({2, 3}), at::randn({4, 3}), at::randn({1, 2, 2, 2})});
}

TEST(Arguments, numbers_promote_as_they_were_written) {
  expect_replays(
      [](Tensors& in) -> Tensors {
        return {in[0] + 1,           in[0] * 2.5,          1 - in[0],
                at::mul(in[1], 0.5), at::add(in[1], true), in[1] / 3};
      },
      {at::randn({2}).to(at::kBFloat16), at::arange(3)});
}

TEST(Arguments, tensors_of_every_kind) {
  for (at::ScalarType dtype :
       {at::kFloat, at::kDouble, at::kHalf, at::kBFloat16, at::kLong, at::kInt, at::kShort,
        at::kChar, at::kByte, at::kBool, at::kComplexFloat, at::kComplexDouble}) {
    SCOPED_TRACE(dtype);
    expect_replays(
        [](Tensors& in) -> Tensors {
          at::Tensor x = in[0].clone();
          x.select(0, 1).copy_(x.select(0, 0));
          return {x, in[0].t(), at::cat({x, in[0]}), in[0].slice(1, 0, 0),
                  in[0].select(0, 0).select(0, 0)};
        },
        {at::ones({3, 2}).to(dtype)});
  }
}

TEST(Arguments, inputs_with_lazy_bits_and_layouts) {
  const at::Tensor z = at::randn({2, 3}, at::kComplexFloat), image = at::randn({2, 3, 4, 4});
  const auto program = [](Tensors& in) -> Tensors {
    return {in[0] + 1, at::abs(in[0]), in[0].resolve_conj().resolve_neg()};
  };
  expect_replays(program, {z.conj()});
  expect_replays(program, {at::_neg_view(image)});
  expect_replays(program, {image.contiguous(at::MemoryFormat::ChannelsLast)});
  expect_replays(program, {image.transpose(1, 3).slice(1, 0, 4, 2)});
  expect_replays(program, {at::zeros({0, 3})});
  expect_replays(program, {at::randn({})});
}

TEST(Arguments, sparse_tensors) {
  const auto program = [](Tensors& in) -> Tensors {
    const at::Tensor sparse = in[0].to_sparse();
    return {at::_sparse_mm(sparse, in[0].t()), (sparse + sparse).to_dense()};
  };
  const at::Tensor x = at::ones({2, 3});
  expect_replays(program, {x}, {x * 2});
}

// ---- operators from elsewhere -------------------------------------------------------------------

at::Tensor scale_and_count(const at::Tensor& x, at::Tensor& counter, double factor) {
  counter.add_(1);
  return x * factor;
}

TORCH_LIBRARY(flashlight_test, library) {
  library.def("scale_and_count(Tensor x, Tensor(a!) counter, float factor=2.0) -> Tensor");
}
TORCH_LIBRARY_IMPL(flashlight_test, CPU, library) {
  library.impl("scale_and_count", &scale_and_count);
}

TEST(Operators, of_a_users_library_are_replayed) {
  const auto op = c10::Dispatcher::singleton()
                      .findSchemaOrThrow("flashlight_test::scale_and_count", "")
                      .typed<at::Tensor(const at::Tensor&, at::Tensor&, double)>();
  const Captured captured = expect_replays(
      [&](Tensors& in) -> Tensors {
        return {op.call(in[0], in[1], 3.0), op.call(in[1], in[1], 0.5)};
      },
      {at::randn({3}), at::zeros({})});
  EXPECT_EQ(captured.count("flashlight_test::scale_and_count"), 2u);
}

TEST(Operators, of_a_torchscript_module_are_captured) {
  torch::jit::Module module("m");
  module.register_parameter("weight", at::randn({3, 3}), false);
  module.define(R"(
    def forward(self, x, n: int):
        y = x
        for i in range(n):
            y = torch.relu(torch.matmul(y, self.weight)) + i
        return y, torch.sum(y, 0)
  )");
  std::stringstream file;
  module.save(file);
  torch::jit::Module loaded = torch::jit::load(file);
  loaded.eval();
  const auto program = [&](Tensors& in) -> Tensors {
    const auto result = loaded.forward({in[0], 3}).toTuple();
    return {result->elements()[0].toTensor(), result->elements()[1].toTensor()};
  };
  const at::NoGradGuard no_grad;
  for (int i = 0; i < 3; ++i) {  // the executor profiles first
    Tensors warm = {at::randn({2, 3})};
    program(warm);
  }
  const Captured captured = expect_replays(program, {at::randn({2, 3})});
  EXPECT_EQ(captured.count("aten::matmul"), 3u);
}

TEST(Operators, a_chain_of_a_million) {
  constexpr int kLength = 1000000;
  const at::NoGradGuard no_grad;
  at::Tensor x = at::ones({1});
  std::unique_ptr<tracer::Recording> recording;
  {
    TraceScope scope;
    scope.name(x, "x", composit::InputKind::user_input);
    at::Tensor y = x;
    for (int i = 0; i < kLength; ++i) y = at::neg(y);
    recording = scope.finish({y});
  }
  const tracer::Published published = tracer::publish(*recording);
  EXPECT_EQ(published.graph.size(), kLength + 1u);
  const tracer::Plan plan(published.graph, {});
  EXPECT_EQ(difference(plan.run({x}), {x}), "");
}

}  // namespace
}  // namespace flashlight::testing
