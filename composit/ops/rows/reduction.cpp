// Sums, extrema and the like over axes.
#include <limits>

#include "composit/op/promotion.h"
#include "composit/ops/functions.h"

namespace composit {

// torch sums integers and bool in int64.
static DType sum_dtype(DType dtype) {
  return category(dtype) <= DTypeCategory::integer ? DType::int64 : dtype;
}

static Loops sum_over(const In& x, const Ints& axes, bool keepdim, std::optional<DType> dtype) {
  Nest nest;
  const Index at = nest.reduce_over(x, axes, keepdim);
  return nest.store(nest.sum(cast(x(at), dtype.value_or(sum_dtype(x.dtype()))))).loops();
}

// Number of elements reduced to one.
static int64_t count_over(const Tensor& x, const Ints& axes) {
  const std::vector<bool> reduced = wrap_axes(axes, x.rank());
  int64_t count = 1;
  for (size_t axis = 0; axis < reduced.size(); ++axis)
    if (reduced[axis]) count *= x.size(static_cast<int64_t>(axis));
  return count;
}

// A reduced tensor with its axes back, at size 1.
static Tensor with_axes(const Tensor& y, const Tensor& x, const Ints& axes, bool keepdim) {
  if (keepdim) return y;
  const std::vector<bool> reduced = wrap_axes(axes, x.rank());
  Ints sizes;
  for (size_t axis = 0; axis < reduced.size(); ++axis)
    sizes.push_back(reduced[axis] ? 1 : x.size(static_cast<int64_t>(axis)));
  return reshape(y, sizes);
}

static Expr least(DType dtype) {
  if (category(dtype) == DTypeCategory::floating)
    return cast(-std::numeric_limits<double>::infinity(), dtype);
  if (dtype == DType::bool_) return Expr::literal(false, dtype);
  const int bits = 8 * static_cast<int>(item_size(dtype));
  const bool is_unsigned = dtype == DType::uint8 || dtype >= DType::uint16;
  return Expr::literal(
      is_unsigned ? int64_t{0} : std::numeric_limits<int64_t>::min() >> (64 - bits), dtype);
}
static Expr greatest(DType dtype) {
  if (category(dtype) == DTypeCategory::floating)
    return cast(std::numeric_limits<double>::infinity(), dtype);
  if (dtype == DType::bool_) return Expr::literal(true, dtype);
  const int bits = 8 * static_cast<int>(item_size(dtype));
  const bool is_unsigned = dtype == DType::uint8 || dtype >= DType::uint16;
  return Expr::literal(std::numeric_limits<int64_t>::max() >> (64 - bits + (is_unsigned ? -1 : 0)),
                       dtype);
}

static void expect_elements(const In& x, const Ints& axes) {
  const std::vector<bool> reduced = wrap_axes(axes, x.rank());
  for (size_t axis = 0; axis < reduced.size(); ++axis)
    if (reduced[axis] && x.type().sizes[axis] == Dim(0))
      throw UserError("expected an element at least along axis " + std::to_string(axis) +
                      ", received sizes " + str(x.sizes()));
}

static void add_sums(OperationTable& rows) {
  rows.add({.schema = "aten::sum(Tensor self, *, ScalarType? dtype=None) -> Tensor",
            .loops = [](In x, std::optional<DType> dtype) { return sum_over(x, {}, false, dtype); },
            .samples = "f32[2,3] | i32[4] | f32[] | bool[5] | f32[0] | f32[3] float64"});
  rows.add({.schema = "aten::sum.dim_IntList(Tensor self, int[1]? dim, bool keepdim=False, *, "
                      "ScalarType? dtype=None) -> Tensor",
            .loops = [](In x, Ints dim, bool keepdim,
                        std::optional<DType> dtype) { return sum_over(x, dim, keepdim, dtype); },
            .samples = "f32[2,3,4] [0,2] | f32[2,3] [-1] True | i64[2,3] [0] | f32[2,3] None | "
                       "f32[2,0] [1] | bool[2,3] [1] | f32[] [0]",
            .bad = "f32[2,3] [2]: expected an axis | f32[2,3] [0,0]: given twice"});
  rows.add({.schema = "aten::mean(Tensor self, *, ScalarType? dtype=None) -> Tensor",
            .decompose =
                [](Tensor x, std::optional<DType> dtype) {
                  return Tensors{apply_one("aten::mean.dim", {x, Ints{}, false, dtype})};
                },
            .samples = "f32[2,3] | f64[4]",
            .bad = "i64[3]: floating"});
  rows.add({.schema = "aten::mean.dim(Tensor self, int[1]? dim, bool keepdim=False, *, ScalarType? "
                      "dtype=None) -> Tensor",
            .loops =
                [](In x, Ints dim, bool keepdim, std::optional<DType> dtype) {
                  const DType result = dtype.value_or(x.dtype());
                  if (category(result) < DTypeCategory::floating)
                    throw UserError("expected a floating point or complex dtype, received " +
                                    std::string(name(result)));
                  Nest nest;
                  const Index at = nest.reduce_over(x, dim, keepdim);
                  int64_t count = 1;
                  const std::vector<bool> reduced = wrap_axes(dim, x.rank());
                  for (size_t i = 0; i < reduced.size(); ++i)
                    count *= reduced[i] ? x.sizes()[i] : 1;
                  return nest.store(nest.sum(cast(x(at), result)) / count).loops();
                },
            .vjp =
                [](Vjp v, Tensor x, Ints dim, bool keepdim) {
                  const Tensor g = with_axes(v.cotangents[0], x, dim, keepdim);
                  return Gradients{expand(g / static_cast<double>(count_over(x, dim)), x.sizes())};
                },
            .samples = "f32[2,3,4] [0,2] | f32[2,3] [-1] True | f32[2,3] None | f64[3] [0]",
            .bad = "i64[2,3] [0]: floating"});
}

// Accumulators of a value and its index, -1: none yet. The first of equal values wins, and NaN
// before everything, as in torch.
template <bool kLargest>
static std::vector<Expr> better(const std::vector<Expr>& l, const std::vector<Expr>& r) {
  const Expr beats = !isnan(l[0]) && (isnan(r[0]) || (kLargest ? r[0] > l[0] : r[0] < l[0]));
  const Expr ties = eq(r[0], l[0]) || (isnan(r[0]) && isnan(l[0]));
  const Expr take = r[1] >= 0 && (l[1] < 0 || beats || (ties && r[1] < l[1]));
  return {select(take, r[0], l[0]), select(take, r[1], l[1])};
}

template <bool kLargest>
static std::vector<Expr> extremum(Nest& nest, const In& x, int64_t dim, bool keepdim) {
  expect_elements(x, {dim});
  const Index at = nest.reduce_over(x, {dim}, keepdim);
  const Expr place = x.rank() == 0 ? Expr::literal(int64_t{0}, DType::int64)
                                   : at[static_cast<size_t>(wrap_axis(dim, x.rank()))];
  return nest.fold({0, -1}, {x(at), place}, better<kLargest>);
}

// The cotangent goes to the element that was chosen.
static Gradients to_chosen(const Vjp& v, const Tensor& x, int64_t dim, bool keepdim) {
  const Tensor g = with_axes(v.cotangents[0], x, {dim}, keepdim);
  const Tensor index = with_axes(v.results[1], x, {dim}, keepdim);
  return {apply_one("aten::scatter_add", {zeros_like(x), dim, index, g})};
}

static void add_extrema(OperationTable& rows) {
  rows.add({.schema = "aten::max.dim(Tensor self, int dim, bool keepdim=False) -> (Tensor values, "
                      "Tensor indices)",
            .loops =
                [](In x, int64_t dim, bool keepdim) {
                  Nest nest;
                  const auto best = extremum<true>(nest, x, dim, keepdim);
                  return nest.store(best[0]).store(best[1]).loops();
                },
            .vjp = [](Vjp v, Tensor x, int64_t dim,
                      bool keepdim) { return to_chosen(v, x, dim, keepdim); },
            .samples = "f32[2,3,4] 1 | f32[2,5] -1 True | i64[3,4]<3 0 | f32[5]=nan 0",
            .bad = "f32[2,0] 1: expected an element | f32[2] 3: expected an axis"});
  rows.add({.schema = "aten::min.dim(Tensor self, int dim, bool keepdim=False) -> (Tensor values, "
                      "Tensor indices)",
            .loops =
                [](In x, int64_t dim, bool keepdim) {
                  Nest nest;
                  const auto best = extremum<false>(nest, x, dim, keepdim);
                  return nest.store(best[0]).store(best[1]).loops();
                },
            .vjp = [](Vjp v, Tensor x, int64_t dim,
                      bool keepdim) { return to_chosen(v, x, dim, keepdim); },
            .samples = "f32[2,3,4] 1 | f32[2,5] -1 True | i64[3,4]<3 0"});
  rows.add({.schema = "aten::amax(Tensor self, int[1] dim=[], bool keepdim=False) -> Tensor",
            .loops =
                [](In x, Ints dim, bool keepdim) {
                  expect_elements(x, dim);
                  Nest nest;
                  const Index at = nest.reduce_over(x, dim, keepdim);
                  return nest.store(nest.fold(least(x.dtype()), x(at), max)).loops();
                },
            .vjp =
                [](Vjp v, Tensor x, Ints dim, bool keepdim) {  // ties share it evenly
                  const Tensor best = with_axes(v.results[0], x, dim, keepdim);
                  const Tensor chosen = to(eq(x, best), x.dtype());
                  const Tensor g = with_axes(v.cotangents[0], x, dim, keepdim);
                  return Gradients{chosen * (g / sum(chosen, dim, true))};
                },
            .samples = "f32[2,3,4] [0,2] | f32[2,3] [] | f32[2,3] [-1] True | i64[2,3] [1]",
            .bad = "f32[2,0] [1]: expected an element"});
  rows.add({.schema = "aten::amin(Tensor self, int[1] dim=[], bool keepdim=False) -> Tensor",
            .loops =
                [](In x, Ints dim, bool keepdim) {
                  expect_elements(x, dim);
                  Nest nest;
                  const Index at = nest.reduce_over(x, dim, keepdim);
                  return nest.store(nest.fold(greatest(x.dtype()), x(at), min)).loops();
                },
            .vjp =
                [](Vjp v, Tensor x, Ints dim, bool keepdim) {
                  const Tensor best = with_axes(v.results[0], x, dim, keepdim);
                  const Tensor chosen = to(eq(x, best), x.dtype());
                  const Tensor g = with_axes(v.cotangents[0], x, dim, keepdim);
                  return Gradients{chosen * (g / sum(chosen, dim, true))};
                },
            .samples = "f32[2,3,4] [0,2] | f32[2,3] [] | i64[2,3] [1]"});
}

static void add_scans(OperationTable& rows) {
  rows.add({.schema = "aten::cumsum(Tensor self, int dim, *, ScalarType? dtype=None) -> Tensor",
            .loops =
                [](In x, int64_t dim, std::optional<DType> dtype) {
                  dim = wrap_axis(dim, x.rank());
                  Nest nest;
                  Index at;
                  for (int64_t axis = 0; axis < x.rank(); ++axis)
                    at.push_back(axis == dim ? nest.scan(x.size(axis))
                                             : nest.parallel(x.size(axis)));
                  const DType result = dtype.value_or(sum_dtype(x.dtype()));
                  return nest.store(nest.sum(cast(x(at), result))).loops();
                },
            .samples = "f32[2,3,4] 1 | i64[5] 0 | f32[3] 0 float64 | f32[] 0 | bool[4] 0",
            .bad = "f32[2] 1: expected an axis"});
}

void add_reduction_rows(OperationTable& rows) {
  add_sums(rows);
  add_extrema(rows);
  add_scans(rows);
}

}  // namespace composit
