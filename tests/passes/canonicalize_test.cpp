// Spellings that mean the same become one, and no others.
#include "composit/passes/canonicalize.h"

#include <gtest/gtest.h>

#include "composit/eval/evaluate.h"
#include "composit/ir/compare.h"
#include "composit/ir/parse.h"
#include "composit/ir/print.h"
#include "composit/ir/verify.h"
#include "composit/ops/functions.h"
#include "composit/passes/drop_no_ops.h"
#include "tests/agreement.h"
#include "tests/passes/computable_graph.h"

namespace composit {
namespace {

// A graph of these lines, which make %y.
Graph graph_of(const std::string& lines) {
  return parse("graph(%x: float32[2, 3, 4], %m: float32[4, 5], %v: float32[4], %i: int64[2]) {\n" +
               lines + "\nreturn %y\n}");
}

std::string differences(const Graph& a, const Graph& b) {
  std::string text;
  for (const Difference& difference : compare(a, b)) text += str(difference) + '\n';
  return text;
}

struct Pair {
  const char *one, *other;
};

TEST(Canonicalize, equal_spellings_become_one) {
  constexpr Pair kPairs[] = {
      // Other names, defaults, axes.
      {"%y: float32[4] = aten::multiply.Tensor(%v, %v)",
       "%y: float32[4] = aten::mul.Tensor(%v, %v)"},
      {"%y: float32[4] = aten::add.Tensor(%v, %v)",
       "%y: float32[4] = aten::add.Tensor(%v, %v, alpha=scalar(1)) {via=\"aten::add_.Tensor\"}"},
      {"%y: float32[3] = aten::sum.dim_IntList(%x, dim=[-1, 0], keepdim=false)",
       "%y: float32[3] = aten::sum.dim_IntList(%x, dim=[0, 2], keepdim=false, dtype=none)"},
      {"%y: float32[] = aten::sum(%x)", "%y: float32[] = aten::sum.dim_IntList(%x, dim=[0, 1, 2])"},
      {"%y: float32[] = aten::mean(%x)", "%y: float32[] = aten::mean.dim(%x, dim=none)"},
      {"%y: float32[2, 3, 4] = aten::softmax.int(%x, dim=-1, dtype=none)",
       "%y: float32[2, 3, 4] = aten::_softmax(%x, dim=2, half_to_float=false)"},
      {"%y: float32[2, 3, 4] = aten::flip(%x, dims=[-1, 0])",
       "%y: float32[2, 3, 4] = aten::flip(%x, dims=[0, 2])"},
      {"%y: float32[2, 3, 8] = aten::cat([%x, %x], dim=-1)",
       "%y: float32[2, 3, 8] = aten::concat([%x, %x], dim=2)"},
      {"%y: float32[2, 3, 4] = aten::roll(%x, shifts=[1, 2], dims=[-1, 0])",
       "%y: float32[2, 3, 4] = aten::roll(%x, shifts=[1, 2], dims=[2, -3])"},
      {"%y, %z: float32[2, 3, 4], int64[2, 3, 4] = aten::sort(%x, dim=-2, descending=false)",
       "%y, %z: float32[2, 3, 4], int64[2, 3, 4] = aten::sort(%x, dim=1, descending=false)"},
      {"%y: float32[4] = mine::op(%v)", "%y: float32[4] = mine::op(%v) {via=\"mine::op_\"}"},
      // Numbers.
      {"%y: float32[4] = aten::mul.Scalar(%v, other=scalar(2.0))",
       "%n: float64[] = composit::constant(value=array(float64[], [2.0]), wrapped=true)\n"
       "%y: float32[4] = aten::mul.Tensor(%v, %n)"},
      {"%y: float32[4] = aten::rsub.Scalar(%v, other=scalar(1), alpha=scalar(1))",
       "%e: float32[4] = aten::empty_like(%v)\n"
       "%f: float32[4] = aten::fill.Scalar(%e, value=scalar(1)) {via=\"aten::fill_.Scalar\"}\n"
       "%y: float32[4] = aten::rsub.Tensor(%v, %f)"},
      {"%c: float32[] = composit::constant(value=array(float32[], [1.0]))\n"
       "%y: float32[4] = aten::sub.Tensor(%c, %v)",
       "%y: float32[4] = aten::rsub.Scalar(%v, other=scalar(1.0), alpha=scalar(1))"},
      {"%y: bool[4] = aten::lt.Scalar(%v, other=scalar(0.5))",
       "%n: float64[] = composit::constant(value=array(float64[], [0.5]), wrapped=true)\n"
       "%y: bool[4] = aten::less.Tensor(%v, %n)"},
      {"%y: float32[2] = aten::zeros(size=[2])",
       "%y: float32[2] = aten::full(size=[2], fill_value=scalar(0), dtype=float32)"},
      {"%y: int64[2] = aten::ones_like(%i)",
       "%y: int64[2] = aten::new_full(%v, size=[2], fill_value=scalar(1), dtype=int64)"},
      // Sizes, dtypes, orders of axes.
      {"%y: float32[6, 4] = aten::view(%x, size=[-1, 4])",
       "%y: float32[6, 4] = aten::flatten.using_ints(%x, start_dim=0, end_dim=1)"},
      {"%y: float32[1, 4] = aten::unsqueeze(%v, dim=-2)",
       "%y: float32[1, 4] = aten::_unsafe_view(%v, size=[1, 4])"},
      {"%u: float32[1, 4] = aten::unsqueeze(%v, dim=0)\n"
       "%y: float32[4] = aten::squeeze.dim(%u, dim=-2)",
       "%u: float32[1, 4] = aten::reshape(%v, shape=[1, -1])\n"
       "%y: float32[4] = aten::squeeze(%u)"},
      {"%y: float32[3, 4] = aten::expand(%v, size=[3, -1], implicit=false)",
       "%y: float32[3, 4] = aten::broadcast_to(%v, size=[3, 4])"},
      {"%y: float32[5, 4] strides=[1, 5] = aten::t(%m)",
       "%y: float32[5, 4] strides=[1, 5] = aten::permute(%m, dims=[1, 0])"},
      {"%y: float32[4, 3, 2] = aten::transpose.int(%x, dim0=0, dim1=-1)",
       "%y: float32[4, 3, 2] = aten::swapaxes(%x, axis0=2, axis1=0)"},
      {"%y: float32[3, 2, 4] = aten::movedim.int(%x, source=1, destination=0)",
       "%y: float32[3, 2, 4] = aten::permute(%x, dims=[1, 0, 2])"},
      {"%y: float64[4] = aten::_to_copy(%v, dtype=float64)",
       "%y: float64[4] = aten::to.dtype(%v, dtype=float64, non_blocking=false, copy=true)"},
      {"%y: int64[4] = aten::type_as(%v, %i)", "%y: int64[4] = aten::_cast_Long(%v)"},
      {"%y: float32[2, 2, 4] = aten::slice.Tensor(%x, dim=1, start=1, end=9223372036854775807)",
       "%y: float32[2, 2, 4] = aten::narrow(%x, dim=-2, start=1, length=2)"},
      {"%y: float32[2, 4] = aten::select.int(%x, dim=1, index=-1)",
       "%y: float32[2, 4] = aten::select.int(%x, dim=-2, index=2)"},
      {"%y, %z: float32[2, 3, 2], float32[2, 3, 2] = aten::chunk(%x, chunks=2, dim=-1)",
       "%y, %z: float32[2, 3, 2], float32[2, 3, 2] = aten::split.Tensor(%x, split_size=2, dim=2)"},
      // Products.
      {"%t: float32[5, 4] strides=[1, 5] = aten::t(%m)\n"
       "%y: float32[4, 4] = aten::mm(%m, %t)",
       "%y: float32[4, 4] = aten::linear(%m, %m, none)"},
      {"%t: float32[5, 4] strides=[1, 5] = aten::transpose.int(%m, dim0=0, dim1=1)\n"
       "%y: float32[4, 4] = aten::addmm(%v, %m, %t, beta=scalar(1), alpha=scalar(1.0))",
       "%y: float32[4, 4] = aten::linear(%m, %m, %v)"},
      {"%w: float32[5, 4] strides=[1, 5] = aten::t(%m)\n"
       "%f: float32[6, 4] = aten::view(%x, size=[6, 4])\n"
       "%t: float32[4, 5] = aten::t(%w)\n"
       "%p: float32[6, 5] = aten::mm(%f, %t)\n"
       "%y: float32[2, 3, 5] = aten::_unsafe_view(%p, size=[2, 3, 5])",
       "%w: float32[5, 4] strides=[1, 5] = aten::t(%m)\n"
       "%y: float32[2, 3, 5] = aten::linear(%x, %w)"},
  };
  for (const auto& [one, other] : kPairs) {
    const Graph a = canonicalize(graph_of(one)), b = canonicalize(graph_of(other));
    EXPECT_EQ(a, b) << one << '\n' << other << '\n' << differences(a, b);
    verify(a);
  }
}

TEST(Canonicalize, other_meanings_stay_apart) {
  constexpr Pair kPairs[] = {
      {"%y: float32[2, 3] = aten::sum.dim_IntList(%x, dim=[2])",
       "%y: float32[2, 3] = aten::amax(%x, dim=[2])"},
      {"%y: float32[2, 3, 4] = aten::roll(%x, shifts=[1, 2], dims=[1, 0])",
       "%y: float32[2, 3, 4] = aten::roll(%x, shifts=[1, 2], dims=[0, 1])"},
      {"%y: float32[4] = aten::add.Scalar(%v, other=scalar(2), alpha=scalar(1))",
       "%y: float32[4] = aten::add.Scalar(%v, other=scalar(2), alpha=scalar(3))"},
      {"%y: float32[4] = aten::detach(%v)", "%y: float32[4] = aten::alias(%v)"},
      {"%y: float32[4] = aten::relu(%v)", "%y: float32[4] = aten::relu(%v) {grad=false}"},
      {"%y: float32[4] = aten::relu(%v)", "%y: float32[4] strides=[2] = aten::relu(%v)"},
      {"%h: float16[4] = aten::to.dtype(%v, dtype=float16)\n"
       "%f: float16[4] = aten::full(size=[4], fill_value=scalar(0.1), dtype=float16)\n"
       "%y: float16[4] = aten::mul.Tensor(%h, %f)",
       "%h: float16[4] = aten::to.dtype(%v, dtype=float16)\n"
       "%y: float16[4] = aten::mul.Scalar(%h, other=scalar(0.1))"},
      {"%y: float32[2] = aten::empty.memory_format(size=[2])",
       "%y: float32[2] = aten::zeros(size=[2])"},
      {"%t: float32[5, 4] strides=[1, 5] = aten::t(%m)\n"
       "%y: float32[4, 4] = aten::addmm(%v, %m, %t, beta=scalar(2))",
       "%y: float32[4, 4] = aten::linear(%m, %m, %v)"},
  };
  for (const auto& [one, other] : kPairs)
    EXPECT_FALSE(canonicalize(graph_of(one)) == canonicalize(graph_of(other))) << one;
}

TEST(Canonicalize, convolutions_of_any_number_of_axes_become_one) {
  const auto conv = [](const std::string& call) {
    return canonicalize(
        parse("graph(%x: float32[1, 2, 8, 8], %w: float32[3, 2, 3, 3]) {\n"
              "%y: float32[1, 3, 4, 4] = aten::" +
              call + "\nreturn %y\n}"));
  };
  const Graph one = conv("conv2d(%x, %w, none, stride=[2], padding=[1], dilation=[1], groups=1)");
  EXPECT_EQ(one, conv("convolution(%x, %w, none, stride=[2, 2], padding=[1, 1], dilation=[1, 1], "
                      "transposed=false, output_padding=[0, 0], groups=1)"));
  EXPECT_FALSE(one == conv("conv2d(%x, %w, none, stride=[2], padding=[1, 1], dilation=[2])"));
}

TEST(Canonicalize, leaves_effects_guards_and_shared_memory_alone) {
  const Graph graph = parse(R"(graph(%x: float32[2]) {
    %a: float32[2] = aten::native_dropout(%x, p=0.5, train=true) {via="aten::dropout_", effect=0}
    %b: float32[] = aten::mul.Scalar(%x, other=scalar(2.0)) {expected=1.0, effect=1}
    %c: float32[2] = aten::add.Scalar(%x, other=scalar(2.0)) {views=[0]}
    return %a, %c
  })");
  EXPECT_EQ(canonicalize(graph), graph);
}

TEST(Canonicalize, does_not_compute_twice_what_others_use) {
  const Graph graph = canonicalize(parse(R"(graph(%x: float32[2, 3], %w: float32[4, 3],
                                                  %b: float32[4]) {
    %t: float32[3, 4] strides=[1, 3] = aten::t(%w)
    %p: float32[2, 4] = aten::mm(%x, %t)
    %y: float32[2, 4] = aten::add.Tensor(%p, %b, alpha=scalar(1))
    return %y, %p
  })"));
  EXPECT_EQ(graph.outputs()[0].node->op().str(), "aten::add.Tensor");
  EXPECT_EQ(graph.outputs()[1].node->op().str(), "aten::linear");
}

TEST(Canonicalize, opens_what_has_a_row_and_looks_into_what_has_none) {
  const std::string inner = R"(%t: float32[4, 2] strides=[1, 4] = aten::t(%0)
      %r: float32[4, 2] strides=[1, 4] = aten::relu(%t)
      return %r)";
  const auto graph = [&](const std::string& op, const std::string& body) {
    return parse("graph(%x: float32[2, 4]) {\n%y: float32[4, 2] strides=[1, 4] = " + op +
                 "(%x) {body=region(%0: float32[2, 4]) {\n" + body + "\n}}\nreturn %y\n}");
  };
  const Graph with_row = canonicalize(graph("aten::t", inner));
  EXPECT_EQ(with_row.outputs()[0].node->op().str(), "aten::permute");
  EXPECT_EQ(with_row.outputs()[0].node->find_run("body"), nullptr);
  const Graph without = canonicalize(graph("mine::op", inner));
  EXPECT_EQ(without, canonicalize(graph("mine::op", R"(
      %p: float32[4, 2] strides=[1, 4] = aten::permute(%0, dims=[1, 0])
      %q: float32[4, 2] strides=[1, 4] = aten::relu(%p) {via="aten::relu_"}
      return %q)")));
}

TEST(Canonicalize, keeps_the_order_of_nodes) {
  const Graph graph = canonicalize(graph_of(R"(
    %a: float32[4] = aten::mul.Scalar(%v, other=scalar(2.0))
    %b: float32[4] = aten::exp(%a)
    %c: float32[4] = aten::sin(%v)
    %y: float32[4] = aten::add.Tensor(%b, %c))"));
  std::string order;
  for (const NodePtr& node : graph.nodes())
    if (!is_input(*node)) order += std::string(node->op().base_name()) + " ";
  EXPECT_EQ(order, "constant mul exp sin add ");
}

// ---- a layer of a transformer, as C++ and as Python write it ------------------------------------

constexpr int64_t kWidth = 4, kLength = 3, kHeads = 2;

using Parameters = LazyTensors;

Parameters layer_inputs() {
  const auto named = [](const char* name, Dims sizes) {
    return input(name, tensor_type(DType::float64, std::move(sizes)));
  };
  Parameters inputs = {named("x", {2, kLength, kWidth})};
  for (const char* name : {"q", "k", "v", "o", "up", "down"}) {
    inputs.push_back(named((std::string(name) + ".weight").c_str(), {kWidth, kWidth}));
    inputs.push_back(named((std::string(name) + ".bias").c_str(), {kWidth}));
  }
  return inputs;
}

LazyTensor one(const char* name, std::vector<ArgumentValue> arguments) {
  return apply_one(name, std::move(arguments));
}

// torch::nn::Linear of LibTorch 1.x: a matrix product, and the bias added in place.
LazyTensor cpp_linear(const LazyTensor& x, const Parameters& p, size_t i) {
  const LazyTensor weight = one("aten::t", {p[i]});
  if (x.rank() == 2) return one("aten::addmm", {p[i + 1], x, weight});
  return one("aten::add.Tensor", {one("aten::matmul", {x, weight}), p[i + 1]});
}
LazyTensor python_linear(const LazyTensor& x, const Parameters& p, size_t i) {
  return one("aten::linear", {x, p[i], p[i + 1]});
}

Graph cpp_layer() {
  const Parameters p = layer_inputs();
  const auto heads = [&](size_t i) {
    const LazyTensor y = one("aten::view", {cpp_linear(p[0], p, i), Ints{2, kLength, kHeads, -1}});
    return one("aten::transpose.int", {y, 1, 2});
  };
  const LazyTensor scores =
      one("aten::div.Scalar", {matmul(heads(1), transpose(heads(3), -1, -2)), 2.0});
  const LazyTensor mixed = matmul(one("aten::softmax.int", {scores, -1}), heads(5));
  const LazyTensor rows = one("aten::contiguous", {transpose(mixed, 1, 2)});
  const LazyTensor y = cpp_linear(one("aten::view", {rows, Ints{2, kLength, kWidth}}), p, 7) + p[0];
  const LazyTensor normal = one("aten::layer_norm", {y, Ints{kWidth}});
  const LazyTensor flat = one("aten::flatten.using_ints", {normal, 0, 1});
  const LazyTensor up =
      one("aten::dropout", {one("aten::gelu", {cpp_linear(flat, p, 9)}), 0.1, false});
  return Graph({.inputs = p, .outputs = {cpp_linear(up, p, 11) - one("aten::mean", {normal})}});
}

Graph python_layer() {
  const Parameters p = layer_inputs();
  const auto heads = [&](size_t i) {
    const LazyTensor y =
        one("aten::unflatten.int", {python_linear(p[0], p, i), -1, Ints{kHeads, -1}});
    return permute(y, {0, 2, 1, 3});
  };
  const LazyTensor q = heads(1), k = heads(3);
  const LazyTensor scores = matmul(q, one("aten::swapaxes", {k, 2, 3})) / 2.0;
  const LazyTensor mixed = matmul(softmax(scores, 3), heads(5));
  const LazyTensor y =
      python_linear(reshape(permute(mixed, {0, 2, 1, 3}), {2, kLength, kWidth}), p, 7) + p[0];
  const LazyTensor normal = apply("aten::native_layer_norm", {y, Ints{kWidth}, {}, {}, 1e-5})[0];
  const LazyTensor up = one("aten::gelu", {python_linear(reshape(normal, {-1, kWidth}), p, 9)});
  return Graph({.inputs = p, .outputs = {python_linear(up, p, 11) - mean(normal, {0, 1, 2})}});
}

TEST(Canonicalize, cpp_and_python_write_one_layer) {
  const auto canonical = [](const Graph& graph) { return drop_no_ops(canonicalize(graph)); };
  const Graph cpp = cpp_layer(), python = python_layer();
  EXPECT_FALSE(cpp == python);
  const Graph one = canonical(cpp), other = canonical(python);
  EXPECT_EQ(one, other) << differences(one, other);
  const auto inputs = test::random_inputs(cpp, 1);
  const Array found = evaluate(one, inputs)[0];
  EXPECT_EQ(test::difference(found, evaluate(cpp, inputs)[0]), "");
  EXPECT_EQ(test::difference(found, evaluate(python, inputs)[0]), "");
}

// A legal graph may pass on what is no tensor.
TEST(Canonicalize, leaves_operands_that_are_undefined) {
  const Graph graph = parse(R"(graph(%x: float32[2]) {
    %a, %b, %c: float32[2], none, none = own::op(%x)
    %y: float32[2] = aten::add.Tensor(%b, %c, alpha=scalar(1))
    return %a, %y
  })");
  EXPECT_EQ(canonicalize(graph), graph);
}

}  // namespace
}  // namespace composit
