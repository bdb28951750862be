#include "flashlight/mosaic/byte_products.h"

#include "flashlight/loops/statement.h"
#include "flashlight/mosaic/depthwise.h"
#include "flashlight/mosaic/sides.h"

namespace flashlight::mosaic {
namespace {

using composit::DType;
using composit::Expr;
using composit::ExprKind;
using composit::Function;
using loops::Statement;

// The load inside of int32(x[...]).
std::optional<Expr> widened_load(const Expr& x, DType dtype) {
  const bool is_one = x.is(Function::cast) && x.dtype() == DType::int32 &&
                      x[0].kind() == ExprKind::load && x[0].dtype() == dtype;
  return is_one ? std::optional(x[0]) : std::nullopt;
}

std::optional<ByteProduct> with_rows(const Expr& rows, const Expr& columns) {
  const auto right = widened_load(columns, DType::int8);
  const bool moved = rows.is(Function::sub) && rows[1].kind() == ExprKind::literal;
  const auto left = widened_load(moved ? rows[0] : rows, DType::uint8);
  if (!left || !right) return std::nullopt;
  ByteProduct product = {*left, *right};
  if (moved) product.zero = std::get<int64_t>(rows[1].value());
  return product.zero >= 0 && product.zero <= 255 ? std::optional(product) : std::nullopt;
}

Expr as_float(const Expr& load) {
  return Expr::load(load.number(), DType::float32, load.arguments());
}

// The same sum of floats, which the rules for products know.
Statement with_floats(Statement statement, const ByteProduct& product) {
  statement.init = {Expr::literal(0.0, DType::float32)};
  statement.body = {as_float(product.rows) * as_float(product.columns)};
  statement.combine = {Expr::left(0, DType::float32) + Expr::right(0, DType::float32)};
  for (composit::Store& store : statement.stores)
    store.value = Expr::accumulator(0, DType::float32);
  return statement;
}

}  // namespace

std::optional<ByteProduct> byte_product_of(const Statement& statement) {
  if (loops::fold_function(statement) != Function::add ||
      !composit::is_literal(statement.init[0], 0) || statement.body[0].dtype() != DType::int32 ||
      !statement.body[0].is(Function::mul))
    return std::nullopt;
  const Expr& body = statement.body[0];
  const auto product = with_rows(body[0], body[1]);
  return product ? product : with_rows(body[1], body[0]);
}

int64_t padding_of(const Statement& statement) {
  const auto product = byte_product_of(statement);
  return product ? product->zero : 0;
}

Expr body_of(const ByteProduct& product) {
  Expr rows = composit::cast(product.rows, DType::int32);
  if (product.zero != 0) rows = rows - Expr::literal(product.zero, DType::int32);
  return rows * composit::cast(product.columns, DType::int32);
}

Expr with_low_byte(const Expr& x) {
  const auto is_whole = [](const Expr& y) {
    return !composit::is_floating_point(y.dtype()) && !composit::is_complex(y.dtype()) &&
           y.dtype() != DType::bool_ && composit::item_size(y.dtype()) <= 4;
  };
  if (is_whole(x) && x.is(Function::cast)) {
    if (is_whole(x[0])) return with_low_byte(x[0]);
    // What floats become is the low part of an int32.
    if (composit::is_floating_point(x[0].dtype()) && x.dtype() != DType::uint32)
      return composit::cast(x[0], DType::int32);
  }
  const bool keeps = x.is(Function::add) || x.is(Function::sub) || x.is(Function::mul) ||
                     x.is(Function::bitwise_and) || x.is(Function::bitwise_or) ||
                     x.is(Function::bitwise_xor);
  if (is_whole(x) && keeps)
    return Expr::call(x.function(), {with_low_byte(x[0]), with_low_byte(x[1])});
  return composit::cast(x, DType::int32);
}

std::optional<loops::Contraction> byte_sides_of(const Statement& statement) {
  const auto product = byte_product_of(statement);
  if (!product) return std::nullopt;
  auto sides = sides_of(with_floats(statement, *product));
  if (!sides || is_depthwise(*sides)) return std::nullopt;
  if (!sides->left.same(as_float(product->rows))) {
    // A vector times a matrix has no rows, and no other side to be one.
    if (sides->rows.empty() || !sides->left.same(as_float(product->columns))) return std::nullopt;
    std::swap(sides->left, sides->right);
    std::swap(sides->left_domain, sides->right_domain);
    std::swap(sides->rows, sides->columns);
  }
  if (!sides->right.same(as_float(product->columns))) return std::nullopt;
  sides->left = product->rows;
  sides->right = product->columns;
  return sides;
}

}  // namespace flashlight::mosaic
