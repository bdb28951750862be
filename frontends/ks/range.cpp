// What is known of an integer while a graph is made.
#include <algorithm>

#include "frontends/ks/values.h"

namespace flashlight::ks {

using composit::ExprKind;
using composit::Function;

namespace {

constexpr int64_t kLarge = int64_t{1} << 31;  // products of smaller numbers do not wrap

std::optional<int64_t> extreme(const std::optional<int64_t>& x, const std::optional<int64_t>& y,
                               bool largest) {
  if (!x || !y) return std::nullopt;
  return largest ? std::max(*x, *y) : std::min(*x, *y);
}
// Of two bounds on one side, one of which is enough, the stricter.
std::optional<int64_t> stricter(const std::optional<int64_t>& x, const std::optional<int64_t>& y,
                                bool largest) {
  if (!x || !y) return x ? x : y;
  return extreme(x, y, largest);
}

// Of sums, differences, products and quotients of integers that are small.
std::optional<Range> of_small(Function function, const std::vector<Range>& of) {
  for (const Range& one : of)
    if (one.least < -kLarge || one.most > kLarge) return std::nullopt;
  switch (function) {
    case Function::add:
      return Range{of[0].least + of[1].least, of[0].most + of[1].most};
    case Function::sub:
      return Range{of[0].least - of[1].most, of[0].most - of[1].least};
    case Function::neg:
      return Range{-of[0].most, -of[0].least};
    case Function::mul: {
      const auto all = {of[0].least * of[1].least, of[0].least * of[1].most,
                        of[0].most * of[1].least, of[0].most * of[1].most};
      return Range{std::min(all), std::max(all)};
    }
    case Function::trunc_divide:
      if (of[1].least != of[1].most || of[1].least <= 0) return std::nullopt;
      return Range{of[0].least / of[1].least, of[0].most / of[1].least};
    default:
      return std::nullopt;
  }
}

}  // namespace

Tape::Bounds Tape::bounds(const Expr& x) const {
  if (x.kind() == ExprKind::parameter) return {0, extents_[x.number()] - 1};
  if (x.kind() == ExprKind::literal) {
    const auto* value = std::get_if<int64_t>(&x.value());
    return value == nullptr ? Bounds{} : Bounds{*value, *value};
  }
  if (x.kind() == ExprKind::load) {
    const auto& known = ranges_[x.number()];
    return known ? Bounds{known->least, known->most} : Bounds{};
  }
  if (x.kind() != ExprKind::call) return {};
  if (x.is(Function::select)) {
    const Bounds a = bounds(x[1]), b = bounds(x[2]);
    return {extreme(a.least, b.least, false), extreme(a.most, b.most, true)};
  }
  if (x.is(Function::min) || x.is(Function::max)) {
    const Bounds a = bounds(x[0]), b = bounds(x[1]);
    if (x.is(Function::min))
      return {extreme(a.least, b.least, false), stricter(a.most, b.most, false)};
    return {stricter(a.least, b.least, true), extreme(a.most, b.most, true)};
  }
  std::vector<Range> of;
  for (const Expr& argument : x.arguments()) {
    const Bounds one = bounds(argument);
    if (!one.least || !one.most || argument.dtype() != composit::DType::int64) return {};
    of.push_back({*one.least, *one.most});
  }
  const auto known = of_small(x.function(), of);
  return known ? Bounds{known->least, known->most} : Bounds{};
}

std::optional<Range> Tape::range(const Expr& x) const {
  const Bounds known = bounds(x);
  if (!known.least || !known.most) return std::nullopt;
  return Range{*known.least, *known.most};
}

}  // namespace flashlight::ks
