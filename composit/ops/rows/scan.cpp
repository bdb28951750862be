// Running sums, products and extrema along an axis.
#include <limits>

#include "composit/ops/axes.h"

namespace composit {

// x's indices, where `dim` runs upwards.
static Index scan_along(Nest& nest, const In& x, int64_t dim) {
  dim = wrap_axis(dim, x.rank());
  Index at;
  for (int64_t axis = 0; axis < x.rank(); ++axis)
    at.push_back(axis == dim ? nest.scan(x.size(axis)) : nest.parallel(x.size(axis)));
  return at;
}

static LazyTensor recurrence(const LazyTensor& factor, const LazyTensor& term, int64_t dim) {
  return apply_one("composit::recurrence", {factor, term, dim});
}

// y[k] = term[k] + factor[k + 1] * y[k + 1], from the end.
static LazyTensor recurrence_back(const LazyTensor& factor, const LazyTensor& term, int64_t dim) {
  const LazyTensor next =
      cat({slice(factor, dim, 1, factor.size(dim)), zeros_like(slice(factor, dim, 0, 1))}, dim);
  return flip(recurrence(flip(next, {dim}), flip(term, {dim}), dim), {dim});
}

// Per element, the one before it along `dim`; `first` for the first.
static LazyTensor shifted(const LazyTensor& x, int64_t dim, double first) {
  const LazyTensor begin = full(slice(x, dim, 0, 1).sizes(), first, x.dtype());
  return cat({begin, slice(x, dim, 0, x.size(dim) - 1)}, dim);
}

// The linear recurrence that running products are differentiated with, in time linear in their
// length and right where factors are zero. Its gradient is one, too.
static void add_recurrence(OperationTable& rows) {
  rows.add({.schema = "composit::recurrence(Tensor factor, Tensor term, int dim) -> Tensor",
            .loops =
                [](In factor, In term, int64_t dim) {
                  if (factor.sizes() != term.sizes() || factor.dtype() != term.dtype())
                    throw UserError("expected factors and terms of equal type, received sizes " +
                                    str(factor.sizes()) + " and " + str(term.sizes()));
                  Nest nest;
                  const Index at = scan_along(nest, term, dim);
                  const auto y =
                      nest.fold({1, 0}, {factor(at), term(at)},
                                [](const std::vector<Expr>& l, const std::vector<Expr>& r) {
                                  return std::vector<Expr>{l[0] * r[0], r[1] + r[0] * l[1]};
                                });
                  return nest.store(y[1]).loops();
                },
            .vjp =
                [](Vjp v, LazyTensor factor, LazyTensor, int64_t dim) {
                  if (factor.numel() == 0 || factor.rank() == 0)
                    return Gradients{zeros_like(factor), v.cotangents[0]};
                  const LazyTensor back = recurrence_back(factor, v.cotangents[0], dim);
                  return Gradients{back * shifted(v.results[0], dim, 0), back};
                },
            .samples = "f32[4] f32[4] 0 | f32[2,3,2] f32[2,3,2] 1 | f32[0] f32[0] 0",
            .bad = "f32[2] f32[3] 0: of equal type"});
}

static Expr log_add_exp(Expr x, Expr y) {
  const Expr larger = max(x, y);
  const Expr infinite = eq(abs(larger), std::numeric_limits<double>::infinity());
  return select(infinite, larger, larger + log1p(exp(-abs(x - y))));
}

static void add_running_sums(OperationTable& rows) {
  rows.add({.schema = "aten::cumsum(Tensor self, int dim, *, ScalarType? dtype=None) -> Tensor",
            .kind = OpKind::reduction,
            .loops =
                [](In x, int64_t dim, std::optional<DType> dtype) {
                  Nest nest;
                  const Index at = scan_along(nest, x, dim);
                  const DType result = dtype.value_or(sum_dtype(x.dtype()));
                  return nest.store(nest.sum(cast(x(at), result))).loops();
                },
            .vjp =
                [](Vjp v, LazyTensor x, int64_t dim) {
                  const LazyTensor& g = v.cotangents[0];
                  if (x.rank() == 0) return Gradients{to(g, x.dtype())};
                  return Gradients{to(flip(cumsum(flip(g, {dim}), dim), {dim}), x.dtype())};
                },
            .samples = "f32[2,3,4] 1 | i64[5] 0 | f32[3] 0 float64 | f32[] 0 | bool[4] 0",
            .bad = "f32[2] 1: expected an axis"});
  rows.add({.schema = "aten::cumprod(Tensor self, int dim, *, ScalarType? dtype=None) -> Tensor",
            .kind = OpKind::reduction,
            .loops =
                [](In x, int64_t dim, std::optional<DType> dtype) {
                  Nest nest;
                  const Index at = scan_along(nest, x, dim);
                  const DType result = dtype.value_or(sum_dtype(x.dtype()));
                  return nest
                      .store(nest.fold(1, cast(x(at), result),
                                       [](Expr left, Expr right) { return left * right; }))
                      .loops();
                },
            .vjp =
                [](Vjp v, LazyTensor x, int64_t dim) {
                  const LazyTensor& g = v.cotangents[0];
                  if (x.numel() == 0 || x.rank() == 0) return Gradients{to(g, x.dtype())};
                  const LazyTensor before = shifted(v.results[0], dim, 1);
                  const LazyTensor after = recurrence_back(to(x, g.dtype()), g, dim);
                  return Gradients{to(before * after, x.dtype())};
                },
            .samples = "f32[2,3,4] 1 | i64[5] 0 | f32[3] -1 float64 | f32[] 0 | bool[4] 0 | "
                       "f32[5]=[2,0,3,0,1] 0",
            .bad = "f32[2] 1: expected an axis"});
  rows.add({.schema = "aten::logcumsumexp(Tensor self, int dim) -> Tensor",
            .loops =
                [](In x, int64_t dim) {
                  Nest nest;
                  const Index at = scan_along(nest, x, dim);
                  return nest.store(nest.fold(least(x.dtype()), x(at), log_add_exp)).loops();
                },
            .vjp =
                [](Vjp v, LazyTensor x, int64_t dim) {
                  const LazyTensor &g = v.cotangents[0], &y = v.results[0];
                  if (x.numel() == 0 || x.rank() == 0) return Gradients{g};
                  const LazyTensor weights = exp(shifted(y, dim, 0) - y);  // of y before in y
                  return Gradients{exp(x - y) * recurrence_back(weights, g, dim)};
                },
            .samples = "f32[2,3,4] 1 | f32[5] 0 | f32[] 0 | f32[2,3]=-200..200 1",
            .bad = "f32[2] 1: expected an axis"});
}

// As torch: the last of equal values wins, and NaN before everything.
template <bool kLargest>
static std::vector<Expr> later(const std::vector<Expr>& l, const std::vector<Expr>& r) {
  const Expr beats = kLargest ? r[0] >= l[0] : r[0] <= l[0];
  const Expr take = r[1] >= 0 && (l[1] < 0 || isnan(r[0]) || (!isnan(l[0]) && beats));
  return {select(take, r[0], l[0]), select(take, r[1], l[1])};
}

template <bool kLargest>
static Loops running_extremum(const In& x, int64_t dim) {
  Nest nest;
  const Index at = scan_along(nest, x, dim);
  const Expr place = x.rank() == 0 ? Expr::literal(int64_t{0}, DType::int64)
                                   : at[static_cast<size_t>(wrap_axis(dim, x.rank()))];
  const auto best = nest.fold({0, -1}, {x(at), place}, later<kLargest>);
  return nest.store(best[0]).store(best[1]).loops();
}

static void add_extrema(OperationTable& rows) {
  rows.add({.schema = "aten::cummax(Tensor self, int dim) -> (Tensor values, Tensor indices)",
            .loops = [](In x, int64_t dim) { return running_extremum<true>(x, dim); },
            .vjp = [](Vjp v, LazyTensor x, int64_t dim) { return to_chosen(v, x, dim, true); },
            .samples = "f32[2,3,4] 1 | i64[6]<3 0 | f32[5]=nan -1 | f32[] 0",
            .bad = "f32[2] 1: expected an axis"});
  rows.add({.schema = "aten::cummin(Tensor self, int dim) -> (Tensor values, Tensor indices)",
            .loops = [](In x, int64_t dim) { return running_extremum<false>(x, dim); },
            .vjp = [](Vjp v, LazyTensor x, int64_t dim) { return to_chosen(v, x, dim, true); },
            .samples = "f32[2,3,4] 1 | i64[6]<3 0 | f32[5]=nan -1 | f32[] 0"});
}

void add_scan_rows(OperationTable& rows) {
  add_recurrence(rows);
  add_running_sums(rows);
  add_extrema(rows);
}

}  // namespace composit
