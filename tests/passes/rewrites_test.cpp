// Decompose, fold, share, drop: small graphs, before and after.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "composit/ad/chain_rule.h"
#include "composit/eval/evaluate.h"
#include "composit/ir/parse.h"
#include "composit/ir/print.h"
#include "composit/ir/verify.h"
#include "composit/ops/native.h"
#include "composit/passes/common_subexpressions.h"
#include "composit/passes/decompose.h"
#include "composit/passes/drop_no_ops.h"
#include "composit/passes/fold_constants.h"
#include "composit/passes/join_slices.h"
#include "composit/passes/share_parts.h"
#include "composit/passes/straight_through.h"
#include "tests/counting_backend.h"
#include "tests/user_error.h"

namespace composit {
namespace {

// The operations of a graph that are neither inputs nor constants, in order: "aten::a aten::b".
std::string operations(const Graph& graph) {
  std::string names;
  for (const NodePtr& node : graph.nodes())
    if (!is_input(*node) && node->op() != ops::kConstant)
      names += (names.empty() ? "" : " ") + node->op().str();
  return names;
}

void expect_same(const Graph& graph, const std::string& expected) {
  verify(graph);
  EXPECT_EQ(print(graph), print(parse(expected)));
}

// ---- decompose ----------------------------------------------------------------------------------

constexpr std::string_view kSoftmax = R"(graph(%x: float32[2, 3]) {
  %y: float32[2, 3] = aten::softmax.int(%x, dim=1, dtype=none)  # scope=head
  return %y
})";

TEST(Decompose, goes_all_the_way_down) {
  const Graph parts = decompose(parse(kSoftmax));
  EXPECT_EQ(operations(parts),
            "aten::amax aten::sub.Tensor aten::exp aten::sum.dim_IntList aten::div.Tensor");
  for (const NodePtr& node : parts.nodes())
    EXPECT_EQ(node->annotation("scope"), is_input(*node) ? "" : "head");
}

TEST(Decompose, keeps_what_it_is_told_to) {
  const auto is_softmax = [](const Node& node) { return node.op() == Symbol("aten::_softmax"); };
  EXPECT_EQ(operations(decompose(parse(kSoftmax), {.keep = is_softmax})), "aten::_softmax");
}

TEST(Decompose, keeps_recorded_types_grad_mode_and_dropout_in_training) {
  expect_same(decompose(parse(R"(graph(%x: float32[2, 3]) {
      %y: float32[3, 2] strides=[1, 3] = aten::t(%x) {grad=false}
      %z: float32[3, 2] strides=[1, 3] = aten::dropout(%y, p=0.5, train=true)
      return %z
    })")),
              R"(graph(%x: float32[2, 3]) {
      %transpose: float32[3, 2] strides=[1, 3] = aten::transpose.int(%x, dim0=0, dim1=1) {grad=false}
      %dropout: float32[3, 2] strides=[1, 3] = aten::dropout(%transpose, p=0.5, train=true)
      return %dropout
    })");
}

TEST(Decompose, opens_bodies_without_a_row_when_asked) {
  const Graph graph = parse(R"(graph(%x: float32[2, 3]) {
    %y: float32[3, 2] = mine::op(%x) {body=region(%0: float32[2, 3]) {
      %a: float32[3, 2] = aten::t(%0)
      %b: float32[3, 2] = aten::relu(%a)
      return %b
    }}
    return %y
  })");
  EXPECT_EQ(operations(decompose(graph)), "mine::op");
  EXPECT_EQ(operations(decompose(graph, {.open_bodies = true})), "aten::transpose.int aten::relu");
}

// ---- fold_constants -----------------------------------------------------------------------------

constexpr std::string_view kConstants = R"(graph(%x: float32[3]) {
  %range: int64[3] = aten::arange(end=scalar(3), dtype=int64)
  %two: int64[] = composit::constant(value=array(int64[], [2]), wrapped=true)
  %mask: bool[3] = aten::lt.Tensor(%range, %two)
  %c: float32[3] = composit::constant(value=array(float32[3], [1.0, 2.0, 3.0]))
  %e: float32[3] = aten::exp(%c)
  %f: float32[3] = aten::flip(%c, dims=[0])
  %w: float32[3] = aten::where.self(%mask, %e, %f)
  %y: float32[3] = aten::mul.Tensor(%x, %w)
  return %y
})";

TEST(FoldConstants, moves_compares_and_counts) {
  expect_same(fold_constants(parse(kConstants)), R"(graph(%x: float32[3]) {
    %constant: bool[3] = composit::constant(value=array(bool[3], [true, true, false]))
    %constant_1: float32[3] = composit::constant(value=array(float32[3], [1.0, 2.0, 3.0]))
    %exp: float32[3] = aten::exp(%constant_1)
    %constant_2: float32[3] = composit::constant(value=array(float32[3], [3.0, 2.0, 1.0]))
    %where: float32[3] = aten::where.self(%constant, %exp, %constant_2)
    %mul: float32[3] = aten::mul.Tensor(%x, %where)
    return %mul
  })");
}

TEST(FoldConstants, folds_the_rest_when_asked) {
  EXPECT_EQ(operations(fold_constants(parse(kConstants), {.exact = false})), "aten::mul.Tensor");
}

TEST(FoldConstants, leaves_what_is_large) {
  const Graph graph = parse(kConstants);
  EXPECT_EQ(fold_constants(graph, {.max_bytes = 2}), graph);
  EXPECT_EQ(operations(fold_constants(graph, {.max_bytes = 12})),
            "aten::arange aten::lt.Tensor aten::exp aten::where.self aten::mul.Tensor");
}

TEST(FoldConstants, leaves_what_only_fills) {
  const Graph graph = parse(R"(graph(%x: float32[3]) {
    %ones: float32[3] = aten::full(size=[3], fill_value=scalar(1.0), dtype=float32)
    %y: float32[3] = aten::add.Tensor(%x, %ones, alpha=scalar(1))
    return %y
  })");
  EXPECT_EQ(fold_constants(graph), graph);
}

// A legal graph may name an operation whose row gives other results.
TEST(FoldConstants, leaves_nodes_of_other_types_than_their_row_gives) {
  const Graph graph = parse(R"(graph() {
    %c: float32[0, 4, 1] = composit::constant(value=array(float32[0, 4, 1], []))
    %y: int8[2, 0, 5] = aten::relu(%c)
    return %y
  })");
  EXPECT_EQ(fold_constants(graph), graph);
}

TEST(FoldConstants, computes_everything_at_once_with_the_backend_it_is_given) {
  const test::CountingBackend backend;
  fold_constants(parse(kConstants), {.exact = false, .backend = &backend});
  EXPECT_EQ(backend.compiled, 1U);
}

// ---- common_subexpressions ----------------------------------------------------------------------

TEST(CommonSubexpressions, merges_equal_values_only) {
  const Graph graph = parse(R"(graph(%x: float32[2, 3]) {
    %a: float32[2] = aten::sum.dim_IntList(%x, dim=[1], keepdim=false, dtype=none)
    %b: float32[2] = aten::sum.dim_IntList(%x, dim=[1], keepdim=false, dtype=none)
    %c: float32[2] strides=[2] = aten::sum.dim_IntList(%x, dim=[1], keepdim=false, dtype=none)
    %d: float32[2] = aten::add.Tensor(%a, %b, alpha=scalar(1))
    %e: float32[2] = aten::add.Tensor(%b, %a, alpha=scalar(1))
    %f: float32[2] = aten::add.Tensor(%a, %c, alpha=scalar(1))
    return %d, %e, %f
  })");
  const Graph shared = common_subexpressions(graph);
  EXPECT_EQ(shared, graph);
  EXPECT_EQ(graph.size(), 7U);
  EXPECT_EQ(shared.size(), 5U);  // x, a, c, d = e, f
  EXPECT_EQ(shared.outputs()[0].node, shared.outputs()[1].node);
  verify(shared);
}

TEST(CommonSubexpressions, two_draws_stay_two_and_a_dead_one_stays) {
  const Graph graph = parse(R"(graph(%x: float32[2]) {
    %a: float32[2] = aten::bernoulli(%x) {effect=0}
    %b: float32[2] = aten::bernoulli(%x) {effect=1}
    %c: float32[2] = aten::bernoulli(%x) {effect=2}
    %d: float32[2] = aten::add.Tensor(%a, %b, alpha=scalar(1))
    return %d
  })");
  const Graph shared = common_subexpressions(graph);
  EXPECT_EQ(shared.size(), 5U);
  EXPECT_EQ(shared.effects(), graph.effects());
}

TEST(CommonSubexpressions, of_modules_stand_before_them) {
  const Graph graph = parse(R"(graph(%x: float32[2], %m: float32[2]) {
    %a0: float32[2] = aten::sin(%x)  # scope=layer.0.query
    %b0: float32[2] = aten::exp(%m)  # scope=layer.0.mask
    %c0: float32[2] = aten::neg(%b0)  # scope=layer.0.mask
    %d0: float32[2] = aten::mul.Tensor(%a0, %c0)  # scope=layer.0
    %a1: float32[2] = aten::sin(%d0)  # scope=layer.1.query
    %b1: float32[2] = aten::exp(%m)  # scope=layer.1.mask
    %c1: float32[2] = aten::neg(%b1)  # scope=layer.1.mask
    %d1: float32[2] = aten::mul.Tensor(%a1, %c1)  # scope=layer.1
    %e: float32[2] = aten::sin(%d0)  # scope=head
    %f: float32[2] = aten::cos(%e)  # scope=head
    return %d1, %f
  })");
  const Graph shared = common_subexpressions(graph);
  verify(shared);
  EXPECT_EQ(shared, graph);
  std::string nodes;
  for (const NodePtr& node : shared.nodes())
    if (!is_input(*node))
      nodes += node->op().str().substr(6) + " " + std::string(node->annotation("scope")) + "; ";
  EXPECT_EQ(
      nodes,
      "exp layer; neg layer; sin layer.0.query; mul.Tensor layer.0; sin layer.1.query; mul.Tensor "
      "layer.1; cos head; ");
}

TEST(CommonSubexpressions, equal_regions_become_one_object) {
  const Graph graph = common_subexpressions(parse(R"(graph(%x: float32[2]) {
    %a: float32[2] = composit::call(%x, name="f") {body=region(%0: float32[2]) {
      %e: float32[2] = aten::exp(%0)
      return %e
    }}
    %b: float32[2] = composit::call(%a, name="f") {body=region(%0: float32[2]) {
      %e: float32[2] = aten::exp(%0)
      return %e
    }}
    return %b
  })"));
  const Node& second = *graph.outputs()[0].node;
  const Node& first = *second.operands()[0].node;
  EXPECT_EQ(first.find_run("body")->as<Region>()->nodes(),
            second.find_run("body")->as<Region>()->nodes());
}

// ---- drop_no_ops --------------------------------------------------------------------------------

// The graph of `line` for %x: float32[2, 3], after the pass.
std::string after_drop(const std::string& lines, const DropOptions& options = {}) {
  return operations(
      drop_no_ops(parse("graph(%x: float32[2, 3]) {\n" + lines + "\nreturn %y\n}"), options));
}

TEST(DropNoOps, drops_what_gives_its_operand_back) {
  for (const char* line : {
           "%y: float32[2, 3] = aten::dropout(%x, p=0.5, train=false)",
           "%y: float32[2, 3] = aten::view(%x, size=[2, -1])",
           "%y: float32[2, 3] = aten::expand(%x, size=[-1, 3], implicit=false)",
           "%y: float32[2, 3] = aten::permute(%x, dims=[0, -1])",
           "%y: float32[2, 3] = aten::slice.Tensor(%x, dim=1, start=none, end=9, step=1)",
           "%y: float32[2, 3] = aten::to.dtype(%x, dtype=float32)",
           "%y: float32[2, 3] = aten::contiguous(%x, memory_format=contiguous_format)",
           "%y: float32[2, 3] = aten::clone(%x, memory_format=none)",
           "%y: float32[2, 3] = aten::alias(%x)",
           "%y: float32[2, 3] = aten::type_as(%x, %x)",
       })
    EXPECT_EQ(after_drop(line), "") << line;
}

TEST(DropNoOps, keeps_what_does_something) {
  for (const char* line : {
           "%y: float32[2, 3] = aten::dropout(%x, p=0.5, train=true)",
           "%y: float32[2, 3] = aten::flip(%x, dims=[1])",
           "%y: float32[2, 3] strides=[1, 2] = aten::clone(%x, memory_format=none)",
           "%y: float32[2, 2] = aten::slice.Tensor(%x, dim=1, start=1, end=9, step=1)",
           "%y: float32[2, 3] = aten::clone(%x, memory_format=none) {grad=false}",
           "%y: float32[2, 3] = aten::detach(%x)",
           "%y: float32[2, 3] = aten::relu(%x)",
       })
    EXPECT_NE(after_drop(line), "") << line;
}

TEST(DropNoOps, drops_the_ends_of_gradients_when_asked) {
  for (const char* line : {"%y: float32[2, 3] = aten::clone(%x, memory_format=none) {grad=false}",
                           "%y: float32[2, 3] = aten::detach(%x)"})
    EXPECT_EQ(after_drop(line, {.detach = true}), "") << line;
}

TEST(DropNoOps, knows_which_numbers_change_nothing) {
  const auto with = [](const std::string& number, const std::string& op) {
    return after_drop("%n: float32[] = composit::constant(value=array(float32[], [" + number +
                      "]), wrapped=true)\n%y: float32[2, 3] = aten::" + op);
  };
  EXPECT_EQ(with("1.0", "mul.Tensor(%x, %n)"), "");
  EXPECT_EQ(with("1.0", "mul.Tensor(%n, %x)"), "");
  EXPECT_EQ(with("1.0", "div.Tensor(%x, %n)"), "");
  EXPECT_EQ(with("0.0", "sub.Tensor(%x, %n, alpha=scalar(1))"), "");
  EXPECT_EQ(with("-0.0", "sub.Tensor(%x, %n, alpha=scalar(1))"), "aten::sub.Tensor");
  EXPECT_EQ(with("0.0", "sub.Tensor(%x, %n, alpha=scalar(-1))"), "aten::sub.Tensor");
  EXPECT_EQ(with("0.0", "add.Tensor(%x, %n, alpha=scalar(1))"), "aten::add.Tensor");  // -0 + 0 is 0
  EXPECT_EQ(with("1.0", "div.Tensor(%n, %x)"), "aten::div.Tensor");
  EXPECT_EQ(with("2.0", "mul.Tensor(%x, %n)"), "aten::mul.Tensor");
}

// A tensor of float64 makes y float64, a number does not.
TEST(DropNoOps, a_number_does_not_stand_in_for_a_tensor) {
  const std::string text = R"(%n: float64[] = composit::constant(value=array(float64[], [2.0]),
      wrapped=true)
    %a: float64[] = aten::alias(%n)
    %y: float32[2, 3] = aten::mul.Tensor(%x, %a))";
  EXPECT_EQ(after_drop(text), "aten::alias aten::mul.Tensor");
}

TEST(DropNoOps, ones_that_broadcast_their_partner_stay) {
  EXPECT_EQ(after_drop(R"(%o: float32[4, 2, 3] = aten::full(size=[4, 2, 3], fill_value=scalar(1.0),
      dtype=float32)
    %y: float32[4, 2, 3] = aten::mul.Tensor(%x, %o))"),
            "aten::full aten::mul.Tensor");
}

TEST(DropNoOps, merges_permutations_reshapes_and_negations) {
  expect_same(drop_no_ops(parse(R"(graph(%x: float32[2, 3, 4]) {
      %a: float32[3, 4, 2] = aten::permute(%x, dims=[1, 2, 0])
      %b: float32[2, 4, 3] = aten::permute(%a, dims=[2, 1, 0])
      %c: float32[2, 3, 4] = aten::permute(%b, dims=[0, -1, 1])
      %d: float32[6, 4] = aten::reshape(%b, shape=[6, 4])
      %e: float32[24] = aten::reshape(%d, shape=[-1])
      %f: float32[24] = aten::neg(%e)
      %g: float32[24] = aten::neg(%f)
      return %c, %g
    })")),
              R"(graph(%x: float32[2, 3, 4]) {
      %permute: float32[2, 4, 3] = aten::permute(%x, dims=[0, 2, 1])
      %reshape: float32[24] = aten::reshape(%permute, shape=[-1])
      return %x, %reshape
    })");
}

// ---- share_parts --------------------------------------------------------------------------------

constexpr std::string_view kLayerNorm = R"(graph(%x: float64[4, 3]) {
  %y: float64[4, 3] = aten::layer_norm(%x, none, none, normalized_shape=[3], eps=1e-05, cudnn_enable=true)  # scope=norm
  %loss: float64[] = aten::sum(%y, dtype=none)
  return %loss
})";

TEST(ShareParts, the_forward_operation_gives_what_the_derivative_asks_for) {
  const Graph graph = parse(kLayerNorm);
  const LazyTensor x = graph.inputs()[0], loss = graph.outputs()[0];
  const Graph both({.inputs = {x}, .outputs = {loss, grad(loss, {x})[0]}});
  EXPECT_THAT(operations(both), testing::HasSubstr("aten::layer_norm"));
  const Graph shared = share_parts(both);
  verify(shared);
  EXPECT_EQ(operations(shared),
            "aten::native_layer_norm aten::sum aten::full aten::expand "
            "aten::native_layer_norm_backward");
  const Array value = array_of(x.type(), std::vector<double>{1, 2, 4, 8, 5, 7, 1, 3, 2, 6, 9, 0});
  const auto before = evaluate(both, {value}), after = evaluate(shared, {value});
  for (size_t i = 0; i < before.size(); ++i) EXPECT_EQ(before[i], after[i]);
}

TEST(ShareParts, leaves_closed_what_nobody_looks_into) {
  const Graph graph = parse(kLayerNorm);
  EXPECT_EQ(print(share_parts(graph)), print(graph));
}

TEST(ShareParts, derivatives_lie_in_the_module_of_what_they_derive) {
  const Graph graph = parse(kLayerNorm);
  const LazyTensor gradient = grad(graph.outputs()[0], {graph.inputs()[0]})[0];
  EXPECT_EQ(gradient.node->annotation("scope"), "norm");
}

// ---- join slices
// ---------------------------------------------------------------------------------

// Parts that overlap, touch, leave gaps and stand alone; bits are equal, the signs of zeros too.
TEST(JoinSlices, gives_the_same_bits) {
  const Graph graph = parse(R"(graph(%a: float32[3, 2], %b: float32[2, 2], %c: float32[2]) {
    %x: float32[8, 2] = aten::slice_backward(%a, input_sizes=[8, 2], dim=0, start=1, end=4, step=1)
    %y: float32[8, 2] = aten::slice_backward(%b, input_sizes=[8, 2], dim=0, start=-5, end=5, step=1)
    %z: float32[8, 2] = aten::select_backward(%c, input_sizes=[8, 2], dim=-2, index=5)
    %xy: float32[8, 2] = aten::add.Tensor(%x, %y, alpha=scalar(1))
    %sum: float32[8, 2] = aten::add.Tensor(%z, %xy, alpha=scalar(1))
    return %sum
  })");
  const Graph joined = join_slices(graph);
  verify(joined);
  EXPECT_THAT(operations(joined), testing::Not(testing::HasSubstr("backward")));
  const auto array = [](const Dims& sizes, const std::vector<double>& numbers) {
    return array_of(tensor_type(DType::float32, sizes), numbers);
  };
  const std::vector<Array> inputs = {array({3, 2}, {1, -0.0, 2, -0.0, 3, -0.0}),
                                     array({2, 2}, {5, -0.0, 7, 8}), array({2}, {-0.0, INFINITY})};
  EXPECT_EQ(evaluate(joined, inputs), evaluate(graph, inputs));
}

TEST(JoinSlices, leaves_alone_what_is_used_elsewhere_or_cut_otherwise) {
  for (const char* text : {R"(graph(%a: float32[2]) {
    %x: float32[4] = aten::slice_backward(%a, input_sizes=[4], dim=0, start=0, end=2, step=1)
    %y: float32[4] = aten::slice_backward(%a, input_sizes=[4], dim=0, start=2, end=4, step=1)
    %sum: float32[4] = aten::add.Tensor(%x, %y, alpha=scalar(1))
    return %sum, %x
  })",
                           R"(graph(%a: float32[2]) {
    %x: float32[4] = aten::slice_backward(%a, input_sizes=[4], dim=0, start=0, end=4, step=2)
    %y: float32[4] = aten::slice_backward(%a, input_sizes=[4], dim=0, start=2, end=4, step=1)
    %sum: float32[4] = aten::add.Tensor(%x, %y, alpha=scalar(1))
    return %sum
  })"})
    expect_same(join_slices(parse(text)), text);
}

// ---- straight_through ---------------------------------------------------------------------------

constexpr std::string_view kRounded = R"(graph(%x: float32[2, 3], %w: float32[3]) {
  %scales, %zeros: float32[2, 1], float32[2, 1] = quantized_decomposed::choose_qparams_per_token(%x, dtype=int8)
  %q: int8[2, 3] = quantized_decomposed::quantize_per_token(%x, %scales, %zeros, quant_min=-128, quant_max=127, dtype=int8)
  %turned: int8[2, 3] = aten::flip(%q, dims=[1])
  %back: int8[2, 3] = aten::flip(%turned, dims=[1])
  %y: float32[2, 3] = quantized_decomposed::dequantize_per_token(%BACK, %scales, %zeros, quant_min=-128, quant_max=127, dtype=int8, output_dtype=float32)
  %z: float32[2, 3] = aten::mul.Tensor(%y, %w)
  %loss: float32[] = aten::sum(%z, dtype=none)
  return %loss
})";

std::string rounded_by(const std::string& integers) {
  std::string text(kRounded);
  return text.replace(text.find("%BACK"), 5, integers);
}

TEST(StraightThrough, without_it_a_derivative_names_who_rounds) {
  for (const char* integers : {"%q", "%back"}) {
    const Graph graph = parse(rounded_by(integers));
    EXPECT_THAT(
        user_error([&] { grad(graph.outputs()[0], {graph.inputs()[0]}); }).value_or("no error"),
        testing::HasSubstr(
            "goes through 'quantized_decomposed::quantize_per_token', which rounds"));
    // By the other factor there is one.
    EXPECT_EQ(grad(graph.outputs()[0], {graph.inputs()[1]}).size(), 1U);
  }
}

// With scales that are numbers, no tensor but the integers leads to the result.
TEST(StraightThrough, without_it_scales_that_are_numbers_lose_no_derivative) {
  const Graph graph = parse(R"(graph(%x: float32[2, 3]) {
    %q: int8[2, 3] = quantized_decomposed::quantize_per_tensor(%x, scale=0.1, zero_point=0, quant_min=-128, quant_max=127, dtype=int8)
    %y: float32[2, 3] = quantized_decomposed::dequantize_per_tensor(%q, scale=0.1, zero_point=0, quant_min=-128, quant_max=127, dtype=int8, out_dtype=none)
    %loss: float32[] = aten::sum(%y, dtype=none)
    return %loss
  })");
  EXPECT_THAT(
      user_error([&] { grad(graph.outputs()[0], {graph.inputs()[0]}); }).value_or("no error"),
      testing::HasSubstr("goes through 'quantized_decomposed::quantize_per_tensor', which rounds"));
}

TEST(StraightThrough, rounding_has_slope_1) {
  const Graph graph = parse(rounded_by("%q")), through = straight_through(graph);
  const Array x = array_of<double>(graph.inputs()[0].type(), {0.3, -1.7, 2.0, 0.1, 0.2, -0.9});
  const Array w = array_of<double>(graph.inputs()[1].type(), {2, -3, 5});
  EXPECT_EQ(elements<double>(evaluate(through, {x, w})[0]),
            elements<double>(evaluate(graph, {x, w})[0]));
  const LazyTensors slopes = grad(through.outputs()[0], {graph.inputs()[0]});
  const Values inputs{{graph.inputs()[0], x}, {graph.inputs()[1], w}};
  EXPECT_EQ(elements<double>(evaluate(slopes, inputs)[0]),
            (std::vector<double>{2, -3, 5, 2, -3, 5}));
}

}  // namespace
}  // namespace composit
