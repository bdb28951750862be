#include "frontends/cli/commands.h"

#include <map>
#include <ostream>

#include "composit/family/saved_family.h"
#include "composit/io/log.h"
#include "composit/io/saved_capture.h"
#include "composit/io/visualize.h"
#include "composit/ir/compare.h"
#include "composit/ir/error.h"
#include "composit/ir/print.h"
#include "composit/ops/operations.h"
#include "composit/passes/pass.h"

namespace cli {
namespace {

using composit::Graph;
using composit::InputKind;
using composit::SavedCapture;

// Operators by name, those inside of composite ones too.
void count_operators(const Graph& graph, std::map<std::string, size_t>& counts) {
  for (const composit::NodePtr& node : graph.nodes()) {
    if (!is_input(*node) && node->op() != composit::ops::kConstant) ++counts[node->op().str()];
    for_each_region(*node,
                    [&](const composit::Region& region) { count_operators(*region, counts); });
  }
}

// Operators that composit neither defines nor knows the inside of: they are captured and replayed,
// but not differentiated or compiled.
void find_opaque(const Graph& graph, std::map<std::string, size_t>& counts) {
  for (const composit::NodePtr& node : graph.nodes()) {
    if (is_input(*node) || node->op() == composit::ops::kConstant) continue;
    const bool known = composit::operation_of(*node) != nullptr;
    const bool has_body = node->find_run("body") != nullptr;
    if (known && has_body) continue;  // readers do not look inside
    for_each_region(*node, [&](const composit::Region& region) { find_opaque(*region, counts); });
    if (!known && !has_body) ++counts[node->op().str()];
  }
}

void print_inputs(const SavedCapture& capture, bool weights, std::ostream& out) {
  size_t elements = 0, tensors = 0;
  for (const composit::LazyTensor& input : capture.graph.inputs()) {
    const InputKind kind = input_kind(*input.node);
    const bool user = kind == InputKind::user_input;
    if (!user) {
      ++tensors;
      elements += static_cast<size_t>(input.type().numel());
    }
    if (user || weights)
      out << "  " << name(kind) << " " << input_name(*input.node) << ": " << print(input.type())
          << '\n';
  }
  out << "  " << tensors << " parameters and buffers, " << elements << " elements\n";
}

// The findings of the looks, a line each. A capture saved before there were looks was seen once.
std::string trust_of(const SavedCapture& capture) {
  const auto found = capture.properties.find("trust");
  return found == capture.properties.end() ? "seen once" : found->second;
}

}  // namespace

composit::SavedCapture load_to_compile(const std::string& folder, bool may_be_family) {
  SavedCapture capture = composit::load(folder);
  if (composit::is_family(capture) && !may_be_family)
    throw composit::UserError("[compile] " + folder +
                              " is a family: `flashlight bind` gives its capture at sizes");
  for (const auto& [key, value] : capture.properties)
    if (key.rfind("counted ", 0) == 0)
      throw composit::UserError("[compile] " + folder +
                                ": expected numbers that stay as they are; those of this capture "
                                "follow its calls, and only a replay can count");
  warn_of_trust(capture, folder);
  return capture;
}

void warn_of_trust(const SavedCapture& capture, const std::string& folder) {
  if (trust_of(capture) == "seen once")
    composit::log_warning(folder +
                          " was seen once: one run of its program, that no second one "
                          "confirmed");
}

int show(const std::string& folder, const std::string& passes, const std::string& svg,
         std::ostream& out) {
  const SavedCapture capture = composit::load(folder);
  const Graph graph = composit::run_passes(capture.graph, composit::find_passes(passes));
  composit::PrintOptions options;
  options.brief = true;
  options.formulas = &capture.formulas;  // of nodes that no pass has rewritten
  if (!svg.empty()) {
    composit::visualize(graph, svg);
    return 0;
  }
  composit::print(out, graph, options);
  if (composit::is_family(capture)) show_family(capture, out);
  print_called(graph, out);
  std::map<std::string, size_t> opaque;
  find_opaque(graph, opaque);
  for (const auto& [op, count] : opaque) out << "# opaque: " << count << " × " << op << '\n';
  return 0;
}

int list(const std::string& folder, bool weights, std::ostream& out) {
  const SavedCapture capture = composit::load(folder);
  out << trust_of(capture) << '\n';
  out << folder << ": " << capture.graph.size() << " nodes, captured with " << capture.producer
      << "\ninputs\n";
  print_inputs(capture, weights, out);
  out << "writes\n";
  for (const composit::Mutation& mutation : capture.graph.mutations())
    out << "  " << input_name(*mutation.target.node) << '\n';
  out << "results\n";
  for (const composit::LazyTensor& output : capture.graph.outputs())
    out << "  " << (output ? print(output.type()) : "none") << '\n';
  std::map<std::string, size_t> counts;
  count_operators(capture.graph, counts);
  out << "operators\n";
  for (const auto& [op, count] : counts) out << "  " << count << " × " << op << '\n';
  return 0;
}

int diff(const std::string& folder, const std::string& other, std::ostream& out) {
  const auto differences =
      composit::compare(composit::load(folder).graph, composit::load(other).graph);
  for (const composit::Difference& difference : differences) out << str(difference) << '\n';
  if (differences.empty()) out << "equal\n";
  return differences.empty() ? 0 : 1;
}

}  // namespace cli
