#include "composit/family/fit.h"

#include <algorithm>
#include <numeric>
#include <optional>

#include "composit/op/affine.h"

namespace composit {
namespace {

using Values = std::vector<int64_t>;

// The greatest divisor that programs are expected to divide sizes by.
constexpr int64_t kMaxDivisor = 4096;
// Sizes, and what is made of two of them, stay below this: no product of two overflows.
constexpr int64_t kMaxSize = int64_t{1} << 31;

class Fitter {
 public:
  Fitter(const Values& values, const std::vector<SizeLeaf>& leaves) : values_(values) {
    for (const SizeLeaf& leaf : leaves)
      if (std::all_of(leaf.values.begin(), leaf.values.end(),
                      [](int64_t size) { return size < kMaxSize; }))
        leaves_.push_back(&leaf);
  }

  std::vector<Fit> run() {
    for (const SizeLeaf* leaf : leaves_) of_one(*leaf);
    for (size_t i = 0; i < leaves_.size(); ++i)
      for (size_t j = i; j < leaves_.size(); ++j) of_two(*leaves_[i], *leaves_[j]);
    if (fits_.empty())
      for (const SizeLeaf* leaf : leaves_)
        if (leaf->near) fractions(*leaf);
    std::stable_sort(fits_.begin(), fits_.end(),
                     [](const Fit& a, const Fit& b) { return rank_of(a) < rank_of(b); });
    return std::move(fits_);
  }

 private:
  // Programs mostly write a size of what they hold, a multiple or a product of those, or a size of
  // another tensor.
  static std::pair<int, FitForm> rank_of(const Fit& fit) {
    const bool simple = fit.form == FitForm::multiple || fit.form == FitForm::product;
    if (fit.form == FitForm::size) return {fit.near ? 0 : 2, fit.form};
    return {fit.near ? (simple ? 1 : 3) : 4, fit.form};
  }

  void add(FitForm form, bool near, SizeFormula formula) {
    fits_.push_back({std::move(formula), form, near});
  }

  // The number c with values == c * numbers in all examples.
  std::optional<int64_t> factor_of(const Values& numbers) const {
    if (numbers[0] == 0 || values_[0] % numbers[0] != 0) return std::nullopt;
    const int64_t factor = values_[0] / numbers[0];
    for (size_t i = 0; i < values_.size(); ++i)
      if (values_[i] != factor * numbers[i]) return std::nullopt;
    return factor;
  }

  template <class Function>
  bool gives(const Values& numbers, Function function) const {
    for (size_t i = 0; i < values_.size(); ++i)
      if (function(numbers[i]) != values_[i]) return false;
    return true;
  }

  void of_one(const SizeLeaf& leaf) {
    const SizeFormula size = size_of(leaf.tensor, leaf.axis);
    if (leaf.values == values_) return add(FitForm::size, leaf.near, size);
    const auto factor = factor_of(leaf.values);
    if (factor) add(FitForm::multiple, leaf.near, *factor * size);
    if (!factor) affine(leaf, size);
    divided(leaf, size);
  }

  void affine(const SizeLeaf& leaf, const SizeFormula& size) {
    const Values& x = leaf.values;
    const auto other = std::find_if(x.begin(), x.end(), [&](int64_t v) { return v != x[0]; });
    if (other == x.end()) return;
    const int64_t run = *other - x[0];
    const int64_t rise = values_[static_cast<size_t>(other - x.begin())] - values_[0];
    if (run == 0 || rise % run != 0 || rise == 0) return;
    const int64_t slope = rise / run, shift = values_[0] - slope * x[0];
    if (!gives(x, [&](int64_t v) { return slope * v + shift; })) return;
    if (slope == 1)
      add(FitForm::shifted, leaf.near, shift > 0 ? size + shift : size - (-shift));
    else
      add(FitForm::affine, leaf.near, shift > 0 ? slope * size + shift : slope * size - (-shift));
  }

  // Divisors that give the values by a quotient, a remainder, or the padding to a multiple.
  void divided(const SizeLeaf& leaf, const SizeFormula& size) {
    const Values& numbers = leaf.values;
    if (*std::min_element(values_.begin(), values_.end()) < 0) return;
    const int64_t greatest = *std::max_element(values_.begin(), values_.end());
    const int64_t most = std::min(kMaxDivisor, *std::max_element(numbers.begin(), numbers.end()));
    for (int64_t c = 2; c <= most; ++c) {
      const bool floors = gives(numbers, [&](int64_t v) { return floor_div(v, c); });
      const bool ceils = gives(numbers, [&](int64_t v) { return -floor_div(-v, c); });
      if (floors || ceils)
        add(FitForm::quotient, leaf.near,
            floors && ceils ? exact_div(size, c)
            : floors        ? div(size, c)
                            : ceil_div(size, c));
      if (greatest >= c) continue;
      if (gives(numbers, [&](int64_t v) { return v % c; }))
        add(FitForm::remainder, leaf.near, mod(size, c));
      if (gives(numbers, [&](int64_t v) { return (c - v % c) % c; }))
        add(FitForm::remainder, leaf.near, mod(SizeFormula(0) - size, c));
    }
  }

  // Programs scale pictures by halves and quarters, which are exact as floats, and so is what they
  // give, rounded down. Small sizes would fit many.
  void fractions(const SizeLeaf& leaf) {
    const Values& x = leaf.values;
    for (const int64_t c : {2, 4}) {
      if (*std::max_element(x.begin(), x.end()) < c * c) return;
      int64_t least = 1, most = kMaxDivisor;
      for (size_t i = 0; i < values_.size(); ++i) {
        if (x[i] <= 0 || values_[i] < 0) return;
        least = std::max(least, -floor_div(-values_[i] * c, x[i]));
        most = std::min(most, floor_div((values_[i] + 1) * c - 1, x[i]));
      }
      for (int64_t part = least; part <= most; ++part) {
        if (part % 2 == 0) continue;
        const bool exact = gives(x, [&](int64_t v) { return -floor_div(-part * v, c); });
        const SizeFormula whole = part * size_of(leaf.tensor, leaf.axis);
        add(FitForm::fraction, leaf.near, exact ? exact_div(whole, c) : div(whole, c));
      }
    }
  }

  void of_two(const SizeLeaf& a, const SizeLeaf& b) {
    Values product(values_.size()), sum(values_.size());
    for (size_t i = 0; i < values_.size(); ++i) {
      product[i] = a.values[i] * b.values[i];
      sum[i] = a.values[i] + b.values[i];
    }
    const bool near = a.near && b.near;
    const auto x = [&] { return size_of(a.tensor, a.axis); };
    const auto y = [&] { return size_of(b.tensor, b.axis); };
    if (product == values_) {
      add(FitForm::product, near, x() * y());
    } else if (const auto factor = factor_of(product)) {
      add(FitForm::scaled, near, *factor * x() * y());
    } else if (const auto divisor = divisor_of(product)) {
      add(FitForm::part, near,
          divisor->exact ? exact_div(x() * y(), divisor->number) : div(x() * y(), divisor->number));
    }
    if (&a == &b) return;  // a multiple
    if (sum == values_) add(FitForm::sum, near, x() + y());
    if (gives_difference(a, b)) add(FitForm::sum, near, x() - y());
    if (gives_difference(b, a)) add(FitForm::sum, near, y() - x());
  }

  bool gives_difference(const SizeLeaf& a, const SizeLeaf& b) const {
    for (size_t i = 0; i < values_.size(); ++i)
      if (values_[i] != a.values[i] - b.values[i]) return false;
    return true;
  }

  struct Divisor {
    int64_t number;
    bool exact;  // it divides in all examples
  };
  // The number by which a product is divided, rounded down.
  std::optional<Divisor> divisor_of(const Values& product) const {
    if (values_[0] <= 0) return std::nullopt;
    const int64_t about = product[0] / values_[0];
    for (const int64_t number : {about, about - 1, about + 1}) {
      if (number < 2 || number > kMaxDivisor) continue;
      if (!gives(product, [&](int64_t v) { return floor_div(v, number); })) continue;
      return Divisor{number, gives(product, [&](int64_t v) { return -floor_div(-v, number); })};
    }
    return std::nullopt;
  }

  const Values& values_;
  std::vector<const SizeLeaf*> leaves_;
  std::vector<Fit> fits_;
};

}  // namespace

std::vector<Fit> fits(const std::vector<int64_t>& values, const std::vector<SizeLeaf>& leaves) {
  return Fitter(values, leaves).run();
}

}  // namespace composit
