#include "flashlight/mosaic/split_axes.h"

#include <algorithm>
#include <optional>

#include "composit/ad/affine.h"
#include "flashlight/cpp/statement.h"

namespace flashlight::mosaic {
namespace {

using composit::Expr;
using composit::ExprKind;
using composit::Function;
using cpp::Statement;

std::optional<int64_t> integer(const Expr& x) {
  if (x.kind() != ExprKind::literal || !std::holds_alternative<int64_t>(x.value()))
    return std::nullopt;
  return std::get<int64_t>(x.value());
}

bool is_division(const Expr& part) {
  return (part.is(Function::floor_divide) || part.is(Function::remainder)) &&
         !composit::has_loads(part) && integer(part[1]).value_or(0) > 1;
}

// Divisions of indices.
std::vector<Expr> divisions(const Statement& statement) {
  std::vector<Expr> found;
  for (const Expr& part : composit::parts_of(cpp::expressions(statement)))
    if (is_division(part)) found.push_back(part);
  return found;
}

// The axis `axis` as one that counts steps of `step`, and one within a step.
Statement split(Statement statement, size_t axis, int64_t step) {
  composit::Axis inner = statement.axes[axis];
  statement.axes[axis].extent = composit::Dim(inner.extent.value() / step);
  inner.extent = composit::Dim(step);
  statement.axes.insert(statement.axes.begin() + static_cast<std::ptrdiff_t>(axis) + 1, inner);
  statement = cpp::replaced(std::move(statement), [&](const Expr& part) {
    if (part.kind() != ExprKind::axis || part.number() < axis) return Expr();
    if (part.number() > axis) return Expr::axis(part.number() + 1);
    return Expr::axis(axis) * Expr(step) + Expr::axis(axis + 1);
  });
  return cpp::simplified(std::move(statement));
}

struct Cut {
  size_t axis;
  int64_t step;
};

// Where a division might take an axis apart.
std::vector<Cut> cuts_of(const Statement& statement) {
  std::vector<Cut> cuts;
  composit::IndexAnalysis analysis(statement.axes);
  for (const Expr& division : divisions(statement)) {
    const auto x = analysis.affine(division[0]);
    if (!x) continue;
    for (const size_t axis : x->axes()) {
      const int64_t factor = x->coefficients[axis], divisor = *integer(division[1]),
                    extent = statement.axes[axis].extent.value();
      if (factor <= 0 || divisor % factor != 0) continue;
      const int64_t step = divisor / factor;
      if (step > 1 && step < extent && extent % step == 0) cuts.push_back({axis, step});
    }
  }
  return cuts;
}

}  // namespace

Statement with_split_axes(Statement statement) {
  if (divisions(statement).empty()) return statement;
  for (bool changed = true; changed;) {
    changed = false;
    const size_t before = divisions(statement).size();
    for (const Cut& cut : cuts_of(statement)) {
      if (statement.axes[cut.axis].kind == composit::AxisKind::scan) continue;
      Statement now = split(statement, cut.axis, cut.step);
      if (divisions(now).size() >= before) continue;
      statement = std::move(now);
      changed = true;
      break;
    }
  }
  return statement;
}

void split_axes(cpp::Routine& routine) {
  for (cpp::Step& step : routine.steps)
    if (auto* nest = std::get_if<cpp::Nest>(&step))
      nest->statement = with_split_axes(std::move(nest->statement));
}

}  // namespace flashlight::mosaic
