#include "flashlight/mosaic/layout_cost.h"

#include <algorithm>
#include <cstdlib>

#include "flashlight/loops/statement.h"
#include "flashlight/mosaic/depthwise.h"
#include "flashlight/mosaic/product.h"
#include "flashlight/mosaic/sides.h"

namespace flashlight::mosaic {
namespace {

using composit::Affine;
using composit::Expr;
using composit::ExprKind;

// Among the axes that an access depends on, the one whose rounds lie closest together in memory.
std::optional<AxisId> innermost(const Affine& at) {
  std::optional<AxisId> found;
  for (const AxisId axis : loops::axes_in(at))
    if (!found || std::abs(at.coefficients[axis]) < std::abs(at.coefficients[*found])) found = axis;
  return found;
}

// True if memory is in the order of these axes.
bool is_along(const Affine& at, const AxisIds& axes) {
  const auto axis = innermost(at);
  return !axis || axes.empty() || loops::contains(axes, *axis);
}

// Terms but those of windows, which go where rows go; all where there are no others.
AxisIds terms_of(const loops::Contraction& product) {
  AxisIds terms = product.terms;
  for (const Expr& index : product.left.arguments()) {
    const AxisIds axes = loops::axes_in(index);
    const bool has_row = std::any_of(axes.begin(), axes.end(), [&](AxisId axis) {
      return !loops::contains(product.terms, axis);
    });
    if (has_row) std::erase_if(terms, [&](AxisId term) { return loops::contains(axes, term); });
  }
  return terms.empty() ? product.terms : terms;
}

}  // namespace

NestCost::NestCost(const loops::Routine& routine, const loops::Nest& nest,
                   const std::function<bool(ValueId value)>& is_frozen)
    : axes_(nest.statement.axes) {
  const loops::Statement& statement = nest.statement;
  composit::IndexAnalysis analysis(statement.axes);
  const auto access = [&](ValueId value, const std::vector<Expr>& at) -> std::optional<Access> {
    Access one = {value, routine.values[value].type.sizes, {}};
    for (const Expr& index : at) {
      const auto affine = analysis.affine(index);
      if (!affine) return std::nullopt;
      one.at.push_back(*affine);
    }
    return one;
  };
  const composit::Store& store = statement.stores[0];
  store_ = access(value_of(store), store.at);
  std::vector<Expr> loads = loops::expressions(statement);
  auto product = sides_of(nest);
  if (product && product->left.kind() == ExprKind::load &&
      product->right.kind() == ExprKind::load) {
    if (!is_depthwise(*product)) choose_rows(*product, store.at, is_frozen);
    rows_ = access(value_of(product->left), product->left.arguments());
    terms_ = is_depthwise(*product) ? product->columns : terms_of(*product);
    columns_ = product->columns;
    loads = {store.value};
  }
  for (const Expr& part : composit::parts_of(loads))
    if (part.kind() == ExprKind::load)
      if (auto one = access(value_of(part), part.arguments())) loads_.push_back(std::move(*one));
}

std::optional<Affine> NestCost::place(const Access& access,
                                      const std::map<ValueId, Layout>& layouts) {
  std::vector<int64_t> strides = composit::contiguous_strides(access.sizes);
  if (const auto layout = layouts.find(access.value); layout != layouts.end()) {
    if (layout->second.tiling.is_blocked()) return std::nullopt;
    for (const Tiling::Loop& loop : layout->second.tiling.loops())
      strides[loop.dimension] = loop.stride;
  }
  if (access.at.empty()) return std::nullopt;
  std::optional<Affine> sum = Affine{std::vector<int64_t>(access.at[0].coefficients.size()), 0};
  for (size_t i = 0; sum && i < strides.size(); ++i) sum = sum->plus(access.at[i], strides[i]);
  return sum;
}

// An element that does not depend on the innermost axis that is written stays in a register or a
// cache line.
bool NestCost::goes_across(const Affine& from, const Affine& to) const {
  const auto read = innermost(from), written = innermost(to);
  return read && written && *read != *written &&
         axes_[*read].kind == composit::AxisKind::parallel && from.coefficients[*written] != 0;
}

ValueIds NestCost::across(const std::map<ValueId, Layout>& layouts) const {
  ValueIds values;
  const auto to = store_ ? place(*store_, layouts) : std::nullopt;
  const auto rows = rows_ ? place(*rows_, layouts) : std::nullopt;
  if (rows && !is_along(*rows, terms_)) values.push_back(rows_->value);
  if (to && !is_along(*to, columns_)) values.push_back(store_->value);
  for (const Access& one : loads_)
    if (const auto from = place(one, layouts);
        from && to && goes_across(*from, *to) && !loops::contains(values, one.value))
      values.push_back(one.value);
  return values;
}

LayoutCost::LayoutCost(const loops::Routine& routine,
                       const std::function<bool(ValueId value)>& is_frozen)
    : routine_(routine), touching_(routine.values.size()) {
  for (const loops::Step& step : routine.steps) {
    const auto* nest = std::get_if<loops::Nest>(&step);
    if (nest == nullptr) continue;
    ValueIds touched = loops::reads(step);
    for (const ValueId value : loops::writes(step)) touched.push_back(value);
    for (const ValueId value : touched)
      if (touching_[value].empty() || touching_[value].back() != nests_.size())
        touching_[value].push_back(nests_.size());
    nests_.emplace_back(routine, *nest, is_frozen);
  }
}

void LayoutCost::add(const NestCost& nest, const std::map<ValueId, Layout>& layouts,
                     Relayouts& sum) const {
  for (const ValueId value : nest.across(layouts)) {
    ++sum.count;
    sum.bytes += routine_.values[value].type.nbytes();
  }
}

ValueIds LayoutCost::across(const std::map<ValueId, Layout>& layouts) const {
  ValueIds values;
  for (const NestCost& nest : nests_)
    for (const ValueId value : nest.across(layouts)) values.push_back(value);
  return values;
}

Relayouts LayoutCost::around(ValueId value, const std::map<ValueId, Layout>& layouts) const {
  Relayouts sum;
  for (const size_t nest : touching_[value]) add(nests_[nest], layouts, sum);
  return sum;
}

}  // namespace flashlight::mosaic
