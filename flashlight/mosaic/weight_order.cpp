#include "flashlight/mosaic/weight_order.h"

#include <algorithm>
#include <optional>

#include "flashlight/loops/contraction.h"
#include "flashlight/loops/statement.h"
#include "flashlight/mosaic/depthwise.h"
#include "flashlight/mosaic/product.h"
#include "flashlight/mosaic/sides.h"

namespace flashlight::mosaic {
namespace {

using composit::Expr;
using composit::ExprKind;
using loops::Statement;

// Runs of so many terms are long enough.
constexpr int64_t kFewChannels = 8;

struct Weights {
  Expr load;
  std::vector<size_t> order;  // of dimensions: the channels last
};

std::optional<Weights> weights_of(const loops::Nest& nest,
                                  const std::function<bool(ValueId)>& is_frozen) {
  const auto of = sides_of(nest);
  if (!of || is_depthwise(*of) || of->left.kind() != ExprKind::load ||
      of->right.kind() != ExprKind::load ||
      is_frozen(value_of(of->left)) == is_frozen(value_of(of->right)))
    return std::nullopt;
  const bool is_left = is_frozen(value_of(of->left));
  const Expr &weights = is_left ? of->left : of->right, &image = is_left ? of->right : of->left;
  const auto dimensions = loops::axes_of_dimensions(
      std::vector<Expr>(weights.arguments().begin(), weights.arguments().end()));
  if (!dimensions || !has_window(image, is_left ? of->columns : of->rows, of->terms))
    return std::nullopt;
  // The terms that are an index of the image by themselves.
  AxisIds channels;
  for (const Expr& index : image.arguments())
    if (index.kind() == ExprKind::axis && loops::contains(of->terms, axis_of(index)))
      channels.push_back(axis_of(index));
  if (channels.size() != 1 || nest.statement.axes[channels[0]].extent >= kFewChannels)
    return std::nullopt;
  const auto at = static_cast<size_t>(
      std::find(dimensions->begin(), dimensions->end(), channels[0]) - dimensions->begin());
  if (at + 1 >= dimensions->size()) return std::nullopt;
  Weights result = {weights, {}};
  for (size_t i = 0; i < dimensions->size(); ++i)
    if (i != at) result.order.push_back(i);
  result.order.push_back(at);
  return result;
}

// Writes them in that order to `value`, and lets the product read that.
Statement copy(const Weights& weights, ValueId value, Statement& product, composit::Dims& sizes) {
  Statement copy;
  std::vector<Expr> to, from(weights.order.size()), places;
  for (const size_t dimension : weights.order) {
    const Expr& index = weights.load[dimension];
    const Expr axis = Expr::axis(copy.axes.size());
    copy.axes.push_back({"", product.axes[axis_of(index)].extent});
    sizes.push_back(copy.axes.back().extent);
    to.push_back(axis);
    from[dimension] = axis;
    places.push_back(index);
  }
  const composit::DType dtype = weights.load.dtype();
  copy.stores.push_back({value, to, Expr::load(weights.load.number(), dtype, from)});
  product = loops::replaced(std::move(product), [&](const Expr& part) {
    return part.same(weights.load) ? Expr::load(value, dtype, places) : Expr();
  });
  return loops::simplified(std::move(copy));
}

}  // namespace

loops::Program order_weights(loops::Program program,
                             const std::function<bool(ValueId value)>& is_frozen) {
  loops::Routine& routine = program.functions.back();
  Table<StepId, loops::Step> steps;
  for (loops::Step& step : routine.steps) {
    auto* nest = std::get_if<loops::Nest>(&step);
    const auto weights = nest != nullptr ? weights_of(*nest, is_frozen) : std::nullopt;
    if (weights) {
      const std::string name = routine.values[value_of(weights->load)].name + ".ordered";
      composit::Dims sizes;
      Statement one = copy(*weights, routine.values.next(), nest->statement, sizes);
      steps.push_back(loops::Nest{std::move(one), {name, "", ""}});
      routine.values.push_back(
          {composit::tensor_type(weights->load.dtype(), sizes), loops::Role::temporary, name, {}});
    }
    steps.push_back(std::move(step));
  }
  routine.steps = std::move(steps);
  return program;
}

}  // namespace flashlight::mosaic
