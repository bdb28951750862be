#include "flashlight/mosaic/split_axes.h"

#include <algorithm>
#include <optional>

#include "composit/op/affine.h"
#include "flashlight/loops/statement.h"

namespace flashlight::mosaic {
namespace {

using composit::Expr;
using composit::ExprKind;
using composit::Function;
using loops::Statement;

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
  for (const Expr& part : composit::parts_of(loops::expressions(statement)))
    if (is_division(part)) found.push_back(part);
  return found;
}

// The axis `axis` as one that counts steps of `step`, and one within a step.
Statement split(Statement statement, AxisId axis, int64_t step) {
  composit::Axis inner = statement.axes[axis];
  const int64_t extent = inner.extent;
  statement.axes[axis].extent = (extent + step - 1) / step;
  if (extent % step != 0) {
    std::vector<Expr> predicates = composit::conjuncts(statement.domain);
    predicates.push_back(Expr::axis(axis) < Expr(extent));
    statement.domain = composit::all_of(predicates);
  }
  inner.extent = step;
  statement.axes.insert(statement.axes.begin() + static_cast<std::ptrdiff_t>(axis) + 1, inner);
  statement = loops::replaced(std::move(statement), [&](const Expr& part) {
    if (part.kind() != ExprKind::axis || part.number() < axis) return Expr();
    if (part.number() > axis) return Expr::axis(part.number() + 1);
    return Expr::axis(axis) * Expr(step) + Expr::axis(axis + 1);
  });
  return loops::simplified(std::move(statement));
}

struct Cut {
  AxisId axis;
  int64_t step;
};

// True if the domain may say where an axis ends. A store after a reduction is executed in any case.
bool may_end_early(const Statement& statement, AxisId axis) {
  return statement.axes[axis].kind == composit::AxisKind::reduction ||
         !loops::has_axes(statement, composit::AxisKind::reduction);
}

// The axes that a division might split, and where.
std::vector<Cut> cuts_of(const Statement& statement, bool has_blocks) {
  std::vector<Cut> cuts;
  composit::IndexAnalysis analysis(statement.axes);
  for (const Expr& division : divisions(statement)) {
    const auto x = analysis.affine(division[0]);
    if (!x) continue;
    for (const AxisId axis : loops::axes_in(*x)) {
      const int64_t factor = x->coefficients[axis], divisor = *integer(division[1]),
                    extent = statement.axes[axis].extent;
      if (factor <= 0 || divisor % factor != 0) continue;
      const int64_t step = divisor / factor;
      const bool divides = extent % step == 0 || (has_blocks && may_end_early(statement, axis));
      if (step > 1 && step < extent && divides) cuts.push_back({axis, step});
    }
  }
  return cuts;
}

Statement with_cuts(Statement statement, bool has_blocks) {
  if (divisions(statement).empty()) return statement;
  for (bool changed = true; changed;) {
    changed = false;
    const size_t before = divisions(statement).size();
    for (const Cut& cut : cuts_of(statement, has_blocks)) {
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

}  // namespace

Statement with_split_axes(Statement statement) { return with_cuts(std::move(statement), false); }

Statement with_block_axes(Statement statement) { return with_cuts(std::move(statement), true); }

loops::Program split_axes(loops::Program program) {
  for (loops::Step& step : program.functions.back().steps)
    if (auto* nest = std::get_if<loops::Nest>(&step))
      nest->statement = with_split_axes(std::move(nest->statement));
  return program;
}

}  // namespace flashlight::mosaic
