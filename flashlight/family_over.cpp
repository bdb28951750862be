// Families that choose their examples.
#include <algorithm>
#include <array>
#include <numeric>
#include <optional>

#include "composit/ir/error.h"
#include "flashlight/family.h"
#include "flashlight/family_maker.h"

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
  constexpr int64_t kFew = 12;  // gone through in turn
  if (count < kFew) return {0, 1, 2};
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

SizeValues ends_of(const std::vector<SizeRange>& ranges, bool high) {
  SizeValues sizes;
  for (const SizeRange& range : ranges)
    sizes[range.name] =
        high ? range.low + (range.high - range.low) / range.step * range.step : range.low;
  return sizes;
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
      if (is_enough() || std::count(chosen_.begin(), chosen_.end(), wrong->example) > 0)
        throw UserError(wrong->error);
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
    examples_.push_back(capture_(arguments_at_(sizes)));
    chosen_.push_back(sizes);
  }
  bool is_enough() const {
    constexpr size_t kMost = 12;
    return examples_.size() >= kMost;
  }

  // With more examples where formulas ask for them.
  FamilyBase of_examples() {
    for (;;) {
      FamilySettings named = settings_;
      named.names = names_of(examples_, chosen_);
      try {
        return FamilyBase(examples_, named);
      } catch (const composit::ExampleWanted& wanted) {
        if (is_enough()) throw;
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
    for (const bool high : {false, true}) {
      const SizeValues sizes = ends_of(settings_.ranges, high);
      const CheckReport report = family.check_flat(arguments_at_(sizes).tensors);
      if (report) continue;
      End end{sizes, "[family] the range that was declared does not hold at " + text_of(sizes) +
                         ": " + str(report)};
      for (const SizeRange& range : settings_.ranges)
        if (end.example[range.name] < 2) end.example[range.name] += range.step;
      return end;
    }
    return std::nullopt;
  }

  const FamilyBase::ArgumentsAt& arguments_at_;
  const FamilyBase::CaptureOf& capture_;
  const FamilySettings& settings_;
  std::vector<CaptureBase> examples_;
  std::vector<SizeValues> chosen_;
};

}  // namespace

FamilyBase FamilyBase::over(const ArgumentsAt& arguments_at, const CaptureOf& capture,
                            const FamilySettings& settings) {
  return FamilyOver(arguments_at, capture, settings).make();
}

}  // namespace flashlight
