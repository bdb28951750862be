#include "flashlight/mosaic/product.h"

#include <algorithm>

#include "flashlight/loops/statement.h"
#include "flashlight/mosaic/byte_products.h"
#include "flashlight/mosaic/depthwise.h"
#include "flashlight/mosaic/layout.h"
#include "flashlight/mosaic/sides.h"
#include "flashlight/runtime/words.hpp"

namespace flashlight::mosaic {
namespace {

using composit::Affine;
using composit::Expr;
using composit::ExprKind;
using composit::IndexAnalysis;
using loops::Statement;

// Indices of all loads and stores of a flat statement.
std::vector<Expr> indices_of(const Statement& statement) {
  std::vector<Expr> indices;
  for (const Expr& part : composit::parts_of(loops::expressions(statement)))
    if (part.kind() == ExprKind::load) indices.push_back(part[0]);
  for (const composit::Store& store : statement.stores) indices.push_back(store.at[0]);
  return indices;
}

// Axes that occur elsewhere than in indices.
AxisIds axes_outside_indices(Statement statement) {
  for (composit::Store& store : statement.stores) store.at.clear();
  statement = loops::replaced(std::move(statement), [](const Expr& part) {
    return part.kind() == ExprKind::load ? Expr::load(part.number(), part.dtype(), {Expr(0)})
                                         : Expr();
  });
  AxisIds axes;
  for (const Expr& x : loops::expressions(statement))
    for (const AxisId axis : loops::axes_in(x)) axes.push_back(axis);
  return axes;
}

class Merger {
 public:
  explicit Merger(Statement& statement) : statement_(statement) {
    outside_ = axes_outside_indices(statement);
  }

  // Merges neighbouring axes into one until no two of `axes` could be one.
  void merge(AxisIds& axes) {
    drop_units(axes);
    for (bool changed = true; changed;) {
      changed = false;
      for (const AxisId outer : axes)
        for (const AxisId inner : axes)
          if (!changed && outer != inner && can_merge(outer, inner)) {
            join(outer, inner);
            changed = true;
          }
      drop_units(axes);
    }
  }
  void drop_units(AxisIds& axes) const {
    std::erase_if(axes, [&](AxisId axis) { return extent(axis) == 1; });
  }

 private:
  int64_t extent(AxisId axis) const { return statement_.axes[axis].extent; }
  bool can_merge(AxisId outer, AxisId inner) const {
    if (extent(outer) == 1 || extent(inner) == 1) return false;
    for (const AxisId axis : {outer, inner})
      if (loops::contains(outside_, axis)) return false;
    IndexAnalysis analysis(statement_.axes);
    const std::vector<Expr> indices = indices_of(statement_);
    return std::all_of(indices.begin(), indices.end(), [&](const Expr& index) {
      const auto at = analysis.affine(index);
      if (at) return at->coefficients[outer] == extent(inner) * at->coefficients[inner];
      const AxisIds axes = loops::axes_in(index);
      return !loops::contains(axes, outer) && !loops::contains(axes, inner);
    });
  }

  // Counts by a longer `inner` what `outer` and `inner` counted.
  void join(AxisId outer, AxisId inner) {
    statement_.axes[inner].extent = extent(outer) * extent(inner);
    statement_.axes[outer].extent = 1;
    statement_ = loops::replaced(std::move(statement_), [&](const Expr& part) {
      return part.kind() == ExprKind::axis && part.number() == outer
                 ? Expr::literal(int64_t{0}, composit::DType::int64)
                 : Expr();
    });
  }

  Statement& statement_;
  AxisIds outside_;
};

void sort_by(AxisIds& axes, const Affine& at) {
  std::stable_sort(axes.begin(), axes.end(), [&](AxisId a, AxisId b) {
    return std::abs(at.coefficients[a]) > std::abs(at.coefficients[b]);
  });
}

// Loops that fl::Packing has.
constexpr size_t kMostTermLoops = 4;

// The dtype of sums of products of that dtype, where there are tiles of them.
std::optional<composit::DType> sum_dtype(composit::DType dtype) {
  if (composit::is_half(dtype)) return composit::DType::float32;
  const bool real = dtype == composit::DType::float32 || dtype == composit::DType::float64;
  return real ? std::optional(dtype) : std::nullopt;
}

// One load of the sum's dtype, nowhere out of range.
bool is_plain(const Expr& side, const Expr& domain, composit::DType dtype) {
  return side.kind() == ExprKind::load && side.dtype() == dtype && !domain.defined();
}

// The dtypes of a product: what its sides are read as.
void set_dtypes(Product& product, const std::optional<ByteProduct>& bytes, composit::DType dtype,
                composit::DType accumulator) {
  product.element = product.operand = bytes ? composit::DType::uint8 : dtype;
  product.weight = bytes ? composit::DType::int8 : dtype;
  product.accumulator = accumulator;
  product.zero = bytes ? bytes->zero : 0;
}

// Indices of the flat loads of both sides in the body: the left one's first.
std::pair<Expr, Expr> flat_sides(const Statement& statement, bool swapped) {
  if (const auto bytes = byte_product_of(statement)) return {bytes->rows[0], bytes->columns[0]};
  const Expr& body = statement.body[0];
  return {body[swapped ? 1 : 0][0], body[swapped ? 0 : 1][0]};
}

// True if axes are neighbouring dimensions, in the same order, in both accesses.
bool are_together(const AxisIds& axes, const Expr& side, const std::vector<Expr>& store) {
  const auto find = [&](const std::vector<Expr>& at) -> std::optional<AxisIds> {
    AxisIds order;
    for (const Expr& index : at) {
      const bool is_one = index.kind() == ExprKind::axis && loops::contains(axes, axis_of(index));
      if (is_one)
        order.push_back(axis_of(index));
      else if (!order.empty() && order.size() < axes.size())
        return std::nullopt;
    }
    return order.size() == axes.size() ? std::optional(order) : std::nullopt;
  };
  const auto in_store = find(store);
  const std::vector<Expr> at(side.arguments().begin(), side.arguments().end());
  return in_store && in_store == find(at);
}

}  // namespace

int64_t Product::size(const AxisIds& axes) const { return loops::iterations(statement, axes); }

int64_t Product::operations() const {
  return 2 * size(batch) * size(rows) * column_count() * size(terms);
}

bool is_3x3(const Product& product) {
  const size_t rows = product.rows.size();
  if (product.depthwise || !product.batch.empty() || rows < 2 || rows > 3 ||
      product.terms.size() != 3 || !product.columns)
    return false;
  const auto step = [&](AxisId axis) { return product.left_at.coefficients[axis]; };
  const AxisId line = product.terms[0], pixel = product.terms[1], channel = product.terms[2];
  return product.extent(line) == 3 && product.extent(pixel) == 3 && step(channel) == 1 &&
         step(line) == step(product.rows[rows - 2]) &&
         step(pixel) == step(product.rows[rows - 1]) && step(line) % step(pixel) == 0;
}

bool can_halve(const Product& product) {
  return !product.depthwise && product.batch.empty() && product.columns && !product.rows.empty() &&
         product.terms.size() == 1 && product.left_at.coefficients[product.terms[0]] == 1 &&
         product.extent(product.terms[0]) > 0 && product.extent(product.terms[0]) % 2 == 0;
}

bool pays_to_halve(const Product& product) {
  constexpr int64_t kManyRows = 64, kManyTerms = 256, kManyColumns = 320;
  return can_halve(product) && product.size(product.rows) >= kManyRows &&
         product.size(product.terms) >= kManyTerms && product.column_count() >= kManyColumns;
}

int64_t packed_terms(const Product& product, int winograd) {
  const int64_t terms = product.size(product.terms), side = winograd + 2;
  if (winograd != 0) return terms / 9 * side * side;
  if (product.is_of_bytes()) {
    const int64_t run = product.terms.empty() ? 1 : product.extent(product.terms.back());
    return run == 0 ? 1 : 1 + terms / run * ((run + 3) / 4);
  }
  if (product.terms.empty()) return whole_groups(product.weight, terms);
  const int64_t run = product.extent(product.terms.back());
  return run == 0 ? 0 : terms / run * whole_groups(product.weight, run);
}

composit::DType panel_dtype(const Product& product) {
  return product.is_of_bytes() ? composit::DType::int32 : product.weight;
}

int64_t whole_groups(composit::DType weight, int64_t terms) {
  const int64_t group = weight == composit::DType::bfloat16 ? fl::kGroup<fl::bfloat16> : 1;
  return (terms + group - 1) / group * group;
}

Statement flat(const loops::Routine& routine, const Statement& statement) {
  Statement now = statement;
  for (composit::Store& store : now.stores)
    store.at = {flat_index(store.at, routine.values[value_of(store)].type)};
  now = loops::replaced(std::move(now), [&](const Expr& part) {
    if (part.kind() != ExprKind::load) return Expr();
    const composit::Type& type = routine.values[value_of(part)].type;
    return Expr::load(part.number(), part.dtype(), {flat_index(part.arguments(), type)});
  });
  return loops::with_simple_indices(std::move(now));
}

bool has_window(const Expr& side, const AxisIds& places, const AxisIds& terms) {
  return std::any_of(side.arguments().begin(), side.arguments().end(), [&](const Expr& index) {
    const AxisIds axes = loops::axes_in(index);
    return loops::overlap(places, axes) && loops::overlap(terms, axes);
  });
}

void choose_rows(loops::Contraction& of, const std::vector<Expr>& store,
                 const std::function<bool(ValueId value)>& is_frozen) {
  const bool left = is_frozen(value_of(of.left)), right = is_frozen(value_of(of.right));
  const bool left_window = has_window(of.left, of.rows, of.terms),
             right_window = has_window(of.right, of.columns, of.terms);
  const bool wrong = left != right                 ? left
                     : left_window != right_window ? right_window
                                                   : of.rows.size() == 1 && of.columns.size() > 1 &&
                                                         !are_together(of.columns, of.right, store);
  if (!wrong) return;
  std::swap(of.left, of.right);
  std::swap(of.left_domain, of.right_domain);
  std::swap(of.rows, of.columns);
}

std::optional<Product> product_of(const loops::Routine& routine, const loops::Nest& nest,
                                  const std::function<bool(ValueId value)>& is_frozen,
                                  bool joins_batch) {
  const Statement& statement = nest.statement;
  auto sides = sides_of(nest);
  if (!sides || statement.stores.size() != 1 || statement.stores[0].add ||
      !sides->term_limits.empty() || !sides->column_limits.empty())
    return std::nullopt;
  const composit::DType dtype = statement.body[0].dtype();
  const auto bytes = byte_product_of(statement);
  const auto accumulator = bytes ? std::optional(dtype) : sum_dtype(dtype);
  if (!accumulator) return std::nullopt;
  Product product;
  set_dtypes(product, bytes, dtype, *accumulator);
  if (!is_plain(sides->left, sides->left_domain, product.element) ||
      !is_plain(sides->right, sides->right_domain, product.weight))
    return std::nullopt;
  product.depthwise = is_depthwise(*sides);
  // Packing a matrix for one row takes longer than the product.
  if (has_one_row(*sides) && !is_frozen(value_of(sides->right))) return std::nullopt;
  if (!product.depthwise) choose_rows(*sides, statement.stores[0].at, is_frozen);
  if (bytes && !sides->left.same(bytes->rows)) return std::nullopt;
  product.left = value_of(sides->left);
  product.right = value_of(sides->right);
  product.statement = flat(routine, statement);
  Merger merger(product.statement);
  product.batch = sides->batch;
  product.rows = sides->rows;
  product.terms = sides->terms;
  AxisIds columns = sides->columns;
  if (joins_batch)
    merger.merge(product.batch);
  else
    merger.drop_units(product.batch);
  for (auto* axes : {&product.rows, &product.terms, &columns}) merger.merge(*axes);
  product.statement = loops::with_simple_indices(std::move(product.statement));
  IndexAnalysis analysis(product.statement.axes);
  const auto store = analysis.affine(product.statement.stores[0].at[0]);
  const auto [left, right] = flat_sides(product.statement, !statement.body[0][0].same(sides->left));
  const auto left_at = analysis.affine(left), right_at = analysis.affine(right);
  if (!store || !left_at || !right_at) return std::nullopt;
  product.left_at = *left_at;
  product.right_at = *right_at;
  sort_by(columns, *store);
  if (!columns.empty()) {
    product.columns = columns.back();
    columns.pop_back();
    product.batch.insert(product.batch.end(), columns.begin(), columns.end());
  }
  sort_by(product.batch, *store);
  sort_by(product.rows, *store);
  sort_by(product.terms, *left_at);
  if (product.terms.size() > kMostTermLoops) return std::nullopt;
  if (product.depthwise && product.left_at.coefficients[*product.columns] != 1) return std::nullopt;
  return product;
}

}  // namespace flashlight::mosaic
