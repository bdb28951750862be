#include "composit/ad/gather.h"

#include <algorithm>
#include <numeric>
#include <utility>

#include "composit/ir/error.h"
#include "composit/op/affine.h"
#include "composit/op/stores.h"

namespace composit {
namespace {

// Relates an index to the axes: index * scale + rest = affine, with 0 <= rest < scale. The rest
// becomes an axis of its own, unless it is known to be 0 (`exact`).
struct Equation {
  Affine affine;
  int64_t scale = 1;
  bool exact = true;
};

// An equation solved for one axis: axis = numerator / step, where step divides it.
struct Solution {
  size_t axis;
  Affine numerator;
  int64_t step;
};

Affine without(const Affine& x, size_t axis) {
  Affine rest = x;
  rest.coefficients[axis] = 0;
  return rest;
}

Affine sum(const Affine& x, const Affine& y, int64_t factor) {
  const std::optional<Affine> total = x.plus(y, factor);
  COMPOSIT_ASSERT(total, "an index overflows");
  return *total;
}

// Parts that are affine are rebuilt from their form as a whole, so that 2 * (x / 2) never appears.
std::vector<Expr> substitute(const std::vector<Expr>& roots, const Solution& solution,
                             IndexAnalysis& analysis) {
  const auto rebuilt = [&](const Affine& form) {
    const int64_t factor = form.coefficients[solution.axis];
    const Affine rest = without(form, solution.axis);
    if (factor % solution.step == 0)
      return to_expr(sum(rest, solution.numerator, factor / solution.step));
    return to_expr(rest) + floor_divide(to_expr(solution.numerator), solution.step) * factor;
  };
  FlatMap<Hash, Expr> now;
  for (const Expr& part : parts_of(roots)) {
    if (const std::optional<Affine> form = analysis.affine(part)) {
      now.insert(part.hash(), rebuilt(*form));
      continue;
    }
    std::vector<Expr> arguments;
    for (const Expr& argument : part.arguments()) arguments.push_back(*now.find(argument.hash()));
    now.insert(part.hash(), part.with_arguments(std::move(arguments)));
  }
  std::vector<Expr> results;
  for (const Expr& root : roots) results.push_back(root.defined() ? *now.find(root.hash()) : root);
  return results;
}

std::vector<bool> axes_in(const std::vector<Expr>& roots, size_t count) {
  std::vector<bool> found(count);
  for (const Expr& part : parts_of(roots))
    if (part.kind() == ExprKind::axis) found[part.number()] = true;
  return found;
}

Expr renumbered(const Expr& x, const std::vector<size_t>& numbers) {
  if (!x.defined()) return x;
  return replace(x, [&](const Expr& part) {
    return part.kind() == ExprKind::axis ? Expr::axis(numbers[part.number()]) : Expr();
  });
}

class Gather {
 public:
  Gather(const Contribution& from, const Dims& sizes)
      : axes_(from.axes),
        at_(from.at),
        domain_(from.domain),
        value_(from.value),
        sizes_(sizes),
        own_(axes_.size()),
        analysis_(axes_) {
    gone_.resize(own_);
  }

  std::optional<Statement> run() {
    for (const Axis& axis : axes_)
      if (axis.extent == 0) return std::nullopt;
    simplify();
    while (const std::optional<size_t> dimension = next_to_solve()) {
      eliminate(*dimension, *axis_to_eliminate(*dimension));
      simplify();
    }
    while (const std::optional<Step> step = next_step()) take(*step);
    if (is_false(domain_)) return std::nullopt;
    return statement();
  }

 private:
  void simplify() {
    analysis_ = IndexAnalysis(axes_);
    domain_ = simplify_domain(domain_, analysis_);
    at_ = analysis_.simplify(at_);
    value_ = assume(analysis_.simplify(value_), domain_);
  }

  // Some dimension whose index is to be solved, and can be.
  std::optional<size_t> next_to_solve() {
    for (size_t i = 0; i < at_.size(); ++i)
      if (!stays(i) && axis_to_eliminate(i)) return i;
    return std::nullopt;
  }

  bool is_own(size_t axis) const { return axis < own_; }

  bool has_own_axes(const Affine& index) const {
    const auto axes = index.axes();
    return std::any_of(axes.begin(), axes.end(), [&](size_t axis) { return is_own(axis); });
  }

  std::optional<Equation> equation(size_t dimension) {
    const Expr& index = at_[dimension];
    if (const std::optional<Affine> form = analysis_.affine(index)) return Equation{*form};
    if (!index.is(Function::floor_divide) || index[1].kind() != ExprKind::literal) return {};
    const std::optional<Affine> form = analysis_.affine(index[0]),
                                divisor = analysis_.affine(index[1]);
    if (!form || !divisor || divisor->constant <= 0) return {};
    Equation found{*form, divisor->constant};
    const Expr divides = eq(remainder(index[0], index[1]), 0);
    const std::vector<Expr> known = conjuncts(domain_);
    found.exact = std::any_of(known.begin(), known.end(),
                              [&](const Expr& predicate) { return predicate.same(divides); });
    return found.exact ? found : reduced(found);
  }

  // floor((6 i + 5) / 4) == floor((3 i + 2) / 2).
  static Equation reduced(const Equation& x) {
    int64_t common = x.scale;
    for (int64_t coefficient : x.affine.coefficients) common = std::gcd(common, coefficient);
    Equation result = x;
    for (int64_t& coefficient : result.affine.coefficients) coefficient /= common;
    result.scale /= common;
    const int64_t rest = (x.affine.constant % common + common) % common;
    result.affine.constant = (x.affine.constant - rest) / common;
    result.exact = result.scale == 1;
    return result;
  }

  // True if the index of a dimension needs no change.
  bool stays(size_t dimension) {
    const std::optional<Equation> index = equation(dimension);
    if (!index || !has_own_axes(index->affine)) return true;
    if (index->scale != 1 || !analysis_.affine(at_[dimension])) return false;
    return is_kept(index->affine, dimension) &&
           (in_range(index->affine, dimension) || all_digits());
  }

  bool in_range(const Affine& index, size_t dimension) const {
    return analysis_.range(index).inside(0, sizes_[dimension] - 1);
  }

  // Keeps an index of several axes (digits); solves one of a single axis, unless it covers only a
  // part of the dimension.
  bool is_kept(const Affine& index, size_t dimension) const {
    if (!injective(index, analysis_)) return false;
    const std::vector<size_t> axes = index.axes();
    if (axes.size() != 1 || std::abs(index.coefficients[axes[0]]) != 1) return true;
    const Range range = analysis_.range(index);
    const bool everything = range.low <= 0 && range.high >= sizes_[dimension] - 1;
    return in_range(index, dimension) && !everything;
  }

  // True if all axes of the contribution are digits of the indices, so that there is no sum.
  bool all_digits() {
    std::vector<size_t> left;
    for (size_t i = 0; i < axes_.size(); ++i)
      if (!gone_[i]) left.push_back(i);
    return injective(at_, left, analysis_);
  }

  // The axis with the largest extent that the index can be solved for: with a coefficient of 1, or
  // in no other index; and in none that stays.
  std::optional<size_t> axis_to_eliminate(size_t dimension) {
    const Affine index = equation(dimension)->affine;
    std::optional<size_t> best;
    for (size_t axis : index.axes()) {
      if (!is_own(axis) || !may_eliminate(axis, index, dimension)) continue;
      if (!best || analysis_.extent(axis) > analysis_.extent(*best)) best = axis;
    }
    return best;
  }

  bool may_eliminate(size_t axis, const Affine& index, size_t dimension) {
    bool alone = true;
    for (size_t i = 0; i < at_.size(); ++i) {
      if (i == dimension || !depends_on(at_[i], ExprKind::axis, axis)) continue;
      alone = false;
      const std::optional<Affine> other = analysis_.affine(at_[i]);
      if (other && is_kept(*other, i) && in_range(*other, i)) return false;
    }
    return alone || std::abs(index.coefficients[axis]) == 1;
  }

  void eliminate(size_t dimension, size_t axis) {
    const Equation index = *equation(dimension);
    const int64_t factor = index.affine.coefficients[axis];
    Affine place;  // place * scale + rest - (other axes) = factor * axis
    place.coefficients.resize(axes_.size());
    place.coefficients.push_back(index.scale);
    axes_.push_back({axes_[axis].name, sizes_[dimension]});
    if (!index.exact) {
      place.coefficients.push_back(1);
      axes_.push_back({"r", index.scale});
    }
    Affine numerator = sum(place, without(index.affine, axis), -1);
    if (factor < 0) numerator = sum({}, numerator, -1);
    solve({axis, numerator, std::abs(factor)});
  }

  // Puts the solution in the axis's place.
  void solve(const Solution& solution) {
    std::vector<Expr> roots = at_;
    roots.push_back(value_);
    roots.push_back(domain_);
    roots = substitute(roots, solution, analysis_);
    domain_ = roots.back();
    value_ = roots[roots.size() - 2];
    at_.assign(roots.begin(), roots.end() - 2);
    require_point(solution);
    gone_.resize(axes_.size());
    gone_[solution.axis] = true;
  }

  // A reduction that counts only where `divisor` divides an index runs over the quotient.
  struct Step {
    size_t axis;
    Affine index;
    int64_t divisor, first, count;  // quotients
  };

  std::optional<Step> next_step() {
    for (const Expr& predicate : conjuncts(domain_)) {
      const bool whole = predicate.is(Function::eq) && predicate[0].is(Function::remainder) &&
                         is_literal(predicate[1], 0);
      if (!whole) continue;
      const auto index = analysis_.affine(predicate[0][0]),
                 divisor = analysis_.affine(predicate[0][1]);
      if (!index || !divisor || !divisor->axes().empty() || divisor->constant <= 1) continue;
      if (const auto step = step_for(*index, divisor->constant)) return step;
    }
    return std::nullopt;
  }

  std::optional<Step> step_for(const Affine& index, int64_t divisor) {
    Range range = analysis_.range(index);
    for (const Expr& predicate : conjuncts(domain_)) {
      const std::optional<Affine> bound = bound_of(predicate, analysis_);
      if (!bound) continue;
      if (const auto from = bound->plus(index, -1); from && from->axes().empty())
        range.low = std::max(range.low, -from->constant);
      if (const auto to = bound->plus(index); to && to->axes().empty())
        range.high = std::min(range.high, to->constant);
    }
    const int64_t first = -floor_div(-range.low, divisor);
    const int64_t count = floor_div(range.high, divisor) - first + 1;
    if (count <= 0) return std::nullopt;
    const std::vector<bool> in_place = axes_in(at_, axes_.size());
    for (size_t axis : index.axes())
      if (!in_place[axis] && std::abs(index.coefficients[axis]) == 1 &&
          count < analysis_.extent(axis))
        return Step{axis, index, divisor, first, count};
    return std::nullopt;
  }

  void take(const Step& step) {
    Affine index;  // divisor * (first + quotient)
    index.constant = step.divisor * step.first;
    index.coefficients.resize(axes_.size());
    index.coefficients.push_back(step.divisor);
    axes_.push_back({axes_[step.axis].name, step.count});
    const Affine numerator = sum(index, without(step.index, step.axis), -1);
    const int64_t factor = step.index.coefficients[step.axis];
    solve({step.axis, sum({}, numerator, factor), 1});
    simplify();
  }

  // 0 <= numerator / step < extent, and the quotient is whole.
  void require_point(const Solution& solution) {
    const Expr numerator = to_expr(solution.numerator);
    const int64_t last = solution.step * (axes_[solution.axis].extent - 1);
    std::vector<Expr> conditions = conjuncts(domain_);
    conditions.push_back(numerator >= 0);
    conditions.push_back(numerator < last + 1);
    if (solution.step > 1) conditions.push_back(eq(remainder(numerator, solution.step), 0));
    domain_ = all_of(std::move(conditions));
  }

  Statement statement() {
    std::vector<size_t> parallel = parallel_axes(), reduction = reduction_axes(parallel);
    if (!reduction.empty() && domain_.defined() && !at_in_range()) {
      // With a reduction, the store happens outside of the domain, too.
      parallel.insert(parallel.end(), reduction.begin(), reduction.end());
      reduction.clear();
    }
    if (!reduction.empty()) bound_by_masks();
    Statement result;
    std::vector<size_t> numbers(axes_.size());
    const auto add_axis = [&](size_t axis, AxisKind kind) {
      numbers[axis] = result.axes.size();
      result.axes.push_back({axes_[axis].name, axes_[axis].extent, kind});
    };
    for (size_t axis : parallel) add_axis(axis, AxisKind::parallel);
    for (size_t axis : reduction) add_axis(axis, AxisKind::reduction);
    result.domain = renumbered(domain_, numbers);
    Store store{.at = {}, .value = renumbered(value_, numbers)};
    for (const Expr& index : at_) store.at.push_back(renumbered(index, numbers));
    if (!reduction.empty()) {
      const DType dtype = value_.dtype();
      result.init = {cast(0, dtype)};
      result.body = {std::exchange(store.value, Expr::accumulator(0, dtype))};
      result.combine = {Expr::left(0, dtype) + Expr::right(0, dtype)};
    }
    result.stores = {store};
    IndexAnalysis now(result.axes);
    result.stores[0].add = !injective(store.at, store_axes(result), now);
    return result;
  }

  // Nothing is summed where the value is masked: (0 <= k ? x[k] : 0) is summed for 0 <= k.
  void bound_by_masks() {
    while (value_.is(Function::select) && !has_loads(value_[0])) {
      const bool where_true = is_literal(value_[2], 0);
      if (!where_true && !is_literal(value_[1], 0)) break;
      domain_ = and_then(domain_, where_true ? value_[0] : negation(value_[0]));
      value_ = value_[where_true ? 1 : 2];
    }
    simplify();
  }

  // In the order of the dimensions.
  std::vector<size_t> parallel_axes() const {
    std::vector<size_t> order;
    for (const Expr& index : at_) {
      const std::vector<bool> own = axes_in({index}, axes_.size());
      for (size_t axis = 0; axis < own.size(); ++axis)
        if (own[axis] && !std::count(order.begin(), order.end(), axis)) order.push_back(axis);
    }
    return order;
  }

  // Those that the value or the domain has; the value is multiplied for the others.
  std::vector<size_t> reduction_axes(const std::vector<size_t>& parallel) {
    const std::vector<bool> used = axes_in({value_, domain_}, axes_.size());
    std::vector<size_t> order;
    int64_t times = 1;
    for (size_t axis = 0; axis < axes_.size(); ++axis) {
      if (gone_[axis] || std::count(parallel.begin(), parallel.end(), axis)) continue;
      if (used[axis])
        order.push_back(axis);
      else
        times *= axes_[axis].extent;
    }
    if (times > 1) value_ = value_ * times;
    return order;
  }

  bool at_in_range() {
    for (size_t i = 0; i < at_.size(); ++i)
      if (!analysis_.range(at_[i]).inside(0, sizes_[i] - 1)) return false;
    return true;
  }

  std::vector<Axis> axes_;  // of the contribution, then those of the result
  std::vector<bool> gone_;  // per axis
  std::vector<Expr> at_;
  Expr domain_, value_;
  std::vector<int64_t> sizes_;
  size_t own_;  // axes of the contribution
  IndexAnalysis analysis_;
};

}  // namespace

std::optional<Statement> gather(const Contribution& contribution, const Dims& sizes) {
  return Gather(contribution, sizes).run();
}

Statement tidy(const Statement& statement) {
  Statement result = statement;
  IndexAnalysis analysis(statement.axes);
  std::vector<size_t> numbers(statement.axes.size());
  result.axes.clear();
  for (size_t i = 0; i < statement.axes.size(); ++i) {
    const Axis& axis = statement.axes[i];
    numbers[i] = result.axes.size();
    if (axis.kind != AxisKind::parallel || axis.extent != 1) result.axes.push_back(axis);
  }
  const auto tidied = [&](const Expr& x) { return renumbered(analysis.simplify(x), numbers); };
  result.domain = simplify_domain(statement.domain, analysis);
  if (result.domain.defined()) result.domain = renumbered(result.domain, numbers);
  for (Expr& x : result.init) x = tidied(x);
  for (Expr& x : result.body) x = assume(tidied(x), result.domain);
  for (Store& store : result.stores) {
    for (Expr& index : store.at) index = tidied(index);
    store.value = tidied(store.value);
  }
  return result;
}

}  // namespace composit
