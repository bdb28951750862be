#include "composit/op/affine.h"

#include <algorithm>
#include <utility>

#include "composit/ir/error.h"
#include "composit/op/promotion.h"

namespace composit {
namespace {

constexpr int64_t kUnbounded = Range::kUnbounded;

bool is_known(int64_t x) { return -kUnbounded < x && x < kUnbounded; }
bool is_known(const Range& x) { return is_known(x.low) && is_known(x.high); }

// Integers wrap: of a sum or a product that may leave the known range nothing is known.
Range plus(const Range& a, const Range& b) {
  if (!is_known(a) || !is_known(b)) return {};
  const Range sum{a.low + b.low, a.high + b.high};  // known numbers are below 2^62
  return is_known(sum) ? sum : Range();
}

Range times(const Range& a, int64_t factor) {
  int64_t x = 0, y = 0;
  const bool overflows =
      __builtin_mul_overflow(a.low, factor, &x) || __builtin_mul_overflow(a.high, factor, &y);
  const Range product{std::min(x, y), std::max(x, y)};
  return !is_known(a) || overflows || !is_known(product) ? Range() : product;
}

Range times(const Range& a, const Range& b) {
  if (!is_known(b)) return {};
  const Range low = times(a, b.low), high = times(a, b.high);
  return {std::min(low.low, high.low), std::max(low.high, high.high)};
}

Range hull(const Range& a, const Range& b) {
  return {std::min(a.low, b.low), std::max(a.high, b.high)};
}

std::optional<int64_t> integer_literal(const Expr& x) {
  if (x.kind() != ExprKind::literal) return std::nullopt;
  if (const auto* value = std::get_if<int64_t>(&x.value())) return *value;
  return std::nullopt;
}

}  // namespace

bool is_comparison(const Expr& x) {
  return x.is(Function::lt) || x.is(Function::le) || x.is(Function::gt) || x.is(Function::ge) ||
         x.is(Function::eq) || x.is(Function::ne);
}

int64_t floor_div(int64_t a, int64_t b) { return a / b - (a % b != 0 && (a < 0) != (b < 0)); }

std::vector<size_t> Affine::axes() const {
  std::vector<size_t> found;
  for (size_t i = 0; i < coefficients.size(); ++i)
    if (coefficients[i] != 0) found.push_back(i);
  return found;
}

std::optional<Affine> Affine::plus(const Affine& other, int64_t factor) const {
  Affine sum = *this;
  sum.coefficients.resize(std::max(coefficients.size(), other.coefficients.size()));
  const auto add = [factor](int64_t& to, int64_t what) {
    int64_t product = 0;
    return !__builtin_mul_overflow(what, factor, &product) &&
           !__builtin_add_overflow(to, product, &to) && is_known(to);
  };
  bool fits = add(sum.constant, other.constant);
  for (size_t i = 0; i < other.coefficients.size(); ++i)
    fits = add(sum.coefficients[i], other.coefficients[i]) && fits;
  return fits ? std::optional(std::move(sum)) : std::nullopt;
}

Expr to_expr(const Affine& x) {
  const auto term = [&](size_t axis) {
    const int64_t factor = x.coefficients[axis] < 0 ? -x.coefficients[axis] : x.coefficients[axis];
    return factor == 1 ? Expr::axis(axis) : Expr::axis(axis) * factor;
  };
  Expr sum;
  for (size_t axis : x.axes())
    if (x.coefficients[axis] > 0) sum = sum.defined() ? sum + term(axis) : term(axis);
  const bool constant_first = !sum.defined();
  if (constant_first) sum = Expr::literal(x.constant, DType::int64);
  for (size_t axis : x.axes())
    if (x.coefficients[axis] < 0)
      sum = constant_first && is_literal(sum, 0) ? -term(axis) : sum - term(axis);
  if (constant_first || x.constant == 0) return sum;
  return x.constant > 0 ? sum + x.constant : sum - (-x.constant);
}

IndexAnalysis::IndexAnalysis(const std::vector<Axis>& axes) {
  for (const Axis& axis : axes) extents_.push_back(axis.extent);
}

std::optional<Affine> IndexAnalysis::affine(const Expr& x) { return known(x).affine; }
Range IndexAnalysis::range(const Expr& x) { return known(x).range; }

Range IndexAnalysis::range(const Affine& x) const {
  Range sum{x.constant, x.constant};
  for (size_t axis : x.axes())
    sum =
        plus(sum, times(Range{0, std::max<int64_t>(extents_[axis] - 1, 0)}, x.coefficients[axis]));
  return sum;
}

const IndexAnalysis::Known& IndexAnalysis::known(const Expr& x) {
  if (!known_.contains(x.hash()))
    for (const Expr& part : parts_of({x}))
      if (!known_.contains(part.hash())) known_.insert(part.hash(), analyse(part));
  return *known_.find(x.hash());
}

IndexAnalysis::Known IndexAnalysis::analyse(const Expr& part) {
  Known known;
  if (part.dtype() != DType::int64) return known;
  if (const auto value = integer_literal(part)) {
    if (is_known(*value)) known.affine = Affine{.coefficients = {}, .constant = *value};
  } else if (part.kind() == ExprKind::axis) {
    COMPOSIT_ASSERT(part.number() < extents_.size(), "an axis out of range");
    known.affine = Affine();
    known.affine->coefficients.resize(part.number() + 1);
    known.affine->coefficients.back() = extents_[part.number()] == 1 ? 0 : 1;
  } else if (part.kind() == ExprKind::call) {
    known.affine = affine_call(part);
    known.range = range_of_call(part);
  }
  if (known.affine) {
    known.affine->coefficients.resize(extents_.size());
    known.range = range(*known.affine);
  }
  return known;
}

// Arguments are analysed before.
std::optional<Affine> IndexAnalysis::affine_call(const Expr& call) {
  const auto argument = [&](size_t i) { return known_.find(call[i].hash())->affine; };
  switch (call.function()) {
    case Function::neg:
      return argument(0) ? Affine().plus(*argument(0), -1) : std::nullopt;
    case Function::add:
    case Function::sub: {
      const std::optional<Affine> x = argument(0), y = argument(1);
      return x && y ? x->plus(*y, call.is(Function::add) ? 1 : -1) : std::nullopt;
    }
    case Function::mul: {
      const std::optional<Affine> x = argument(0), y = argument(1);
      if (!x || !y) return std::nullopt;
      if (y->axes().empty()) return Affine().plus(*x, y->constant);
      return x->axes().empty() ? Affine().plus(*y, x->constant) : std::nullopt;
    }
    case Function::floor_divide:
    case Function::remainder:
    case Function::trunc_divide:
    case Function::fmod:
      return divided(call);
    default:
      return std::nullopt;
  }
}

// x = divisor * quotient + rest, where the rest has all that the divisor does not divide: the
// quotient is the result if the rest never leaves [0, divisor).
std::optional<Affine> IndexAnalysis::divided(const Expr& call) {
  const std::optional<Affine> x = known_.find(call[0].hash())->affine;
  const std::optional<int64_t> divisor = integer_literal(call[1]);
  if (!x || !divisor || *divisor <= 0) return std::nullopt;
  const bool truncates = call.is(Function::trunc_divide) || call.is(Function::fmod);
  const Range all = range(*x);
  if (!is_known(all) || (truncates && all.low < 0)) return std::nullopt;
  Affine quotient, rest = *x;
  quotient.coefficients.resize(x->coefficients.size());
  for (size_t axis : x->axes()) {
    if (x->coefficients[axis] % *divisor != 0) continue;
    quotient.coefficients[axis] = x->coefficients[axis] / *divisor;
    rest.coefficients[axis] = 0;
  }
  const Range left = range(rest);
  if (!is_known(left)) return std::nullopt;
  const int64_t whole = floor_div(left.low, *divisor);
  if (floor_div(left.high, *divisor) != whole) return std::nullopt;
  quotient.constant = whole;
  rest.constant -= whole * *divisor;
  const bool wants_rest = call.is(Function::remainder) || call.is(Function::fmod);
  return wants_rest ? rest : quotient;
}

Range IndexAnalysis::range_of_call(const Expr& call) {
  const auto argument = [&](size_t i) { return known_.find(call[i].hash())->range; };
  switch (call.function()) {
    case Function::neg:
      return times(argument(0), -1);
    case Function::add:
      return plus(argument(0), argument(1));
    case Function::sub:
      return plus(argument(0), times(argument(1), -1));
    case Function::mul:
      return times(argument(0), argument(1));
    case Function::min:
      return {std::min(argument(0).low, argument(1).low),
              std::min(argument(0).high, argument(1).high)};
    case Function::max:
      return {std::max(argument(0).low, argument(1).low),
              std::max(argument(0).high, argument(1).high)};
    case Function::select:
      return hull(argument(1), argument(2));
    case Function::floor_divide: {
      const std::optional<int64_t> by = integer_literal(call[1]);
      const Range x = argument(0);
      if (!by || *by <= 0) return {};
      return {x.low == -kUnbounded ? x.low : floor_div(x.low, *by),
              x.high == kUnbounded ? x.high : floor_div(x.high, *by)};
    }
    case Function::remainder: {
      const std::optional<int64_t> by = integer_literal(call[1]);
      if (!by || *by <= 0) return {};
      return argument(0).inside(0, *by - 1) ? argument(0) : Range{0, *by - 1};
    }
    case Function::cast:
      return call[0].dtype() == DType::bool_ ? Range{0, 1} : Range{};
    default:
      return {};
  }
}

std::optional<bool> IndexAnalysis::compare(const Expr& comparison) {
  const Expr &x = comparison[0], &y = comparison[1];
  if (x.dtype() != DType::int64) return std::nullopt;
  const Known of_x = known(x), of_y = known(y);
  Range a = of_x.range, b = of_y.range;
  if (of_x.affine && of_y.affine && is_known(a) && is_known(b)) {  // their difference says more
    if (const auto difference = of_x.affine->plus(*of_y.affine, -1)) {
      a = range(*difference);
      b = {0, 0};
    }
  }
  const auto decide = [](bool yes, bool no) {
    return yes || no ? std::optional(yes) : std::nullopt;
  };
  const bool apart = a.high < b.low || b.high < a.low;
  const bool same = a.low == b.high && a.high == b.low;
  switch (comparison.function()) {
    case Function::lt:
      return decide(a.high < b.low, a.low >= b.high);
    case Function::le:
      return decide(a.high <= b.low, a.low > b.high);
    case Function::gt:
      return decide(a.low > b.high, a.high <= b.low);
    case Function::ge:
      return decide(a.low >= b.high, a.high < b.low);
    case Function::eq:
      return decide(same, apart);
    default:
      return decide(apart, same);
  }
}

Expr IndexAnalysis::decided(const Expr& part) {
  if (!is_comparison(part)) return part;
  const std::optional<bool> value = compare(part);
  return value ? Expr::literal(*value, DType::bool_) : part;
}

std::vector<Expr> IndexAnalysis::simplify(const std::vector<Expr>& roots) {
  FlatMap<Hash, Expr> now;
  for (const Expr& part : parts_of(roots)) {
    if (const std::optional<Affine> form = affine(part)) {
      now.insert(part.hash(), to_expr(*form));
      continue;
    }
    std::vector<Expr> arguments;
    for (const Expr& argument : part.arguments()) arguments.push_back(*now.find(argument.hash()));
    now.insert(part.hash(), decided(part.with_arguments(std::move(arguments))));
  }
  std::vector<Expr> results;
  for (const Expr& root : roots) results.push_back(root.defined() ? *now.find(root.hash()) : root);
  return results;
}

Expr IndexAnalysis::simplify(const Expr& x) { return simplify(std::vector{x})[0]; }

bool is_true(const Expr& x) {
  if (!x.defined() || x.kind() != ExprKind::literal) return false;
  const auto* truth = std::get_if<bool>(&x.value());
  return truth != nullptr && *truth;
}

bool is_false(const Expr& x) {
  if (!x.defined() || x.kind() != ExprKind::literal) return false;
  const auto* truth = std::get_if<bool>(&x.value());
  return truth != nullptr && !*truth;
}

bool has_loads(const Expr& x) {
  const auto parts = parts_of({x});
  return std::any_of(parts.begin(), parts.end(),
                     [](const Expr& part) { return part.kind() == ExprKind::load; });
}

Expr and_then(const Expr& condition, const Expr& x) {
  if (!condition.defined() || is_true(condition) || is_false(x)) return x;
  if (is_true(x) || is_false(condition)) return condition;
  return has_loads(x) ? select(condition, x, false) : condition && x;
}

Expr or_else(const Expr& condition, const Expr& x) {
  if (is_true(condition) || is_false(x) || condition.same(x)) return condition;
  if (is_true(x) || is_false(condition)) return x;
  return has_loads(x) ? select(condition, true, x) : condition || x;
}

Expr negation(const Expr& predicate) {
  if (predicate.is(Function::logical_not)) return predicate[0];
  if (!is_comparison(predicate)) return !predicate;
  // A comparison with NaN is false, and so is its opposite.
  const Function function = predicate.function();
  const bool of_numbers = category(predicate[0].dtype()) > DTypeCategory::integer;
  if (of_numbers && function != Function::eq && function != Function::ne) return !predicate;
  const Expr &x = predicate[0], &y = predicate[1];
  switch (function) {
    case Function::lt:
      return x >= y;
    case Function::le:
      return x > y;
    case Function::gt:
      return x <= y;
    case Function::ge:
      return x < y;
    case Function::eq:
      return ne(x, y);
    default:
      return eq(x, y);
  }
}

std::vector<Expr> conjuncts(const Expr& domain) {
  std::vector<Expr> found, open;
  if (domain.defined()) open.push_back(domain);
  while (!open.empty()) {
    const Expr part = open.back();
    open.pop_back();
    const bool both =
        part.is(Function::logical_and) || (part.is(Function::select) && is_false(part[2]));
    if (both) {
      open.push_back(part[1]);
      open.push_back(part[0]);
    } else if (!is_true(part)) {
      found.push_back(part);
    }
  }
  return found;
}

Expr all_of(std::vector<Expr> predicates) {
  std::stable_partition(predicates.begin(), predicates.end(),
                        [](const Expr& x) { return !has_loads(x); });
  Expr all;
  std::vector<Hash> seen;
  for (const Expr& predicate : predicates) {
    if (is_false(predicate)) return predicate;
    if (is_true(predicate) || std::count(seen.begin(), seen.end(), predicate.hash())) continue;
    seen.push_back(predicate.hash());
    all = all.defined() ? and_then(all, predicate) : predicate;
  }
  return all;
}

Expr without_conjuncts(const Expr& domain, const Expr& dropped) {
  const std::vector<Expr> without = conjuncts(dropped);
  std::vector<Expr> kept = conjuncts(domain);
  std::erase_if(kept, [&](const Expr& predicate) {
    return std::any_of(without.begin(), without.end(),
                       [&](const Expr& one) { return one.same(predicate); });
  });
  return all_of(std::move(kept));
}

std::optional<Affine> bound_of(const Expr& predicate, IndexAnalysis& analysis) {
  if (!is_comparison(predicate)) return std::nullopt;
  const std::optional<Affine> x = analysis.affine(predicate[0]), y = analysis.affine(predicate[1]);
  if (!x || !y) return std::nullopt;
  const Affine one{.coefficients = {}, .constant = 1};
  const bool less = predicate.is(Function::lt) || predicate.is(Function::le);
  const bool greater = predicate.is(Function::gt) || predicate.is(Function::ge);
  if (!less && !greater) return std::nullopt;
  const std::optional<Affine> difference = less ? y->plus(*x, -1) : x->plus(*y, -1);
  const bool strict = predicate.is(Function::lt) || predicate.is(Function::gt);
  return difference && strict ? difference->plus(one, -1) : difference;
}

Expr simplify_domain(const Expr& domain, IndexAnalysis& analysis) {
  std::vector<Expr> left;
  std::vector<std::optional<Affine>> bounds;
  for (const Expr& predicate : analysis.simplify(conjuncts(domain))) {
    for (const Expr& part : conjuncts(predicate)) {
      left.push_back(part);
      bounds.push_back(bound_of(part, analysis));
    }
  }
  // x + 2 >= 0 says nothing beside x >= 0.
  const auto implied = [&](size_t i) {
    for (size_t j = 0; bounds[i] && j < bounds.size(); ++j) {
      if (i == j || !bounds[j] || bounds[i]->coefficients != bounds[j]->coefficients) continue;
      const int64_t more = bounds[i]->constant - bounds[j]->constant;
      if (more > 0 || (more == 0 && j < i)) return true;
    }
    return false;
  };
  std::vector<Expr> needed;
  for (size_t i = 0; i < left.size(); ++i)
    if (!implied(i)) needed.push_back(left[i]);
  return all_of(std::move(needed));
}

Expr simplify_domain(const Expr& domain, const std::vector<Axis>& axes) {
  IndexAnalysis analysis(axes);
  return simplify_domain(domain, analysis);
}

Expr assume(const Expr& x, const Expr& domain) {
  if (!domain.defined()) return x;
  FlatMap<Hash, bool> facts;
  for (const Expr& predicate : conjuncts(domain)) {
    facts.insert(predicate.hash(), true);
    facts.insert(negation(predicate).hash(), false);
  }
  const auto decide = [&](const Expr& part) {
    if (const bool* fact = facts.find(part.hash())) return Expr::literal(*fact, DType::bool_);
    return part;
  };
  return replace(x, decide);
}

}  // namespace composit
