#include <algorithm>
#include <filesystem>
#include <map>
#include <numeric>
#include <optional>
#include <ostream>

#include "composit/ad/chain_rule.h"
#include "composit/eval/evaluate.h"
#include "composit/family/saved_family.h"
#include "composit/io/saved_capture.h"
#include "composit/ir/error.h"
#include "composit/ir/print.h"
#include "frontends/cli/commands.h"
#include "frontends/cli/example.h"
#include "frontends/cli/sizes.h"

namespace cli {
namespace {

using composit::LazyTensor;
using composit::LazyTensors;
using composit::SavedCapture;
using composit::UserError;

// The edit distance: the number of characters to insert, remove or replace to turn `x` into `y`.
size_t edits(const std::string& x, const std::string& y) {
  std::vector<size_t> row(y.size() + 1);
  std::iota(row.begin(), row.end(), size_t{0});
  for (size_t i = 0; i < x.size(); ++i) {
    size_t diagonal = row[0]++;
    for (size_t j = 0; j < y.size(); ++j) {
      const size_t changed = diagonal + (x[i] == y[j] ? 0 : 1);
      diagonal = row[j + 1];
      row[j + 1] = std::min({changed, row[j] + 1, diagonal + 1});
    }
  }
  return row.back();
}

// The inputs whose names are most like `name`, as text.
std::string nearest(const std::string& name, const LazyTensors& inputs) {
  constexpr size_t kShown = 3;
  std::vector<std::pair<size_t, std::string>> names;
  for (const LazyTensor& input : inputs)
    names.emplace_back(edits(name, input_name(*input.node)), input_name(*input.node));
  std::sort(names.begin(), names.end());
  std::string text;
  for (size_t i = 0; i < std::min(kShown, names.size()); ++i)
    text += (i > 0 ? ", '" : "'") + names[i].second + "'";
  return text;
}

LazyTensor find_input(const std::string& name, const LazyTensors& inputs) {
  const auto found = std::find_if(inputs.begin(), inputs.end(), [&](const LazyTensor& input) {
    return input_name(*input.node) == name;
  });
  if (found == inputs.end())
    throw UserError("[compile] there is no parameter or input '" + name + "'; the nearest are " +
                    nearest(name, inputs));
  return *found;
}

// Elements that all nodes read and write.
int64_t traffic(const composit::Graph& graph) {
  int64_t elements = 0;
  for (const composit::NodePtr& node : graph.nodes()) {
    for (const composit::Type& type : node->outputs())
      if (is_defined(type)) elements += type.numel();
    for (const LazyTensor& operand : node->operands()) elements += operand.type().numel();
  }
  return elements;
}

// Gradients, the last `count` outputs, are not saved with a capture; where the reference gives them
// in a moment, it does.
void add_expected(SavedCapture& capture, size_t count) {
  constexpr int64_t kMoment = 200'000;
  if (capture.example_inputs.empty() || traffic(capture.graph) > kMoment) return;
  const std::vector<composit::Array> results =
      composit::evaluate(capture.graph, example_of(capture));
  const size_t end = capture.graph.outputs().size();
  capture.example_outputs.insert(capture.example_outputs.end(), results.begin() + (end - count),
                                 results.begin() + end);
}

// The capture with d(result 0) / d(parameter) as further results.
void add_gradients(SavedCapture& capture, const std::vector<std::string>& parameters,
                   std::vector<std::string>& names) {
  composit::Graph::Parts parts = capture.graph.parts();
  const LazyTensor loss = parts.outputs.empty() ? LazyTensor() : parts.outputs[0];
  if (!loss || loss.type().numel() != 1)
    throw UserError("[compile] --grad: expected one number as the first result, received " +
                    (loss ? composit::print(loss.type()) : "none"));
  LazyTensors inputs;
  for (const std::string& name : parameters) inputs.push_back(find_input(name, parts.inputs));
  const LazyTensors gradients = composit::grad(loss, inputs);
  for (const LazyTensor& output : parts.outputs)
    if (output) names.push_back("output." + std::to_string(names.size()));
  for (size_t i = 0; i < gradients.size(); ++i) {
    parts.outputs.push_back(gradients[i]);
    names.push_back("grad_" + parameters[i]);
  }
  capture.graph = composit::Graph(std::move(parts));
  add_expected(capture, gradients.size());
}

std::string name_of(const std::filesystem::path& folder) {
  const std::filesystem::path path = std::filesystem::absolute(folder).lexically_normal();
  return (path.has_filename() ? path : path.parent_path()).stem();
}

}  // namespace

composit::CompileOptions compile_options(const SavedCapture& capture,
                                         const composit::Options& options,
                                         const std::string& name) {
  return {.name = name, .options = options, .schemas = [&capture](const composit::Graph&) {
            return capture.schemas;
          }};
}

namespace {

// Leaves these numbers of a size of the family.
void narrow(composit::Family& family, const std::string& text) {
  const std::optional<composit::SizeRange> range = parse_range(text);
  if (!range)
    throw UserError(
        "[compile] --size: expected sizes as tokens=8, tokens=8..64 or tokens=64..256:64, received "
        "'" +
        text + "'");
  for (composit::FreeSize& size : family.sizes) {
    if (size.name != range->name) continue;
    const bool is_one = range->least == range->most;
    const int64_t step = std::lcm(size.step, range->step);
    const bool is_within = range->least >= size.low && range->most <= size.high &&
                           (range->least - size.low) % size.step == 0 &&
                           (is_one || (range->most - range->least) % step == 0);
    if (!is_within)
      throw UserError("[compile] --size " + text + ": the family takes numbers from " +
                      std::to_string(size.low) + " to " + std::to_string(size.high) +
                      (size.step == 1 ? "" : " in steps of " + std::to_string(size.step)));
    size.low = range->least, size.high = range->most, size.step = is_one ? 1 : step;
    return;
  }
  throw UserError("[compile] --size " + text + ": the family has no such size");
}

// Writes the program of a family for all of its sizes.
void write_family(const SavedCapture& capture, const CompileArguments& arguments,
                  const composit::CompileOptions& options) {
  constexpr size_t kShown = 24;
  composit::Cases family = composit::family_of(capture);
  const std::string here = "[compile] " + arguments.folder + ": ";
  if (family.cases.size() > 1 || composit::has_numbers(family) ||
      !family.cases[0].value_sizes.empty())
    throw UserError(here +
                    "expected a family of one case, whose sizes follow from its inputs' alone and "
                    "without numbers, received another: `flashlight bind` gives its capture at "
                    "sizes");
  if (!arguments.gradients.empty())
    throw UserError(here + "--grad: expected a capture of one size, received a family");
  for (const std::string& text : arguments.sizes) narrow(family.cases[0], text);
  const auto graph_at = [&](const std::map<std::string, int64_t>& sizes) {
    return composit::graph_at(family, {sizes.begin(), sizes.end()});
  };
  composit::SizedGraphs graphs = {.at = graph_at};
  for (const composit::SizeValues& sizes : composit::spread_sizes(family, {0}, kShown))
    graphs.shown.push_back({composit::graph_at(family, sizes), {sizes.begin(), sizes.end()}});
  for (const composit::FreeSize& size : composit::hull_of(family))
    graphs.ranges.push_back({size.name, size.low, size.high, size.step});
  arguments.backend->write_program(capture, graphs, arguments.target, options);
}

}  // namespace

int compile(const CompileArguments& arguments, std::ostream& out) {
  SavedCapture capture = load_to_compile(arguments.folder, /*may_be_family=*/true);
  const std::string name = arguments.name.empty() ? name_of(arguments.folder) : arguments.name;
  composit::CompileOptions options = compile_options(capture, arguments.options, name);
  if (!arguments.gradients.empty() && !composit::is_family(capture))
    add_gradients(capture, arguments.gradients, options.results);
  if (!arguments.sizes.empty() && !composit::is_family(capture))
    throw UserError("[compile] --size: expected a family, received the capture of one run");
  if (composit::is_family(capture))
    write_family(capture, arguments, options);
  else
    arguments.backend->write_program(capture, arguments.target, options);
  out << "wrote " << arguments.target << "; to build it:\n  cmake -S " << arguments.target
      << " -B build && cmake --build build\n";
  return 0;
}

}  // namespace cli
