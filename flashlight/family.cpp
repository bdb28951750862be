#include "flashlight/family.h"

#include <algorithm>
#include <map>
#include <mutex>

#include "composit/family/saved_family.h"
#include "composit/ir/compare.h"
#include "composit/ir/error.h"
#include "composit/passes/drop_no_ops.h"
#include "flashlight/difference.h"
#include "flashlight/family_maker.h"
#include "flashlight/saved_state.h"
#include "flashlight/value_sizes.h"

namespace flashlight {

using composit::Graph;
using composit::list_of;
using composit::SizeValues;
using composit::text_of;
using composit::UserError;

namespace {

// The most bound captures that a family keeps.
constexpr size_t kMostBound = 64;

bool same_bits(const std::vector<at::Tensor>& a, const std::vector<at::Tensor>& b) {
  return std::equal(a.begin(), a.end(), b.begin(), b.end(), [](const auto& x, const auto& y) {
    return x.defined() == y.defined() && (!x.defined() || digest(x) == digest(y));
  });
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

namespace {

composit::Family unified(const std::vector<CaptureBase>& examples,
                         const std::vector<std::string>& names) {
  FamilyMaker::expect_alike(examples);
  return composit::unify(FamilyMaker::graphs_of(examples), {.names = names});
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
  if (!family.example.mutations().empty() || !generators_read(family.example).empty()) return;
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
  const std::vector<int64_t> numbers = value_sizes_at(
      family, FamilyMaker::types_of(example, arguments),
      [&](const Graph& part) { return FamilyMaker::run_part(example, part, arguments); });
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
    const bool has_one =
        std::any_of(sizes.begin(), sizes.end(), [](const auto& size) { return size.second == 1; });
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
