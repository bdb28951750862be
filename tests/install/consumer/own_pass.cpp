// A pass of one's own on top of the installed package: x + x becomes 2 * x, between two of those
// that are there.
#include <composit/eval/evaluate.h>
#include <composit/ir/print.h>
#include <composit/ir/transform.h>
#include <composit/ops/functions.h>
#include <composit/ops/native.h>
#include <composit/passes/pass.h>

#include <algorithm>
#include <iostream>

using namespace composit;

static Graph doubled(const Graph& graph) {
  return rebuild(graph, [](const Node& node, const LazyTensors& operands) {
    std::optional<Replacement> replacement;
    if (node.op() == Symbol("aten::add.Tensor") && operands[0] == operands[1])
      replacement = Replacement{.outputs = {2.0 * operands[0]}};
    return replacement;
  });
}

static bool has(const Graph& graph, std::string_view operation) {
  const auto is_it = [&](const NodePtr& node) { return node->op() == Symbol(operation); };
  return std::any_of(graph.nodes().begin(), graph.nodes().end(), is_it);
}

int main() {
  const LazyTensor x = input("x", tensor_type(DType::float64, {2}));
  const Graph graph({.inputs = {x}, .outputs = {exp(x) + exp(x * 1.0)}});
  const Pass mine{.name = "doubled", .help = "x + x is 2 * x", .run = doubled};
  const Graph after =
      run_passes(graph, {find_pass("drop_no_ops"), mine, find_pass("common_subexpressions")}, {});
  std::cout << print(graph) << print(after);

  const Array values = array_of(x.type(), std::vector<double>{0.5, -1.25});
  const bool equal = evaluate(graph, {values})[0] == evaluate(after, {values})[0];
  const bool rewritten = after.size() == 4 && !has(after, "aten::add.Tensor");
  std::cout << (equal && rewritten ? "rewritten, and the same value\n" : "not as expected\n");
  return equal && rewritten ? 0 : 1;
}
