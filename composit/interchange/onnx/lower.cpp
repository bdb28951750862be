#include "composit/interchange/onnx/lower.h"

#include <algorithm>
#include <set>

#include "composit/interchange/definition.h"
#include "composit/interchange/onnx/ops.h"
#include "composit/interchange/onnx/rows.h"
#include "composit/interchange/refusals.h"
#include "composit/ir/error.h"
#include "composit/ir/print.h"
#include "composit/ir/transform.h"
#include "composit/ops/draws.h"
#include "composit/ops/functions.h"
#include "composit/ops/guards.h"
#include "composit/passes/definition.h"
#include "composit/passes/fold_constants.h"
#include "composit/passes/inline_calls.h"

namespace composit::onnx {
namespace {

std::string place_of(const Node& node) {
  const std::string_view source = node.annotation("source");
  return source.empty() ? "" : " at " + std::string(source);
}

class Lowering {
 public:
  Lowered run(const Graph& graph) {
    const Graph plain = without_guards(inline_calls(graph));
    Lowered result;
    const Graph made = lowered(fold_constants(plain));
    refusals_.expect_none();
    result.graph = with_sizes_that_hold(made);
    result.guards = std::move(guards_);
    return result;
  }

 private:
  // ---- guards -----------------------------------------------------------------------------------

  // What the guards of a graph ask, as bools that hold where they do.
  LazyTensors answers(const Graph& graph) {
    LazyTensors all;
    for (const NodePtr& node : graph.effects()) {
      if (const Guard* guard = guard_of(*node)) {
        if (const LazyTensor holds = holds_of(*guard, *node)) all.push_back(holds);
        continue;
      }
      const Attribute* body = node->find_run("body");
      if (body == nullptr) {
        // What is an effect because it may fail (an index out of range) fails in ONNX as well. A
        // draw that nobody uses only moves a generator, and one that is used has no operator.
        if (find_draw(node->op()) == nullptr && operation_of(*node) == nullptr)
          refusals_.add(*node, {}, "it has effects, which ONNX has not");
        continue;
      }
      const Graph& inside = *body->as<Region>();
      const Graph asked({.inputs = inside.inputs(), .outputs = answers(inside)});
      LazyTensors operands;
      for (const LazyTensor& operand : node->operands())
        if (operand) operands.push_back(operand);
      for (const LazyTensor& holds : inlined(asked, operands)) all.push_back(holds);
    }
    return all;
  }

  LazyTensor holds_of(const Guard& guard, const Node& node) {
    if (guard.expected == Guard::Expected::types) return {};
    LazyTensor number = node.operands().at(0);
    if (guard.answer) {
      const Call call = call_of(node, guard.schema);
      number = guard.answer({.call = &call});
      if (!number) return {};
    }
    const Scalar expected = expected_of(guard, node);
    guards_.push_back(node.op().str() + place_of(node) + " is " + print(Attribute(expected)));
    number = apply_one("aten::reshape", {number, Dims{}});
    const bool not_zero = guard.expected == Guard::Expected::nonzero;
    return not_zero ? ne(number, 0) : eq(number, Number(expected));
  }

  Graph without_guards(const Graph& graph) {
    Graph::Parts parts = graph.parts();
    for (const LazyTensor& holds : answers(graph)) parts.outputs.push_back(holds);
    parts.effects.clear();
    return Graph(std::move(parts));
  }

  // Sizes that follow from values have to be what they were.
  Graph with_sizes_that_hold(const Graph& graph) {
    static const Symbol kNonZero(std::string(kDomain) + "::NonZero");
    Graph::Parts parts = graph.parts();
    for (const NodePtr& node : graph.nodes()) {
      if (node->op() != kNonZero) continue;
      const LazyTensor value{node, 0};
      const int64_t elements = value.type().numel();
      const LazyTensor size = call("Size", {value}, {}, tensor_type(DType::int64, {}));
      parts.outputs.push_back(
          compare("Equal", size, number(static_cast<double>(elements), DType::int64)));
      guards_.push_back("the number of elements of nonzero" + place_of(*node) + " is " +
                        std::to_string(elements));
    }
    return Graph(std::move(parts));
  }

  // ---- nodes ------------------------------------------------------------------------------------

  Graph lowered(const Graph& graph) {
    return rebuild(graph, [&](const Node& node, const LazyTensors& operands) {
      std::optional<Replacement> replacement;
      if (is_input(node) || node.op() == ops::kConstant || node.op().domain() == kDomain)
        return replacement;
      const NodePtr now = copy_of(node, operands).make_node();
      try {
        if (const auto parts = parts_of(*now))
          replacement = Replacement{.outputs = in_place_of(*now, *parts)};
      } catch (const UserError& error) {
        refusals_.add(node, around_, error.what());
      }
      return replacement;
    });
  }

  // The node in terms of ONNX's operators; nothing, and a refusal, where there are none.
  std::optional<Graph> parts_of(const Node& node) {
    if (auto named = by_row(node)) return named;
    const std::string op = node.op().str();
    if (defining_.contains(op)) throw UserError("ONNX has no operators for it");
    std::optional<Graph> parts = interchange::definition_of(node);
    if (!parts) parts = body_of(node);
    if (!parts) throw UserError("ONNX has no operator for it, and composit no definition");
    const interchange::Origin before = around_;
    around_ = interchange::origin_of(node, around_);
    defining_.insert(op);
    Graph result = lowered(*parts);  // refusals are gathered, not thrown
    defining_.erase(op);
    around_ = before;
    return result;
  }

  std::optional<Graph> by_row(const Node& node) {
    const Row* row = find_row(node.op());
    const Operation* operation = row == nullptr ? nullptr : row_for(node);
    if (operation == nullptr) return std::nullopt;
    LazyTensors blocks;
    const Call call = call_of(node, operation->schema, blocks_for(node, blocks));
    const LazyTensors results = row->rule(call, node.outputs());
    if (results.size() != node.outputs().size()) return std::nullopt;
    return Graph({.inputs = blocks, .outputs = results});
  }

  static std::optional<Graph> body_of(const Node& node) {
    const Attribute* body = node.find_run("body");
    if (body == nullptr) return std::nullopt;
    const Graph& graph = *body->as<Region>();
    return Graph({.inputs = graph.inputs(), .outputs = graph.outputs()});  // guards: see above
  }

  interchange::Refusals refusals_;
  std::vector<std::string> guards_;
  std::set<std::string> defining_;  // operations whose definitions are being written
  interchange::Origin around_;      // of the outermost of them
};

}  // namespace

Lowered lower(const Graph& graph) { return Lowering().run(graph); }

}  // namespace composit::onnx
