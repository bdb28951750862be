#include "composit/family/step_fit.h"

#include <algorithm>
#include <numeric>

namespace composit {
namespace {

constexpr size_t kShown = 64;   // sizes of an axis, from which a factor is told
constexpr size_t kTold = 4096;  // candidates that are told apart, and divisors

struct Steps {
  int64_t added, divisor;
  int64_t at(int64_t size) const {
    const int64_t sum = size + added, quotient = sum / divisor;
    return quotient - (sum % divisor < 0 ? 1 : 0);
  }
};

// All that give the values; none if they are too many to tell apart.
std::vector<Steps> all_steps(const std::vector<int64_t>& values,
                             const std::vector<int64_t>& sizes) {
  const auto [least, most] = std::minmax_element(sizes.begin(), sizes.end());
  const int64_t rise = values[static_cast<size_t>(most - sizes.begin())] -
                       values[static_cast<size_t>(least - sizes.begin())];
  std::vector<Steps> found;
  if (rise < 1) return found;
  const int64_t span = *most - *least;
  // One step may be of any width: of one that is wider than the range there is one place.
  const int64_t first = rise == 1 ? span + 1 : std::max<int64_t>(1, span / (rise + 1));
  const int64_t last = rise == 1 ? first : span / (rise - 1) + 1;
  if (last - first > static_cast<int64_t>(kTold)) return found;
  for (int64_t divisor = first; divisor <= last; ++divisor) {
    // value == div(size + added, divisor) bounds `added` from both sides.
    int64_t low = divisor * values[0] - sizes[0], high = low + divisor - 1;
    for (size_t i = 1; i < values.size(); ++i) {
      const int64_t begin = divisor * values[i] - sizes[i];
      low = std::max(low, begin);
      high = std::min(high, begin + divisor - 1);
    }
    for (int64_t added = low; added <= high; ++added) found.push_back({added, divisor});
    if (found.size() > kTold) return {};
  }
  return found;
}

// The factor of a product that follows from one axis, with the other sizes of a point.
// `divided_by`: the other factor there.
std::optional<SizeFormula> factor(const StepAxis& axis, const SizeValues& point,
                                  int64_t divided_by) {
  const auto at = [&](int64_t size) -> std::optional<int64_t> {
    const std::optional<int64_t> number = axis.at(point, size);
    if (!number || *number % divided_by != 0) return std::nullopt;
    return *number / divided_by;
  };
  std::vector<int64_t> values, sizes;
  const size_t step = (axis.range.size() - 1) / kShown + 1;
  for (size_t i = 0; i < axis.range.size(); i += step) {
    const std::optional<int64_t> number = at(axis.range[i]);
    if (!number) continue;
    values.push_back(*number);
    sizes.push_back(axis.range[i]);
  }
  return step_fit(values, sizes, axis.size, axis.range, at);
}

int64_t evaluated(const SizeFormula& formula, int64_t size) {
  return formula.evaluate([&](const LazyTensor&, size_t) { return size; });
}

// At a point the product is a * b: for each b that divides all products there, what a and b are.
std::optional<SizeFormula> product(const std::vector<int64_t>& values, const StepAxis& left,
                                   const StepAxis& right, const SizeValues& point) {
  int64_t common = 0;
  for (const int64_t size : left.range)
    if (const auto number = left.at(point, size)) common = std::gcd(common, *number);
  if (common > static_cast<int64_t>(kTold)) return std::nullopt;
  for (int64_t other = 1; other <= common; ++other) {
    if (common % other != 0) continue;
    const std::optional<SizeFormula> a = factor(left, point, other);
    const int64_t here = a ? evaluated(*a, left.of(point)) : 0;
    const std::optional<SizeFormula> b = here == 0 ? std::nullopt : factor(right, point, here);
    if (!b) continue;
    bool holds = true;
    for (size_t i = 0; holds && i < values.size(); ++i)
      holds = evaluated(*a, left.shown[i]) * evaluated(*b, right.shown[i]) == values[i];
    if (holds) return *a * *b;
  }
  return std::nullopt;
}

}  // namespace

std::optional<SizeFormula> step_fit(const std::vector<int64_t>& values,
                                    const std::vector<int64_t>& sizes, const SizeFormula& size,
                                    const std::vector<int64_t>& range, const StepAt& at) {
  if (values.empty() || range.empty()) return std::nullopt;
  std::vector<Steps> found = all_steps(values, sizes);
  for (const int64_t one : range) {
    if (found.size() < 2) break;
    const bool differ = std::any_of(found.begin(), found.end(), [&](const Steps& steps) {
      return steps.at(one) != found[0].at(one);
    });
    if (!differ) continue;
    const std::optional<int64_t> number = at(one);
    if (number) std::erase_if(found, [&](const Steps& steps) { return steps.at(one) != *number; });
  }
  if (found.empty()) return std::nullopt;
  const Steps& steps = found[0];  // the others are equal in all of the range
  // A single step is little to tell a function by, so all sizes are asked.
  const bool is_single = steps.at(range.back()) - steps.at(range.front()) < 2;
  for (const int64_t one : is_single ? range : std::vector<int64_t>())
    if (const std::optional<int64_t> number = at(one); number && *number != steps.at(one))
      return std::nullopt;
  const SizeFormula sum = steps.added == 0  ? size
                          : steps.added > 0 ? size + steps.added
                                            : size - -steps.added;
  return div(sum, steps.divisor);
}

std::optional<SizeFormula> step_fit(const std::vector<int64_t>& values,
                                    const std::vector<StepAxis>& axes,
                                    const std::vector<SizeValues>& points) {
  for (const StepAxis& axis : axes) {
    const auto at = [&](int64_t size) {
      std::optional<int64_t> number;
      for (size_t i = 0; !number && i < points.size(); ++i) number = axis.at(points[i], size);
      return number;
    };
    if (auto one = step_fit(values, axis.shown, axis.size, axis.range, at)) return one;
  }
  for (size_t i = 0; i < axes.size(); ++i)
    for (size_t k = i + 1; k < axes.size(); ++k)
      for (const SizeValues& point : points)
        if (auto two = product(values, axes[i], axes[k], point)) return two;
  return std::nullopt;
}

}  // namespace composit
