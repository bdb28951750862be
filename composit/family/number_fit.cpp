#include "composit/family/number_fit.h"

#include <algorithm>
#include <cmath>
#include <set>

namespace composit {
namespace {

// How simple formulas are.
constexpr int kLeaf = 0, kNegated = 1, kCorrected = 2, kCorrectedByCalls = 3, kOneConstant = 4,
              kTwoConstants = 5, kCounted = 6;

// Constants of few digits near an estimate.
std::set<double> constants_near(double estimate) {
  constexpr int kWritten = 9;
  std::set<double> constants;
  if (!std::isfinite(estimate) || estimate == 0) return constants;
  for (int digits = 1; digits <= kWritten; ++digits) constants.insert(rounded(estimate, digits));
  constants.erase(0);
  return constants;
}

bool are_single(const std::vector<double>& values) {
  return std::all_of(values.begin(), values.end(), [](double v) {
    return same_bits(v, static_cast<double>(static_cast<float>(v)));
  });
}

size_t count_different(const std::vector<double>& values) {
  return std::set<double>(values.begin(), values.end()).size();
}

// A factor that follows a count: 1 - b^n, or its root.
struct Correction {
  NumberFormula formula;
  int rank;
  std::vector<double> values;
};

class NumberFitter {
 public:
  NumberFitter(const std::vector<double>& values, const std::vector<NumberLeaf>& leaves,
               const NumberFitOptions& options)
      : values_(values), leaves_(leaves), options_(options) {}

  std::vector<NumberFit> run() {
    for (const NumberLeaf& leaf : leaves_) {
      leaf_ = &leaf;
      const NumberFormula x = NumberFormula::named(leaf.name);
      const size_t before = fits_.size();
      add(x, kLeaf);
      add(-x, kNegated);
      if (fits_.size() == before && count_different(leaf.values) > 1) add_constants(x);
    }
    if (fits_.empty()) add_corrected();
    if (fits_.empty()) add_counted();
    std::stable_sort(fits_.begin(), fits_.end(),
                     [](const NumberFit& a, const NumberFit& b) { return a.rank < b.rank; });
    return std::move(fits_);
  }

 private:
  double number(const std::string& name, size_t example) const {
    if (name == kCalls) return static_cast<double>(options_.calls.at(example));
    for (const NumberLeaf& leaf : leaves_)
      if (leaf.name == name) return leaf.values.at(example);
    return std::nan("");
  }

  bool gives(const NumberFormula& formula) const {
    for (size_t i = 0; i < values_.size(); ++i) {
      const auto of = [&](const std::string& name) { return number(name, i); };
      if (!same_bits(formula.evaluate(of), values_[i])) return false;
    }
    return true;
  }

  // The formula in double precision, and as C++ evaluates it where its numbers are floats.
  void add(const NumberFormula& formula, int rank) {
    if (gives(formula)) fits_.push_back({formula, rank});
    if (rank <= kNegated || !are_single(leaf_->values) || !are_single(values_)) return;
    const NumberFormula single = in_single(formula);
    if (gives(single)) fits_.push_back({single, rank});
  }

  // `make` of each constant near the estimate.
  template <class Make>
  void add_with(double estimate, Make make) {
    for (const double constant : constants_near(estimate))
      add(make(NumberFormula(constant)), kOneConstant);
  }
  // The same for a factor: without one the formula is simpler.
  template <class Make>
  void add_with_factor(double estimate, Make make) {
    for (const double constant : constants_near(estimate))
      if (std::abs(constant) != 1) add(make(NumberFormula(constant)), kOneConstant);
  }

  void add_constants(const NumberFormula& x) {
    using F = NumberFormula;
    const std::vector<double>& xs = leaf_->values;
    const double v = values_[0], w = xs[0];
    const F one(1.0);
    add(one / x, kOneConstant);
    add(x * x, kOneConstant);
    add(sqrt(x), kOneConstant);
    add_with_factor(v / w, [&](F c) { return c * x; });
    add_with_factor(w / v, [&](F c) { return x / c; });
    add_with(v - w, [&](F c) { return x + c; });
    add_with(v + w, [&](F c) { return c - x; });
    add_with_factor((1 - v) / w, [&](F c) { return one - c * x; });
    add_with_factor(w / (1 - v), [&](F c) { return one - x / c; });
    add_with_factor(v * w, [&](F c) { return c / x; });
    add_with_factor(-v / w, [&](F c) { return -(c * x); });
    add_with_factor(-w / v, [&](F c) { return -(x / c); });
    add_quotient(x);
  }

  // c / (x + d), of two examples: v1 (x1 + d) = v2 (x2 + d).
  void add_quotient(const NumberFormula& x) {
    constexpr size_t kLeast = 3;
    if (count_different(leaf_->values) < kLeast || values_[0] == values_[1]) return;
    const std::vector<double>& xs = leaf_->values;
    const double d = (values_[1] * xs[1] - values_[0] * xs[0]) / (values_[0] - values_[1]);
    for (const double shift : constants_near(d))
      for (const double c : constants_near(values_[0] * (xs[0] + shift)))
        add(NumberFormula(c) / (x + NumberFormula(shift)), kTwoConstants);
  }

  // ---- counts -----------------------------------------------------------------------------------

  // 1 - b^(n + k) of the count of calls, and 1 - b^x of the numbers x that are whole.
  std::vector<Correction> corrections() const {
    constexpr int64_t kMost = 256;
    constexpr double kNext = 1e-7;  // bases next to 1 would pass for others
    std::vector<Correction> all;
    const auto add = [&](double base, const NumberFormula& n, int rank) {
      const NumberFormula rest = NumberFormula(1.0) - pow(NumberFormula(base), n);
      // Either differs from the other in the last bit now and then; LibTorch's optimizers have
      // these.
      for (const NumberFormula& formula : {rest, options_.python ? pow(rest, 0.5) : sqrt(rest)}) {
        Correction one{formula, rank, {}};
        for (size_t i = 0; i < values_.size(); ++i)
          one.values.push_back(
              formula.evaluate([&](const std::string& name) { return number(name, i); }));
        all.push_back(std::move(one));
      }
    };
    for (const double base : options_.bases) {
      if (base < kNext || base > 1 - kNext) continue;
      for (const NumberLeaf& leaf : leaves_)
        if (std::all_of(leaf.values.begin(), leaf.values.end(),
                        [](double x) { return x > 0 && x == std::floor(x); }))
          add(base, NumberFormula::named(leaf.name), kCorrected);
      const NumberFormula n = NumberFormula::named(kCalls);
      for (int64_t k = 0; k <= kMost; ++k)
        add(base, k == 0 ? n : n + NumberFormula(static_cast<double>(k)), kCorrectedByCalls);
    }
    return all;
  }

  void add_corrected() {
    const std::vector<Correction> all = corrections();
    for (const Correction& one : all) add_if(one.values, one.formula, one.rank);
    for (const NumberLeaf& leaf : leaves_) add_corrected(leaf, all);
  }

  void add_if(const std::vector<double>& values, const NumberFormula& formula, int rank) {
    for (size_t i = 0; i < values_.size(); ++i)
      if (!same_bits(values[i], values_[i])) return;
    fits_.push_back({formula, rank});
  }

  // x / u and x * u, with either sign.
  void add_corrected(const NumberLeaf& leaf, const std::vector<Correction>& all) {
    const NumberFormula x = NumberFormula::named(leaf.name);
    const size_t count = values_.size();
    std::vector<double> now(count);
    const auto add_signed = [&](const NumberFormula& formula, int rank) {
      add_if(now, formula, rank);
      for (double& one : now) one = -one;
      add_if(now, -formula, rank);
    };
    for (const Correction& u : all) {
      for (size_t i = 0; i < count; ++i) now[i] = leaf.values[i] / u.values[i];
      add_signed(x / u.formula, u.rank);
      for (size_t i = 0; i < count; ++i) now[i] = leaf.values[i] * u.values[i];
      add_signed(x * u.formula, u.rank);
    }
  }

  void add_counted() {
    if (const auto form = fit_count(values_, {.bases = options_.bases,
                                              .counts = {},
                                              .python = options_.python,
                                              .calls = options_.calls}))
      fits_.push_back({formula_of(*form), kCounted});
  }

  const std::vector<double>& values_;
  const std::vector<NumberLeaf>& leaves_;
  const NumberFitOptions& options_;
  const NumberLeaf* leaf_ = nullptr;
  std::vector<NumberFit> fits_;
};

}  // namespace

std::vector<NumberFit> number_fits(const std::vector<double>& values,
                                   const std::vector<NumberLeaf>& leaves,
                                   const NumberFitOptions& options) {
  return NumberFitter(values, leaves, options).run();
}

bool are_whole(const std::vector<double>& values) {
  return std::all_of(values.begin(), values.end(), [](double v) { return v == std::floor(v); });
}

std::optional<NumberValues> where_differ(const NumberFormula& a, const NumberFormula& b,
                                         const std::vector<NumberLeaf>& leaves) {
  constexpr int kPoints = 64;
  const bool are_floats = in_single(a) == a && in_single(b) == b;
  for (int point = 1; point < kPoints; ++point) {
    NumberValues numbers{{kCalls, point + 2.0}};
    double pace = 0.37;
    for (const NumberLeaf& leaf : leaves) {
      const auto [low, high] = std::minmax_element(leaf.values.begin(), leaf.values.end());
      const double share = std::fmod(point * pace, 1.0);
      double& number = numbers[leaf.name] = rounded(*low + (*high - *low) * share, 3);
      // Whoever has shown floats may have no others.
      if ((are_floats || point % 2 == 0) && are_single(leaf.values))
        number = static_cast<float>(number);
      if (are_whole(leaf.values)) number = std::round(number) + point;
      pace += 0.11;
    }
    const auto number_of = [&](const std::string& name) { return numbers.at(name); };
    if (!same_bits(a.evaluate(number_of), b.evaluate(number_of))) return numbers;
  }
  return std::nullopt;
}

}  // namespace composit
