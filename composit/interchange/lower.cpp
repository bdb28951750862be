#include "composit/interchange/lower.h"

#include <algorithm>
#include <set>

#include "composit/interchange/checks.h"
#include "composit/interchange/common_rows.h"
#include "composit/interchange/complex_pairs.h"
#include "composit/interchange/definition.h"
#include "composit/interchange/refusals.h"
#include "composit/interchange/values.h"
#include "composit/ir/error.h"
#include "composit/ir/print.h"
#include "composit/ir/transform.h"
#include "composit/ops/draws.h"
#include "composit/ops/functions.h"
#include "composit/ops/guards.h"
#include "composit/passes/definition.h"
#include "composit/passes/fold_constants.h"
#include "composit/passes/inline_calls.h"

namespace composit::interchange {
namespace {

class Lowering {
 public:
  Lowering(const Target& target, const MayFold& may_fold)
      : target_(target), folding_{.may_fold = may_fold} {}

  Lowered run(const Graph& graph) {
    const Graph pure = without_guards(inline_calls(graph));
    Lowered result;
    result.graph = lowered(fold_constants(plain(pure), folding_));
    refusals_.expect_none();
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
        // What is an effect because it may fail (an index out of range) fails there as well. A
        // draw that nobody uses only moves a generator, and one that is used has no operator: so
        // nothing asks for the state of a generator.
        const bool is_state = node->op().str().find("generator_state") != std::string_view::npos;
        if (!is_state && find_draw(node->op()) == nullptr && operation_of(*node) == nullptr)
          refusals_.add(*node, {}, "it has effects, which " + name() + " has not");
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

  // ---- nodes ------------------------------------------------------------------------------------

  Graph lowered(const Graph& graph) {
    return rebuild(graph, [&](const Node& node, const LazyTensors& operands) {
      std::optional<Replacement> replacement;
      const bool stays = is_input(node) || node.op() == ops::kConstant || is_check(node);
      if (stays || node.op().domain() == target_.domain) return replacement;
      const NodePtr now = copy_of(node, operands).make_node();
      if (is_empty(*now)) return std::optional(Replacement{.outputs = empty_results(*now)});
      try {
        if (const auto parts = parts_of(*now))
          replacement = Replacement{.outputs = in_place_of(*now, *parts)};
      } catch (const UserError& error) {
        refusals_.add(node, around_, error.what());
      }
      return replacement;
    });
  }

  // Results without elements need no operator, for which runtimes often have none, unless it is
  // values that say so.
  static bool is_empty(const Node& node) {
    const auto& types = node.outputs();
    const bool has_none = std::all_of(types.begin(), types.end(), [](const Type& type) {
      return !is_defined(type) || type.numel() == 0;
    });
    return has_none && !types.empty() && operation_of(node) != nullptr &&
           node.find_run("body") == nullptr && !sizes_follow_values(node);
  }
  static LazyTensors empty_results(const Node& node) {
    LazyTensors results;
    for (const Type& type : node.outputs())
      results.push_back(is_defined(type) ? filled(0, type.dtype, type.sizes) : LazyTensor());
    return results;
  }

  // The node in terms of the target's operators; nothing, and a refusal, where there are none.
  std::optional<Graph> parts_of(const Node& node) {
    if (auto named = by_row(node)) return named;
    const std::string op = node.op().str();
    if (defining_.contains(op)) throw UserError(name() + " has no operators for it");
    std::optional<Graph> parts = definition_of(node);
    if (!parts) parts = body_of(node);
    if (!parts) throw UserError(name() + " has no operator for it, and composit no definition");
    const Origin before = around_;
    around_ = origin_of(node, around_);
    defining_.insert(op);
    Graph result = lowered(plain(*parts));  // refusals are gathered, not thrown
    defining_.erase(op);
    around_ = before;
    return result;
  }

  // The row of composit that speaks for a node, also where values say how many results it has.
  static const Operation* operation_for(const Node& node) {
    try {
      return row_for(node);
    } catch (const SizesDependOnValues&) {
      return operation_of(node);
    }
  }

  std::optional<Graph> by_row(const Node& node) {
    const Operation* operation = operation_for(node);
    if (operation == nullptr) return std::nullopt;
    LazyTensors blocks, results;
    const Call call = call_of(node, operation->schema, blocks_for(node, blocks));
    for (const RowTable* table : {&target_.rows, &common_rows()}) {
      const Row* row = table->find(node.op());
      if (row == nullptr) row = table->find(operation->schema.name);  // of another name
      if (row != nullptr) results = row->rule(call, node.outputs());
      if (results.size() == node.outputs().size()) break;
    }
    if (results.size() != node.outputs().size()) return std::nullopt;
    // A rule may use operators of ATen that have rows, and regions.
    const Graph made = lowered(Graph({.inputs = blocks, .outputs = results}));
    return rebuild_regions(made, [this](const Graph& region) { return region_of(region); });
  }

  // Of a branch or a loop, which cannot say that it went wrong.
  Graph region_of(const Graph& region) {
    Graph::Parts parts = inline_calls(region).parts();
    for (const NodePtr& node : parts.effects)
      if (guard_of(*node) || find_draw(node->op()) != nullptr || operation_of(*node) == nullptr)
        refusals_.add(*node, around_, "it has effects within a branch or a loop");
    parts.effects.clear();
    return lowered(fold_constants(plain(Graph(std::move(parts))), folding_));
  }

  // Without what the target has no numbers for.
  Graph plain(const Graph& graph) {
    return target_.has_complex ? graph : complex_as_pairs(graph, refusals_, around_);
  }

  std::string name() const { return std::string(target_.name); }

  const Target& target_;
  const FoldOptions folding_;
  Refusals refusals_;
  std::vector<std::string> guards_;
  std::set<std::string> defining_;  // operations whose definitions are being written
  Origin around_;                   // of the outermost of them
};

}  // namespace

Lowered lower(const Graph& graph, const Target& target, const MayFold& may_fold) {
  return Lowering(target, may_fold).run(graph);
}

std::string place_of(const Node& node) {
  const std::string_view source = node.annotation("source");
  return source.empty() ? "" : " at " + std::string(source);
}

}  // namespace composit::interchange
