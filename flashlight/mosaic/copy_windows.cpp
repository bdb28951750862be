#include "flashlight/mosaic/copy_windows.h"

#include <algorithm>
#include <optional>

#include "composit/op/affine.h"
#include "flashlight/loops/contraction.h"
#include "flashlight/loops/statement.h"
#include "flashlight/mosaic/depthwise.h"
#include "flashlight/mosaic/product.h"
#include "flashlight/mosaic/sides.h"

namespace flashlight::mosaic {
namespace {

using composit::Expr;
using composit::ExprKind;
using loops::Statement;
using Axes = AxisIds;

// A side of a product that reads windows.
struct Windows {
  Expr element, domain;
  Axes axes;  // of the copy: the product's terms, then places in the order of the result
};

// The last dimensions of a store, if they are these axes, in its order.
std::optional<Axes> last_dimensions(const std::vector<Expr>& at, const Axes& axes) {
  if (at.size() < axes.size()) return std::nullopt;
  Axes order;
  for (size_t i = at.size() - axes.size(); i < at.size(); ++i) {
    if (at[i].kind() != ExprKind::axis || !loops::contains(axes, axis_of(at[i])))
      return std::nullopt;
    order.push_back(axis_of(at[i]));
  }
  return order;
}

std::optional<Windows> windows_of(const loops::Nest& nest,
                                  const std::function<bool(ValueId)>& is_known) {
  const Statement& statement = nest.statement;
  const auto of = sides_of(nest);
  if (!of || is_depthwise(*of) || !of->batch.empty() || !of->term_limits.empty() ||
      !of->column_limits.empty() || statement.stores.size() != 1 || statement.stores[0].add)
    return std::nullopt;
  for (const Expr* side : {&of->left, &of->right})
    if (side->kind() != ExprKind::load || is_known(value_of(*side))) return std::nullopt;
  const bool left = has_window(of->left, of->rows, of->terms),
             right = has_window(of->right, of->columns, of->terms);
  if (left == right) return std::nullopt;
  const Axes &places = left ? of->rows : of->columns, &others = left ? of->columns : of->rows;
  const auto order = last_dimensions(statement.stores[0].at, places);
  if (!order || loops::iterations(statement, others) <= loops::iterations(statement, of->terms))
    return std::nullopt;
  Windows windows = {left ? of->left : of->right, left ? of->left_domain : of->right_domain,
                     of->terms};
  windows.axes.insert(windows.axes.end(), order->begin(), order->end());
  return windows;
}

// Writes what the windows show to `value`, and lets the product read that.
Statement copy(const Windows& windows, ValueId value, Statement& product, composit::Dims& sizes) {
  Statement copy;
  std::vector<Expr> at, old;
  std::vector<size_t> number(product.axes.size());
  for (const AxisId axis : windows.axes) {
    number[axis] = copy.axes.size();
    copy.axes.push_back({"", product.axes[axis].extent});
    sizes.push_back(product.axes[axis].extent);
    at.push_back(Expr::axis(number[axis]));
    old.push_back(Expr::axis(axis));
  }
  const composit::DType dtype = windows.element.dtype();
  const Expr element = windows.domain.defined()
                           ? select(windows.domain, windows.element, Expr::literal(0.0, dtype))
                           : windows.element;
  const Expr moved = composit::replace(element, [&](const Expr& part) {
    return part.kind() == ExprKind::axis ? Expr::axis(number[part.number()]) : Expr();
  });
  copy.stores.push_back({value, at, moved});
  product.domain = composit::without_conjuncts(product.domain, windows.domain);
  product = loops::replaced(std::move(product), [&](const Expr& part) {
    return part.same(windows.element) ? Expr::load(value, dtype, old) : Expr();
  });
  return loops::simplified(std::move(copy));
}

}  // namespace

CopiedWindows copy_windows(loops::Program program,
                           const std::function<bool(ValueId value)>& is_known) {
  loops::Routine& routine = program.functions.back();
  Table<StepId, loops::Step> steps;
  ValueIds copies;
  for (loops::Step& step : routine.steps) {
    auto* nest = std::get_if<loops::Nest>(&step);
    const auto windows = nest != nullptr ? windows_of(*nest, is_known) : std::nullopt;
    if (windows) {
      copies.push_back(routine.values.next());
      composit::Dims sizes;
      Statement one = copy(*windows, copies.back(), nest->statement, sizes);
      steps.push_back(loops::Nest{std::move(one), {"windows", "", ""}});
      const composit::DType dtype = windows->element.dtype();
      routine.kept[copies.back()] = "are the columns of a product, side by side";
      routine.values.push_back(
          {composit::tensor_type(dtype, sizes), loops::Role::temporary, "windows", {}});
    }
    steps.push_back(std::move(step));
  }
  routine.steps = std::move(steps);
  return {std::move(program), std::move(copies)};
}

}  // namespace flashlight::mosaic
