#include "composit/op/stores.h"

#include <algorithm>
#include <numeric>
#include <utility>

#include "composit/ir/error.h"

namespace composit {
namespace {

bool has_reduction(const Statement& statement) {
  return !statement.axes.empty() && statement.axes.back().kind == AxisKind::reduction;
}

// A mixed radix: each coefficient exceeds what all smaller ones can add up to.
bool is_radix(const Affine& index, std::vector<size_t> axes, const IndexAnalysis& analysis) {
  const auto size = [&](size_t axis) { return std::abs(index.coefficients[axis]); };
  std::sort(axes.begin(), axes.end(), [&](size_t a, size_t b) { return size(a) < size(b); });
  int64_t reach = 0;
  for (size_t axis : axes) {
    if (size(axis) <= reach) return false;
    int64_t span = 0;
    if (__builtin_mul_overflow(size(axis), analysis.extent(axis) - 1, &span) ||
        __builtin_add_overflow(reach, span, &reach))
      return false;
  }
  return true;
}

// An affine index against another's: in distance, or by what their coefficients leave over.
bool apart(const Affine& a, const IndexAnalysis& of_a, const Affine& b, const IndexAnalysis& of_b) {
  const Range x = of_a.range(a), y = of_b.range(b);
  if (x.high < y.low || y.high < x.low) return true;
  int64_t divisor = 0;
  for (int64_t c : a.coefficients) divisor = std::gcd(divisor, c);
  for (int64_t c : b.coefficients) divisor = std::gcd(divisor, c);
  return divisor > 1 && (a.constant - b.constant) % divisor != 0;
}

// The point of a store's axes that writes a place, index by index.
class PointOfPlace {
 public:
  PointOfPlace(const Statement& statement, const std::vector<Expr>& place)
      : statement_(statement), place_(place), analysis_(statement.axes), axes_(analysis_.axes()) {
    for (size_t i = 0; i < axes_.size(); ++i)
      if (analysis_.extent(i) == 1) axes_[i] = 0;
  }

  // False where the indices do not give the point one axis after the other.
  bool solve(const std::vector<Expr>& at) {
    std::vector<std::pair<size_t, Affine>> open;
    for (size_t i = 0; i < at.size(); ++i) {
      const std::optional<Affine> index = analysis_.affine(at[i]);
      if (!index) return false;
      open.emplace_back(i, *index);
    }
    while (!open.empty()) {
      const size_t before = open.size();
      std::erase_if(open, [&](const auto& entry) { return settle(entry.second, entry.first); });
      if (open.size() == before) return false;
    }
    return true;
  }

  // The predicate that the point exists; nothing where `domain` needs an axis that is not known.
  std::optional<Expr> exists() {
    const Expr found = all_of(conditions_);
    const Expr inside = found.defined() ? found : cast(true, DType::bool_);
    if (has_reduction(statement_) || !statement_.domain.defined()) return inside;
    bool known = true;
    const Expr domain = replace(statement_.domain, [&](const Expr& part) {
      if (part.kind() != ExprKind::axis) return Expr();
      known = known && axes_[part.number()].defined();
      return axes_[part.number()];
    });
    if (!known) return std::nullopt;
    return and_then(inside, domain);
  }

 private:
  // constant + sum of factor * axis = place, if all axes but one are known.
  bool settle(const Affine& index, size_t dimension) {
    Expr rest = place_[dimension];
    std::optional<size_t> open;
    for (size_t axis : index.axes()) {
      if (axes_[axis].defined()) {
        rest = rest - axes_[axis] * index.coefficients[axis];
      } else if (open) {
        return false;
      } else {
        open = axis;
      }
    }
    if (!open) {
      conditions_.push_back(eq(rest, index.constant));
      return true;
    }
    const int64_t factor = index.coefficients[*open], step = std::abs(factor);
    const int64_t span = factor * (analysis_.extent(*open) - 1);
    conditions_.push_back(rest >= index.constant + std::min<int64_t>(span, 0));
    conditions_.push_back(rest < index.constant + std::max<int64_t>(span, 0) + 1);
    const Expr distance = factor > 0 ? rest - index.constant : index.constant - rest;
    if (step > 1) conditions_.push_back(eq(remainder(distance, step), 0));
    axes_[*open] = step > 1 ? floor_divide(distance, step) : distance;
    return true;
  }

  const Statement& statement_;
  const std::vector<Expr>& place_;
  IndexAnalysis analysis_;
  std::vector<Expr> axes_;  // of the statement, by the place
  std::vector<Expr> conditions_;
};

}  // namespace

std::vector<size_t> store_axes(const Statement& statement) {
  std::vector<size_t> axes;
  for (size_t i = 0; i < statement.axes.size(); ++i)
    if (statement.axes[i].kind != AxisKind::reduction) axes.push_back(i);
  return axes;
}

bool injective(const Affine& index, const IndexAnalysis& analysis) {
  return is_radix(index, index.axes(), analysis);
}

bool injective(const std::vector<Expr>& at, const std::vector<size_t>& over,
               IndexAnalysis& analysis) {
  std::vector<size_t> open;
  for (size_t axis : over)
    if (analysis.extent(axis) > 1) open.push_back(axis);
  std::vector<Affine> indices;
  for (const Expr& index : at)
    if (const auto form = analysis.affine(index)) indices.push_back(*form);
  // An index whose open axes are a radix gives them.
  for (bool progress = true; progress && !open.empty();) {
    progress = false;
    for (const Affine& index : indices) {
      std::vector<size_t> own;
      for (size_t axis : open)
        if (index.coefficients[axis] != 0) own.push_back(axis);
      if (own.empty() || !is_radix(index, own, analysis)) continue;
      std::erase_if(open, [&](size_t axis) { return index.coefficients[axis] != 0; });
      progress = true;
    }
  }
  return open.empty();
}

bool disjoint(const Statement& a, const Store& store_a, const Statement& b, const Store& store_b) {
  COMPOSIT_ASSERT(store_a.at.size() == store_b.at.size(), "stores into two results");
  IndexAnalysis of_a(a.axes), of_b(b.axes);
  for (size_t i = 0; i < store_a.at.size(); ++i) {
    const auto x = of_a.affine(store_a.at[i]), y = of_b.affine(store_b.at[i]);
    if (x && y && apart(*x, of_a, *y, of_b)) return true;
  }
  return false;
}

std::optional<Expr> writes(const Statement& statement, const Store& store,
                           const std::vector<Expr>& place) {
  for (size_t axis : store_axes(statement))
    if (statement.axes[axis].extent == 0) return cast(false, DType::bool_);
  PointOfPlace point(statement, place);
  if (!point.solve(store.at)) return std::nullopt;
  return point.exists();
}

}  // namespace composit
