// Numbers by the names of sizes that they follow from.
//
//   SizeNames names;
//   names.add({"tokens", 1009, {"tokens"}});
//   names.text(12 * 1009);          // "12 * tokens"
//   names.text(768);                // "768"
//   names.take_used();              // {"tokens"}
//
// A number is a constant times a product of up to three sizes, or a small number more or less than
// a few times a size. Whoever chooses the sizes chooses primes or the like, so that no constant is
// such a number by chance, and writes the text at two choices: it is right if both texts are equal.
#pragma once

#include <cstdint>
#include <set>
#include <string>
#include <vector>

namespace flashlight::text {

class SizeNames {
 public:
  struct Size {
    std::string text;  // a name, or a formula: "tokens / 4"
    int64_t value;     // at least 2
    std::set<std::string> names;
  };
  void add(const Size& size);

  // The number by names, or its digits. Notes the names as used.
  std::string text(int64_t value);
  bool has(int64_t value) const { return find(value).product != nullptr; }
  // All names, in the order of their first `add`.
  const std::vector<std::string>& names() const { return order_; }
  // True if both are multiples of the same product of sizes, or both constants.
  bool same_sizes(int64_t a, int64_t b) const {
    const Found x = find(a), y = find(b);
    return x.product == y.product && x.added == 0 && y.added == 0;
  }
  void use(const std::vector<std::string>& names);
  // The names that were used since, in the order of their first `add`.
  std::vector<std::string> take_used();

  // What a number is more or less than a size, as the end of a window is; and how many times it.
  static constexpr int64_t kMostAdded = 3, kMostTimes = 2;

 private:
  static constexpr size_t kMostFactors = 3;
  struct Product : Size {  // its formulas in parentheses
    size_t factors;
    std::string alone;  // without parentheses around it
  };
  struct Found {
    const Product* product = nullptr;
    int64_t factor = 0, added = 0;
  };
  Found find(int64_t value) const;

  std::vector<std::string> order_;
  std::vector<Product> products_;
  std::set<std::string> used_;
};

}  // namespace flashlight::text
