#include "flashlight/scalar/ranges.h"

#include <cmath>

namespace flashlight {

using composit::Expr;
using composit::Function;

static std::optional<double> number_in(const Expr& x) {
  if (x.kind() != composit::ExprKind::literal) return std::nullopt;
  const auto* number = std::get_if<double>(&x.value());
  return number == nullptr || std::isnan(*number) ? std::nullopt : std::optional(*number);
}

std::optional<Ranges::Comparison> Ranges::comparison_of(const Expr& condition) {
  const bool open = condition.is(Function::lt), equal = condition.is(Function::eq);
  if (!open && !equal && !condition.is(Function::le)) return std::nullopt;
  const auto left = number_in(condition[0]), right = number_in(condition[1]);
  if (left.has_value() == right.has_value()) return std::nullopt;
  Comparison comparison{left ? condition[1] : condition[0], {}};
  Range& range = comparison.range;
  if (left || equal) {
    range.low = left ? *left : *right;
    range.low_open = open;
  }
  if (right || equal) {
    range.high = left ? *left : *right;
    range.high_open = open;
  }
  return comparison;
}

Ranges::Range Ranges::common(const Range& a, const Range& b) {
  Range result = a;
  if (b.low > a.low || (b.low == a.low && b.low_open)) {
    result.low = b.low;
    result.low_open = b.low_open;
  }
  if (b.high < a.high || (b.high == a.high && b.high_open)) {
    result.high = b.high;
    result.high_open = b.high_open;
  }
  return result;
}

bool Ranges::is_empty(const Range& range) {
  return range.low > range.high || (range.low == range.high && (range.low_open || range.high_open));
}

std::optional<bool> Ranges::implied(const Expr& condition) const {
  const auto comparison = comparison_of(condition);
  const Known* known = comparison ? known_.find(comparison->value.hash()) : nullptr;
  if (known == nullptr) return std::nullopt;
  const Range both = common(known->range, comparison->range);
  if (is_empty(both)) return false;  // also if it may be NaN
  return known->number && both == known->range ? std::optional(true) : std::nullopt;
}

void Ranges::learn(const Expr& condition, bool holds) {
  const auto comparison = comparison_of(condition);
  if (!comparison) return;
  Known& known = known_[comparison->value.hash()];
  Range range = comparison->range;
  if (holds) {
    known.number = true;
  } else if (condition.is(Function::eq)) {  // the rest is no interval
    return;
  } else if (std::isinf(range.low)) {  // not below: above
    range = {.low = range.high, .low_open = !range.high_open};
  } else {
    range = {.high = range.low, .high_open = !range.low_open};
  }
  known.range = common(known.range, range);
}

}  // namespace flashlight
