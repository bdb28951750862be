#include "composit/family/examples.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <initializer_list>
#include <numeric>
#include <optional>

#include "composit/ir/error.h"

namespace composit {
namespace {

constexpr size_t kMostExamples = 32;

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
    const int64_t least = range.least >= 2 ? range.least : range.least + range.step;
    const int64_t count = range.step < 1 ? 0 : (range.most - least) / range.step + 1;
    if (count < static_cast<int64_t>(kLeastExamples))
      throw UserError("[family] expected at least " + std::to_string(kLeastExamples) +
                      " sizes from 2 on in the range of '" + range.name + "', received " +
                      std::to_string(range.least) + " to " + std::to_string(range.most));
    sizes[range.name] = least + range.step * steps_of_choice(i, count)[example];
  }
  return sizes;
}

// The names of free sizes, found by the numbers that the examples have.
std::vector<std::string> names_of(const std::vector<Graph>& examples,
                                  const std::vector<SizeValues>& shown) {
  std::vector<std::string> names;
  for (const FreeSize& size : free_sizes(examples)) {
    std::string found;
    for (const auto& [name, number] : shown[0]) {
      bool same = true;
      for (size_t i = 0; i < shown.size(); ++i) same = same && shown[i].at(name) == size.shown[i];
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
std::vector<FreeSize> free_sizes_of(const std::vector<SizeRange>& ranges) {
  std::vector<FreeSize> sizes;
  for (const SizeRange& range : ranges) {
    FreeSize size{.name = range.name, .axes = {}, .shown = {range.least}};
    size.low = range.least;
    size.high = range.least + (range.most - range.least) / range.step * range.step;
    size.step = range.step;
    sizes.push_back(std::move(size));
  }
  return sizes;
}

class Chooser {
 public:
  Chooser(ExampleSource& source, const std::vector<SizeRange>& ranges)
      : source_(source), ranges_(ranges) {}

  void run() {
    for (size_t i = 0; i < kLeastExamples; ++i) show(sizes_of_choice(ranges_, i));
    const Cases* cases = &unified();
    while (const std::optional<Wrong> wrong = first_wrong(*cases)) {
      if (is_enough() || is_shown(wrong->example)) throw UserError(wrong->error);
      show(wrong->example);
      try {
        cases = &unified();
      } catch (const UserError& error) {
        throw UserError(wrong->error + "\nwith an example there: " + error.what());
      }
    }
  }

 private:
  void show(const SizeValues& sizes) {
    source_.show(sizes);
    shown_.push_back(sizes);
  }
  bool is_shown(const SizeValues& sizes) const {
    return std::find(shown_.begin(), shown_.end(), sizes) != shown_.end();
  }
  bool is_enough() const { return shown_.size() >= kMostExamples; }

  // With more examples where formulas ask for them.
  const Cases& unified() {
    for (;;) {
      const std::vector<std::string> names = names_of(source_.graphs(), shown_);
      try {
        return source_.unify(names);
      } catch (const ExampleWanted& wanted) {
        if (is_enough() || is_shown(wanted.sizes)) throw;
        show(wanted.sizes);
      }
    }
  }

  // Sizes at which the family does not hold, and an example that may say more.
  struct Wrong {
    SizeValues example;
    std::string error;
  };
  std::optional<Wrong> first_wrong(const Cases& cases) {
    for (const SizeValues& sizes : source_.checked(ranges_, cases)) {
      const std::string why = source_.wrong_at(sizes);
      if (why.empty()) continue;
      Wrong wrong{sizes, "[family] the range that was declared does not hold at " + text_of(sizes) +
                             ": " + why};
      // A size 1 says little of others: where it is no case of its own, one beside it says more.
      for (const SizeRange& range : ranges_)
        if (wrong.example[range.name] < 2) wrong.example[range.name] += range.step;
      if (is_shown(wrong.example)) wrong.example = sizes;
      return wrong;
    }
    return std::nullopt;
  }

  ExampleSource& source_;
  const std::vector<SizeRange>& ranges_;
  std::vector<SizeValues> shown_;
};

// For each case the sizes within the ranges that lie farthest out.
std::vector<SizeValues> ends_of(const std::vector<SizeRange>& ranges, const Cases& cases) {
  const std::vector<FreeSize> sizes = free_sizes_of(ranges);
  SizeValues low, high;
  for (const FreeSize& size : sizes) {
    low[size.name] = size.low;
    high[size.name] = size.high;
  }
  if (cases.cases.size() == 1) return {low, high};
  std::vector<std::optional<std::pair<double, SizeValues>>> least(cases.cases.size()),
      greatest(cases.cases.size());
  for (const SizeValues& point : grid_of(sizes)) {
    double height = 0;  // the mean place within the ranges
    for (const FreeSize& size : sizes)
      if (size.high > size.low)
        height += static_cast<double>(point.at(size.name) - size.low) /
                  static_cast<double>(size.high - size.low);
    for (const size_t at : cases_at(cases, point)) {
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

// A number of the range near `place`, from 0 to 1, that one of these divides: the first, if any.
int64_t number_near(const SizeRange& range, double place, std::initializer_list<int64_t> divisors) {
  const int64_t count = (range.most - range.least) / range.step + 1,
                middle = std::llround(place * static_cast<double>(count - 1));
  for (const int64_t divisor : divisors)
    for (int64_t distance = 0; distance <= count / 8; ++distance)
      for (const int64_t step : {middle - distance, middle + distance})
        if (step >= 0 && step < count && (range.least + step * range.step) % divisor == 0)
          return range.least + step * range.step;
  return range.least + middle * range.step;
}

// Numbers that programs treat in their own ways: multiples of blocks and windows, and a number that
// is none, in the parts of the ranges where no example lies.
std::vector<SizeValues> between(const std::vector<SizeRange>& ranges) {
  std::vector<SizeValues> points(3);
  for (const SizeRange& range : ranges) {
    points[0][range.name] = number_near(range, 0.35, {35, 7, 5, 3});
    points[1][range.name] = number_near(range, 0.7, {48, 16, 8, 4});
    points[2][range.name] = number_near(range, 0.22, {13, 11, 1});
  }
  return points;
}

// Of each two sizes whose ranges overlap the largest number of one beside the least of the other.
std::vector<SizeValues> orders_of(const std::vector<SizeRange>& ranges) {
  constexpr size_t kMost = 6;
  std::vector<SizeValues> points;
  for (const SizeRange& large : ranges)
    for (const SizeRange& small : ranges) {
      const bool overlap = large.most > small.least && small.most > large.least;
      if (large.name == small.name || !overlap || points.size() >= kMost) continue;
      SizeValues& point = points.emplace_back();
      for (const SizeRange& range : ranges) point[range.name] = number_near(range, 0.5, {1});
      point[large.name] = number_near(large, 1, {1});
      point[small.name] = small.least >= 2 ? small.least : small.least + small.step;
    }
  return points;
}

}  // namespace

std::vector<SizeValues> ExampleSource::checked(const std::vector<SizeRange>& ranges,
                                               const Cases& cases) const {
  std::vector<SizeValues> points = ends_of(ranges, cases);
  for (SizeValues& point : between(ranges)) points.push_back(std::move(point));
  for (SizeValues& point : orders_of(ranges)) points.push_back(std::move(point));
  return points;
}

void show_enough(ExampleSource& source, const std::vector<SizeRange>& ranges) {
  Chooser(source, ranges).run();
}

}  // namespace composit
