#include "flashlight/mosaic/reductions.h"

#include <algorithm>
#include <optional>

#include "composit/op/affine.h"
#include "flashlight/loops/statement.h"
#include "flashlight/mosaic/product.h"
#include "flashlight/mosaic/sides.h"

namespace flashlight::mosaic {
namespace {

using composit::AxisKind;
using composit::Expr;
using composit::ExprKind;
using loops::Statement;

// Sums of fewer elements stay as they are.
constexpr int64_t kLeastWork = 1 << 12;

struct Roles {
  AxisIds outer;  // reduced in the second sum, from the outside in
  AxisId middle;  // reduced in the first one
  AxisId inner;   // neighbours in memory, reduced in the second one
};

// The axes of a sum that adds terms far apart in memory while their neighbours belong to other
// sums.
std::optional<Roles> roles_of(const loops::Routine& routine, const loops::Nest& nest) {
  const Statement& statement = nest.statement;
  if (!loops::is_sum(statement) || statement.domain.defined() || statement.stores.size() != 1 ||
      statement.stores[0].add || loops::iterations(statement) < kLeastWork)
    return std::nullopt;
  if (const auto product = sides_of(nest); product && !has_one_row(*product)) return std::nullopt;
  const Statement one = flat(routine, statement);
  composit::IndexAnalysis analysis(one.axes);
  std::optional<composit::Affine> widest;
  for (const Expr& part : composit::parts_of(one.body)) {
    if (part.kind() != ExprKind::load) continue;
    const auto at = analysis.affine(part[0]);
    if (!at) return std::nullopt;
    if (!widest || at->axes().size() > widest->axes().size()) widest = at;
  }
  if (!widest) return std::nullopt;
  AxisIds reduced;
  for (const AxisId axis : loops::axes_of(one))
    if (one.axes[axis].kind == AxisKind::reduction) reduced.push_back(axis);
  std::stable_sort(reduced.begin(), reduced.end(), [&](AxisId a, AxisId b) {
    return widest->coefficients[a] > widest->coefficients[b];
  });
  if (reduced.size() < 2 || widest->coefficients[reduced.back()] != 1) return std::nullopt;
  Roles roles = {{reduced.begin(), reduced.end() - 2}, reduced[reduced.size() - 2], reduced.back()};
  const int64_t extent = one.axes[roles.inner].extent;
  const bool row_after_row = widest->coefficients[roles.middle] == extent;
  if (row_after_row && extent >= 64) return std::nullopt;  // long enough as it is
  return roles;
}

// `axes` of the statement in this order, of these kinds.
Statement with_axes(const Statement& statement, const AxisIds& axes, size_t parallel) {
  Statement now = statement;
  now.axes.clear();
  std::vector<size_t> number(statement.axes.size());
  for (size_t i = 0; i < axes.size(); ++i) {
    number[axes[i]] = i;
    now.axes.push_back(statement.axes[axes[i]]);
    now.axes.back().kind = i < parallel ? AxisKind::parallel : AxisKind::reduction;
  }
  return loops::replaced(std::move(now), [&](const Expr& part) {
    return part.kind() == ExprKind::axis ? Expr::axis(number[part.number()]) : Expr();
  });
}

// The sums of rows of pixels, and the sum of those.
std::pair<Statement, Statement> split(loops::Routine& routine, const Statement& statement,
                                      const Roles& roles) {
  const composit::DType dtype = statement.body[0].dtype();
  AxisIds order = roles.outer;
  for (AxisId axis; axis < loops::parallel_axes(statement); ++axis) order.push_back(axis);
  order.push_back(roles.inner);
  const size_t parallel = order.size();
  const ValueId value = routine.values.next();
  composit::Dims sizes;
  std::vector<Expr> at, old;
  for (size_t i = 0; i < parallel; ++i) {
    sizes.push_back(statement.axes[order[i]].extent);
    at.push_back(Expr::axis(i));
    old.push_back(Expr::axis(order[i]));
  }
  routine.kept[value] = "are sums of rows, in the order of memory, that are summed up behind it";
  routine.values.push_back(
      {composit::tensor_type(dtype, sizes), loops::Role::temporary, "row_sums", {}});
  Statement first = statement;
  first.stores.clear();
  order.push_back(roles.middle);
  first = with_axes(first, order, parallel);
  first.stores = {{value, at, Expr::accumulator(0, dtype)}};
  Statement second = statement;
  second.body = {Expr::load(value, dtype, old)};
  second.axes[roles.middle].extent = 1;
  return {first, loops::simplified(second)};
}

}  // namespace

loops::Program split_reductions(loops::Program program) {
  loops::Routine& routine = program.functions.back();
  Table<StepId, loops::Step> steps;
  for (loops::Step& step : routine.steps) {
    auto* nest = std::get_if<loops::Nest>(&step);
    const auto roles = nest != nullptr ? roles_of(routine, *nest) : std::nullopt;
    if (roles) {
      auto [first, second] = split(routine, nest->statement, *roles);
      steps.push_back(loops::Nest{std::move(first), nest->origin});
      nest->statement = std::move(second);
    }
    steps.push_back(std::move(step));
  }
  routine.steps = std::move(steps);
  return program;
}

}  // namespace flashlight::mosaic
