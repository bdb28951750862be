#include "composit/family/step_fit.h"

#include <algorithm>

namespace composit {
namespace {

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
  if (rise < 2) return found;  // one step may be of any width
  const int64_t span = *most - *least;
  const int64_t first = std::max<int64_t>(1, span / (rise + 1)), last = span / (rise - 1) + 1;
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

}  // namespace

std::optional<SizeFormula> step_fit(const std::vector<int64_t>& values,
                                    const std::vector<int64_t>& sizes, const SizeFormula& size,
                                    const std::vector<int64_t>& range, const StepAt& at) {
  if (values.empty()) return std::nullopt;
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
  const SizeFormula sum = steps.added == 0  ? size
                          : steps.added > 0 ? size + steps.added
                                            : size - -steps.added;
  return div(sum, steps.divisor);
}

}  // namespace composit
