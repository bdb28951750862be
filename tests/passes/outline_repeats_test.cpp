// Pieces that repeat become calls; calls compute, differentiate and print.
#include "composit/passes/outline_repeats.h"

#include <gtest/gtest.h>

#include "composit/ad/chain_rule.h"
#include "composit/eval/evaluate.h"
#include "composit/ir/parse.h"
#include "composit/ir/print.h"
#include "composit/ir/verify.h"
#include "composit/ops/functions.h"
#include "composit/passes/inline_calls.h"
#include "tests/agreement.h"
#include "tests/passes/computable_graph.h"

namespace composit {
namespace {

using test::random_inputs;

std::vector<NodePtr> calls_in(const Graph& graph) {
  std::vector<NodePtr> calls;
  for (const NodePtr& node : graph.nodes())
    if (node->op() == ops::kCall) calls.push_back(node);
  return calls;
}
const Region& body_of(const NodePtr& call) { return call->find_run("body")->as<Region>(); }

void expect_inverse(const Graph& outlined, const Graph& graph) {
  verify(outlined);
  EXPECT_EQ(inline_calls(outlined), graph);
  EXPECT_EQ(parse(print(outlined)), outlined);
}

LazyTensor matrix(const std::string& name, InputKind kind = InputKind::user_input) {
  return input(name, tensor_type(DType::float64, {4, 4}), kind);
}

// Attention over x, then two products: with parameters of its own.
LazyTensor encoder_layer(const LazyTensor& x, const LazyTensor& mask, const std::string& name,
                         LazyTensors& inputs) {
  const auto parameter = [&](const char* of) {
    inputs.push_back(matrix(name + of, InputKind::parameter));
    return inputs.back();
  };
  const auto product = [](const LazyTensor& a, const LazyTensor& weight) {
    return apply_one("aten::linear", {a, weight});
  };
  const LazyTensor q = product(x, parameter(".q")), k = product(x, parameter(".k"));
  const LazyTensor scores = mm(q, transpose(k, 0, 1)) / 2 + mask;
  const LazyTensor y = x + mm(softmax(scores, -1), product(x, parameter(".v")));
  const LazyTensor hidden = apply_one("aten::gelu", {product(y, parameter(".up"))});
  return apply_one("aten::layer_norm", {y + product(hidden, parameter(".down")), Ints{4}});
}

Graph encoder(int64_t layers) {
  Graph::Parts parts{.inputs = {matrix("x"), matrix("mask")}};
  const LazyTensor mask = parts.inputs[1];  // a copy: inputs grow
  LazyTensor x = exp(parts.inputs[0]);
  for (int64_t i = 0; i < layers; ++i)
    x = encoder_layer(x, mask, "layer" + std::to_string(i), parts.inputs);
  parts.outputs = {sum(x)};
  return Graph(parts);
}

TEST(OutlineRepeats, equal_layers_are_calls_of_one_region) {
  const Graph graph = encoder(12), outlined = outline_repeats(graph);
  const auto calls = calls_in(outlined);
  ASSERT_EQ(calls.size(), 12U);
  for (const NodePtr& call : calls) {
    EXPECT_EQ(body_of(call), body_of(calls[0]));  // one object
    EXPECT_EQ(call->operands().size(), 7U);       // x, five weights, the mask
    EXPECT_EQ(call->outputs().size(), 1U);
  }
  EXPECT_EQ(outlined.size(), 2U + 12 * 5 + 12 + 2);  // inputs, calls, exp and sum
  expect_inverse(outlined, graph);
}

TEST(OutlineRepeats, calls_compute_and_differentiate) {
  const Graph graph = encoder(3), outlined = outline_repeats(graph);
  ASSERT_EQ(calls_in(outlined).size(), 3U);
  const auto inputs = random_inputs(graph, 1);
  EXPECT_EQ(evaluate(outlined, inputs), evaluate(graph, inputs));
  const auto gradients = [&](const Graph& of) {
    return evaluate(Graph({.inputs = of.inputs(), .outputs = grad(of.outputs()[0], of.inputs())}),
                    inputs);
  };
  const auto expected = gradients(graph), found = gradients(outlined);
  for (size_t i = 0; i < expected.size(); ++i)
    EXPECT_EQ(test::difference(found[i], expected[i]), "") << "input " << i;
}

TEST(OutlineRepeats, a_region_gives_what_any_call_is_asked_for) {
  Graph::Parts parts{.inputs = {matrix("x")}};
  LazyTensor x = parts.inputs[0], middle;
  for (int i = 0; i < 6; ++i) {
    const LazyTensor inner = tanh(sin(x));
    if (i == 3) middle = inner;
    x = cos(exp(-square(inner)));
  }
  parts.outputs = {x, middle};
  const Graph graph(parts), outlined = outline_repeats(graph);
  const auto calls = calls_in(outlined);
  ASSERT_FALSE(calls.empty());
  EXPECT_EQ(body_of(calls[0])->outputs().size(), 2U);
  expect_inverse(outlined, graph);
  const auto inputs = random_inputs(graph, 1);
  EXPECT_EQ(evaluate(outlined, inputs), evaluate(graph, inputs));
}

// Two convolutions with a norm each, beside a shortcut.
LazyTensor residual_block(const LazyTensor& x, const std::string& name, LazyTensors& inputs) {
  const auto parameter = [&](const std::string& of, Dims sizes) {
    inputs.push_back(
        input(name + of, tensor_type(DType::float64, std::move(sizes)), InputKind::parameter));
    return inputs.back();
  };
  const auto convolved = [&](const LazyTensor& y, const std::string& of) {
    const LazyTensor z = apply_one("aten::conv2d", {y, parameter(of, {2, 2, 3, 3}), {}, 1, 1});
    return apply_one("aten::batch_norm",
                     {z, parameter(of + ".weight", {2}), parameter(of + ".bias", {2}),
                      parameter(of + ".mean", {2}), square(parameter(of + ".root", {2})) + 1, false,
                      0.1, 1e-5, true});
  };
  return relu(convolved(relu(convolved(x, ".conv1")), ".conv2") + x);
}

TEST(OutlineRepeats, residual_blocks_at_two_resolutions_are_two_regions) {
  Graph::Parts parts{.inputs = {input("x", tensor_type(DType::float64, {1, 2, 8, 8}))}};
  LazyTensor x = parts.inputs[0];
  for (int i = 0; i < 7; ++i) {
    if (i == 3) x = apply_one("aten::max_pool2d", {x, 2});
    x = residual_block(x, "block" + std::to_string(i), parts.inputs);
  }
  parts.outputs = {mean(x)};
  const Graph graph(parts), outlined = outline_repeats(graph);
  const auto calls = calls_in(outlined);
  ASSERT_EQ(calls.size(), 7U);
  EXPECT_EQ(body_of(calls[0]), body_of(calls[2]));
  EXPECT_EQ(body_of(calls[3]), body_of(calls[6]));
  EXPECT_FALSE(*body_of(calls[0]) == *body_of(calls[3]));
  expect_inverse(outlined, graph);
  const auto inputs = random_inputs(graph, 1);
  EXPECT_EQ(evaluate(outlined, inputs), evaluate(graph, inputs));
}

// Nodes between the pieces may differ: numbers, other operations, effects.
TEST(OutlineRepeats, finds_pieces_with_other_things_between) {
  Graph::Parts parts{.inputs = {matrix("x"), matrix("y")}};
  LazyTensor x = parts.inputs[0];
  const LazyTensor y = parts.inputs[1];
  for (int step = 0; step < 5; ++step) {
    LazyTensor noise = y;
    for (int i = 0; i < 3; ++i) noise = exp(-mm(noise, tanh(x)) + sigmoid(y));
    x = x * (1.0 - 0.1 * step) + noise * (0.3 * step + 0.1);
    if (step % 2 == 0) x = relu(x);
  }
  parts.outputs = {x};
  const Graph graph(parts), outlined = outline_repeats(graph);
  EXPECT_LT(outlined.size(), graph.size() / 2);
  expect_inverse(outlined, graph);
}

TEST(OutlineRepeats, shares_an_operand_only_where_every_call_does) {
  Graph::Parts parts{.inputs = {matrix("x"), matrix("y")}};
  const LazyTensor x = parts.inputs[0], y = parts.inputs[1];
  const auto piece = [](const LazyTensor& a, const LazyTensor& b) {
    return exp(sin(cos(tanh(sigmoid(a) + a) * b)));
  };
  parts.outputs = {piece(x, x), piece(x, y), piece(y, x)};
  const Graph graph(parts), outlined = outline_repeats(graph);
  ASSERT_EQ(calls_in(outlined).size(), 3U);
  for (const NodePtr& call : calls_in(outlined)) EXPECT_EQ(call->operands().size(), 2U);
  expect_inverse(outlined, graph);
}

TEST(OutlineRepeats, a_region_keeps_the_order_of_its_nodes) {
  Graph::Parts parts{.inputs = {matrix("x"), matrix("y"), matrix("z")}};
  for (size_t i = 0; i < 3; ++i) {
    const LazyTensor x = parts.inputs[i], y = parts.inputs[(i + 1) % 3];
    const LazyTensor product = x * y, sine = sin(x);
    parts.outputs.push_back(exp(cos(tanh(product - sine))));
  }
  const Graph outlined = outline_repeats(Graph(parts), {.min_length = 4, .min_saved = 1});
  ASSERT_EQ(calls_in(outlined).size(), 3U);
  const auto& nodes = body_of(calls_in(outlined)[0])->nodes();
  EXPECT_EQ(nodes[2]->op().str(), "aten::mul.Tensor");
  EXPECT_EQ(nodes[3]->op().str(), "aten::sin");
}

TEST(OutlineRepeats, types_numbers_and_inner_wiring_have_to_agree) {
  const LazyTensor x = matrix("x"), y = matrix("y");
  const auto saved = [&](const LazyTensors& results) {
    Graph::Parts parts{.inputs = {x, y}};
    for (const LazyTensor& result : results) parts.outputs.push_back(result);
    const Graph graph(parts);
    const Graph outlined = outline_repeats(graph);
    verify(outlined);
    return outlined.size() < graph.size();
  };
  const auto chain = [](const LazyTensor& a) {
    return exp(sin(cos(tanh(sigmoid(exp(sin(cos(tanh(a)))))))));
  };
  EXPECT_TRUE(saved({chain(x), chain(y)}));
  EXPECT_FALSE(saved({chain(x), chain(to(y, DType::float32))}));
  const auto total = [&](const LazyTensor& a) { return chain(tanh(sigmoid(sum(a)))); };
  EXPECT_TRUE(saved({total(x), total(slice(y, 0, 0, 2))}));  // but for the sums
  const auto scaled = [](const LazyTensor& a, double by) {
    LazyTensor b = a;
    for (int i = 0; i < 5; ++i) b = sin(b) * (by + i);
    return b;
  };
  EXPECT_TRUE(saved({scaled(x, 2), scaled(y, 2)}));
  EXPECT_FALSE(saved({scaled(x, 2), scaled(y, 20)}));
  const auto wired = [](const LazyTensor& a, bool other) {
    const LazyTensor b = sin(a), c = cos(a), d = tanh(b), e = tanh(c);
    return exp(exp(exp(exp(exp((other ? d - e : e - d) + (other ? b : c))))));
  };
  EXPECT_TRUE(saved({wired(x, true), wired(y, true)}));
  EXPECT_FALSE(saved({wired(x, true), wired(y, false)}));
}

TEST(OutlineRepeats, leaves_effects_in_their_order) {
  const Graph graph = parse(R"(graph(%x: float32[2]) {
    %a1: float32[2] = aten::sin(%x)
    %b1: float32[2] = aten::bernoulli(%a1) {effect=0}
    %c1: float32[2] = aten::exp(%b1)
    %d1: float32[2] = aten::cos(%c1)
    %a2: float32[2] = aten::sin(%d1)
    %b2: float32[2] = aten::bernoulli(%a2) {effect=1}
    %c2: float32[2] = aten::exp(%b2)
    %d2: float32[2] = aten::cos(%c2)
    %a3: float32[2] = aten::sin(%d2)
    %b3: float32[2] = aten::bernoulli(%a3) {effect=2}
    %c3: float32[2] = aten::exp(%b3)
    %d3: float32[2] = aten::cos(%c3)
    mutate %x = %d3
    return %d3, %d3, none
  })");
  const Graph outlined = outline_repeats(graph, {.min_length = 2, .min_saved = 1});
  EXPECT_EQ(calls_in(outlined).size(), 3U);  // of exp and cos
  EXPECT_EQ(outlined.effects().size(), 3U);
  expect_inverse(outlined, graph);
}

// A layer draws twice; what is drawn between layers stays there.
TEST(OutlineRepeats, effects_of_pieces_keep_their_order) {
  std::string text = "graph(%x: float32[2]) {\n", last = "%x";
  int effect = 0;
  const auto add = [&](const std::string& op, const std::string& operands, bool draws) {
    const std::string name = "%v" + std::to_string(text.size());
    text += "  " + name + ": float32[2] = aten::" + op + "(" + operands + ")";
    if (draws) text += " {effect=" + std::to_string(effect++) + "}";
    text += "\n";
    return name;
  };
  for (int layer = 0; layer < 3; ++layer) {
    const std::string y = add("sin", last, false), mask = add("bernoulli", y, true);
    const std::string z = add("mul.Tensor", y + ", " + mask, false);
    last = add("mul.Tensor", z + ", " + add("bernoulli", add("exp", z, false), true), false);
    if (layer == 1) last = add("poisson", last, true);
  }
  const Graph graph = parse(text + "  return " + last + "\n}");
  const Graph outlined = outline_repeats(graph, {.min_length = 4, .min_saved = 1, .effects = true});
  verify(outlined);
  EXPECT_EQ(parse(print(outlined)), outlined);
  EXPECT_EQ(inline_calls(outlined), outlined);
  const auto calls = calls_in(outlined);
  ASSERT_EQ(calls.size(), 3U);
  ASSERT_EQ(outlined.effects().size(), 4U);
  EXPECT_EQ(outlined.effects()[1], calls[1]);
  EXPECT_EQ(outlined.effects()[2]->op(), Symbol("aten::poisson"));
  const Graph& body = *body_of(calls[0]);
  ASSERT_EQ(body.effects().size(), 2U);
  EXPECT_EQ(body.effects()[0]->effect(), 0);
  EXPECT_EQ(body.effects()[1]->operands()[0].node->op(), Symbol("aten::exp"));
  // As a rule they are left where they are.
  EXPECT_EQ(outline_repeats(graph, {.min_length = 4, .min_saved = 1}), graph);
}

// A list of effects in another order than that of the nodes is not what calls would make of it.
TEST(OutlineRepeats, effects_out_of_order_stay) {
  const Graph graph = parse(R"(graph(%x: float32[2]) {
    %a: float32[2] = aten::bernoulli(%x) {effect=1}
    %b: float32[2] = aten::sin(%a)
    %c: float32[2] = aten::bernoulli(%b) {effect=2}
    %d: float32[2] = aten::sin(%c)
    %e: float32[2] = aten::bernoulli(%x) {effect=0}
    return %d, %e
  })");
  EXPECT_EQ(outline_repeats(graph, {.min_length = 2, .min_saved = 0, .effects = true}), graph);
}

TEST(OutlineRepeats, a_chain_of_ten_thousand) {
  Graph::Parts parts{.inputs = {matrix("x")}};
  LazyTensor x = parts.inputs[0];
  for (int i = 0; i < 10000; ++i) x = sin(x);
  parts.outputs = {x};
  const Graph graph(parts), outlined = outline_repeats(graph);
  EXPECT_LE(outlined.size(), 30U);
  expect_inverse(outlined, graph);
}

TEST(OutlineRepeats, names_regions_and_scopes_by_the_module) {
  std::string text = "graph(%x: float32[2]";
  for (const std::string i : {"0", "1", "2"})
    text += ", %w" + i + ": float32[2] parameter \"encoder.layer." + i + ".mlp.weight\"";
  text += ") {\n";
  std::string last = "%x";
  for (int i = 0; i < 3; ++i)
    for (const char* part : {"norm sin", "mlp.up cos", "mlp.down exp", "mlp tanh", "norm abs"}) {
      const std::string line(part), scope = line.substr(0, line.find(' '));
      const std::string op = line.substr(line.find(' ') + 1), name = "%" + op + std::to_string(i);
      const std::string weight = op == "tanh" ? ", %w" + std::to_string(i) : "";
      text += name + ": float32[2] = aten::" + op + "(" + last + weight +
              ")  # scope=encoder.layer." + std::to_string(i) + "." + scope + "\n";
      last = name;
    }
  const Graph graph = parse(text + "return " + last + "\n}");
  const Graph outlined = outline_repeats(graph, {.min_length = 3, .min_saved = 1});
  const auto calls = calls_in(outlined);
  ASSERT_EQ(calls.size(), 3U);
  EXPECT_EQ(calls[1]->attribute("name").as<std::string>(), "encoder_layer");
  EXPECT_EQ(calls[1]->annotation("scope"), "encoder.layer.1");
  const Graph& body = *body_of(calls[1]);
  EXPECT_EQ(input_name(*body.inputs()[0].node), "0");
  EXPECT_EQ(input_name(*body.inputs()[1].node), "mlp.weight");
  std::string inner;
  for (const NodePtr& node : body.nodes())
    if (!is_input(*node))
      inner += node->op().str() + " " + std::string(node->annotation("scope")) + "; ";
  EXPECT_EQ(
      inner,
      "aten::sin norm; aten::cos mlp.up; aten::exp mlp.down; aten::tanh mlp; aten::abs norm; ");
  EXPECT_EQ(print(inline_calls(outlined)), print(graph));  // scopes come back
}

}  // namespace
}  // namespace composit
