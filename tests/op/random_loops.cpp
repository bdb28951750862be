#include "tests/op/random_loops.h"

#include <bit>
#include <cmath>
#include <limits>

#include "composit/ir/error.h"
#include "composit/op/promotion.h"

namespace composit {

namespace {
Expr as_index(const Expr& x) {
  return category(x.dtype()) == DTypeCategory::integer ? x : cast(x, DType::int64);
}
}  // namespace

Loops RandomLoops::next() {
  loops_ = {};
  for (size_t i = below(4); i > 0; --i) loops_.operands.push_back(type());
  for (size_t i = 1 + below(3); i > 0; --i) loops_.results.push_back(type());
  for (size_t i = below(4); i > 0; --i) {
    statement_ = {};
    add_axes(statement_);
    if (chance(0.4)) {
      const auto pool = expressions(axes(AxisKind::reduction), true);
      statement_.domain = of_dtype(any(pool), DType::bool_);
    }
    add_accumulators(statement_);
    add_stores(statement_);
    loops_.statements.push_back(statement_);
  }
  return loops_;
}

DType RandomLoops::dtype() {
  constexpr DType kUsual[] = {DType::float32, DType::float64, DType::int64, DType::bool_};
  if (chance(0.7)) return kUsual[below(std::size(kUsual))];
  for (;;) {
    const auto dtype = static_cast<DType>(below(static_cast<size_t>(DType::count_)));
    if (is_computable(dtype)) return dtype;
  }
}

Type RandomLoops::type() {
  Dims sizes;
  for (size_t i = below(4); i > 0; --i) sizes.emplace_back(static_cast<int64_t>(below(9)));
  return tensor_type(dtype(), sizes);
}

std::string RandomLoops::axis_name() {
  constexpr const char* kNames[] = {"i",       "j",  "k0",    "y0",  "x1",      "s0",
                                    "t",       "",   "for",   "a b", "3d",      "exp",
                                    "float32", "v_", "loops", "nan", "\xc3\xa4"};
  return kNames[below(std::size(kNames))];
}

void RandomLoops::add_axes(Statement& statement) {
  constexpr size_t kMost[] = {3, 2, 3};
  for (size_t kind = 0; kind < 3; ++kind)
    for (size_t i = below(kMost[kind]); i > 0; --i)
      statement.axes.push_back(
          {axis_name(), static_cast<int64_t>(below(20)), static_cast<AxisKind>(kind)});
}

std::vector<Expr> RandomLoops::axes(AxisKind last) const {
  std::vector<Expr> axes;
  for (size_t i = 0; i < statement_.axes.size(); ++i)
    if (statement_.axes[i].kind <= last) axes.push_back(Expr::axis(i));
  return axes;
}

// ---- expressions --------------------------------------------------------------------------------

Scalar::Value RandomLoops::number() {
  constexpr double kSpecial[] = {0.0, -0.0, 1.0, 0.1, 1e300, 5e-324, 16777217.0, 1e15, 1e16};
  constexpr double kInfinity = std::numeric_limits<double>::infinity();
  const auto real = [&]() -> double {
    switch (below(5)) {
      case 0:
        return std::bit_cast<double>(random_());
      case 1:
        return static_cast<double>(static_cast<int64_t>(below(200)) - 100);
      case 2:
        return chance(0.5) ? kInfinity : -std::nan("");
      default:
        return kSpecial[below(std::size(kSpecial))];
    }
  };
  switch (below(4)) {
    case 0:
      return chance(0.5);
    case 1:
      return chance(0.5) ? static_cast<int64_t>(random_()) : static_cast<int64_t>(below(9)) - 4;
    case 2:
      return real();
    default:
      return std::complex<double>(real(), real());
  }
}

Expr RandomLoops::literal() {
  const Scalar::Value value = number();
  if (chance(0.5)) return Expr(Scalar(value));
  const DType to = dtype();
  const bool fits = category(Expr(Scalar(value)).dtype()) <= category(to);
  return fits ? Expr::literal(value, to) : Expr(Scalar(value));
}

// A literal that keeps its value may stay weak.
Expr RandomLoops::of_dtype(Expr x, DType dtype) {
  const bool fits = x.weak() && category(x.dtype()) <= category(dtype);
  return fits && chance(0.5) ? x : cast(std::move(x), dtype);
}

Expr RandomLoops::load(const std::vector<Expr>& pool) {
  const size_t operand = below(loops_.operands.size());
  const Type& type = loops_.operands[operand];
  std::vector<Expr> indices;
  for (size_t i = 0; i < type.rank(); ++i) {
    indices.push_back(as_index(any(pool)));
  }
  return Expr::load(operand, type.dtype, indices);
}

Expr RandomLoops::call(const std::vector<Expr>& pool) {
  const auto function = static_cast<Function>(below(static_cast<size_t>(Function::count_)));
  if (function == Function::cast) return cast(any(pool), dtype());
  std::vector<Expr> arguments;
  for (size_t i = info_of(function).arity; i > 0; --i) arguments.push_back(any(pool));
  try {
    return Expr::call(function, arguments);
  } catch (const UserError&) {  // not for these dtypes
    return cast(arguments[0], dtype());
  }
}

std::vector<Expr> RandomLoops::expressions(std::vector<Expr> leaves, bool loads) {
  auto pool = std::move(leaves);
  for (size_t i = 1 + below(3); i > 0; --i) pool.push_back(literal());
  if (loads && !loops_.operands.empty())
    for (size_t i = below(4); i > 0; --i) pool.push_back(load(pool));
  for (size_t i = below(chance(0.1) ? 200 : 20); i > 0; --i) pool.push_back(call(pool));
  return pool;
}

// ---- accumulators and stores --------------------------------------------------------------------

void RandomLoops::add_accumulators(Statement& statement) {
  std::vector<DType> dtypes;
  std::vector<Expr> sides;
  for (size_t k = below(4); k > 0; --k) {
    const size_t number = dtypes.size();
    dtypes.push_back(dtype());
    sides.push_back(Expr::left(number, dtypes.back()));
    sides.push_back(Expr::right(number, dtypes.back()));
  }
  const auto init = expressions(axes(AxisKind::parallel), true);
  const auto body = expressions(axes(AxisKind::reduction), true);
  const auto combine = expressions(sides, false);
  const bool sums = chance(0.5);
  for (size_t k = 0; k < dtypes.size(); ++k) {
    statement.init.push_back(of_dtype(any(init), dtypes[k]));
    statement.body.push_back(of_dtype(any(body), dtypes[k]));
    statement.combine.push_back(sums ? sides[2 * k] + sides[2 * k + 1]
                                     : cast(any(combine), dtypes[k]));
  }
}

void RandomLoops::add_stores(Statement& statement) {
  const bool reduces = !statement.axes.empty() && statement.axes.back().kind == AxisKind::reduction;
  auto leaves = axes(reduces ? AxisKind::scan : AxisKind::reduction);
  for (size_t k = 0; k < statement.combine.size(); ++k)
    leaves.push_back(Expr::accumulator(k, statement.combine[k].dtype()));
  const auto pool = expressions(leaves, true);
  for (size_t i = below(4); i > 0; --i) {
    Store store;
    store.result = below(loops_.results.size());
    for (size_t axis = 0; axis < loops_.results[store.result].rank(); ++axis)
      store.at.push_back(as_index(any(pool)));
    store.value = any(pool);
    store.add = chance(0.3);
    statement.stores.push_back(store);
  }
}

}  // namespace composit
