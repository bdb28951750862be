#include "flashlight/family.h"

#include <ATen/Functions.h>

#include <algorithm>
#include <array>
#include <map>
#include <mutex>
#include <optional>

#include "composit/family/saved_family.h"
#include "composit/ir/compare.h"
#include "composit/ir/error.h"
#include "composit/passes/drop_no_ops.h"
#include "flashlight/capture_state.h"
#include "flashlight/difference.h"
#include "flashlight/saved_state.h"
#include "flashlight/value_sizes.h"
#include "tracer/geometry.h"

namespace flashlight {

using composit::Graph;
using composit::SizeValues;
using composit::UserError;

namespace {

// The most bound captures that a family keeps.
constexpr size_t kMostBound = 64;

std::vector<Graph> graphs_of(const std::vector<CaptureBase>& examples,
                             const std::function<Graph(const CaptureBase&)>& graph) {
  std::vector<Graph> graphs;
  for (const CaptureBase& example : examples) graphs.push_back(graph(example));
  return graphs;
}

std::string text_of(const SizeValues& sizes) {
  std::string text;
  for (const auto& [name, number] : sizes)
    text += (text.empty() ? "" : ", ") + name + " = " + std::to_string(number);
  return text;
}

std::string list_of(const std::vector<int64_t>& numbers) {
  std::string text;
  for (const int64_t number : numbers) text += (text.empty() ? "" : ", ") + std::to_string(number);
  return text;
}

bool same_bits(const std::vector<at::Tensor>& a, const std::vector<at::Tensor>& b) {
  return std::equal(a.begin(), a.end(), b.begin(), b.end(), [](const auto& x, const auto& y) {
    return x.defined() == y.defined() && (!x.defined() || digest(x) == digest(y));
  });
}

bool draws(const Graph& graph) {
  bool found = false;
  for_each_node(graph, [&](const composit::Node& node) {
    found = found || (node.effect() >= 0 && node.find_run("expected") == nullptr &&
                      node.find_run("body") == nullptr && !node.outputs().empty());
  });
  return found;
}

}  // namespace

struct FamilyBase::State {
  std::vector<CaptureBase> examples;
  FamilySettings settings;
  composit::Family family;
  std::vector<SizeValues> checked;

  mutable std::mutex mutex;
  mutable std::map<SizeValues, CaptureBase> bound;
};

// Reads the insides of captures.
class FamilyMaker {
 public:
  static const CaptureBase::State& inside(const CaptureBase& capture) { return capture.now(); }

  // The example's graph with what it leaves in `.grad`.
  static Graph graph_of(const CaptureBase& capture) { return capture.now().replayed.graph; }

  static void expect_alike(const std::vector<CaptureBase>& examples) {
    const CaptureBase::State& first = examples.at(0).now();
    for (size_t i = 1; i < examples.size(); ++i) {
      const CaptureBase::State& other = examples[i].now();
      const std::string which = "examples 1 and " + std::to_string(i + 1);
      if (other.arguments != first.arguments)
        throw UserError("[unify] " + which + " have arguments of other structures: " +
                        str(first.arguments) + " and " + str(other.arguments));
      if (other.results != first.results)
        throw UserError("[unify] " + which + " have results of other structures: " +
                        str(first.results) + " and " + str(other.results) +
                        "; return sizes as tensors, or not at all");
      if (other.grad != first.grad)
        throw UserError("[unify] " + which + " ran in different grad modes");
      if (!other.counted.empty() || !first.counted.empty())
        throw UserError("[unify] expected examples whose numbers do not follow the calls");
    }
  }

  // A capture whose graph is `graph`, with the tensors and the program of an example.
  static CaptureBase bound(const CaptureBase& example, const Graph& graph) {
    return bound(example, graph, example.now().graph.outputs().size());
  }
  // `results`: the outputs of the graph that are no gradients.
  static CaptureBase bound(const CaptureBase& example, const Graph& graph, size_t results) {
    const CaptureBase::State& from = example.now();
    auto state = std::make_shared<CaptureBase::State>();
    Graph::Parts parts = graph.parts();
    parts.outputs.resize(results);
    state->graph = Graph(std::move(parts));
    state->replayed = {graph, from.replayed.inputs, {}};
    if (graph.outputs().size() > results) state->replayed.gradients = from.replayed.gradients;
    state->inputs = from.replayed.inputs;
    state->grad = from.grad;
    state->arguments = from.arguments;
    state->results = from.results;
    state->borrows_memory = from.borrows_memory;
    state->tied = from.tied;
    state->generators = from.generators;
    state->remarks = from.remarks;
    state->trust = Trust::confirmed;
    state->notes = {"bound: a family of captures at other sizes gave this graph"};
    state->program = from.program;
    state->named = from.named;
    state->options = from.options;
    state->of_family = true;
    for (size_t i = 0, next = 0; i < from.replayed.inputs.size(); ++i)
      if (from.replayed.inputs[i].kind == composit::InputKind::user_input)
        state->example_arguments.push_back(
            resized(from.example_arguments.at(next++), graph.inputs()[i].sizes()));
    return CaptureBase(std::move(state));
  }

  // Each axis repeated or cut.
  static at::Tensor resized(at::Tensor tensor, const composit::Dims& sizes) {
    for (int64_t axis = 0; axis < tensor.dim(); ++axis) {
      const int64_t size = sizes.at(static_cast<size_t>(axis));
      if (tensor.size(axis) == size) continue;
      const at::Tensor indices = at::arange(size, at::kLong).remainder(tensor.size(axis));
      tensor = tensor.index_select(axis, indices);
    }
    return tensor;
  }

  static composit::SavedCapture saved(const CaptureBase& example) { return example.saved(); }
  static CaptureBase of_saved(const composit::SavedCapture& saved,
                              const std::filesystem::path& folder) {
    return CaptureBase::of_saved(saved, folder);
  }

  static std::vector<composit::Type> types_of(const CaptureBase& example,
                                              const std::vector<at::Tensor>& arguments) {
    const CaptureBase::State& state = example.now();
    std::vector<composit::Type> types;
    for (const at::Tensor& tensor : state.bind_replay(arguments))
      types.push_back(tensor.defined() ? tracer::type_of(tensor) : composit::undefined_type());
    return types;
  }

  static CaptureBase run(const CaptureBase& example, const FlatValues& arguments) {
    const CaptureBase::State& state = example.now();
    if (!state.program)
      throw UserError("[family] a loaded family does not know its program: trace it again");
    const c10::AutoGradMode grad(state.grad);
    return CaptureBase::capture({.run = state.program, .named = state.named, .seen_once = true},
                                arguments, state.options);
  }
};

namespace {

composit::Family unified(const std::vector<CaptureBase>& examples,
                         const std::vector<std::string>& names) {
  FamilyMaker::expect_alike(examples);
  return composit::unify(graphs_of(examples, &FamilyMaker::graph_of), {.names = names});
}

SizeValues sizes_of_example(const composit::Family& family, size_t number) {
  SizeValues sizes;
  for (const composit::FreeSize& size : family.sizes) sizes[size.name] = size.shown.at(number);
  return sizes;
}

// The results of a replay at the sizes of an example have the program's bits.
void expect_results_again(const composit::Family& family, const std::vector<CaptureBase>& examples,
                          size_t number) {
  const CaptureBase& example = examples[number];
  const auto types = FamilyMaker::types_of(examples[0], example.example_arguments());
  std::vector<int64_t> value_sizes;
  for (const composit::ValueSize& size : family.value_sizes)
    value_sizes.push_back(size.shown.at(number));
  const CaptureBase bound =
      FamilyMaker::bound(examples[0], composit::bind_types(family, types, value_sizes).graph);
  if (!same_bits(bound.replay(example.example_arguments()), example.example_results()))
    throw UserError("[unify] the family, bound to " + text_of(sizes_of_example(family, number)) +
                    ", does not give the program's results again");
}

void expect_results_again(const composit::Family& family,
                          const std::vector<CaptureBase>& examples) {
  if (!family.example.mutations().empty() || draws(family.example)) return;
  for (size_t i = 0; i < examples.size(); ++i) expect_results_again(family, examples, i);
}

}  // namespace

FamilyBase::FamilyBase(std::vector<CaptureBase> examples, const FamilySettings& settings)
    : state_(std::make_shared<State>()) {
  if (examples.empty()) throw UserError("[unify] expected examples, received none");
  state_->family = unified(examples, settings.names);
  expect_results_again(state_->family, examples);
  state_->examples = std::move(examples);
  state_->settings = settings;
}

namespace {

// Sizes of three examples: small, different from each other and between sizes, of no common factor.
SizeValues sizes_of_choice(const std::vector<SizeRange>& ranges, size_t example) {
  constexpr std::array<int64_t, 3> kSpread[] = {{0, 1, 3}, {9, 16, 5}, {14, 7, 22}, {5, 11, 2}};
  SizeValues sizes;
  for (size_t i = 0; i < ranges.size(); ++i) {
    const SizeRange& range = ranges[i];
    const int64_t least = range.low >= 2 ? range.low : range.low + range.step;
    const int64_t count = (range.high - least) / range.step + 1;
    if (range.step < 1 || count < static_cast<int64_t>(composit::kLeastExamples))
      throw UserError("[family] expected at least " + std::to_string(composit::kLeastExamples) +
                      " sizes from 2 on in the range of '" + range.name + "', received " +
                      std::to_string(range.low) + " to " + std::to_string(range.high));
    const auto& spread = kSpread[i % std::size(kSpread)];
    // A range with few numbers is gone through in turn.
    const int64_t step = count > *std::max_element(spread.begin(), spread.end())
                             ? spread[example]
                             : static_cast<int64_t>(example);
    sizes[range.name] = least + range.step * step;
  }
  return sizes;
}

// The names of free sizes, found by the numbers that the examples have.
std::vector<std::string> names_of(const std::vector<CaptureBase>& examples,
                                  const std::vector<SizeValues>& chosen) {
  std::vector<std::string> names;
  for (const composit::FreeSize& size :
       composit::free_sizes(graphs_of(examples, &FamilyMaker::graph_of))) {
    std::string found;
    for (const auto& [name, number] : chosen[0]) {
      bool same = true;
      for (size_t i = 0; i < chosen.size(); ++i)
        same = same && chosen[i].at(name) == size.shown[i];
      if (same) found = name;
    }
    if (found.empty())
      throw UserError("[family] the size '" + size.name + "' of the arguments (" +
                      list_of(size.shown) + ") is none of those declared");
    names.push_back(found);
  }
  return names;
}

SizeValues ends_of(const std::vector<SizeRange>& ranges, bool high) {
  SizeValues sizes;
  for (const SizeRange& range : ranges)
    sizes[range.name] =
        high ? range.low + (range.high - range.low) / range.step * range.step : range.low;
  return sizes;
}

}  // namespace

FamilyBase FamilyBase::over(const ArgumentsAt& arguments_at, const CaptureOf& capture,
                            const FamilySettings& settings) {
  constexpr size_t kMostExamples = 12;
  std::vector<CaptureBase> examples;
  std::vector<SizeValues> chosen;
  const auto add = [&](const SizeValues& sizes) {
    examples.push_back(capture(arguments_at(sizes)));
    chosen.push_back(sizes);
  };
  for (size_t i = 0; i < composit::kLeastExamples; ++i) add(sizes_of_choice(settings.ranges, i));
  std::optional<FamilyBase> family;
  while (!family) {
    FamilySettings named = settings;
    named.names = names_of(examples, chosen);
    try {
      family.emplace(examples, named);
    } catch (const composit::ExampleWanted& wanted) {
      if (examples.size() == kMostExamples) throw;
      add(wanted.sizes);
    }
  }
  for (const bool high : {false, true}) {
    const SizeValues sizes = ends_of(settings.ranges, high);
    const CheckReport report = family->check_flat(arguments_at(sizes).tensors);
    if (!report)
      throw UserError("[family] the range that was declared does not hold at " + text_of(sizes) +
                      ": " + str(report));
  }
  return *family;
}

const composit::Family& FamilyBase::family() const { return state_->family; }
const Structure& FamilyBase::argument_structure() const {
  return state_->examples.at(0).argument_structure();
}

SizeValues FamilyBase::sizes_of(const std::vector<at::Tensor>& arguments) const {
  const auto types = FamilyMaker::types_of(state_->examples.at(0), arguments);
  SizeValues sizes = composit::sizes_of_inputs(state_->family, types);
  composit::expect_inputs(state_->family, sizes, types);
  return sizes;
}

CaptureBase FamilyBase::at(const SizeValues& sizes) const {
  const std::lock_guard lock(state_->mutex);
  if (const auto found = state_->bound.find(sizes); found != state_->bound.end())
    return found->second;
  CaptureBase capture =
      FamilyMaker::bound(state_->examples.at(0), composit::bind(state_->family, sizes));
  if (state_->bound.size() >= kMostBound) state_->bound.erase(state_->bound.begin());
  state_->bound.emplace(sizes, capture);
  return capture;
}

SizeValues FamilyBase::sizes_of_call(const std::vector<at::Tensor>& arguments) const {
  SizeValues sizes = sizes_of(arguments);
  const composit::Family& family = state_->family;
  if (family.value_sizes.empty()) return sizes;
  const CaptureBase& example = state_->examples.at(0);
  SavedState saved(FamilyMaker::inside(example), arguments);
  const std::vector<int64_t> numbers =
      value_sizes_at(family, FamilyMaker::types_of(example, arguments), [&](const Graph& part) {
        return FamilyMaker::bound(example, part, part.outputs().size()).replay(arguments);
      });
  saved.restore();
  for (size_t i = 0; i < numbers.size(); ++i) sizes[family.value_sizes[i].name] = numbers[i];
  return sizes;
}

FlatValues FamilyBase::call(const std::vector<at::Tensor>& arguments) const {
  return at(sizes_of_call(arguments)).call(arguments);
}

CaptureBase FamilyBase::capture_at(const FlatValues& arguments) const {
  return FamilyMaker::run(state_->examples.at(0), arguments);
}

void FamilyBase::extend(CaptureBase example) {
  std::vector<CaptureBase> examples = state_->examples;
  examples.push_back(std::move(example));
  std::vector<std::string> names;
  for (const composit::FreeSize& size : state_->family.sizes) names.push_back(size.name);
  composit::Family family = unified(examples, names);
  expect_results_again(family, examples);
  const std::lock_guard lock(state_->mutex);
  state_->examples = std::move(examples);
  state_->family = std::move(family);
  state_->bound.clear();
  for (const SizeValues& sizes : state_->checked) composit::widen(state_->family, sizes);
}

CheckReport FamilyBase::check_flat(const std::vector<at::Tensor>& arguments) const {
  const CaptureBase& example = state_->examples.at(0);
  CheckReport report;
  const auto types = FamilyMaker::types_of(example, arguments);
  const SizeValues sizes = composit::sizes_of_inputs(state_->family, types);
  SavedState saved(FamilyMaker::inside(example), arguments);
  try {
    const CaptureBase there = FamilyMaker::run(
        example, {.tensors = arguments, .structure = example.argument_structure()});
    saved.restore();
    const Graph program = composit::without_incidentals(FamilyMaker::graph_of(there));
    const Graph graph = composit::bind_types(state_->family, types,
                                             composit::value_sizes_in(state_->family, program))
                            .graph;
    const CaptureBase bound = FamilyMaker::bound(example, graph);
    const std::vector<at::Tensor> results = bound.replay(arguments);
    if (!same_bits(results, there.example_results()))
      report.error = "the family, bound to " + text_of(sizes) + ", gives other results";
    const bool has_one = std::any_of(sizes.begin(), sizes.end(),
                                     [](const auto& size) { return size.second == 1; });
    for (const composit::Difference& difference :
         composit::compare(drop_no_ops(graph), drop_no_ops(program)))
      if (!has_one) report.graph_differences.push_back(str(difference));
    report.compared = results.size();
  } catch (const UserError& error) {
    report.error = error.what();
  }
  saved.restore();
  if (!report.ok()) return report;
  const std::lock_guard lock(state_->mutex);
  state_->checked.push_back(sizes);
  composit::widen(state_->family, sizes);
  return report;
}

void FamilyBase::save(const std::filesystem::path& folder) const {
  const CaptureBase& example = state_->examples.at(0);
  if (!FamilyMaker::inside(example).replayed.gradients.empty())
    throw UserError("[save] the program leaves gradients in '.grad'; return them instead");
  composit::save(composit::with_family(FamilyMaker::saved(example), state_->family), folder);
}

FamilyBase FamilyBase::load(const std::filesystem::path& folder) {
  const composit::SavedCapture saved = composit::load(folder);
  auto state = std::make_shared<State>();
  state->family = composit::family_of(saved);
  state->examples.push_back(FamilyMaker::of_saved(saved, folder));
  return FamilyBase(std::move(state));
}

std::vector<std::string> FamilyBase::assumptions() const {
  std::vector<std::string> lines;
  for (const composit::FreeSize& size : state_->family.sizes) {
    lines.push_back(size.name + ": shown " + list_of(size.shown) + "; fitted from " +
                    std::to_string(size.low) + " to " + std::to_string(size.high) +
                    (size.step > 1 ? " in steps of " + std::to_string(size.step) : "") +
                    "; refused elsewhere");
  }
  for (const composit::ValueSize& size : state_->family.value_sizes)
    lines.push_back(size.name + " depends on values: shown " + list_of(size.shown));
  for (const SizeValues& sizes : state_->checked) lines.push_back("checked at " + text_of(sizes));
  for (std::string& line : composit::formula_lines(state_->family))
    lines.push_back("fitted: " + std::move(line));
  const CaptureBase& example = state_->examples.at(0);
  const std::string trust(name(example.trust()));
  for (std::string& line : example.assumptions())  // but for what sizes say better
    if (line != trust && !line.starts_with("argument '")) lines.push_back(std::move(line));
  return lines;
}

}  // namespace flashlight
