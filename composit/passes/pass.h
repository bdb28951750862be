// Passes and lists of them: a graph from a graph that computes the same.
//
//   Graph smaller = run_passes(graph);                                   // the default list
//   Passes mine = {find_pass("canonicalize"),
//                  {.name = "mine", .help = "…",
//                   .run = [](const Graph& g) { return doubled(g); }}};
//   Graph other = run_passes(graph, mine);
//
// A pass keeps inputs, outputs, their types and the order of effects. FLASHLIGHT_PRINT_PASSES shows
// what each one does.
#pragma once

#include <functional>
#include <iosfwd>
#include <string>
#include <string_view>
#include <vector>

#include "composit/ir/graph.h"

namespace composit {

// The assumptions of a pass about floating point arithmetic, compared with composit's definitions
// of operations.
enum class Assumes {
  exact,           // nothing: every bit of every value stays, but for the payload of NaNs
  reassociates,    // sums and products in another order or grouping are as good
  assumes_finite,  // no infinity and no NaN comes up
};
// "exact", "reassociates", "assumes_finite".
std::string_view name(Assumes assumes);

struct Pass {
  std::string name;                             // as `find_pass` takes it
  Assumes assumes = Assumes::exact;             // see Assumes
  std::string help = {};                        // one line
  std::function<Graph(const Graph&)> run = {};  // the pass
};
using Passes = std::vector<Pass>;  // in the order in which they run

// Every pass of this folder, with its usual options.
const Passes& all_passes();
// Exact ones that make any graph smaller and leave its operations readable and differentiable.
Passes default_passes();
// UserError that lists the names there are.
const Pass& find_pass(std::string_view name);
// "canonicalize,drop_no_ops"
Passes find_passes(std::string_view names);

// Options for running passes.
struct PassOptions {
  // `sizes`, `graphs`, or the name of a pass, as FLASHLIGHT_PRINT_PASSES; empty: nothing is
  // printed.
  std::string print;
  std::ostream* out = nullptr;  // output stream; nullptr: std::clog
};
// As the environment says.
PassOptions pass_options();

// One after the other; each graph is verified. InternalError that names the pass which made an
// illegal graph, or changed what goes in and comes out. UserError for a pass without `run`.
Graph run_passes(const Graph& graph, const Passes& passes = default_passes(),
                 const PassOptions& options = pass_options());

}  // namespace composit
