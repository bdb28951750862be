#include "flashlight/counting.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <sstream>

namespace flashlight {
namespace {

bool same(double a, double b) { return std::bit_cast<uint64_t>(a) == std::bit_cast<uint64_t>(b); }

bool gives(const Form& form, const std::vector<double>& values) {
  for (size_t n = 0; n < values.size(); ++n)
    if (!same(form.at(static_cast<int64_t>(n)), values[n])) return false;
  return true;
}

bool is_whole(double value) { return value == std::floor(value) && std::abs(value) < 9e15; }

double rounded(double value, int digits) {
  char text[40];
  std::snprintf(text, sizeof text, "%.*g", digits, value);
  return std::strtod(text, nullptr);
}

// Constants as a person writes them, of few digits, or any.
enum class Constants { written, computed };

// The form with a constant near `estimate` that gives all values. For computed constants, nothing
// unless exactly one nearby does.
template <class FormOf>
std::optional<Form> with_constant(Constants constants, double estimate,
                                  const std::vector<double>& values, FormOf form_of) {
  constexpr int kWritten = 9, kNeighbours = 16;
  if (!std::isfinite(estimate) || estimate == 0) return std::nullopt;
  for (int digits = 1; constants == Constants::written && digits <= kWritten; ++digits)
    if (const Form form = form_of(rounded(estimate, digits)); gives(form, values)) return form;
  if (constants == Constants::written) return std::nullopt;
  std::optional<Form> only;
  double constant = estimate;
  for (int i = 0; i < kNeighbours / 2; ++i) constant = std::nextafter(constant, -HUGE_VAL);
  for (int i = 0; i <= kNeighbours; ++i, constant = std::nextafter(constant, HUGE_VAL)) {
    const Form form = form_of(constant);
    if (!gives(form, values)) continue;
    if (only) return std::nullopt;  // several: the next call may tell them apart
    only = form;
  }
  return only;
}

std::optional<Form> fit_count(const std::vector<double>& values) {
  if (!std::all_of(values.begin(), values.end(), is_whole)) return std::nullopt;
  const Form form{FormKind::count, false, values[1] - values[0], 1,
                  static_cast<int64_t>(values[0])};
  return form.b != 0 && gives(form, values) ? std::optional(form) : std::nullopt;
}

// Candidates for n + k of the first call.
std::vector<int64_t> counts_of(const FitOptions& options) {
  constexpr int64_t kEarly = 256;
  std::vector<int64_t> counts = options.counts;
  for (int64_t k = 0; k <= kEarly; ++k) counts.push_back(k);
  return counts;
}

class Fit {
 public:
  Fit(const std::vector<double>& values, const FitOptions& options)
      : values_(values), options_(options), counts_(counts_of(options)) {
    if (values[0] < 0)
      for (double& value : values_) value = -value;
    negated_ = values[0] < 0;
  }

  std::optional<Form> run() const {
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
  Form negate(Form form) const {
    form.negated = negated_;
    return form;
  }

  // False for bases next to 1: 1 - b^n is nearly proportional to n, and would pass for other forms.
  static bool is_base(double base) {
    constexpr double kNext = 1e-7;
    return base > kNext && base < 1 - kNext;
  }

  std::optional<Form> without_factor(double base) const {
    const FormKind root = options_.python ? FormKind::power_of_rest : FormKind::root_of_rest;
    for (const FormKind kind :
         {FormKind::rest, root, FormKind::root_of_rest, FormKind::power_of_rest}) {
      const double rest = kind == FormKind::rest ? values_[0] : values_[0] * values_[0];
      const double count = std::round(std::log(1 - rest) / std::log(base));
      if (!(count >= 0 && count < 1e9)) continue;
      for (int64_t k = std::max<int64_t>(0, static_cast<int64_t>(count) - 1);
           k <= static_cast<int64_t>(count) + 1; ++k)
        if (const Form form{kind, false, base, 1, k}; gives(form, values_)) return form;
    }
    return std::nullopt;
  }

  std::optional<Form> with_factor(Constants constants, double base) const {
    for (const int64_t k : counts_)
      for (const FormKind kind :
           {FormKind::per_rest, FormKind::per_root, FormKind::times_rest, FormKind::times_root})
        if (auto form = with_factor(constants, kind, base, k)) return form;
    return std::nullopt;
  }

  std::optional<Form> with_factor(Constants constants, FormKind kind, double base,
                                  int64_t k) const {
    const auto form_of = [&](double c) { return Form{kind, false, base, c, k}; };
    const Form unit = form_of(1);
    const double first = unit.at(0), second = unit.at(1);
    if (!std::isfinite(first) || first == 0) return std::nullopt;
    // The quotient of two values does not depend on the factor.
    const double off = values_[1] * first / (values_[0] * second) - 1;
    if (!(std::abs(off) < 1e-12)) return std::nullopt;
    return with_constant(constants, values_[0] / first, values_, form_of);
  }

  // Several constants may give nearly the same values: c and b times 5/4 with another k. If calls
  // were seen from the first or second one on, k decides; else all candidates must agree.
  std::optional<Form> decayed(Constants constants) const {
    constexpr int64_t kFirst = 1, kAhead = 4096;
    std::optional<Form> first;
    for (const int64_t k : counts_) {
      const auto form = decayed(constants, k);
      if (!form) continue;
      if (k <= kFirst) return form;
      if (!first) first = form;
      for (int64_t n = 0; n < kAhead; ++n)
        if (!same(first->at(n), form->at(n))) return std::nullopt;
    }
    return first;
  }

  // 1 / value grows by b / c from call to call, and is (1 + k b) / c at the first one.
  std::optional<Form> decayed(Constants constants, int64_t k) const {
    const double growth = 1 / values_[1] - 1 / values_[0];
    const double factor = 1 / (1 / values_[0] - static_cast<double>(k) * growth);
    if (!std::isfinite(factor) || factor <= 0 || growth <= 0) return std::nullopt;
    for (int digits = 1; digits <= 9; ++digits) {
      const double b = rounded(growth * factor, digits);
      if (auto form = with_constant(constants, factor, values_, [&](double c) {
            return Form{FormKind::decayed, false, b, c, k};
          }))
        return form;
    }
    return std::nullopt;
  }

  std::vector<double> values_;  // positive
  const FitOptions& options_;
  const std::vector<int64_t> counts_;
  bool negated_ = false;
};

constexpr const char* kNames[] = {"count",         "rest",       "root_of_rest",
                                  "power_of_rest", "per_rest",   "per_root",
                                  "times_rest",    "times_root", "decayed"};

std::string number(double value) {
  char text[40];
  for (int digits = 1; digits <= 17; ++digits) {
    std::snprintf(text, sizeof text, "%.*g", digits, value);
    if (same(std::strtod(text, nullptr), value)) break;
  }
  return text;
}

std::string plus(int64_t k) {
  return k == 0 ? "n" : "n " + std::string(k < 0 ? "- " : "+ ") + std::to_string(std::abs(k));
}

}  // namespace

double Form::at(int64_t n) const {
  const auto count = static_cast<double>(n + k);
  const auto rest = [&] { return 1 - std::pow(b, count); };
  double value = 0;
  switch (kind) {
    case FormKind::count:
      value = static_cast<double>(n) * b + static_cast<double>(k);
      break;
    case FormKind::rest:
      value = rest();
      break;
    case FormKind::root_of_rest:
      value = std::sqrt(rest());
      break;
    case FormKind::power_of_rest:
      value = std::pow(rest(), 0.5);
      break;
    case FormKind::per_rest:
      value = c / rest();
      break;
    case FormKind::per_root:
      value = c / std::sqrt(rest());
      break;
    case FormKind::times_rest:
      value = c * rest();
      break;
    case FormKind::times_root:
      value = c * std::sqrt(rest());
      break;
    case FormKind::decayed:
      value = c / (1 + count * b);
      break;
  }
  return negated ? -value : value;
}

std::string Form::text() const {
  const std::string rest = "1 - " + number(b) + "^(" + plus(k) + ")";
  std::string value;
  switch (kind) {
    case FormKind::count:
      value = b == 1 ? plus(k) : number(b) + " * n + " + std::to_string(k);
      break;
    case FormKind::rest:
      value = rest;
      break;
    case FormKind::root_of_rest:
    case FormKind::power_of_rest:
      value = "sqrt(" + rest + ")";
      break;
    case FormKind::per_rest:
      value = number(c) + " / (" + rest + ")";
      break;
    case FormKind::per_root:
      value = number(c) + " / sqrt(" + rest + ")";
      break;
    case FormKind::times_rest:
      value = number(c) + " * (" + rest + ")";
      break;
    case FormKind::times_root:
      value = number(c) + " * sqrt(" + rest + ")";
      break;
    case FormKind::decayed:
      value = number(c) + " / (1 + (" + plus(k) + ") * " + number(b) + ")";
      break;
  }
  return negated ? "-(" + value + ")" : value;
}

std::string Form::encode() const {
  char text[160];
  std::snprintf(text, sizeof text, "%s %d %a %a %lld", kNames[static_cast<size_t>(kind)],
                negated ? 1 : 0, b, c, static_cast<long long>(k));
  return text;
}

std::optional<Form> Form::decode(std::string_view text) {
  std::istringstream in{std::string(text)};
  std::string kind, b, c;
  int negated = 0;
  Form form;
  if (!(in >> kind >> negated >> b >> c >> form.k)) return std::nullopt;
  const auto known = std::find(std::begin(kNames), std::end(kNames), kind);
  if (known == std::end(kNames)) return std::nullopt;
  form.kind = static_cast<FormKind>(known - std::begin(kNames));
  form.negated = negated != 0;
  form.b = std::strtod(b.c_str(), nullptr);
  form.c = std::strtod(c.c_str(), nullptr);
  return form;
}

std::optional<Form> fit(const std::vector<double>& values, const FitOptions& options) {
  if (values.size() < 2) return std::nullopt;
  if (auto form = fit_count(values)) return form;
  if (!std::all_of(values.begin(), values.end(),
                   [](double v) { return std::isfinite(v) && v != 0; }))
    return std::nullopt;
  return Fit(values, options).run();
}

}  // namespace flashlight
