#include "flashlight/mosaic/layout.h"

#include <spdlog/fmt/fmt.h>

#include <algorithm>
#include <numeric>

#include "composit/ir/error.h"
#include "composit/ir/print.h"
#include "flashlight/loops/statement.h"
#include "flashlight/mosaic/split_axes.h"

namespace flashlight::mosaic {

using composit::Expr;
using composit::Type;

Layout row_major(const Type& type) {
  std::vector<size_t> order(type.rank());
  std::iota(order.begin(), order.end(), size_t{0});
  return in_order(type, order);
}

Layout in_order(const Type& type, const std::vector<size_t>& order) {
  return in_schema(type, schema_of_order(order));
}

Layout in_schema(const Type& type, const TileSchema& schema) {
  const std::vector<int64_t> none(type.rank());
  return {Tiling(schema, type.sizes), none, none};
}

namespace {

// By dimension in the model: whether memory has it.
std::vector<bool> kept_dimensions(const loops::Value& value) {
  std::vector<bool> kept(value.type.rank(), true);
  if (value.model_sizes.empty()) return kept;
  kept.clear();
  for (int64_t size : value.model_sizes) kept.push_back(size != 1);
  return kept;
}
const composit::Dims& model_sizes(const loops::Value& value) {
  return value.model_sizes.empty() ? value.type.sizes : value.model_sizes;
}

}  // namespace

Layout in_model_schema(const loops::Value& value, const TileSchema& schema) {
  const std::vector<bool> kept = kept_dimensions(value);
  if (schema.dimensions.size() != kept.size())
    throw composit::UserError(
        fmt::format("expected {} dimensions, those of {}, received '{}'", kept.size(),
                    composit::print(composit::tensor_type(value.type.dtype, model_sizes(value))),
                    print(schema)));
  TileSchema now = {"", {}};
  std::vector<size_t> number;
  for (size_t i = 0; i < kept.size(); ++i) {
    number.push_back(now.dimensions.size());
    // Letters say nothing: layouts are compared.
    if (kept[i]) now.dimensions += static_cast<char>('A' + now.dimensions.size());
  }
  for (const auto& level : schema.levels) {
    now.levels.emplace_back();
    for (const TileLoop& loop : level)
      if (kept[loop.dimension]) now.levels.back().push_back({number[loop.dimension], loop.extent});
    if (now.levels.back().empty()) now.levels.pop_back();
  }
  return in_schema(value.type, now);
}

TileSchema handed_on(const Layout& layout, const std::vector<Expr>& from,
                     const std::vector<Expr>& to) {
  std::vector<TileLoop> loops;
  std::vector<bool> seen(to.size(), false);
  for (const Tiling::Loop& loop : layout.tiling.loops()) {
    const auto other = std::find_if(to.begin(), to.end(), [&](const Expr& index) {
      return index.kind() == composit::ExprKind::axis && index.same(from[loop.dimension]);
    });
    if (other == to.end()) continue;
    const auto dimension = static_cast<size_t>(other - to.begin());
    loops.push_back({dimension, seen[dimension] ? loop.extent : 0});
    seen[dimension] = true;
  }
  for (size_t i = to.size(); i-- > 0;)
    if (!seen[i]) loops.insert(loops.begin(), {i, 0});
  std::vector<size_t> order(to.size());
  std::iota(order.begin(), order.end(), size_t{0});
  TileSchema schema = schema_of_order(order);
  schema.levels = {loops};
  return schema;
}

bool has_border(const Layout& layout) {
  const auto is_some = [](int64_t zeros) { return zeros != 0; };
  return std::any_of(layout.before.begin(), layout.before.end(), is_some) ||
         std::any_of(layout.after.begin(), layout.after.end(), is_some);
}

bool add_border_of(const Layout& wanted, Layout& layout) {
  if (has_border(layout) && layout.fill != wanted.fill) return false;
  layout.fill = wanted.fill;
  for (size_t i = 0; i < layout.before.size(); ++i) {
    layout.before[i] = std::max(layout.before[i], wanted.before[i]);
    layout.after[i] = std::max(layout.after[i], wanted.after[i]);
  }
  return true;
}

std::string fill_name(const Layout& layout) {
  return layout.fill == 0 ? "zeros" : fmt::format("{}s", layout.fill);
}

Type physical_type(const Type& type, const Layout& layout) {
  composit::Dims sizes;
  for (const Tiling::Loop& loop : layout.tiling.loops())
    sizes.push_back(loop.extent + layout.before[loop.dimension] + layout.after[loop.dimension]);
  if (!sizes.empty()) sizes.back() = sizes.back() + layout.apart;
  return composit::tensor_type(type.dtype, sizes);
}

std::string print(const Layout& layout, const std::string& dimensions) {
  TileSchema schema = layout.tiling.schema();
  schema.dimensions = dimensions;
  std::string text = print(schema);
  if (has_border(layout))
    text += fmt::format(", {} before {}, after {}", fill_name(layout),
                        fmt::join(layout.before, " "), fmt::join(layout.after, " "));
  return layout.apart == 0 ? text : fmt::format("{}, {} apart", text, layout.apart);
}

std::string letters_of(const loops::Value& value) {
  const std::vector<bool> kept = kept_dimensions(value);
  std::string letters = kept.size() == 4 ? "NCHW" : kept.size() == 5 ? "NCDHW" : "", left;
  for (size_t i = letters.size(); i < kept.size(); ++i) letters += static_cast<char>('A' + i % 26);
  for (size_t i = 0; i < kept.size(); ++i)
    if (kept[i]) left += letters[i];
  return left;
}

namespace {

// True if `high` and `low` are x / size and x % size.
bool are_digits(const Expr& high, const Expr& low, int64_t size) {
  return high.is(composit::Function::floor_divide) && low.is(composit::Function::remainder) &&
         high[0].same(low[0]) && composit::is_literal(high[1], static_cast<double>(size)) &&
         composit::is_literal(low[1], static_cast<double>(size));
}

// An index per loop of memory.
std::vector<Expr> indices_in(const Layout& layout, const std::vector<Expr>& at) {
  std::vector<Expr> indices;
  std::vector<bool> seen(at.size(), false);
  for (const Tiling::Loop& loop : layout.tiling.loops()) {
    const int64_t before = layout.before[loop.dimension];
    Expr index = before == 0 ? at[loop.dimension] : at[loop.dimension] + Expr(before);
    if (loop.step > 1) index = composit::floor_divide(index, Expr(loop.step));
    if (seen[loop.dimension]) index = composit::remainder(index, Expr(loop.extent));
    seen[loop.dimension] = true;
    indices.push_back(index);
  }
  return indices;
}

template <class Wanted>
bool touches(const loops::Step& step, const Wanted& wanted) {
  const ValueIds read = loops::reads(step), written = loops::writes(step);
  return std::any_of(read.begin(), read.end(), wanted) ||
         std::any_of(written.begin(), written.end(), wanted);
}

}  // namespace

loops::Routine laid_out(loops::Routine routine, const std::map<ValueId, Layout>& layouts) {
  const auto moved = [&](ValueId value, const std::vector<Expr>& at) {
    const auto layout = layouts.find(value);
    return layout == layouts.end() ? at : indices_in(layout->second, at);
  };
  const auto is_blocked = [&](ValueId value) {
    const auto layout = layouts.find(value);
    return layout != layouts.end() && layout->second.tiling.is_blocked();
  };
  for (loops::Step& step : routine.steps) {
    auto* nest = std::get_if<loops::Nest>(&step);
    if (nest == nullptr) continue;
    for (composit::Store& store : nest->statement.stores)
      store.at = moved(value_of(store), store.at);
    nest->statement = loops::replaced(std::move(nest->statement), [&](const Expr& part) {
      if (part.kind() != composit::ExprKind::load || !layouts.contains(value_of(part)))
        return Expr();
      return Expr::load(part.number(), part.dtype(), moved(value_of(part), part.arguments()));
    });
    nest->statement = loops::simplified(std::move(nest->statement));
    if (touches(step, is_blocked)) nest->statement = with_block_axes(std::move(nest->statement));
  }
  for (const auto& [value, layout] : layouts)
    routine.values[value].type = physical_type(routine.values[value].type, layout);
  return routine;
}

Expr flat_index(const std::vector<Expr>& at, const Type& type) {
  Expr index = Expr::literal(int64_t{0}, composit::DType::int64);
  for (size_t i = 0; i < at.size(); ++i) {
    const int64_t size = type.sizes[i];
    if (i + 1 < at.size() && are_digits(at[i], at[i + 1], type.sizes[i + 1])) {
      index = index * Expr(size * type.sizes[i + 1]) + at[i][0];
      ++i;
    } else {
      index = index * Expr(size) + at[i];
    }
  }
  return index;
}

}  // namespace flashlight::mosaic
