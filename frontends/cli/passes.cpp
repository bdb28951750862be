// Lists passes and environment variables, and runs passes on a capture.
#include <iomanip>
#include <ostream>
#include <set>

#include "composit/ir/knobs.h"
#include "composit/ir/print.h"
#include "composit/passes/inline_calls.h"
#include "composit/passes/pass.h"
#include "frontends/cli/commands.h"

namespace cli {

using composit::Graph;
using composit::NodePtr;

int passes(std::ostream& out) {
  for (const composit::Pass& pass : composit::all_passes())
    out << std::left << std::setw(23) << pass.name << std::setw(14) << name(pass.assumes)
        << pass.help << '\n';
  out << "by default:";
  for (const composit::Pass& pass : composit::default_passes()) out << ' ' << pass.name;
  out << '\n';
  return 0;
}

int env(std::ostream& out) {
  for (size_t i = 0; i < composit::knobs().size(); ++i) {
    const composit::KnobInfo& info = composit::knobs()[i];
    out << info.name << '=' << knob(static_cast<composit::Knob>(i)) << "\n  " << info.help << '\n';
  }
  return 0;
}

void print_called(const Graph& graph, std::ostream& out) {
  std::set<std::string> printed;
  std::vector<Graph> waiting = {graph};
  while (!waiting.empty()) {
    const Graph now = waiting.back();
    waiting.pop_back();
    for (const NodePtr& node : now.nodes()) {
      if (node->op() != composit::ops::kCall) continue;
      const auto& called = node->attribute("name").as<std::string>();
      if (!printed.insert(called).second) continue;
      waiting.push_back(*node->find_run("body")->as<composit::Region>());
      out << "\n# " << called << '\n';
      composit::print(out, waiting.back(), {.brief = true});
    }
  }
}

}  // namespace cli
