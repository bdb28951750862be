#include "flashlight/family.h"

#include <algorithm>
#include <cmath>
#include <exception>

#include "composit/family/saved_family.h"
#include "composit/interchange/pt2.h"
#include "composit/ir/compare.h"
#include "composit/ir/error.h"
#include "composit/ir/literal.h"
#include "composit/passes/drop_no_ops.h"
#include "flashlight/difference.h"
#include "flashlight/family_inside.h"
#include "flashlight/family_maker.h"
#include "flashlight/family_numbers.h"
#include "flashlight/saved_state.h"
#include "flashlight/value_sizes.h"

namespace flashlight {

using composit::Graph;
using composit::list_of;
using composit::NumberValues;
using composit::SizeValues;
using composit::text_of;
using composit::UserError;

namespace {

// The most bound captures that a family keeps.
constexpr size_t kMostBound = 64;
// The property of a saved family that says which call is the next one.
constexpr const char* kNextCall = "next call of the family";

bool same_bits(const std::vector<at::Tensor>& a, const std::vector<at::Tensor>& b) {
  return std::equal(a.begin(), a.end(), b.begin(), b.end(), [](const auto& x, const auto& y) {
    return x.defined() == y.defined() && (!x.defined() || digest(x) == digest(y));
  });
}

std::vector<std::string> input_names(const std::vector<CaptureBase>& examples) {
  std::vector<std::string> names;
  for (const composit::Graph& graph : FamilyMaker::graphs_of(examples))
    for (const composit::LazyTensor& input : graph.inputs())
      names.push_back(input_name(*input.node));
  return names;
}

// Where examples go several ways, tensors without a name get the same names in all of them: the
// tracer numbers them by the way.
composit::Cases unified(std::vector<CaptureBase>& examples,
                        const std::vector<NumberValues>& numbers, composit::UnifyOptions options) {
  FamilyMaker::expect_alike(examples);
  options.numbers = numbers_shown(examples, numbers);
  options.numbers.python = FamilyMaker::inside(examples[0]).options.host_line != nullptr;
  const auto unify = [&](const std::vector<CaptureBase>& all) {
    return composit::unify_cases(FamilyMaker::graphs_of(all), options);
  };
  const std::vector<CaptureBase> named = FamilyMaker::with_common_names(examples);
  const bool are_renamed = input_names(named) != input_names(examples);
  if (!are_renamed) return unify(examples);
  std::exception_ptr error;
  try {
    if (composit::Cases cases = unify(examples); !has_branches(cases)) return cases;
  } catch (const UserError&) {  // perhaps for their names
    error = std::current_exception();
  }
  try {
    composit::Cases cases = unify(named);
    examples = named;
    return cases;
  } catch (const UserError&) {  // what is wanted is told of the examples as they are
    if (error) std::rethrow_exception(error);
    throw;
  }
}

const CaptureBase& example_of(const composit::Cases& cases,
                              const std::vector<CaptureBase>& examples, size_t number) {
  return examples.at(composit::first_example_of(cases, number));
}

SizeValues sizes_of_example(const composit::Family& family, size_t number) {
  SizeValues sizes;
  for (const composit::FreeSize& size : family.sizes) sizes[size.name] = size.shown.at(number);
  return sizes;
}

// A capture at these sizes and numbers, with a branch for each answer that was shown there.
CaptureBase merged_at(const composit::Cases& cases, const std::vector<CaptureBase>& examples,
                      const SizeValues& sizes, const NumberValues& numbers) {
  std::vector<CaptureBase> ways;
  for (const size_t number : composit::shown_cases_at(cases, sizes))
    ways.push_back(example_of(cases, examples, number));
  return FamilyMaker::bound(ways, composit::graph_at(cases, sizes, numbers));
}

// The family of one way for the arguments of an example, in whatever memory they lie. `number`:
// among the examples of its case, of which `first` is the first.
CaptureBase bound_to_example(const composit::Family& family, const CaptureBase& first,
                             const CaptureBase& example, size_t number) {
  std::vector<int64_t> value_sizes;
  for (const composit::ValueSize& size : family.value_sizes)
    value_sizes.push_back(size.shown.at(number));
  const auto types = FamilyMaker::types_of(first, example.example_arguments());
  const auto shown = [number](const composit::NumberUse& use) { return use.shown.at(number); };
  return FamilyMaker::bound({first}, composit::bind_types(family, types, value_sizes, shown).graph);
}

// The results of replays at the sizes of each example have the program's bits.
void expect_results_again(const composit::Cases& cases, const std::vector<CaptureBase>& examples) {
  std::vector<size_t> numbers(cases.cases.size(), 0);
  for (size_t i = 0; i < examples.size(); ++i) {
    const size_t at = cases.case_of_example[i];
    const composit::Family& family = cases.cases[at];
    const size_t number = numbers[at]++;  // among the examples of the case
    if (!family.example.mutations().empty() || !generators_read(family.example).empty()) continue;
    const CaptureBase bound =
        has_branches(cases)
            ? merged_at(cases, examples, sizes_of_example(family, number), {})
            : bound_to_example(family, example_of(cases, examples, at), examples[i], number);
    if (!same_bits(bound.replay(examples[i].example_arguments()), examples[i].example_results()))
      throw UserError("[unify] the family, bound to " + text_of(sizes_of_example(family, number)) +
                      ", does not give the program's results again");
  }
}

}  // namespace

FamilyBase::FamilyBase(std::vector<CaptureBase> examples, const FamilySettings& settings,
                       std::vector<NumberValues> numbers)
    : state_(std::make_shared<State>()) {
  if (examples.empty()) throw UserError("[unify] expected examples, received none");
  state_->state = FamilyState::of(examples);
  state_->program = FamilyMaker::looks(examples.back());
  state_->cases =
      unified(examples, numbers, {.names = settings.names, .predicates = settings.predicates});
  if (settings.replay_examples) expect_results_again(state_->cases, examples);
  state_->examples = std::move(examples);
  state_->numbers = std::move(numbers);
  state_->numbers.resize(state_->examples.size());
  state_->next_call = state_->runs = static_cast<int64_t>(state_->examples.size());
  state_->settings = settings;
}

const composit::Family& FamilyBase::family() const { return state_->cases.cases.at(0); }
const composit::Cases& FamilyBase::cases() const { return state_->cases; }
const Structure& FamilyBase::argument_structure() const {
  return state_->examples.at(0).argument_structure();
}

SizeValues FamilyBase::sizes_of(const std::vector<at::Tensor>& arguments) const {
  const auto types = FamilyMaker::types_of(state_->examples.at(0), arguments);
  SizeValues sizes = composit::sizes_of_inputs(family(), types);
  const Case there = case_of(sizes);
  composit::expect_inputs(there.family, sizes, FamilyMaker::types_of(there.example, arguments));
  return sizes;
}

FamilyBase::Case FamilyBase::case_number(size_t number) const {
  return {state_->cases.cases[number], example_of(state_->cases, state_->examples, number)};
}

FamilyBase::Case FamilyBase::case_of(const SizeValues& sizes) const {
  return case_number(composit::shown_cases_at(state_->cases, sizes).at(0));
}

CaptureBase FamilyBase::at(const SizeValues& sizes) const {
  return composit::has_numbers(state_->cases) ? fresh_at(sizes) : open_at(sizes);
}

void FamilyBase::expect_not_refuted(const SizeValues& sizes) const {
  const std::lock_guard lock(state_->mutex);
  if (state_->refuted.empty()) return;
  SizeValues of_inputs;  // without those that depend on values
  for (const composit::FreeSize& size : family().sizes)
    if (const auto found = sizes.find(size.name); found != sizes.end()) of_inputs.insert(*found);
  if (const auto found = state_->refuted.find(of_inputs); found != state_->refuted.end())
    throw UserError("[family] at " + text_of(sizes) +
                    " a check found another program: extend the family with an example there\n" +
                    found->second);
}

CaptureBase FamilyBase::open_at(const SizeValues& sizes) const {
  expect_not_refuted(sizes);
  const std::lock_guard lock(state_->mutex);
  if (const auto found = state_->bound.find(sizes); found != state_->bound.end())
    return found->second;
  const CaptureBase capture = fresh_open_at(sizes);
  if (state_->bound.size() >= kMostBound) state_->bound.erase(state_->bound.begin());
  state_->bound.emplace(sizes, capture);
  return capture;
}

CaptureBase FamilyBase::fresh_at(const SizeValues& sizes) const {
  expect_not_refuted(sizes);
  const NumberValues numbers = numbers_now({});
  const CaptureBase capture = merged_at(state_->cases, state_->examples, sizes, numbers);
  FamilyMaker::set_numbers(capture, numbers);
  return capture;
}

CaptureBase FamilyBase::fresh_open_at(const SizeValues& sizes) const {
  if (!composit::has_numbers(state_->cases))
    return merged_at(state_->cases, state_->examples, sizes, {});
  const Case there = case_of(sizes);
  return FamilyMaker::open(there.example, there.family, composit::bind_sizes(there.family, sizes));
}

SizeValues FamilyBase::sizes_of_call(const std::vector<at::Tensor>& arguments) const {
  SizeValues sizes = sizes_of(arguments);
  const Case there = case_of(sizes);
  const auto& value_sizes = there.family.value_sizes;
  if (value_sizes.empty()) return sizes;
  SavedState saved(FamilyMaker::inside(there.example), arguments);
  const std::vector<int64_t> numbers = value_sizes_at(
      there.family, FamilyMaker::types_of(there.example, arguments),
      [&](const Graph& part) { return FamilyMaker::run_part(there.example, part, arguments); });
  saved.restore();
  for (size_t i = 0; i < numbers.size(); ++i) sizes[value_sizes[i].name] = numbers[i];
  return sizes;
}

void FamilyBase::extend_at(const FlatValues& arguments) {
  expect_unchanged();
  NumberValues numbers;
  for (const FamilyNumber& number : state_->settings.numbers)
    if (const auto given = numbers_.find(number.name); given != numbers_.end())
      numbers.insert(*given);
  numbers = with_present(state_->settings.numbers, std::move(numbers));
  if (composit::numbers_of(state_->cases).contains(composit::kCalls))
    numbers[composit::kCalls] = static_cast<double>(state_->runs);
  ++state_->runs;
  extend(FamilyMaker::run(state_->examples.at(0), arguments), std::move(numbers));
}

void FamilyBase::extend(CaptureBase example, NumberValues given) {
  std::vector<CaptureBase> examples = state_->examples;
  std::vector<NumberValues> numbers = state_->numbers;
  examples.push_back(std::move(example));
  if (given.contains(composit::kCalls))
    for (size_t i = 0; i < numbers.size(); ++i)
      numbers[i].emplace(composit::kCalls, static_cast<double>(i));
  numbers.push_back(std::move(given));
  std::vector<std::string> names;
  for (const composit::FreeSize& size : family().sizes) names.push_back(size.name);
  FamilyState state = FamilyState::of(examples);
  std::shared_ptr<Looks> program = FamilyMaker::looks(examples.back());
  composit::Cases cases =
      unified(examples, numbers, {.names = names, .predicates = state_->cases.predicates});
  if (state_->settings.replay_examples) expect_results_again(cases, examples);
  const std::lock_guard lock(state_->mutex);
  if (state_->next_call) ++*state_->next_call;
  state_->examples = std::move(examples);
  state_->numbers = std::move(numbers);
  state_->state = std::move(state);
  state_->program = std::move(program);
  state_->cases = std::move(cases);
  state_->bound.clear();
  state_->refuted.clear();
  for (const auto& [sizes, answers] : state_->checked)
    if (const auto number = composit::case_of_answers(state_->cases, sizes, answers))
      composit::widen(state_->cases.cases[*number], sizes);
}

// What the program and the family do at the sizes of a capture.
struct FamilyBase::Comparison {
  SizeValues sizes;
  std::vector<bool> answers;  // that the program reads
  size_t number = 0;          // of the case
  Graph bound;
  std::vector<composit::Difference> differences;  // but for what changes no value
};

FamilyBase::Comparison FamilyBase::compared(const CaptureBase& there, NumberValues numbers) const {
  Comparison result;
  const std::vector<at::Tensor>& arguments = there.example_arguments();
  result.sizes =
      composit::sizes_of_inputs(family(), FamilyMaker::types_of(state_->examples.at(0), arguments));
  // With the family's names for tensors that have none.
  CaptureBase named = there;
  if (has_branches(state_->cases)) {
    std::vector<CaptureBase> all_examples = state_->examples;
    all_examples.push_back(there);
    named = FamilyMaker::with_common_names(std::move(all_examples)).back();
  }
  const Graph program = composit::in_form(state_->cases, FamilyMaker::graph_of(named));
  result.answers = composit::answers_of(program);
  const auto number = composit::case_of_answers(state_->cases, result.sizes, result.answers);
  const std::vector<size_t> all = composit::cases_at(state_->cases, result.sizes);
  if (!number && all.size() > 1)
    throw UserError("[family] at " + text_of(result.sizes) +
                    " the program goes a way that no example shows: extend the family with it");
  result.number = number.value_or(all.at(0));
  const Case at = case_number(result.number);
  numbers.merge(composit::numbers_in(at.family, program));
  const auto number_of = [&](const composit::NumberUse& use) {
    return use.formula.evaluate([&](const std::string& name) {
      const auto found = numbers.find(name);
      return found == numbers.end() ? std::nan("") : found->second;
    });
  };
  result.bound = composit::bind_types(at.family, FamilyMaker::types_of(at.example, arguments),
                                      composit::value_sizes_in(at.family, program), number_of)
                     .graph;
  result.differences = composit::compare(drop_no_ops(result.bound), drop_no_ops(program));
  return result;
}

void FamilyBase::set_checked(const Comparison& comparison) const {
  const std::lock_guard lock(state_->mutex);
  state_->checked.emplace_back(comparison.sizes, comparison.answers);
  state_->refuted.erase(comparison.sizes);
  composit::widen(state_->cases.cases[comparison.number], comparison.sizes);
  if (has_branches(state_->cases)) state_->bound.clear();  // another way may be shown there now
}

CheckReport FamilyBase::check_flat(const std::vector<at::Tensor>& arguments) const {
  return check_flat(FlatValues{.tensors = arguments, .structure = argument_structure()});
}

CheckReport FamilyBase::check_flat(const FlatValues& values) const {
  return check_flat(values, [this](const FlatValues& arguments) {
    return FamilyMaker::run(state_->examples.at(0), arguments);
  });
}

CheckReport FamilyBase::check_flat(const FlatValues& values, const RunAgain& run) const {
  const CaptureBase& first = state_->examples.at(0);
  const std::vector<at::Tensor>& arguments = values.tensors;
  CheckReport report;
  if (!state_->state.empty()) {
    report.error = "the program keeps state that it makes anew in each call ('" +
                   state_->state.names().front() +
                   "'), and a run would go on from its own: extend the "
                   "family with an example instead";
    return report;
  }
  SizeValues sizes = composit::sizes_of_inputs(family(), FamilyMaker::types_of(first, arguments));
  SavedState saved(FamilyMaker::inside(case_of(sizes).example), arguments);
  Comparison comparison;
  bool was_compared = false;
  try {
    expect_unchanged();
    NumberValues numbers = numbers_of_arguments(values.structure);
    numbers.merge(with_present(state_->settings.numbers, numbers_));
    numbers[composit::kCalls] = static_cast<double>(state_->runs++);
    const CaptureBase there = run(values);
    if (state_->program) state_->program->renew();
    saved.restore();
    comparison = compared(there, std::move(numbers));
    const CaptureBase bound =
        FamilyMaker::bound({case_number(comparison.number).example}, comparison.bound);
    const std::vector<at::Tensor> results = bound.replay(arguments);
    if (!same_bits(results, there.example_results()))
      report.error = "the family, bound to " + text_of(sizes) + ", gives other results";
    const bool has_one =
        std::any_of(sizes.begin(), sizes.end(), [](const auto& size) { return size.second == 1; });
    for (const composit::Difference& difference : comparison.differences)
      if (!has_one) report.graph_differences.push_back(str(difference));
    report.compared = results.size();
    was_compared = true;
  } catch (const UserError& error) {
    report.error = error.what();
  }
  saved.restore();
  if (report.ok()) {
    set_checked(comparison);
  } else if (was_compared && !composit::has_numbers(state_->cases)) {
    const std::lock_guard lock(state_->mutex);
    state_->refuted.emplace(sizes, str(report));
  }
  return report;
}

std::string FamilyBase::difference_from(const CaptureBase& there) const {
  const Comparison comparison = compared(there, {});
  return comparison.differences.empty() ? "" : str(comparison.differences.front());
}

void FamilyBase::save(const std::filesystem::path& folder) const {
  composit::save(saved(), folder);
}

composit::SavedCapture FamilyBase::saved() const {
  if (!state_->refuted.empty()) expect_not_refuted(state_->refuted.begin()->first);
  std::vector<composit::SavedCapture> examples;
  for (size_t number = 0; number < state_->cases.cases.size(); ++number) {
    const CaptureBase& example = example_of(state_->cases, state_->examples, number);
    if (!FamilyMaker::inside(example).replayed.gradients.empty())
      throw UserError("[save] the program leaves gradients in '.grad'; return them instead");
    examples.push_back(FamilyMaker::saved(example));
  }
  if (const auto& growing = growing_state(); !growing.empty())
    throw UserError("[save] expected state that keeps its size, received '" + growing.front() +
                    "', which grows from call to call");
  composit::SavedCapture saved = composit::with_family(std::move(examples), state_->cases);
  if (state_->next_call) saved.properties[kNextCall] = std::to_string(*state_->next_call);
  return saved;
}

FamilyBase FamilyBase::load(const std::filesystem::path& folder) {
  const composit::SavedCapture saved =
      composit::is_pt2(folder) ? composit::load_pt2(folder) : composit::load(folder);
  return of_saved(saved, folder);
}

FamilyBase FamilyBase::of_saved(const composit::SavedCapture& saved,
                                const std::filesystem::path& folder) {
  auto state = std::make_shared<State>();
  state->cases = composit::family_of(saved);
  if (const auto next = saved.properties.find(kNextCall); next != saved.properties.end())
    state->next_call = composit::parse_int(next->second);
  state->examples.push_back(FamilyMaker::of_saved(saved, folder));
  for (const composit::SavedCapture& further : saved.cases)
    state->examples.push_back(FamilyMaker::of_saved(further, folder));
  return FamilyBase(std::move(state));
}

namespace {

void add_lines(const composit::Family& family, const std::string& which,
               std::vector<std::string>& lines) {
  for (const composit::FreeSize& size : family.sizes) {
    const bool fixed = size.low == size.high;
    lines.push_back(
        which + size.name + ": shown " + list_of(size.shown) +
        (fixed ? ""
               : "; fitted from " + std::to_string(size.low) + " to " + std::to_string(size.high)) +
        (size.step > 1 ? " in steps of " + std::to_string(size.step) : "") + "; refused elsewhere");
  }
  for (const composit::ValueSize& size : family.value_sizes)
    lines.push_back(which + size.name + " depends on values: shown " + list_of(size.shown));
  for (std::string& line : composit::formula_lines(family))
    lines.push_back(which + "fitted: " + std::move(line));
  add_number_lines(family, which, lines);
}

}  // namespace

std::vector<std::string> FamilyBase::assumptions() const {
  std::vector<std::string> lines = composit::fork_lines(state_->cases);
  for (const composit::LoopShape& loop : state_->cases.loops) lines.push_back(print(loop));
  for (const composit::ScanShape& loop : state_->cases.scans) lines.push_back(print(loop));
  for (std::string& line : lines) line = "fitted: " + line;
  for (const composit::Predicate& one : state_->cases.predicates)
    lines.push_back("stated: " + print(one));
  const auto& cases = state_->cases.cases;
  for (size_t i = 0; i < cases.size(); ++i)
    add_lines(cases[i], cases.size() == 1 ? "" : "case " + std::to_string(i + 1) + ": ", lines);
  for (const auto& [sizes, answers] : state_->checked)
    lines.push_back("checked at " + text_of(sizes));
  // Guards that became branches and loops are none any more.
  const bool is_merged = has_branches(state_->cases) || !state_->cases.loops.empty();
  const CaptureBase example =
      is_merged ? at(sizes_of_example(family(), 0)) : state_->examples.at(0);
  const std::string trust(name(example.trust()));
  for (std::string& line : example.assumptions())  // but for what sizes say better
    if (line != trust && !line.starts_with("argument '") && !line.starts_with("bound: "))
      lines.push_back(std::move(line));
  return lines;
}

}  // namespace flashlight
