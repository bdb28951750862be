#include "flashlight/loops/statement.h"

#include <algorithm>
#include <cmath>

#include "composit/op/affine.h"
#include "composit/ops/places.h"

namespace flashlight::loops {

using composit::Axis;
using composit::AxisKind;
using composit::Function;

AxisIds axes_in(const Expr& x) {
  AxisIds axes;
  if (!x.defined()) return axes;
  for (const Expr& part : composit::parts_of({x}))
    if (part.kind() == ExprKind::axis) axes.push_back(axis_of(part));
  std::sort(axes.begin(), axes.end());
  return axes;
}

bool is_axis(const Expr& x, AxisId axis) {
  return x.kind() == ExprKind::axis && x.number() == axis;
}

AxisIds axes_in(const composit::Affine& x) {
  AxisIds axes;
  for (const size_t axis : x.axes()) axes.emplace_back(axis);
  return axes;
}

size_t parallel_axes(const Statement& statement) {
  return static_cast<size_t>(
      std::count_if(statement.axes.begin(), statement.axes.end(),
                    [](const Axis& axis) { return axis.kind == AxisKind::parallel; }));
}

bool has_axes(const Statement& statement, AxisKind kind) {
  return std::any_of(statement.axes.begin(), statement.axes.end(),
                     [kind](const Axis& axis) { return axis.kind == kind; });
}

std::optional<Function> fold_function(const Statement& statement) {
  if (statement.combine.size() != 1 || has_axes(statement, AxisKind::scan)) return std::nullopt;
  const Expr& combine = statement.combine[0];
  if (combine.kind() != ExprKind::call || combine.arguments().size() != 2) return std::nullopt;
  const Function function = combine.function();
  const bool known = function == Function::add || function == Function::mul ||
                     function == Function::max || function == Function::min;
  const bool plain =
      known && combine[0].kind() == ExprKind::left && combine[1].kind() == ExprKind::right;
  return plain ? std::optional(function) : std::nullopt;
}

bool is_sum(const Statement& statement, bool halves) {
  if (fold_function(statement) != Function::add || !composit::is_literal(statement.init[0], 0))
    return false;
  const composit::DType dtype = statement.body[0].dtype();
  return dtype == composit::DType::float32 || dtype == composit::DType::float64 ||
         (halves && composit::is_half(dtype));
}

bool divides_by_data(const Statement& statement) {
  const std::vector<Expr> parts = composit::parts_of(expressions(statement));
  return std::any_of(parts.begin(), parts.end(), [](const Expr& part) {
    return (part.is(Function::floor_divide) || part.is(Function::trunc_divide) ||
            part.is(Function::remainder) || part.is(Function::fmod)) &&
           !composit::is_floating_point(part.dtype()) && part[1].kind() != ExprKind::literal;
  });
}

bool may_refuse(const Statement& statement) {
  const auto has_data = [](const std::vector<Expr>& at) {
    return std::any_of(at.begin(), at.end(), composit::has_loads);
  };
  const std::vector<Expr> parts = composit::parts_of(expressions(statement));
  return divides_by_data(statement) ||
         std::any_of(statement.stores.begin(), statement.stores.end(),
                     [&](const composit::Store& store) { return has_data(store.at); }) ||
         std::any_of(parts.begin(), parts.end(), [&](const Expr& part) {
           return part.kind() == ExprKind::load && has_data(part.arguments());
         });
}

Statement zeros(const composit::Type& type, ValueId value) {
  Statement statement;
  std::vector<Expr> at;
  for (size_t i = 0; i < type.rank(); ++i) {
    statement.axes.push_back({"", type.sizes[i]});
    at.push_back(Expr::axis(i));
  }
  statement.stores.push_back({value, at, composit::cast(Expr(0), type.dtype)});
  return statement;
}

bool is_elementwise(const Statement& statement) {
  return statement.init.empty() && !statement.domain.defined() && statement.stores.size() == 1 &&
         !statement.stores[0].add && parallel_axes(statement) == statement.axes.size() &&
         axes_of_dimensions(statement.stores[0].at)
                 .value_or(AxisIds(statement.axes.size() + 1))
                 .size() == statement.axes.size();
}

std::optional<AxisIds> axes_of_dimensions(const std::vector<Expr>& at) {
  AxisIds axes;
  for (const Expr& index : at) {
    if (index.kind() != ExprKind::axis) return std::nullopt;
    if (contains(axes, axis_of(index))) return std::nullopt;
    axes.push_back(axis_of(index));
  }
  return axes;
}

int64_t iterations(const Statement& statement) {
  int64_t count = 1;
  for (const Axis& axis : statement.axes) count *= axis.extent;
  return count;
}
int64_t iterations(const Statement& statement, const AxisIds& axes) {
  int64_t count = 1;
  for (const AxisId axis : axes) count *= statement.axes[axis].extent;
  return count;
}

Cost cost_of(const Expr& value) {
  Cost cost;
  std::vector<Expr> open = {value};
  composit::FlatMap<composit::Hash, bool> seen;
  while (!open.empty()) {
    const Expr part = open.back();
    open.pop_back();
    if (part.kind() != ExprKind::call || !seen.insert(part.hash(), true)) continue;
    if (!part.is(Function::cast)) ++cost.operations;
    const bool cheap = !composit::info_of(part.function()).op.empty() ||
                       part.is(Function::select) || part.is(Function::cast) ||
                       part.is(Function::min) || part.is(Function::max) || part.is(Function::abs);
    cost.expensive |= !cheap || part.is(Function::div);
    open.insert(open.end(), part.arguments().begin(), part.arguments().end());
  }
  return cost;
}

namespace {

// Applies `change` to the defined expressions of the statement; it returns as many as it takes.
template <class Change>
Statement with_changed(Statement statement, const Change& change) {
  std::vector<Expr> all = expressions(statement), defined;
  for (const Expr& x : all)
    if (x.defined()) defined.push_back(x);
  const std::vector<Expr> changed = change(defined);
  size_t next = 0;
  for (Expr& x : all)
    if (x.defined()) x = changed[next++];
  return with_expressions(std::move(statement), all);
}

}  // namespace

Statement replaced(Statement statement, const composit::ReplaceExpr& change) {
  return with_changed(std::move(statement), [&](const std::vector<Expr>& defined) {
    return composit::replace(defined, change);
  });
}

Statement with_simple_indices(Statement statement) {
  composit::IndexAnalysis analysis(statement.axes);
  return with_changed(std::move(statement),
                      [&](const std::vector<Expr>& defined) { return analysis.simplify(defined); });
}

namespace {

// Makes an argmax or argmin whose index is not stored a max or min with one accumulator.
Statement without_unused_place(Statement statement) {
  if (statement.init.size() != 2 || statement.stores.size() != 1) return statement;
  if (composit::depends_on(statement.stores[0].value, ExprKind::accumulator, 1)) return statement;
  const composit::DType dtype = statement.body[0].dtype();
  if (dtype != composit::DType::float32 && dtype != composit::DType::float64 &&
      !composit::is_half(dtype))
    return statement;
  std::vector<Expr> left, right;
  for (size_t i = 0; i < 2; ++i) {
    left.push_back(Expr::left(i, statement.body[i].dtype()));
    right.push_back(Expr::right(i, statement.body[i].dtype()));
  }
  const auto is = [&](const std::vector<Expr>& combine) {
    return combine[0].same(statement.combine[0]) && combine[1].same(statement.combine[1]);
  };
  const bool largest = is(composit::first_largest(left, right));
  if (!largest && !is(composit::first_smallest(left, right))) return statement;
  const double none = largest ? -INFINITY : INFINITY;
  statement.init = {Expr::literal(none, dtype)};
  statement.combine = {largest ? composit::max(left[0], right[0])
                               : composit::min(left[0], right[0])};
  statement.body.pop_back();
  return statement;
}

}  // namespace

Statement without_unused_accumulators(Statement statement) {
  statement = without_unused_place(std::move(statement));
  std::vector<bool> needed(statement.init.size(), false);
  std::vector<Expr> open;
  for (const composit::Store& store : statement.stores) open.push_back(store.value);
  while (!open.empty()) {
    const Expr x = open.back();
    open.pop_back();
    for (const Expr& part : composit::parts_of({x})) {
      const bool counted = part.kind() == ExprKind::accumulator || part.kind() == ExprKind::left ||
                           part.kind() == ExprKind::right;
      if (!counted || needed[part.number()]) continue;
      needed[part.number()] = true;
      open.push_back(statement.combine[part.number()]);
    }
  }
  std::vector<size_t> number(needed.size());
  Statement left = statement;
  left.init = left.body = left.combine = {};
  for (size_t i = 0; i < needed.size(); ++i) {
    number[i] = left.init.size();
    if (!needed[i]) continue;
    left.init.push_back(statement.init[i]);
    left.body.push_back(statement.body[i]);
    left.combine.push_back(statement.combine[i]);
  }
  return replaced(std::move(left), [&](const Expr& part) {
    if (part.kind() == ExprKind::accumulator)
      return Expr::accumulator(number[part.number()], part.dtype());
    if (part.kind() == ExprKind::left) return Expr::left(number[part.number()], part.dtype());
    if (part.kind() == ExprKind::right) return Expr::right(number[part.number()], part.dtype());
    return Expr();
  });
}

Statement simplified(Statement statement) {
  composit::IndexAnalysis analysis(statement.axes);
  const Expr domain = composit::simplify_domain(statement.domain, analysis);
  statement.domain = Expr();
  statement = with_changed(std::move(statement), [&](const std::vector<Expr>& defined) {
    return analysis.simplify(defined);
  });
  statement.domain = domain;
  std::vector<Axis> axes;
  std::vector<size_t> number;
  for (const Axis& axis : statement.axes) {
    number.push_back(axes.size());
    if (axis.extent != 1) axes.push_back(axis);
  }
  if (axes.size() == statement.axes.size()) return statement;
  const std::vector<Axis> old = std::exchange(statement.axes, axes);
  return replaced(std::move(statement), [&](const Expr& part) {
    if (part.kind() != ExprKind::axis) return Expr();
    return old[part.number()].extent == 1 ? Expr::literal(int64_t{0}, composit::DType::int64)
                                          : Expr::axis(number[part.number()]);
  });
}

}  // namespace flashlight::loops
