// Sums, products, norms and truth over axes.
#include <cmath>

#include "composit/op/promotion.h"
#include "composit/ops/axes.h"

namespace composit {

static Expr plus(Expr x, Expr y) { return x + y; }
static Expr times(Expr x, Expr y) { return x * y; }
static Expr both(Expr x, Expr y) { return x && y; }
static Expr either(Expr x, Expr y) { return x || y; }

template <Expr (*kCombine)(Expr, Expr)>
static Loops folded(const In& x, Expr init, const Ints& axes, bool keepdim, DType dtype) {
  Nest nest;
  const Index at = nest.reduce_over(x, axes, keepdim);
  return nest.store(nest.fold(std::move(init), cast(x(at), dtype), kCombine)).loops();
}

static Loops sum_over(const In& x, const Ints& axes, bool keepdim, std::optional<DType> dtype) {
  return folded<plus>(x, 0, axes, keepdim, dtype.value_or(sum_dtype(x.dtype())));
}

static Gradients spread_over(const LazyTensor& g, const LazyTensor& x, const Ints& dim,
                             bool keepdim) {
  const LazyTensor aligned = g.rank() == 0 ? g : with_axes(g, x, dim, keepdim);
  return {expand(to(aligned, x.dtype()), x.sizes())};
}

static void add_sums(OperationTable& rows) {
  rows.add({.schema = "aten::sum(Tensor self, *, ScalarType? dtype=None) -> Tensor",
            .kind = OpKind::reduction,
            .loops = [](In x, std::optional<DType> dtype) { return sum_over(x, {}, false, dtype); },
            .vjp = [](Vjp v, LazyTensor x) { return spread_over(v.cotangents[0], x, {}, false); },
            .samples = "f32[2,3] | i32[4] | f32[] | bool[5] | f32[0] | f32[3] float64"});
  rows.add({.schema = "aten::sum.dim_IntList(Tensor self, int[1]? dim, bool keepdim=False, *, "
                      "ScalarType? dtype=None) -> Tensor",
            .kind = OpKind::reduction,
            .loops = [](In x, Ints dim, bool keepdim,
                        std::optional<DType> dtype) { return sum_over(x, dim, keepdim, dtype); },
            .vjp = [](Vjp v, LazyTensor x, Ints dim,
                      bool keepdim) { return spread_over(v.cotangents[0], x, dim, keepdim); },
            .samples = "f32[2,3,4] [0,2] | f32[2,3] [-1] True | i64[2,3] [0] | f32[2,3] None | "
                       "f32[2,0] [1] | bool[2,3] [1] | f32[] [0]",
            .bad = "f32[2,3] [2]: expected an axis | f32[2,3] [0,0]: given twice"});
  rows.add(
      {.schema = "aten::nansum(Tensor self, int[1]? dim=None, bool keepdim=False, *, "
                 "ScalarType? dtype=None) -> Tensor",
       .decompose =
           [](LazyTensor x, Ints dim, bool keepdim, std::optional<DType> dtype) {
             const bool floats = category(x.dtype()) == DTypeCategory::floating;
             const LazyTensor numbers = floats ? where(isnan(x), 0, x) : x;
             return LazyTensors{apply_one("aten::sum.dim_IntList", {numbers, dim, keepdim, dtype})};
           },
       .samples = "f32[2,3]=nan [1] | f32[4]=nan | i64[2,3] [0] True"});
  rows.add({.schema = "aten::mean(Tensor self, *, ScalarType? dtype=None) -> Tensor",
            .kind = OpKind::reduction,
            .decompose =
                [](LazyTensor x, std::optional<DType> dtype) {
                  return LazyTensors{apply_one("aten::mean.dim", {x, Ints{}, false, dtype})};
                },
            .samples = "f32[2,3] | f64[4]",
            .bad = "i64[3]: floating"});
  rows.add({.schema = "aten::mean.dim(Tensor self, int[1]? dim, bool keepdim=False, *, ScalarType? "
                      "dtype=None) -> Tensor",
            .kind = OpKind::reduction,
            .loops =
                [](In x, Ints dim, bool keepdim, std::optional<DType> dtype) {
                  const DType result = dtype.value_or(x.dtype());
                  expect_floating(result);
                  Nest nest;
                  const Index at = nest.reduce_over(x, dim, keepdim);
                  // float16 has no number for more than 65,504 of them.
                  const Expr total = nest.sum(cast(cast(x(at), result), opmath_dtype(result)));
                  return nest.store(cast(total / count_over(x.sizes(), dim), result)).loops();
                },
            .vjp =
                [](Vjp v, LazyTensor x, Ints dim, bool keepdim) {
                  const auto count = static_cast<double>(count_over(x.sizes(), dim));
                  return spread_over(v.cotangents[0] / count, x, dim, keepdim);
                },
            .samples = "f32[2,3,4] [0,2] | f32[2,3] [-1] True | f32[2,3] None | f64[3] [0]",
            .bad = "i64[2,3] [0]: floating"});
}

// ---- products -----------------------------------------------------------------------------------

// Per element along `dim`, the product of those before it.
static LazyTensor product_before(const LazyTensor& x, int64_t dim) {
  const LazyTensor all = apply_one("aten::cumprod", {x, dim});
  const LazyTensor one = ones_like(slice(all, dim, 0, 1));
  return cat({one, slice(all, dim, 0, x.size(dim) - 1)}, dim);
}

// The gradient of an element is the product of all others: linear in their number, and right where
// some are zero.
static LazyTensor product_back(const LazyTensor& g, const LazyTensor& x, int64_t dim) {
  if (x.size(dim) == 0) return zeros_like(x);
  const LazyTensor after = flip(product_before(flip(x, {dim}), dim), {dim});
  return g * product_before(x, dim) * after;
}

static void add_products(OperationTable& rows) {
  rows.add({.schema = "aten::prod(Tensor self, *, ScalarType? dtype=None) -> Tensor",
            .kind = OpKind::reduction,
            .loops =
                [](In x, std::optional<DType> dtype) {
                  return folded<times>(x, 1, {}, false, dtype.value_or(sum_dtype(x.dtype())));
                },
            .vjp =
                [](Vjp v, LazyTensor x) {
                  const LazyTensor flat = reshape(to(x, v.cotangents[0].dtype()), {-1});
                  const LazyTensor back = product_back(v.cotangents[0], flat, 0);
                  return Gradients{to(reshape(back, x.sizes()), x.dtype())};
                },
            .samples = "f32[2,3] | i32[4] | f32[] | bool[5] | f32[0] | f32[4]=[1,0,2,3] | "
                       "f32[4]=[1,0,2,0]"});
  rows.add({.schema = "aten::prod.dim_int(Tensor self, int dim, bool keepdim=False, *, ScalarType? "
                      "dtype=None) -> Tensor",
            .kind = OpKind::reduction,
            .loops =
                [](In x, int64_t dim, bool keepdim, std::optional<DType> dtype) {
                  return folded<times>(x, 1, {dim}, keepdim, dtype.value_or(sum_dtype(x.dtype())));
                },
            .vjp =
                [](Vjp v, LazyTensor x, int64_t dim, bool keepdim) {
                  const LazyTensor g = with_axes(v.cotangents[0], x, {dim}, keepdim);
                  if (x.rank() == 0) return Gradients{to(g, x.dtype())};
                  return Gradients{to(product_back(g, to(x, g.dtype()), dim), x.dtype())};
                },
            .samples = "f32[2,3,4] 1 | f32[2,3] -1 True | i64[2,3] 0 | f32[3] 0 | bool[2,3] 1",
            .bad = "f32[2] 1: expected an axis"});
}

// ---- truth --------------------------------------------------------------------------------------

// torch keeps uint8 as a kind of bool.
static DType truth_dtype(const In& x) {
  return x.dtype() == DType::uint8 ? DType::uint8 : DType::bool_;
}

template <bool kAll>
static Loops truth(const In& x, const Ints& axes, bool keepdim) {
  Nest nest;
  const Index at = nest.reduce_over(x, axes, keepdim);
  const Expr result = nest.fold(kAll, cast(x(at), DType::bool_), kAll ? both : either);
  return nest.store(cast(result, truth_dtype(x))).loops();
}

template <bool kAll>
static void add_truth(OperationTable& rows, std::string_view of_all, std::string_view of_axis,
                      std::string_view of_axes) {
  rows.add({.schema = of_all,
            .kind = OpKind::reduction,
            .loops = [](In x) { return truth<kAll>(x, {}, false); },
            .samples = "bool[2,3] | f32[4] | i64[] | u8[3] | bool[0]"});
  rows.add({.schema = of_axis,
            .kind = OpKind::reduction,
            .loops = [](In x, int64_t dim, bool keepdim) { return truth<kAll>(x, {dim}, keepdim); },
            .samples = "bool[2,3] 1 | i64[2,3]<2 0 True | bool[2,0] 1 | bool[] 0",
            .bad = "bool[2] 1: expected an axis"});
  rows.add({.schema = of_axes,
            .kind = OpKind::reduction,
            .loops = [](In x, Ints dims, bool keepdim) { return truth<kAll>(x, dims, keepdim); },
            .samples = "bool[2,3,4] [0,2] | i64[2,3]<2 None True"});
}

static LazyTensor count_nonzero(const LazyTensor& x, const Ints& axes) {
  return sum(ne(x, 0), axes);
}

static void add_truths(OperationTable& rows) {
  add_truth<false>(rows, "aten::any(Tensor self) -> Tensor",
                   "aten::any.dim(Tensor self, int dim, bool keepdim=False) -> Tensor",
                   "aten::any.dims(Tensor self, int[]? dim=None, bool keepdim=False) -> Tensor");
  add_truth<true>(rows, "aten::all(Tensor self) -> Tensor",
                  "aten::all.dim(Tensor self, int dim, bool keepdim=False) -> Tensor",
                  "aten::all.dims(Tensor self, int[]? dim=None, bool keepdim=False) -> Tensor");
  rows.add({.schema = "aten::count_nonzero(Tensor self, int? dim=None) -> Tensor",
            .kind = OpKind::reduction,
            .decompose =
                [](LazyTensor x, std::optional<int64_t> dim) {
                  return LazyTensors{count_nonzero(x, dim ? Ints{*dim} : Ints{})};
                },
            .samples = "i64[2,3]<2 | f32[2,3] 1 | bool[4] 0"});
  rows.add({.schema = "aten::count_nonzero.dim_IntList(Tensor self, int[] dim) -> Tensor",
            .kind = OpKind::reduction,
            .decompose = [](LazyTensor x, Ints dim) { return LazyTensors{count_nonzero(x, dim)}; },
            .samples = "i64[2,3,4]<2 [0,2]"});
}

// ---- norms --------------------------------------------------------------------------------------

static LazyTensor to_floats(const LazyTensor& x) { return to(x, to_float(x.dtype())); }

static LazyTensor zero_where(const LazyTensor& condition, const LazyTensor& x) {
  return where(condition, 0, x);
}

static LazyTensor vector_norm(const LazyTensor& x, double p, const Ints& axes, bool keepdim) {
  const LazyTensor size = abs(widened(x));
  if (p == 0) return to(sum(ne(size, 0), axes, keepdim), size.dtype());
  if (p == 1) return sum(size, axes, keepdim);
  if (p == 2) return sqrt(sum(square(size), axes, keepdim));
  if (std::isinf(p)) return apply_one(p > 0 ? "aten::amax" : "aten::amin", {size, axes, keepdim});
  return pow(sum(pow(size, p), axes, keepdim), 1 / p);
}

// g: of the norm, with its axes. No gradient flows where the norm has none.
static LazyTensor norm_back(const LazyTensor& g, const LazyTensor& x, const LazyTensor& norm,
                            double p, const Ints& axes) {
  if (p == 0) return zeros_like(x);
  if (p == 1) return g * sign(x);
  if (std::isinf(p)) {
    const LazyTensor chosen = to(eq(abs(x), norm), x.dtype());
    return sign(x) * chosen * (g / sum(chosen, axes, true));
  }
  const LazyTensor per_norm = zero_where(eq(norm, 0), g * pow(norm, 1 - p));
  if (p == 2) return x * zero_where(eq(norm, 0), g / norm);
  return zero_where(eq(x, 0), x * pow(abs(x), p - 2)) * per_norm;
}

static double real_number(const Scalar& p) {
  if (const auto* integer = std::get_if<int64_t>(&p.value)) return static_cast<double>(*integer);
  if (const auto* real = std::get_if<double>(&p.value)) return *real;
  throw UserError("expected a real order of the norm");
}

static LazyTensors norm_of(const LazyTensor& x, const Scalar& p, const Ints& axes, bool keepdim) {
  return {apply_one("aten::linalg_vector_norm", {x, p, axes, keepdim})};
}

static void add_norms(OperationTable& rows) {
  rows.add(
      {.schema = "aten::linalg_vector_norm(Tensor self, Scalar ord=2, int[1]? dim=None, bool "
                 "keepdim=False, *, ScalarType? dtype=None) -> Tensor",
       .kind = OpKind::reduction,
       .decompose =
           [](LazyTensor x, Scalar p, Ints dim, bool keepdim, std::optional<DType> dtype) {
             expect_floating(x.dtype());
             const DType result = dtype.value_or(x.dtype());
             return LazyTensors{
                 narrowed(vector_norm(to(x, result), real_number(p), dim, keepdim), result)};
           },
       .vjp =
           [](Vjp v, LazyTensor x, Scalar p, Ints dim, bool keepdim, std::optional<DType> dtype) {
             if (category(x.dtype()) == DTypeCategory::complex) return Gradients{};
             const LazyTensor wide = widened(to(x, dtype.value_or(x.dtype())));
             const auto whole = [&](const LazyTensor& y) {
               return widened(with_axes(y, x, dim, keepdim));
             };
             return Gradients{to(
                 norm_back(whole(v.cotangents[0]), wide, whole(v.results[0]), real_number(p), dim),
                 x.dtype())};
           },
       .samples = "f32[2,3,4] | f32[2,3] 1 [1] | f32[2,3] 3 [0] True | f32[2,3] inf [1] | "
                  "f32[2,3] -inf | f32[2,3] 0 [1] | f32[5] 2.5 | f32[2,3] 2 "
                  "[-1] True",
       .bad = "i64[3]: floating | f32[2] 2 [1]: expected an axis"});
  rows.add(
      {.schema = "aten::renorm(Tensor self, Scalar p, int dim, Scalar maxnorm) -> Tensor",
       .decompose =
           [](LazyTensor x, Scalar p, int64_t dim, Scalar most) {
             Ints others;
             for (int64_t axis = 0; axis < x.rank(); ++axis)
               if (axis != wrap_axis(dim, x.rank())) others.push_back(axis);
             const LazyTensor wide = widened(x);
             const LazyTensor norm = apply_one("aten::linalg_vector_norm", {wide, p, others, true});
             constexpr double kEpsilon = 1e-7;  // torch's
             const LazyTensor factor =
                 where(norm > Number(most), Number(most) / (norm + kEpsilon), 1.0);
             return LazyTensors{narrowed(wide * factor, x.dtype())};
           },
       .samples = "f32[3,4] 2 0 1.0 | f32[2,3,2] 1 1 2.5",
       .bad = "f32[2,3] 2 2 1.0: expected an axis"});
  rows.add({.schema = "aten::norm.Scalar(Tensor self, Scalar p=2) -> Tensor",
            .kind = OpKind::reduction,
            .decompose = [](LazyTensor x, Scalar p) { return norm_of(x, p, {}, false); },
            .samples = "f32[2,3] | f32[2,3] 1"});
  rows.add({.schema = "aten::norm.ScalarOpt_dim(Tensor self, Scalar? p, int[1] dim, bool "
                      "keepdim=False) -> Tensor",
            .kind = OpKind::reduction,
            .decompose =
                [](LazyTensor x, std::optional<Scalar> p, Ints dim, bool keepdim) {
                  return norm_of(x, p.value_or(Scalar(int64_t{2})), dim, keepdim);
                },
            .samples = "f32[2,3] None [1] | f32[2,3] 1 [0] True"});
  rows.add({.schema = "aten::logsumexp(Tensor self, int[1] dim, bool keepdim=False) -> Tensor",
            .kind = OpKind::reduction,
            .decompose =
                [](LazyTensor x, Ints dim, bool keepdim) {
                  const LazyTensor floats = to_floats(x), wide = widened(floats);
                  const bool complex = is_complex(wide.dtype());
                  const LazyTensor size = complex ? apply_one("aten::real", {wide}) : wide;
                  // The greatest of nothing is -inf, as the result is.
                  const LazyTensor most =
                      x.numel() == 0 ? log(sum(exp(size), dim, true)) : amax(size, dim, true);
                  const LazyTensor shift = where(eq(abs(most), INFINITY), 0, most);
                  const LazyTensor total = log(sum(exp(wide - shift), dim, true)) + shift;
                  const LazyTensor narrow = narrowed(total, floats.dtype());
                  return LazyTensors{keepdim ? narrow : reshape(narrow, sum(x, dim).sizes())};
                },
            .vjp =
                [](Vjp v, LazyTensor x, Ints dim, bool keepdim) {
                  const LazyTensor g = with_axes(v.cotangents[0], x, dim, keepdim);
                  return Gradients{g * conj(exp(x - with_axes(v.results[0], x, dim, keepdim)))};
                },
            .samples = "f32[2,3] [1] | f32[2,0] [1] | f32[0,3] [0] True | f32[2,3,4] [0,2] True | "
                       "f32[2,3]=-200..200 [1] | "
                       "f32[3]=[-inf,0,1] [0] | i64[3]<4 [0] | c64[2,3] [1]",
            .bad = "f32[2] [1]: expected an axis"});
}

void add_reduction_rows(OperationTable& rows) {
  add_sums(rows);
  add_products(rows);
  add_truths(rows);
  add_norms(rows);
}

}  // namespace composit
