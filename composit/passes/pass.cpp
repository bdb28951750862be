#include "composit/passes/pass.h"

#include <algorithm>
#include <iostream>
#include <set>

#include "composit/ir/error.h"
#include "composit/ir/knobs.h"
#include "composit/ir/print.h"
#include "composit/ir/verify.h"
#include "composit/ops/operations.h"
#include "composit/passes/canonicalize.h"
#include "composit/passes/common_subexpressions.h"
#include "composit/passes/decompose.h"
#include "composit/passes/drop_no_ops.h"
#include "composit/passes/fold_constants.h"
#include "composit/passes/inline_calls.h"
#include "composit/passes/join_slices.h"
#include "composit/passes/outline_repeats.h"
#include "composit/passes/share_loops.h"
#include "composit/passes/share_parts.h"
#include "composit/passes/straight_through.h"

namespace composit {
namespace {

// Sizes and dtypes; strides may change where a value is worked out in another way.
bool same_interface(const Graph& a, const Graph& b) {
  const auto same = [](const LazyTensor& x, const LazyTensor& y) {
    return x && y ? x.dtype() == y.dtype() && x.sizes() == y.sizes() : !x && !y;
  };
  if (a.outputs().size() != b.outputs().size() || a.mutations().size() != b.mutations().size() ||
      a.inputs() != b.inputs())
    return false;
  for (size_t i = 0; i < a.outputs().size(); ++i)
    if (!same(a.outputs()[i], b.outputs()[i])) return false;
  for (size_t i = 0; i < a.mutations().size(); ++i)
    if (!(a.mutations()[i].target == b.mutations()[i].target)) return false;
  return true;
}

bool takes_regions(const Operation& operation) {
  const auto& arguments = operation.schema.arguments;
  return std::any_of(arguments.begin(), arguments.end(),
                     [](const SchemaArgument& one) { return one.type_name == "Graph"; });
}

// Checks that inputs and outputs of regions have the types that the rows of their nodes require.
// `seen`: the regions checked so far.
void verify_regions(const Graph& graph, std::set<const Graph::Parts*>& seen) {
  if (!seen.insert(&graph.parts()).second) return;
  for (const NodePtr& node : graph.nodes()) {
    for_each_region(*node, [&](const Region& region) { verify_regions(*region, seen); });
    const Operation* operation = operation_of(*node);
    if (operation == nullptr || !takes_regions(*operation)) continue;
    const std::vector<Type> types = infer(*operation, call_of(*node, operation->schema));
    const auto same = [](const Type& a, const Type& b) {
      return a.dtype == b.dtype && a.sizes == b.sizes;
    };
    COMPOSIT_ASSERT(std::equal(types.begin(), types.end(), node->outputs().begin(),
                               node->outputs().end(), same),
                    "results of '" + node->op().str() + "' are not what its regions give");
  }
}

void verify_after(const Pass& pass, const Graph& before, const Graph& after) {
  try {
    verify(after);
    std::set<const Graph::Parts*> seen;
    verify_regions(after, seen);
  } catch (const UserError& error) {
    throw InternalError("after the pass '" + pass.name + "': " + error.what(), __FILE__, __LINE__);
  } catch (const InternalError& error) {
    throw InternalError("after the pass '" + pass.name + "': " + error.what(), __FILE__, __LINE__);
  }
  COMPOSIT_ASSERT(same_interface(before, after),
                  "the pass '" + pass.name + "' changes what goes into the graph or comes out");
}

void report(const PassOptions& options, const Pass& pass, const Graph& before, const Graph& after) {
  if (options.print.empty()) return;
  std::ostream& out = options.out != nullptr ? *options.out : std::clog;
  const bool graphs = options.print == "graphs" || options.print == pass.name;
  if (graphs || options.print == "sizes")
    out << "after " << pass.name << ": " << after.size() << " nodes, before: " << before.size()
        << '\n';
  if (graphs) print(out, after, {.brief = true});
}

Passes table() {
  return {
      {"canonicalize", Assumes::reassociates,
       "one spelling where ATen has several: captures from C++ and Python become equal",
       [](const Graph& graph) { return canonicalize(graph); }},
      {"canonicalize_exact", Assumes::exact, "the same but for products, which stay as they are",
       [](const Graph& graph) { return canonicalize(graph, {.exact = true}); }},
      {"decompose", Assumes::exact, "operations defined by others into those, all the way down",
       [](const Graph& graph) { return decompose(graph); }},
      {"fold_constants", Assumes::exact, "what depends on constants only becomes a constant",
       [](const Graph& graph) { return fold_constants(graph); }},
      {"common_subexpressions", Assumes::exact, "equal values are computed once",
       common_subexpressions},
      {"share_parts", Assumes::exact, "composites whose parts are there anyway become these parts",
       share_parts},
      {"join_slices", Assumes::exact,
       "sums of slices that were put back into zeros become the slices joined", join_slices},
      {"share_loops", Assumes::exact,
       "loops with the same trips become one; outputs nobody uses are left out", share_loops},
      {"drop_no_ops", Assumes::exact, "dropout in eval mode, views and copies that change nothing",
       [](const Graph& graph) { return drop_no_ops(graph); }},
      {"straight_through", Assumes::exact,
       "the derivative of rounding to integers of few bits and back becomes 1", straight_through},
      {"outline_repeats", Assumes::exact, "repeated pieces become calls of one region",
       [](const Graph& graph) { return outline_repeats(graph); }},
      {"inline_calls", Assumes::exact, "calls of regions become the nodes of the region",
       inline_calls},
  };
}

}  // namespace

std::string_view name(Assumes assumes) {
  constexpr std::string_view names[] = {"exact", "reassociates", "assumes_finite"};
  return names[static_cast<size_t>(assumes)];
}

const Passes& all_passes() {
  static const Passes passes = table();
  return passes;
}

Passes default_passes() {
  return find_passes(
      "canonicalize_exact,drop_no_ops,fold_constants,common_subexpressions,share_loops");
}

const Pass& find_pass(std::string_view name) {
  std::string names;
  for (const Pass& pass : all_passes()) {
    if (pass.name == name) return pass;
    names += (names.empty() ? "" : ", ") + pass.name;
  }
  throw UserError("[passes] expected one of " + names + ", received '" + std::string(name) + "'");
}

Passes find_passes(std::string_view names) {
  Passes passes;
  while (!names.empty()) {
    const size_t comma = std::min(names.find(','), names.size());
    passes.push_back(find_pass(names.substr(0, comma)));
    names.remove_prefix(std::min(comma + 1, names.size()));
  }
  return passes;
}

PassOptions pass_options() { return {.print = knob(Knob::print_passes)}; }

Graph run_passes(const Graph& graph, const Passes& passes, const PassOptions& options) {
  Graph now = graph;
  for (const Pass& pass : passes) {
    if (!pass.run) throw UserError("[passes] expected `run` in the pass '" + pass.name + "'");
    const Graph after = pass.run(now);
    verify_after(pass, now, after);
    report(options, pass, now, after);
    now = after;
  }
  return now;
}

}  // namespace composit
