#include "composit/family/counting.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <set>
#include <sstream>
#include <utility>

namespace composit {
namespace {

// What was seen: values of a number, and the calls that had them.
struct Seen {
  std::vector<double> values;
  std::vector<int64_t> calls;
};

bool gives(const CountForm& form, const Seen& seen) {
  for (size_t i = 0; i < seen.values.size(); ++i)
    if (!same_bits(form.at(seen.calls[i]), seen.values[i])) return false;
  return true;
}

bool is_whole(double value) { return value == std::floor(value) && std::abs(value) < 9e15; }

// Constants as a person writes them, of few digits, or any.
enum class Constants { written, computed };

// The form with a constant near `estimate` that gives all values. For computed constants, nothing
// unless exactly one nearby does.
template <class FormOf>
std::optional<CountForm> with_constant(Constants constants, double estimate, const Seen& seen,
                                       FormOf form_of) {
  constexpr int kWritten = 9, kNeighbours = 16;
  if (!std::isfinite(estimate) || estimate == 0) return std::nullopt;
  for (int digits = 1; constants == Constants::written && digits <= kWritten; ++digits)
    if (const CountForm form = form_of(rounded(estimate, digits)); gives(form, seen)) return form;
  if (constants == Constants::written) return std::nullopt;
  std::optional<CountForm> only;
  double constant = estimate;
  for (int i = 0; i < kNeighbours / 2; ++i) constant = std::nextafter(constant, -HUGE_VAL);
  for (int i = 0; i <= kNeighbours; ++i, constant = std::nextafter(constant, HUGE_VAL)) {
    const CountForm form = form_of(constant);
    if (!gives(form, seen)) continue;
    if (only) return std::nullopt;  // several: the next call may tell them apart
    only = form;
  }
  return only;
}

std::optional<CountForm> whole_count(const Seen& seen) {
  const auto& [values, calls] = seen;
  if (!std::all_of(values.begin(), values.end(), is_whole)) return std::nullopt;
  const double step = (values[1] - values[0]) / static_cast<double>(calls[1] - calls[0]);
  const double first = values[0] - static_cast<double>(calls[0]) * step;
  if (!is_whole(step) || step == 0) return std::nullopt;
  const CountForm form{CountKind::count, false, step, 1, static_cast<int64_t>(first)};
  return gives(form, seen) ? std::optional(form) : std::nullopt;
}

// Candidates for n + k of the first call.
std::vector<int64_t> counts_of(const CountOptions& options) {
  constexpr int64_t kEarly = 256;
  std::vector<int64_t> counts = options.counts;
  for (int64_t k = 0; k <= kEarly; ++k) counts.push_back(k);
  return counts;
}

class CountFitter {
 public:
  CountFitter(Seen seen, const CountOptions& options)
      : seen_(std::move(seen)), options_(options), counts_(counts_of(options)) {
    negated_ = seen_.values[0] < 0;
    if (negated_)
      for (double& value : seen_.values) value = -value;
  }

  std::optional<CountForm> run() const {
    for (const double base : options_.bases)
      if (is_base(base))
        if (auto form = without_factor(base)) return negate(*form);
    for (const Constants constants : {Constants::written, Constants::computed}) {
      if (auto form = decayed(constants)) return negate(*form);
      for (const double base : options_.bases)
        if (is_base(base))
          if (auto form = with_factor(constants, base)) return negate(*form);
    }
    return std::nullopt;
  }

 private:
  CountForm negate(CountForm form) const {
    form.negated = negated_;
    return form;
  }

  // False for bases next to 1: 1 - b^n is nearly proportional to n, and would pass for other forms.
  static bool is_base(double base) {
    constexpr double kNext = 1e-7;
    return base > kNext && base < 1 - kNext;
  }

  std::optional<CountForm> without_factor(double base) const {
    const CountKind root = options_.python ? CountKind::power_of_rest : CountKind::root_of_rest;
    for (const CountKind kind :
         {CountKind::rest, root, CountKind::root_of_rest, CountKind::power_of_rest}) {
      const double rest = kind == CountKind::rest ? values()[0] : values()[0] * values()[0];
      const double count = std::round(std::log(1 - rest) / std::log(base));
      if (!(count >= 0 && count < 1e9)) continue;
      for (int64_t n = std::max<int64_t>(0, static_cast<int64_t>(count) - 1);
           n <= static_cast<int64_t>(count) + 1; ++n)
        if (const CountForm form{kind, false, base, 1, n - calls()[0]}; gives(form, seen_))
          return form;
    }
    return std::nullopt;
  }

  std::optional<CountForm> with_factor(Constants constants, double base) const {
    for (const int64_t k : counts_)
      for (const CountKind kind :
           {CountKind::per_rest, CountKind::per_root, CountKind::times_rest, CountKind::times_root})
        if (auto form = with_factor(constants, kind, base, k)) return form;
    return std::nullopt;
  }

  std::optional<CountForm> with_factor(Constants constants, CountKind kind, double base,
                                       int64_t k) const {
    const auto form_of = [&](double c) { return CountForm{kind, false, base, c, k}; };
    const CountForm unit = form_of(1);
    const double first = unit.at(calls()[0]), second = unit.at(calls()[1]);
    if (!std::isfinite(first) || first == 0) return std::nullopt;
    // The quotient of two values does not depend on the factor.
    const double off = values()[1] * first / (values()[0] * second) - 1;
    if (!(std::abs(off) < 1e-12)) return std::nullopt;
    return with_constant(constants, values()[0] / first, seen_, form_of);
  }

  // Several constants may give nearly the same values: c and b times 5/4 with another k. If calls
  // were seen from the first or second one on, k decides; else all candidates must agree.
  std::optional<CountForm> decayed(Constants constants) const {
    constexpr int64_t kFirst = 1, kAhead = 4096;
    std::optional<CountForm> first;
    for (const int64_t k : counts_) {
      const auto form = decayed(constants, k);
      if (!form) continue;
      if (k <= kFirst) return form;
      if (!first) first = form;
      for (int64_t n = 0; n < kAhead; ++n)
        if (!same_bits(first->at(n), form->at(n))) return std::nullopt;
    }
    return first;
  }

  // 1 / value grows by b / c from call to call, and is (1 + k b) / c at the first one.
  std::optional<CountForm> decayed(Constants constants, int64_t k) const {
    const double growth =
        (1 / values()[1] - 1 / values()[0]) / static_cast<double>(calls()[1] - calls()[0]);
    const double factor = 1 / (1 / values()[0] - static_cast<double>(calls()[0] + k) * growth);
    if (!std::isfinite(factor) || factor <= 0 || growth <= 0) return std::nullopt;
    for (int digits = 1; digits <= 9; ++digits) {
      const double b = rounded(growth * factor, digits);
      if (auto form = with_constant(constants, factor, seen_, [&](double c) {
            return CountForm{CountKind::decayed, false, b, c, k};
          }))
        return form;
    }
    return std::nullopt;
  }

  const std::vector<double>& values() const { return seen_.values; }
  const std::vector<int64_t>& calls() const { return seen_.calls; }

  Seen seen_;  // values are positive
  const CountOptions& options_;
  const std::vector<int64_t> counts_;
  bool negated_ = false;
};

constexpr const char* kNames[] = {"count",         "rest",       "root_of_rest",
                                  "power_of_rest", "per_rest",   "per_root",
                                  "times_rest",    "times_root", "decayed"};

}  // namespace

double CountForm::at(int64_t n) const {
  const auto count = static_cast<double>(n + k);
  const auto rest = [&] { return 1 - std::pow(b, count); };
  double value = 0;
  switch (kind) {
    case CountKind::count:
      value = static_cast<double>(n) * b + static_cast<double>(k);
      break;
    case CountKind::rest:
      value = rest();
      break;
    case CountKind::root_of_rest:
      value = std::sqrt(rest());
      break;
    case CountKind::power_of_rest:
      value = std::pow(rest(), 0.5);
      break;
    case CountKind::per_rest:
      value = c / rest();
      break;
    case CountKind::per_root:
      value = c / std::sqrt(rest());
      break;
    case CountKind::times_rest:
      value = c * rest();
      break;
    case CountKind::times_root:
      value = c * std::sqrt(rest());
      break;
    case CountKind::decayed:
      value = c / (1 + count * b);
      break;
  }
  return negated ? -value : value;
}

NumberFormula formula_of(const CountForm& form, const std::string& count) {
  const NumberFormula n = NumberFormula::named(count), one(1.0), b(form.b), c(form.c);
  const NumberFormula k(static_cast<double>(form.k));
  const NumberFormula at = form.k == 0 ? n : n + k;
  const auto value = [&]() -> NumberFormula {
    if (form.kind == CountKind::count && form.b == 1) return at;
    if (form.kind == CountKind::count) return n * b + k;
    if (form.kind == CountKind::decayed) return c / (one + at * b);
    const NumberFormula rest = one - pow(b, at);
    switch (form.kind) {
      case CountKind::root_of_rest:
        return sqrt(rest);
      case CountKind::power_of_rest:
        return pow(rest, 0.5);
      case CountKind::per_rest:
        return c / rest;
      case CountKind::per_root:
        return c / sqrt(rest);
      case CountKind::times_rest:
        return c * rest;
      case CountKind::times_root:
        return c * sqrt(rest);
      default:
        return rest;
    }
  };
  return form.negated ? -value() : value();
}

std::optional<CountForm> CountForm::decode(std::string_view text) {
  std::istringstream in{std::string(text)};
  std::string kind, b, c;
  int negated = 0;
  CountForm form;
  if (!(in >> kind >> negated >> b >> c >> form.k)) return std::nullopt;
  const auto known = std::find(std::begin(kNames), std::end(kNames), kind);
  if (known == std::end(kNames)) return std::nullopt;
  form.kind = static_cast<CountKind>(known - std::begin(kNames));
  form.negated = negated != 0;
  form.b = std::strtod(b.c_str(), nullptr);
  form.c = std::strtod(c.c_str(), nullptr);
  return form;
}

std::optional<CountForm> fit_count(const std::vector<double>& values, const CountOptions& options) {
  if (values.size() < 2) return std::nullopt;
  Seen seen{values, options.calls};
  for (size_t n = seen.calls.size(); n < values.size(); ++n)
    seen.calls.push_back(static_cast<int64_t>(n));
  if (seen.calls[0] == seen.calls[1]) return std::nullopt;
  if (auto form = whole_count(seen)) return form;
  if (!std::all_of(values.begin(), values.end(),
                   [](double v) { return std::isfinite(v) && v != 0; }))
    return std::nullopt;
  return CountFitter(std::move(seen), options).run();
}

double rounded(double value, int digits) {
  char text[40];
  std::snprintf(text, sizeof text, "%.*g", digits, value);
  return std::strtod(text, nullptr);
}

bool same_bits(double a, double b) {
  return std::bit_cast<uint64_t>(a) == std::bit_cast<uint64_t>(b);
}

std::vector<double> bases_of(const std::vector<double>& numbers) {
  std::set<double> bases;
  for (const double number : numbers)
    if (number > 0 && number < 1) bases.insert({number, 1 - number});
  return {bases.rbegin(), bases.rend()};
}

}  // namespace composit
