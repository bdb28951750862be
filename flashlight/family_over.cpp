// Families that choose their examples.
#include <algorithm>
#include <array>
#include <numeric>
#include <optional>

#include "composit/family/cases.h"
#include "composit/ir/error.h"
#include "flashlight/family.h"
#include "flashlight/family_maker.h"
#include "flashlight/family_numbers.h"

namespace flashlight {

using composit::list_of;
using composit::SizeValues;
using composit::text_of;
using composit::UserError;

namespace {

// Steps from the least size to those of three examples, in a range of `count` sizes: spread over
// it, other for each size, and without a common factor, which would leave open what lies between.
std::array<int64_t, 3> steps_of_choice(size_t size, int64_t count) {
  constexpr std::array<int64_t, 3> kPercent[] = {
      {13, 55, 86}, {71, 29, 47}, {38, 90, 19}, {62, 6, 33}};
  constexpr std::array<int64_t, 3> kInTurn[] = {{0, 1, 2}, {1, 2, 0}, {2, 0, 1},
                                                {2, 1, 0}, {0, 2, 1}, {1, 0, 2}};
  constexpr int64_t kFew = 12;
  if (count < kFew) return kInTurn[size % std::size(kInTurn)];
  std::array<int64_t, 3> steps = kPercent[size % std::size(kPercent)];
  for (int64_t& step : steps) step = step * (count - 1) / 100;
  while (std::gcd(steps[1] - steps[0], steps[2] - steps[0]) > 1) --steps[2];
  return steps;
}

SizeValues sizes_of_choice(const std::vector<SizeRange>& ranges, size_t example) {
  SizeValues sizes;
  for (size_t i = 0; i < ranges.size(); ++i) {
    const SizeRange& range = ranges[i];
    const int64_t least = range.low >= 2 ? range.low : range.low + range.step;
    const int64_t count = range.step < 1 ? 0 : (range.high - least) / range.step + 1;
    if (count < static_cast<int64_t>(composit::kLeastExamples))
      throw UserError("[family] expected at least " + std::to_string(composit::kLeastExamples) +
                      " sizes from 2 on in the range of '" + range.name + "', received " +
                      std::to_string(range.low) + " to " + std::to_string(range.high));
    sizes[range.name] = least + range.step * steps_of_choice(i, count)[example];
  }
  return sizes;
}

// The names of free sizes, found by the numbers that the examples have.
std::vector<std::string> names_of(const std::vector<CaptureBase>& examples,
                                  const std::vector<SizeValues>& chosen) {
  std::vector<std::string> names;
  for (const composit::FreeSize& size : composit::free_sizes(FamilyMaker::graphs_of(examples))) {
    std::string found;
    for (const auto& [name, number] : chosen[0]) {
      bool same = true;
      for (size_t i = 0; i < chosen.size(); ++i) same = same && chosen[i].at(name) == size.shown[i];
      if (same) found = name;
    }
    if (found.empty())
      throw UserError("[family] the size '" + size.name + "' of the arguments (" +
                      list_of(size.shown) + ") is none of those declared");
    names.push_back(found);
  }
  return names;
}

// The ranges as sizes of which nothing was shown.
std::vector<composit::FreeSize> free_sizes_of(const std::vector<SizeRange>& ranges) {
  std::vector<composit::FreeSize> sizes;
  for (const SizeRange& range : ranges) {
    composit::FreeSize size{.name = range.name, .axes = {}, .shown = {range.low}};
    size.low = range.low;
    size.high = range.low + (range.high - range.low) / range.step * range.step;
    size.step = range.step;
    sizes.push_back(std::move(size));
  }
  return sizes;
}

// For each case the sizes within the ranges that lie farthest out.
std::vector<SizeValues> ends_of(const std::vector<SizeRange>& ranges,
                                const composit::Cases& cases) {
  const std::vector<composit::FreeSize> sizes = free_sizes_of(ranges);
  SizeValues low, high;
  for (const composit::FreeSize& size : sizes) {
    low[size.name] = size.low;
    high[size.name] = size.high;
  }
  if (cases.cases.size() == 1) return {low, high};
  std::vector<std::optional<std::pair<double, SizeValues>>> least(cases.cases.size()),
      greatest(cases.cases.size());
  for (const SizeValues& point : composit::grid_of(sizes)) {
    double height = 0;  // the mean place within the ranges
    for (const composit::FreeSize& size : sizes)
      if (size.high > size.low)
        height += static_cast<double>(point.at(size.name) - size.low) /
                  static_cast<double>(size.high - size.low);
    for (const size_t at : composit::cases_at(cases, point)) {
      if (!least[at] || height < least[at]->first) least[at] = {height, point};
      if (!greatest[at] || height > greatest[at]->first) greatest[at] = {height, point};
    }
  }
  std::vector<SizeValues> ends;
  for (const auto* side : {&least, &greatest})
    for (const auto& end : *side)
      if (end) ends.push_back(end->second);
  return ends;
}

// Makes a family of examples that it chooses.
class FamilyOver {
 public:
  FamilyOver(const FamilyBase::ArgumentsAt& arguments_at, const FamilyBase::CaptureOf& capture,
             const FamilySettings& settings)
      : arguments_at_(arguments_at), capture_(capture), settings_(settings) {}

  FamilyBase make() {
    for (size_t i = 0; i < composit::kLeastExamples; ++i) add(sizes_of_choice(settings_.ranges, i));
    std::optional<FamilyBase> family = of_examples();
    while (const std::optional<End> wrong = wrong_end(*family)) {
      if (is_enough() || is_chosen(wrong->example)) throw UserError(wrong->error);
      add(wrong->example);
      try {
        family = of_examples();
      } catch (const UserError& error) {
        throw UserError(wrong->error + "\nwith an example there: " + error.what());
      }
    }
    return *family;
  }

 private:
  void add(const SizeValues& sizes) {
    numbers_.push_back(with_present(settings_.numbers, {}));
    examples_.push_back(capture_(arguments_at_(sizes)));
    chosen_.push_back(sizes);
  }
  bool is_chosen(const SizeValues& sizes) const {
    return std::find(chosen_.begin(), chosen_.end(), sizes) != chosen_.end();
  }
  bool is_enough() const {
    constexpr size_t kMost = 32;
    return examples_.size() >= kMost;
  }

  // With more examples where formulas ask for them.
  FamilyBase of_examples() {
    for (;;) {
      FamilySettings named = settings_;
      named.names = names_of(examples_, chosen_);
      try {
        return FamilyBase(examples_, named, numbers_);
      } catch (const composit::ExampleWanted& wanted) {
        if (is_enough() || is_chosen(wanted.sizes)) throw;
        add(wanted.sizes);
      }
    }
  }

  // An end of the ranges at which the family does not hold, and an example that may say more.
  struct End {
    SizeValues example;
    std::string error;
  };
  std::optional<End> wrong_end(const FamilyBase& family) const {
    for (const SizeValues& sizes : ends_of(settings_.ranges, family.cases())) {
      const CheckReport report = family.check_flat(arguments_at_(sizes));
      if (report) continue;
      End end{sizes, "[family] the range that was declared does not hold at " + text_of(sizes) +
                         ": " + str(report)};
      // A size 1 says little of others: where it is no case of its own, one beside it says more.
      for (const SizeRange& range : settings_.ranges)
        if (end.example[range.name] < 2) end.example[range.name] += range.step;
      if (is_chosen(end.example)) end.example = sizes;
      return end;
    }
    return std::nullopt;
  }

  const FamilyBase::ArgumentsAt& arguments_at_;
  const FamilyBase::CaptureOf& capture_;
  const FamilySettings& settings_;
  std::vector<CaptureBase> examples_;
  std::vector<composit::NumberValues> numbers_;  // by example
  std::vector<SizeValues> chosen_;
};

}  // namespace

FamilyBase FamilyBase::over(const ArgumentsAt& arguments_at, const CaptureOf& capture,
                            const FamilySettings& settings) {
  return FamilyOver(arguments_at, capture, settings).make();
}

}  // namespace flashlight
