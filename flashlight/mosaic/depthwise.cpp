#include "flashlight/mosaic/depthwise.h"

#include <numeric>

#include "flashlight/loops/statement.h"
#include "flashlight/mosaic/product.h"

namespace flashlight::mosaic {
namespace {

using composit::AxisKind;
using composit::Expr;
using composit::ExprKind;
using loops::Statement;
using Axes = AxisIds;

// With fewer channels, plain loops along pixels are as fast. With more terms than a window has,
// sums over images (gradients of weights) are products of another kind.
constexpr int64_t kLeastChannels = 8, kMostTerms = 128, kLeastWork = 4096;

// True if an index of a side depends on a parallel axis and a reduced one.
bool has_windows(const Statement& statement, const Expr& side) {
  Axes places(statement.axes.size());
  std::iota(places.begin(), places.end(), AxisId());
  const Axes terms(places.begin() + static_cast<std::ptrdiff_t>(loops::parallel_axes(statement)),
                   places.end());
  places.resize(loops::parallel_axes(statement));
  return has_window(side, places, terms);
}

}  // namespace

bool is_depthwise(const loops::Contraction& sides) {
  return sides.columns.size() == 1 && loops::contains(loops::axes_in(sides.left), sides.columns[0]);
}

std::optional<loops::Contraction> depthwise_of(const Statement& statement) {
  if (!loops::is_sum(statement) || !statement.body[0].is(composit::Function::mul)) return {};
  loops::Contraction sides;
  sides.left = statement.body[0][0], sides.right = statement.body[0][1];
  if (sides.left.kind() != ExprKind::load || sides.right.kind() != ExprKind::load) return {};
  if (!has_windows(statement, sides.left)) std::swap(sides.left, sides.right);
  if (!has_windows(statement, sides.left) || has_windows(statement, sides.right)) return {};
  const Axes left = loops::axes_in(sides.left), right = loops::axes_in(sides.right);
  int64_t terms = 1;
  for (const AxisId axis : loops::axes_of(statement)) {
    const bool in_both = loops::contains(right, axis);
    if (!loops::contains(left, axis)) return {};
    if (statement.axes[axis].kind == AxisKind::parallel) {
      (in_both ? sides.columns : sides.rows).push_back(axis);
    } else {
      if (!in_both) return {};
      sides.terms.push_back(axis);
      terms *= statement.axes[axis].extent;
    }
  }
  if (sides.columns.size() != 1 || sides.rows.empty() || terms > kMostTerms ||
      statement.axes[sides.columns[0]].extent < kLeastChannels ||
      loops::iterations(statement) < kLeastWork)
    return {};
  sides.left_domain = statement.domain;
  return sides;
}

}  // namespace flashlight::mosaic
