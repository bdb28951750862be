#include "composit/op/fold.h"

#include <algorithm>
#include <array>
#include <cmath>

#include "composit/ir/error.h"
#include "composit/op/compute_type.h"
#include "composit/op/promotion.h"
#include "composit/op/scalar_value.h"

namespace composit {
namespace {

// A value of any compute type.
struct alignas(std::complex<double>) Cell {
  std::array<std::byte, sizeof(std::complex<double>)> bytes;
};

template <class T>
Scalar::Value to_value(T x) {
  if constexpr (std::is_same_v<T, bool>)
    return x;
  else if constexpr (std::is_integral_v<T>)
    return static_cast<int64_t>(x);
  else if constexpr (kIsComplex<T>)
    return std::complex<double>(x);
  else
    return static_cast<double>(x);
}

Cell cell_of(const Scalar::Value& value, DType dtype) {
  Cell cell;
  with_compute(dtype, [&]<class T>(std::type_identity<T>) {
    const T x = std::visit([](auto from) { return convert<T>(from); }, value);
    std::copy_n(reinterpret_cast<const std::byte*>(&x), sizeof(T), cell.bytes.begin());
  });
  return cell;
}

Scalar::Value value_of(const Cell& cell, DType dtype) {
  return with_compute(dtype, [&]<class T>(std::type_identity<T>) {
    T x;
    std::copy_n(cell.bytes.begin(), sizeof(T), reinterpret_cast<std::byte*>(&x));
    return to_value(x);
  });
}

bool is_literal_kind(const Expr& x) { return x.kind() == ExprKind::literal; }
bool is_truth(const Expr& x, bool truth) {
  return is_literal_kind(x) && std::get<bool>(x.value()) == truth;
}
bool is_integer(DType dtype) { return category(dtype) == DTypeCategory::integer; }

Expr of_literals(Function function, const std::vector<Expr>& arguments, DType result) {
  const DType operand = arguments[0].dtype();
  // Left to be evaluated, since it may stand in a branch that is never taken.
  if (divides_integers(function, operand) && is_literal(cast(arguments[1], DType::int64), 0))
    return {};
  std::array<Cell, 2> cells;
  std::array<const void*, 2> pointers = {&cells[0], &cells[1]};
  for (size_t i = 0; i < arguments.size(); ++i) cells[i] = cell_of(arguments[i].value(), operand);
  Cell value;
  apply(function, operand, 1, pointers.data(), &value);
  return Expr::literal(value_of(value, result), result);
}

// True if `neutral` on that side of the function leaves the other operand, or gives `neutral`
// again. A float x + 0 is no such case: it turns -0 into 0; nor a complex x * 1, which turns an
// infinity into NaN.
struct Neutral {
  Function function;
  size_t side;
  int64_t literal;
  bool floats;         // holds for floats, too
  int64_t gives = -1;  // a literal instead of the other operand, where it is not negative
};
constexpr Neutral kNeutral[] = {
    {Function::add, 0, 0, false},          {Function::add, 1, 0, false},
    {Function::sub, 1, 0, true},           {Function::mul, 0, 1, true},
    {Function::mul, 1, 1, true},           {Function::mul, 0, 0, false, 0},
    {Function::mul, 1, 0, false, 0},       {Function::div, 1, 1, true},
    {Function::floor_divide, 1, 1, false}, {Function::trunc_divide, 1, 1, false},
    {Function::remainder, 1, 1, false, 0}, {Function::fmod, 1, 1, false, 0}};

// x - 0 leaves x; x - -0 is x + 0.
bool is_exactly(const Expr& x, int64_t value) {
  if (!is_literal(x, static_cast<double>(value))) return false;
  const auto* number = std::get_if<double>(&x.value());
  return number == nullptr || !std::signbit(*number);
}

Expr with_neutral(Function function, const std::vector<Expr>& arguments) {
  const DType dtype = arguments[0].dtype();
  if (!is_integer(dtype) && !is_floating_point(dtype)) return {};
  for (const Neutral& row : kNeutral) {
    if (row.function != function || !(row.floats || is_integer(dtype))) continue;
    if (!is_exactly(arguments[row.side], row.literal)) continue;
    return row.gives < 0 ? arguments[1 - row.side] : Expr::literal(row.gives, dtype);
  }
  return {};
}

// (x + c) + d -> x + (c + d), where c may stand on either side.
Expr regrouped(const std::vector<Expr>& arguments) {
  if (!is_integer(arguments[0].dtype())) return {};
  for (size_t outer = 0; outer < 2; ++outer) {
    const Expr &number = arguments[outer], &sum = arguments[1 - outer];
    if (!is_literal_kind(number) || !sum.is(Function::add)) continue;
    for (size_t inner = 0; inner < 2; ++inner)
      if (is_literal_kind(sum[inner])) return sum[1 - inner] + (sum[inner] + number);
  }
  return {};
}

Expr of_select(const std::vector<Expr>& arguments) {
  if (is_literal_kind(arguments[0])) return arguments[is_truth(arguments[0], true) ? 1 : 2];
  return arguments[1].same(arguments[2]) ? arguments[1] : Expr();
}

// `deciding` on either side is the result, and its opposite leaves the other side.
Expr of_logical(const std::vector<Expr>& arguments, bool deciding) {
  for (size_t side = 0; side < 2; ++side) {
    if (is_truth(arguments[side], deciding)) return arguments[side];
    if (is_truth(arguments[side], !deciding)) return arguments[1 - side];
  }
  return {};
}

// Where y is `x < c ? c : x`, y <= c is x <= c, and y > c is x > c, NaN included. So are gradients
// behind a relu; GCC 12 vectorizes the longer form for AVX2 wrongly (-O3: the mask is lost).
Expr of_clamped(Function function, const std::vector<Expr>& arguments) {
  const Expr &y = arguments[0], &c = arguments[1];
  const bool asks = function == Function::le || function == Function::gt;
  if (!asks || !is_literal_kind(c) || !y.is(Function::select) || !y[0].is(Function::lt)) return {};
  const bool is_clamp = y[1].same(c) && y[0][1].same(c) && y[0][0].same(y[2]);
  return is_clamp ? Expr::call(function, {y[2], c}) : Expr();
}

// Folds a comparison of an expression with itself; a float may be NaN.
Expr of_comparison(Function function, const std::vector<Expr>& arguments) {
  if (Expr plain = of_clamped(function, arguments); plain.defined()) return plain;
  if (category(arguments[0].dtype()) > DTypeCategory::integer) return {};
  if (!arguments[0].same(arguments[1])) return {};
  const bool holds =
      function == Function::eq || function == Function::le || function == Function::ge;
  return Expr::literal(holds, DType::bool_);
}

Expr simplified(Function function, const std::vector<Expr>& arguments) {
  switch (function) {
    case Function::select:
      return of_select(arguments);
    case Function::logical_and:
    case Function::logical_or:
      return of_logical(arguments, function == Function::logical_or);
    case Function::logical_not:
    case Function::neg:
      return arguments[0].is(function) ? arguments[0][0] : Expr();
    case Function::lt:
    case Function::le:
    case Function::gt:
    case Function::ge:
    case Function::eq:
    case Function::ne:
      return of_comparison(function, arguments);
    case Function::add:
      if (Expr sum = regrouped(arguments); sum.defined()) return sum;
      [[fallthrough]];
    default:
      return arguments.size() == 2 ? with_neutral(function, arguments) : Expr();
  }
}

}  // namespace

Scalar::Value converted(const Scalar::Value& value, DType dtype) {
  return with_storage(dtype, [&]<class S>(std::type_identity<S>) {
    return std::visit([](auto x) { return to_value(to_compute(convert<S>(x))); }, value);
  });
}

Expr fold(Function function, const std::vector<Expr>& arguments, DType result) {
  const bool constant = std::all_of(arguments.begin(), arguments.end(), is_literal_kind);
  if (!constant || function == Function::select) return simplified(function, arguments);
  return of_literals(function, arguments, result);
}

}  // namespace composit
