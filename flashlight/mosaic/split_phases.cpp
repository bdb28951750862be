#include "flashlight/mosaic/split_phases.h"

#include <numeric>
#include <optional>

#include "composit/op/affine.h"
#include "flashlight/loops/contraction.h"
#include "flashlight/loops/statement.h"
#include "flashlight/mosaic/depthwise.h"
#include "flashlight/mosaic/product.h"
#include "flashlight/mosaic/sides.h"

namespace flashlight::mosaic {
namespace {

using composit::AxisKind;
using composit::Expr;
using composit::ExprKind;
using composit::Function;
using loops::Statement;

// Kernels that one sum may become.
constexpr size_t kMostPhases = 64;

// There are terms where factor * place + term_factor * term + constant is a multiple of `step`.
struct Stride {
  int64_t step, constant;
  AxisId place;  // a parallel axis
  int64_t factor;
  std::optional<AxisId> term = {};  // a reduced axis
  int64_t term_factor = 0;
};

int64_t modulo(int64_t x, int64_t step) { return ((x % step) + step) % step; }

// The stride in remainder(x, step) == 0, for an x of one output index and at most one term.
std::optional<Stride> stride_of(const Expr& predicate, const Statement& statement,
                                composit::IndexAnalysis& analysis) {
  if (!predicate.is(Function::eq) || !predicate[0].is(Function::remainder) ||
      !composit::is_literal(predicate[1], 0) || predicate[0][1].kind() != ExprKind::literal)
    return std::nullopt;
  const auto x = analysis.affine(predicate[0][0]), divisor = analysis.affine(predicate[0][1]);
  if (!x || !divisor || divisor->constant < 2) return std::nullopt;
  Stride stride = {divisor->constant, x->constant, AxisId(statement.axes.size()), 0};
  for (const AxisId axis : loops::axes_in(*x)) {
    const int64_t factor = x->coefficients[axis];
    if (std::gcd(factor, stride.step) != 1) return std::nullopt;
    if (statement.axes[axis].kind == AxisKind::parallel && stride.factor == 0) {
      stride.place = axis;
      stride.factor = factor;
    } else if (statement.axes[axis].kind == AxisKind::reduction && !stride.term) {
      stride.term = axis;
      stride.term_factor = factor;
    } else {
      return std::nullopt;
    }
  }
  return stride.factor == 0 ? std::nullopt : std::optional(stride);
}

// The points step * i + first of an axis.
Statement every(Statement statement, AxisId axis, int64_t step, int64_t first) {
  const int64_t extent = statement.axes[axis].extent;
  statement.axes[axis].extent = (extent - first + step - 1) / step;
  return loops::replaced(std::move(statement), [&](const Expr& part) {
    const bool counts = part.kind() == ExprKind::axis && part.number() == axis;
    return counts ? Expr::axis(axis) * Expr(step) + Expr(first) : Expr();
  });
}

// The statement that stores the results to which no term is added.
Statement without_terms(Statement statement) {
  for (composit::Axis& axis : statement.axes)
    if (axis.kind == AxisKind::reduction) axis.extent = 1;
  const composit::DType dtype = statement.body[0].dtype();
  statement.domain = Expr();
  statement.init.clear();
  statement.body.clear();
  statement.combine.clear();
  return loops::replaced(std::move(statement), [&](const Expr& part) {
    return part.kind() == ExprKind::accumulator ? Expr::literal(0.0, dtype) : Expr();
  });
}

Statement phase(const Statement& statement, const Stride& stride, int64_t first) {
  Statement now = every(statement, stride.place, stride.step, first);
  const int64_t rest = stride.factor * first + stride.constant;
  if (!stride.term)
    return loops::simplified(modulo(rest, stride.step) == 0 ? now : without_terms(std::move(now)));
  int64_t term = 0;
  while (modulo(rest + stride.term_factor * term, stride.step) != 0) ++term;
  const bool has_terms = term < statement.axes[*stride.term].extent;
  return loops::simplified(has_terms ? every(std::move(now), *stride.term, stride.step, term)
                                     : without_terms(std::move(now)));
}

std::optional<Stride> stride_of(const Statement& statement) {
  if (!loops::is_sum(statement) || statement.stores.size() != 1 || statement.stores[0].add)
    return std::nullopt;
  composit::IndexAnalysis analysis(statement.axes);
  for (const Expr& predicate : composit::conjuncts(statement.domain))
    if (const auto stride = stride_of(predicate, statement, analysis)) return stride;
  return std::nullopt;
}

// The phases of a product.
std::vector<Statement> dense_phases(const Statement& statement) {
  std::vector<Statement> open = {statement}, phases;
  while (!open.empty()) {
    const Statement one = std::move(open.back());
    open.pop_back();
    const auto stride = stride_of(one);
    if (!stride) {
      phases.push_back(one);
      continue;
    }
    const int64_t places = one.axes[stride->place].extent;
    for (int64_t first = 0; first < std::min(stride->step, places); ++first)
      open.push_back(phase(one, *stride, first));
    if (open.size() + phases.size() > kMostPhases) return {statement};
  }
  return phases;
}

bool is_product(const loops::Nest& nest) {
  const auto sides = sides_of(nest);
  return sides && !is_depthwise(*sides);
}

}  // namespace

std::vector<Statement> phases_of(const Statement& statement) {
  return loops::contraction_of(statement, kLeastSide) ? dense_phases(statement)
                                                      : std::vector{statement};
}

loops::Program split_phases(loops::Program program) {
  loops::Routine& routine = program.functions.back();
  Table<StepId, loops::Step> steps;
  for (loops::Step& step : routine.steps) {
    auto* nest = std::get_if<loops::Nest>(&step);
    if (nest == nullptr || !is_product(*nest)) {
      steps.push_back(std::move(step));
      continue;
    }
    for (Statement& one : dense_phases(nest->statement)) {
      nest->statement = std::move(one);
      steps.push_back(*nest);
    }
  }
  routine.steps = std::move(steps);
  return program;
}

}  // namespace flashlight::mosaic
