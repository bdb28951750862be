#include "flashlight/mosaic/layout.h"

#include <numeric>

#include "flashlight/cpp/statement.h"

namespace flashlight::mosaic {

using composit::Expr;
using composit::Type;

Layout row_major(const Type& type) {
  Layout layout = {{}, std::vector<int64_t>(type.rank()), std::vector<int64_t>(type.rank())};
  layout.order.resize(type.rank());
  std::iota(layout.order.begin(), layout.order.end(), size_t{0});
  return layout;
}

bool has_border(const Layout& layout) {
  for (size_t i = 0; i < layout.order.size(); ++i)
    if (layout.before[i] != 0 || layout.after[i] != 0) return true;
  return false;
}

Type physical_type(const Type& type, const Layout& layout) {
  composit::Dims sizes;
  for (const size_t dimension : layout.order)
    sizes.push_back(type.sizes[dimension].value() + layout.before[dimension] +
                    layout.after[dimension] +
                    (dimension == layout.order.back() ? layout.apart : 0));
  return composit::tensor_type(type.dtype, sizes);
}

namespace {

// Whether `high` and `low` are x / size and x % size.
bool are_digits(const Expr& high, const Expr& low, int64_t size) {
  return high.is(composit::Function::floor_divide) && low.is(composit::Function::remainder) &&
         high[0].same(low[0]) && composit::is_literal(high[1], static_cast<double>(size)) &&
         composit::is_literal(low[1], static_cast<double>(size));
}

}  // namespace

void lay_out(cpp::Routine& routine, const std::map<size_t, Layout>& layouts) {
  const auto moved = [&](size_t value, const std::vector<Expr>& at) {
    const auto layout = layouts.find(value);
    if (layout == layouts.end()) return at;
    std::vector<Expr> indices;
    for (const size_t dimension : layout->second.order) {
      const int64_t before = layout->second.before[dimension];
      indices.push_back(before == 0 ? at[dimension] : at[dimension] + Expr(before));
    }
    return indices;
  };
  for (cpp::Step& step : routine.steps) {
    auto* nest = std::get_if<cpp::Nest>(&step);
    if (nest == nullptr) continue;
    for (composit::Store& store : nest->statement.stores) store.at = moved(store.result, store.at);
    nest->statement = cpp::replaced(std::move(nest->statement), [&](const Expr& part) {
      if (part.kind() != composit::ExprKind::load || !layouts.contains(part.number()))
        return Expr();
      return Expr::load(part.number(), part.dtype(), moved(part.number(), part.arguments()));
    });
    nest->statement = cpp::simplified(std::move(nest->statement));
  }
  for (const auto& [value, layout] : layouts)
    routine.values[value].type = physical_type(routine.values[value].type, layout);
}

Expr flat_index(const std::vector<Expr>& at, const Type& type) {
  Expr index = Expr::literal(int64_t{0}, composit::DType::int64);
  for (size_t i = 0; i < at.size(); ++i) {
    const int64_t size = type.sizes[i].value();
    if (i + 1 < at.size() && are_digits(at[i], at[i + 1], type.sizes[i + 1].value())) {
      index = index * Expr(size * type.sizes[i + 1].value()) + at[i][0];
      ++i;
    } else {
      index = index * Expr(size) + at[i];
    }
  }
  return index;
}

}  // namespace flashlight::mosaic
