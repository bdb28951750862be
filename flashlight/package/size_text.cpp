#include "flashlight/package/size_text.h"

#include <spdlog/fmt/fmt.h>

#include <algorithm>
#include <functional>

namespace flashlight::package {
namespace {

using Sizes = std::vector<int64_t>;
using Names = std::vector<std::string>;

bool fits(const std::vector<Sizes>& sizes, const std::vector<int64_t>& numbers,
          const std::function<int64_t(const Sizes&)>& number) {
  for (size_t i = 0; i < sizes.size(); ++i)
    if (number(sizes[i]) != numbers[i]) return false;
  return true;
}

// offset + sum of factors[i] * size i.
struct Sum {
  std::vector<int64_t> factors;
  int64_t offset = 0;

  int64_t at(const Sizes& sizes) const {
    int64_t sum = offset;
    for (size_t i = 0; i < sizes.size(); ++i) sum += factors[i] * sizes[i];
    return sum;
  }
  std::string text(const Names& names) const {
    std::string text;
    const auto add = [&](int64_t factor, const std::string& term) {
      const int64_t size = std::abs(factor);
      if (factor == 0) return;
      text += text.empty() ? (factor < 0 ? "-" : "") : (factor < 0 ? " - " : " + ");
      text += term.empty() ? std::to_string(size)
                           : (size == 1 ? "" : fmt::format("{} * ", size)) + term;
    };
    for (size_t i = 0; i < names.size(); ++i) add(factors[i], names[i]);
    add(offset, "");
    return text.empty() ? "0" : text;
  }
};

// By calls that differ from the first in one size.
std::optional<Sum> sum_of(size_t names, const std::vector<Sizes>& sizes,
                          const std::vector<int64_t>& numbers) {
  Sum sum = {std::vector<int64_t>(names, 0)};
  for (size_t name = 0; name < names; ++name)
    for (size_t call = 1; call < sizes.size(); ++call) {
      Sizes other = sizes[call];
      const int64_t distance = other[name] - sizes[0][name];
      other[name] = sizes[0][name];
      if (distance == 0 || other != sizes[0]) continue;
      if ((numbers[call] - numbers[0]) % distance != 0) return std::nullopt;
      sum.factors[name] = (numbers[call] - numbers[0]) / distance;
      break;
    }
  sum.offset = numbers[0] - sum.at(sizes[0]);
  if (!fits(sizes, numbers, [&](const Sizes& at) { return sum.at(at); })) return std::nullopt;
  return sum;
}

std::optional<std::string> product_text(const Names& names, const std::vector<Sizes>& sizes,
                                        const std::vector<int64_t>& numbers) {
  for (size_t subset = 1; subset < size_t{1} << names.size(); ++subset) {
    const auto product = [&](const Sizes& at) {
      int64_t result = 1;
      for (size_t i = 0; i < at.size(); ++i) result *= (subset >> i & 1) != 0 ? at[i] : 1;
      return result;
    };
    const int64_t first = product(sizes[0]), factor = first == 0 ? 0 : numbers[0] / first;
    if (!fits(sizes, numbers, [&](const Sizes& at) { return factor * product(at); })) continue;
    std::string text = factor == 1 ? "" : std::to_string(factor);
    for (size_t i = 0; i < names.size(); ++i)
      if ((subset >> i & 1) != 0) text += (text.empty() ? "" : " * ") + names[i];
    return text;
  }
  return std::nullopt;
}

std::optional<std::string> quotient_text(const Names& names, const std::vector<Sizes>& sizes,
                                         const std::vector<int64_t>& numbers) {
  // Strides are powers of 2 more often than not.
  constexpr int64_t kDivisors[] = {2, 4,  8,  16, 32, 64, 3,  5,  6, 7,
                                   9, 10, 12, 14, 15, 20, 24, 28, 48};
  for (size_t name = 0; name < names.size(); ++name)
    for (const int64_t divisor : kDivisors) {
      const int64_t least = numbers[0] * divisor - sizes[0][name];
      for (int64_t offset = least; offset < least + divisor; ++offset) {
        const auto quotient = [&](const Sizes& at) {
          const int64_t sum = at[name] + offset;
          return sum < 0 ? -1 : sum / divisor;
        };
        if (!fits(sizes, numbers, quotient)) continue;
        if (offset == 0) return fmt::format("{} / {}", names[name], divisor);
        return fmt::format("({} {} {}) / {}", names[name], offset < 0 ? '-' : '+', std::abs(offset),
                           divisor);
      }
    }
  return std::nullopt;
}

}  // namespace

std::optional<std::string> size_text(const Names& names, const std::vector<Sizes>& sizes,
                                     const std::vector<int64_t>& numbers) {
  if (const std::optional<Sum> sum = sum_of(names.size(), sizes, numbers)) return sum->text(names);
  if (auto product = product_text(names, sizes, numbers)) return product;
  return quotient_text(names, sizes, numbers);
}

}  // namespace flashlight::package
