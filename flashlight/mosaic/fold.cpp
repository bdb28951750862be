#include "flashlight/mosaic/fold.h"

#include <algorithm>

#include "flashlight/loops/statement.h"

namespace flashlight::mosaic {
namespace {

using composit::Expr;
using composit::ExprKind;
using composit::Function;

// True if `x` depends on the sum elsewhere than in `part`.
bool needs_sum(const Expr& x, const Expr& part) {
  if (x.same(part) || !composit::depends_on(x, ExprKind::accumulator, 0)) return false;
  return x.kind() == ExprKind::accumulator ||
         std::any_of(x.arguments().begin(), x.arguments().end(),
                     [&](const Expr& argument) { return needs_sum(argument, part); });
}

class Folder {
 public:
  Folder(const Product& product, const std::function<bool(ValueId)>& is_known)
      : product_(product), is_known_(is_known) {}

  // The largest part of `x` that is linear in the sum and has a factor.
  std::optional<Folded> run(const Expr& x) {
    if (!depends(x)) return std::nullopt;
    if (auto found = linear(x)) {
      if (!found->factor.defined()) return std::nullopt;
      if (!found->offset.defined()) found->offset = composit::cast(Expr(0.0), x.dtype());
      found->scaled = x;
      return found;
    }
    if (x.kind() != ExprKind::call) return std::nullopt;
    for (const Expr& argument : x.arguments())
      if (auto found = run(argument)) return found;
    return std::nullopt;
  }

 private:
  static bool depends(const Expr& x) { return composit::depends_on(x, ExprKind::accumulator, 0); }
  // True if `x` is a number per column that is known beforehand.
  bool is_of_column(const Expr& x) const {
    for (const Expr& part : composit::parts_of({x})) {
      if (part.kind() == ExprKind::load && !is_known_(value_of(part))) return false;
      if (part.kind() == ExprKind::axis && part.number() != product_.columns) return false;
      if (part.kind() == ExprKind::accumulator) return false;
    }
    return true;
  }

  std::optional<Folded> linear(const Expr& x) const {
    const bool is_float_of_sum = x.is(Function::cast) && x[0].kind() == ExprKind::accumulator &&
                                 composit::is_floating_point(x.dtype());
    if (x.kind() == ExprKind::accumulator || is_float_of_sum) return Folded{};
    if (x.kind() != ExprKind::call || x.arguments().size() != 2) return std::nullopt;
    const bool left = depends(x[0]);
    if (left == depends(x[1])) return std::nullopt;
    const Expr &inner = x[left ? 0 : 1], &other = x[left ? 1 : 0];
    auto found = is_of_column(other) ? linear(inner) : std::nullopt;
    if (!found) return std::nullopt;
    const auto times = [&](Expr& y, const Expr& factor) { y = y.defined() ? y * factor : factor; };
    if (x.is(Function::add)) {
      found->offset = found->offset.defined() ? found->offset + other : other;
    } else if (x.is(Function::sub) && left) {
      found->offset = found->offset.defined() ? found->offset - other : -other;
    } else if (x.is(Function::mul)) {
      times(found->factor, other);
      if (found->offset.defined()) found->offset = found->offset * other;
    } else if (x.is(Function::div) && left) {
      times(found->factor, composit::cast(Expr(1.0), x.dtype()) / other);
      if (found->offset.defined()) found->offset = found->offset / other;
    } else {
      return std::nullopt;
    }
    return found;
  }

  const Product& product_;
  const std::function<bool(ValueId)>& is_known_;
};

}  // namespace

std::optional<Folded> fold(const Product& product,
                           const std::function<bool(ValueId value)>& is_known) {
  if (!product.columns) return std::nullopt;
  const Expr& value = product.statement.stores[0].value;
  auto folded = Folder(product, is_known).run(value);
  // Whoever else reads the sum reads it without the factor.
  return folded && !needs_sum(value, folded->scaled) ? folded : std::nullopt;
}

}  // namespace flashlight::mosaic
