#include "flashlight/mosaic/sides.h"

#include "flashlight/loops/statement.h"
#include "flashlight/mosaic/byte_products.h"
#include "flashlight/mosaic/depthwise.h"
#include "flashlight/mosaic/product.h"

namespace flashlight::mosaic {
namespace {

using composit::AxisKind;
using composit::Expr;
using composit::ExprKind;
using loops::Statement;

// A matrix with fewer columns or elements is read as fast by plain loops.
constexpr int64_t kLeastMatrixColumns = 8, kLeastMatrix = 4096;

}  // namespace

std::optional<loops::Contraction> vector_times_matrix_of(const Statement& statement) {
  if (!loops::is_sum(statement, /*halves=*/true) || statement.domain.defined() ||
      !statement.body[0].is(composit::Function::mul))
    return std::nullopt;
  loops::Contraction sides;
  sides.left = statement.body[0][0], sides.right = statement.body[0][1];
  if (sides.left.kind() != ExprKind::load || sides.right.kind() != ExprKind::load)
    return std::nullopt;
  AxisIds vector = loops::axes_in(sides.left), matrix = loops::axes_in(sides.right);
  if (vector.size() > matrix.size()) {
    std::swap(vector, matrix);
    std::swap(sides.left, sides.right);
  }
  for (const AxisId axis : loops::axes_of(statement)) {
    const bool is_term = statement.axes[axis].kind == AxisKind::reduction;
    if (loops::contains(vector, axis) != is_term || !loops::contains(matrix, axis))
      return std::nullopt;
    (is_term ? sides.terms : sides.columns).push_back(axis);
  }
  const int64_t columns = loops::iterations(statement, sides.columns);
  if (columns < kLeastMatrixColumns || loops::iterations(statement) < kLeastMatrix)
    return std::nullopt;
  return sides;
}

bool has_one_row(const loops::Contraction& sides) {
  return sides.rows.empty() && !is_depthwise(sides);
}

std::optional<loops::Contraction> sides_of(const Statement& statement) {
  auto sides = loops::contraction_of(statement, kLeastSide, /*halves=*/true);
  if (!sides) sides = depthwise_of(statement);
  if (!sides) sides = vector_times_matrix_of(statement);
  return sides ? sides : byte_sides_of(statement);
}

std::optional<loops::Contraction> sides_of(const loops::Nest& nest) {
  return loops::is_recognised(nest) ? nest.recognised->contraction : sides_of(nest.statement);
}

loops::Program with_sides(loops::Program program) {
  return loops::with_products(std::move(program), sides_of);
}

}  // namespace flashlight::mosaic
