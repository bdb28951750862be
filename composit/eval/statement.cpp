#include "composit/eval/statement.h"

#include <algorithm>
#include <cstring>
#include <limits>

#include "composit/ir/error.h"
#include "composit/op/compute_type.h"
#include "composit/op/promotion.h"

namespace composit::eval {
namespace {

// True if accumulator k becomes the sum, product, minimum or maximum of its own two values.
bool is_simple(const Expr& combine, size_t k) {
  constexpr Function kSimple[] = {Function::add, Function::mul, Function::min, Function::max};
  if (std::none_of(std::begin(kSimple), std::end(kSimple),
                   [&](Function f) { return combine.is(f); }))
    return false;
  const Expr &x = combine[0], &y = combine[1];
  return x.number() == k && y.number() == k && x.kind() != y.kind() &&
         std::min(x.kind(), y.kind()) == ExprKind::left &&
         std::max(x.kind(), y.kind()) == ExprKind::right;
}

bool all_simple(const Statement& statement) {
  for (size_t k = 0; k < statement.combine.size(); ++k)
    if (!is_simple(statement.combine[k], k)) return false;
  return true;
}

Expr narrow_again(const Expr& part, const std::vector<DType>& wide) {
  if (part.kind() != ExprKind::accumulator || wide[part.number()] == part.dtype()) return {};
  return cast(Expr::accumulator(part.number(), wide[part.number()]), part.dtype());
}

// In bytes, of the first of contiguous points.
size_t offset(const Points& points, const Points& lanes, DType dtype) {
  return static_cast<size_t>(points.first - lanes.first) * compute_size(dtype);
}

}  // namespace

std::shared_ptr<std::byte> zeros(const Type& type) {
  const auto size = static_cast<size_t>(std::max<int64_t>(type.nbytes(), 1));
  auto bytes = std::make_shared<std::vector<std::byte>>(size);
  return {bytes, bytes->data()};
}

DType wide_dtype(DType dtype) {
  if (is_complex(dtype)) return DType::complex128;
  return is_floating_point(dtype) ? DType::float64 : dtype;
}

Statement with_wide_accumulators(Statement statement) {
  const bool simple = all_simple(statement);
  std::vector<DType> dtypes;
  for (size_t k = 0; k < statement.combine.size(); ++k) {
    Expr& combine = statement.combine[k];
    const bool widen = simple && (combine.is(Function::add) || combine.is(Function::mul));
    dtypes.push_back(widen ? wide_dtype(combine.dtype()) : combine.dtype());
    if (widen)
      combine =
          Expr::call(combine.function(), {Expr::left(k, dtypes[k]), Expr::right(k, dtypes[k])});
    statement.init[k] = cast(statement.init[k], dtypes[k]);
    statement.body[k] = cast(statement.body[k], dtypes[k]);
  }
  for (Store& store : statement.stores) {
    const auto narrow = [&](const Expr& part) { return narrow_again(part, dtypes); };
    store.value = replace(store.value, narrow);
    store.at = replace(store.at, narrow);
  }
  return statement;
}

StatementRun::Accumulator::Accumulator(DType dtype) : dtype(dtype) {
  for (auto* block : {&value, &left, &right, &folded}) block->resize(kBlock * compute_size(dtype));
}

StatementRun::StatementRun(const Statement& statement, const std::vector<Array>& operands,
                           std::vector<Result>& results)
    : statement_(statement),
      results_(results),
      environment_{.operands = operands,
                   .axes = std::vector<int64_t>(statement.axes.size()),
                   .accumulators = std::vector<const void*>(statement.combine.size()),
                   .left = std::vector<const void*>(statement.combine.size()),
                   .right = std::vector<const void*>(statement.combine.size())},
      run_axis_(choose_run_axis()),
      domain_(block(run_axis_, statement.domain.defined() ? std::vector{statement.domain}
                                                          : std::vector<Expr>())),
      init_(block(lane_axis(), statement.init)),
      body_(block(run_axis_, statement.body)),
      combine_(block(lane_axis(), statement.combine)),
      stores_(store_block(lane_axis())) {
  for (const Expr& combine : statement.combine) accumulators_.emplace_back(combine.dtype());
}

// --- The run axis -----------------------------------------------------------------------------

size_t StatementRun::choose_run_axis() const {
  size_t best = Program::kNoAxis;
  double least = std::numeric_limits<double>::infinity();
  for (size_t axis = statement_.axes.size(); axis-- > 0;) {
    if (!may_run_along(axis)) continue;
    const double cost = cost_along(axis);
    if (cost >= least) continue;
    least = cost;
    best = axis;
  }
  return best;
}

// Blocks along a reduction axis that is not the last combine points in another order than that of
// the axes. That is legal; but where an order shows, as in "the first maximum", it is kept.
bool StatementRun::may_run_along(size_t axis) const {
  if (statement_.axes[axis].kind != AxisKind::reduction)
    return statement_.axes[axis].kind == AxisKind::parallel;
  return axis + 1 == statement_.axes.size() || all_simple(statement_);
}

double StatementRun::cost_along(size_t axis) const {
  const auto extent = static_cast<double>(statement_.axes[axis].extent);
  const double points = std::clamp(extent, 1.0, static_cast<double>(kBlock));
  if (statement_.combine.empty()) return store_block(axis).program.cost(points);
  return block(axis, statement_.body).program.cost(points);
}

StatementRun::Block StatementRun::block(size_t run_axis, const std::vector<Expr>& values) const {
  Block block{Program(environment_, run_axis, capacity(run_axis)), {}, {}};
  for (const Expr& value : values) block.values.push_back(block.program.add(value));
  block.program.finish();
  return block;
}

size_t StatementRun::capacity(size_t run_axis) const {
  if (run_axis == Program::kNoAxis) return kBlock;  // combine_pairs
  const int64_t extent = statement_.axes[run_axis].extent;
  return static_cast<size_t>(std::clamp<int64_t>(extent, 1, kBlock));
}

StatementRun::Block StatementRun::store_block(size_t run_axis) const {
  Block block{Program(environment_, run_axis, capacity(run_axis)), {}, {}};
  for (const Store& store : statement_.stores) {
    const Result& result = results_.at(store.result);
    const Expr value = cast(cast(store.value, result.dtype), result.type.dtype);
    block.values.push_back(block.program.add(value));
    block.places.push_back(block.program.add_place(store.at, result.type));
  }
  block.program.finish();
  return block;
}

bool StatementRun::in_lanes() const {
  return run_axis_ != Program::kNoAxis && statement_.axes[run_axis_].kind == AxisKind::parallel;
}

size_t StatementRun::lane_axis() const { return in_lanes() ? run_axis_ : Program::kNoAxis; }

bool StatementRun::has(AxisKind kind) const {
  return std::any_of(statement_.axes.begin(), statement_.axes.end(),
                     [&](const Axis& axis) { return axis.kind == kind; });
}

// --- Loops ------------------------------------------------------------------------------------

// All points of the axes of one kind, but for the run axis; the last axis moves fastest.
template <class F>
void StatementRun::for_each_point(AxisKind kind, F f) {
  std::vector<size_t> axes;
  for (size_t axis = 0; axis < statement_.axes.size(); ++axis) {
    if (statement_.axes[axis].kind != kind || axis == run_axis_) continue;
    if (statement_.axes[axis].extent == 0) return;
    environment_.axes[axis] = 0;
    axes.push_back(axis);
  }
  for (;;) {
    f();
    size_t level = axes.size();
    for (; level > 0; --level) {
      int64_t& index = environment_.axes[axes[level - 1]];
      if (++index < statement_.axes[axes[level - 1]].extent) break;
      index = 0;
    }
    if (level == 0) return;
  }
}

template <class F>
void StatementRun::for_each_block(F f) const {
  const int64_t extent = statement_.axes[run_axis_].extent;
  constexpr auto kStep = static_cast<int64_t>(kBlock);
  for (int64_t first = 0; first < extent; first += kStep)
    f(Points{.first = first, .count = static_cast<size_t>(std::min(extent - first, kStep))});
}

void StatementRun::run() {
  for_each_point(AxisKind::parallel, [&] {
    if (in_lanes())
      for_each_block([&](const Points& lanes) { run_lanes(lanes); });
    else
      run_lanes(Points());
  });
}

void StatementRun::run_lanes(const Points& lanes) {
  if (!accumulators_.empty()) start(lanes);
  for_each_point(AxisKind::scan, [&] {
    if (has(AxisKind::reduction)) {
      for_each_point(AxisKind::reduction, [&] { reduce(lanes); });
      return store(lanes, lanes);
    }
    const Points active = inside(lanes);
    if (active.count == 0) return;
    if (!accumulators_.empty()) combine_lanes(active, lanes);
    store(active, lanes);
  });
}

void StatementRun::reduce(const Points& lanes) {
  if (run_axis_ == lane_axis()) {
    const Points active = inside(lanes);
    if (active.count > 0) combine_lanes(active, lanes);
  } else {
    for_each_block([&](const Points& points) {
      const Points active = inside(points);
      if (active.count > 0) combine_block(active);
    });
  }
}

// The points in the domain; valid until the next call.
Points StatementRun::inside(const Points& points) {
  if (domain_.values.empty()) return points;
  domain_.program.run(points);
  const auto* mask = static_cast<const bool*>(domain_.program.values(domain_.values[0]));
  if (!domain_.program.depends_on_run(domain_.values[0]))
    return mask[0] ? points : Points{.count = 0};
  inside_.clear();
  for (size_t i = 0; i < points.count; ++i)
    if (mask[i]) inside_.push_back(points.at(i));
  if (inside_.empty()) return {.count = 0};
  const bool gaps = inside_.back() - inside_.front() >= static_cast<int64_t>(inside_.size());
  return {inside_.front(), inside_.size(), gaps ? inside_.data() : nullptr};
}

// --- Accumulators and stores ------------------------------------------------------------------

const int64_t* StatementRun::positions(const Points& points, const Points& lanes) {
  positions_.resize(points.count);
  for (size_t i = 0; i < points.count; ++i) positions_[i] = points.at(i) - lanes.first;
  return positions_.data();
}

void StatementRun::start(const Points& lanes) {
  init_.program.run(lanes);
  for (size_t k = 0; k < accumulators_.size(); ++k)
    std::memcpy(accumulators_[k].value.data(), init_.program.values(init_.values[k]),
                lanes.count * compute_size(accumulators_[k].dtype));
}

// The values of all accumulators for these lanes.
void StatementRun::select_lanes(const Points& points, const Points& lanes,
                                std::vector<const void*>& values) {
  const int64_t* chosen = points.list != nullptr ? positions(points, lanes) : nullptr;
  for (size_t k = 0; k < accumulators_.size(); ++k) {
    auto& [dtype, value, left, right, folded] = accumulators_[k];
    if (chosen != nullptr) take(dtype, points.count, value.data(), chosen, left.data());
    values[k] = chosen != nullptr ? left.data() : &value[offset(points, lanes, dtype)];
  }
}

// Each lane with what the body gives for it.
void StatementRun::combine_lanes(const Points& active, const Points& lanes) {
  body_.program.run(active);
  for (size_t k = 0; k < accumulators_.size(); ++k)
    environment_.right[k] = body_.program.values(body_.values[k]);
  select_lanes(active, lanes, environment_.left);
  combine_.program.run(active);
  for (size_t k = 0; k < accumulators_.size(); ++k) {
    const void* combined = combine_.program.values(combine_.values[k]);
    auto& [dtype, value, left, right, folded] = accumulators_[k];
    if (active.list != nullptr)
      put(dtype, active.count, combined, positions(active, lanes), value.data());
    else
      std::memcpy(&value[offset(active, lanes, dtype)], combined,
                  active.count * compute_size(dtype));
  }
}

// Combines the body's values at all points in pairs of neighbours until one is left, then combines
// the only lane with that one.
void StatementRun::combine_block(const Points& active) {
  body_.program.run(active);
  for (size_t k = 0; k < accumulators_.size(); ++k)
    environment_.right[k] = body_.program.values(body_.values[k]);
  for (size_t count = active.count; count > 1; count = (count + 1) / 2) combine_pairs(count);
  for (size_t k = 0; k < accumulators_.size(); ++k)
    environment_.left[k] = accumulators_[k].value.data();
  combine_.program.run(Points());
  for (size_t k = 0; k < accumulators_.size(); ++k)
    std::memcpy(accumulators_[k].value.data(), combine_.program.values(combine_.values[k]),
                compute_size(accumulators_[k].dtype));
}

// Replaces the `count` values of environment_.right by half as many; an odd last one is kept.
void StatementRun::combine_pairs(size_t count) {
  const size_t pairs = count / 2;
  for (size_t k = 0; k < accumulators_.size(); ++k) {
    auto& [dtype, value, left, right, folded] = accumulators_[k];
    const size_t size = compute_size(dtype);
    const auto* values = static_cast<const std::byte*>(environment_.right[k]);
    split(dtype, pairs, values, left.data(), right.data());
    if (count % 2 != 0) std::memmove(&folded[pairs * size], values + (count - 1) * size, size);
    environment_.left[k] = left.data();
    environment_.right[k] = right.data();
  }
  combine_.program.run({.first = 0, .count = pairs});
  for (size_t k = 0; k < accumulators_.size(); ++k) {
    auto& [dtype, value, left, right, folded] = accumulators_[k];
    std::memcpy(folded.data(), combine_.program.values(combine_.values[k]),
                pairs * compute_size(dtype));
    environment_.right[k] = folded.data();
  }
}

void StatementRun::store(const Points& points, const Points& lanes) {
  select_lanes(points, lanes, environment_.accumulators);
  stores_.program.run(points);
  for (size_t i = 0; i < statement_.stores.size(); ++i) {
    const Result& result = results_[statement_.stores[i].result];
    const void* values = stores_.program.values(stores_.values[i]);
    write(result.type.dtype, points.count, values, result.data.get(),
          stores_.program.elements(stores_.places[i]), statement_.stores[i].add);
  }
}

}  // namespace composit::eval
