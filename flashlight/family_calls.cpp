// Calls of a family: its numbers, which are no sizes, and its replays.
#include <algorithm>
#include <cmath>

#include "composit/ir/error.h"
#include "flashlight/family_inside.h"
#include "flashlight/family_maker.h"
#include "flashlight/family_numbers.h"

namespace flashlight {

using composit::NumberValues;
using composit::UserError;

FamilyBase FamilyBase::with(NumberValues numbers) const {
  if (numbers.empty()) return *this;
  const auto known = composit::numbers_of(state_->cases);
  FamilyBase other = *this;
  for (const auto& [name, number] : numbers) {
    if (!known.contains(name) || known.at(name) == composit::NumberOrigin::read) {
      std::string names;
      for (const auto& [one, origin] : known) names += (names.empty() ? "" : ", ") + one;
      throw UserError("[family] expected one of the numbers " + (names.empty() ? "none" : names) +
                      ", received '" + name + "'");
    }
    other.numbers_[name] = number;
  }
  return other;
}

NumberValues FamilyBase::numbers_now(const Structure& arguments) const {
  if (!composit::has_numbers(state_->cases)) return {};
  const auto known = composit::numbers_of(state_->cases);
  NumberValues numbers = numbers_;
  for (const auto& [name, number] : numbers_of_arguments(arguments))
    if (known.contains(name)) {
      const double given = numbers.emplace(name, number).first->second;
      if (given != number && !(std::isnan(given) && std::isnan(number)))
        throw UserError("[family] expected the number '" + name +
                        "' as it was given for all calls, " + composit::list_of_numbers({given}) +
                        ", received " + composit::list_of_numbers({number}) +
                        " among the arguments");
    }
  std::vector<FamilyNumber> used;
  for (const FamilyNumber& number : state_->settings.numbers)
    if (known.contains(number.name)) used.push_back(number);
  numbers = with_present(used, std::move(numbers));
  for (const auto& [name, origin] : known) {
    if (composit::is_given(origin) && !numbers.contains(name))
      throw UserError("[family] expected the number '" + name +
                      "': " + "give it, as in `family.with({{\"" + name + "\", 0.1}})`");
  }
  for (const composit::Family& family : state_->cases.cases)
    for (const composit::FreeNumber& number : family.numbers)
      if (const auto value = numbers.find(number.name); value != numbers.end())
        composit::expect_kind(number, value->second);
  return numbers;
}

void FamilyBase::expect_arguments(const Structure& structure) const {
  const Structure& expected = argument_structure();
  if (structure == expected) return;
  const auto known = composit::numbers_of(state_->cases);
  const std::map<std::string, std::string> texts = number_texts(structure);
  bool are_known = same_but_for_numbers(expected, structure);
  for (const auto& [name, text] : number_texts(expected))
    are_known = are_known && (known.contains(name) || texts.at(name) == text);
  if (!are_known) detail::expect_structure(expected, structure);
  expect_number_types(state_->examples, structure,
                      [&](const std::string& name) { return known.contains(name); });
}

FlatValues FamilyBase::call(const FlatValues& arguments) const {
  const CaptureBase capture = open_at(sizes_of_call(arguments.tensors));
  const std::vector<std::string> names = number_names();
  return run_call(arguments.structure, [&](const std::vector<double>& numbers) {
    if (!composit::has_numbers(state_->cases)) return capture.call(arguments.tensors);
    NumberValues values;
    for (size_t i = 0; i < names.size(); ++i) values.emplace(names[i], numbers[i]);
    values.emplace(composit::kCalls, 0);  // read by nobody, if it was not among them
    return FlatValues{FamilyMaker::replay(capture, arguments.tensors, values),
                      FamilyMaker::inside(capture).results};
  });
}

std::vector<std::string> FamilyBase::number_names() const {
  std::vector<std::string> names;
  for (const auto& [name, origin] : composit::numbers_of(state_->cases))
    if (origin != composit::NumberOrigin::read) names.push_back(name);
  return names;
}

void FamilyBase::expect_unchanged() const {
  std::shared_ptr<const Looks> program;
  {
    const std::lock_guard lock(state_->mutex);
    program = state_->program;
  }
  if (program) program->expect_unchanged();
}

FlatValues FamilyBase::run_call(const Structure& arguments, const Run& run) const {
  state_->state.expect_held();
  expect_unchanged();
  NumberValues values = numbers_now(arguments);
  const std::vector<std::string> names = number_names();
  const bool counts = std::count(names.begin(), names.end(), composit::kCalls) > 0 &&
                      !values.contains(composit::kCalls);
  std::unique_lock<std::mutex> one_after_the_other;
  if (counts) {
    one_after_the_other = std::unique_lock(state_->counting);
    if (!state_->next_call)
      throw UserError(
          "[family] expected the number of the call, which the saved family does not "
          "say: give it, as in `family.with({{\"calls\", 3.0}})`");
    values[composit::kCalls] = static_cast<double>(*state_->next_call);
  }
  std::vector<double> numbers;
  for (const std::string& name : names) numbers.push_back(values.at(name));
  FlatValues results = run(numbers);
  if (counts) ++*state_->next_call;
  return results;
}

CaptureBase FamilyBase::with_number_inputs_at(const composit::SizeValues& sizes) const {
  const Case there = case_of(sizes);
  return FamilyMaker::with_number_inputs(there.example, there.family,
                                         composit::bind_sizes(there.family, sizes), number_names());
}

const std::vector<std::string>& FamilyBase::state_names() const { return state_->state.names(); }
const std::vector<std::string>& FamilyBase::growing_state() const {
  return state_->state.growing();
}

FlatValues FamilyBase::call(const std::vector<at::Tensor>& arguments) const {
  return call(FlatValues{.tensors = arguments, .structure = {}});
}

}  // namespace flashlight
