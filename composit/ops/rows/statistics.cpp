// Variance and standard deviation.
#include <algorithm>

#include "composit/op/promotion.h"
#include "composit/ops/axes.h"

namespace composit {
namespace {

const Scalar kUnbiased(int64_t{1});

double number(const std::optional<Scalar>& correction) {
  const Scalar::Value value = correction.value_or(kUnbiased).value;
  if (const auto* integer = std::get_if<int64_t>(&value)) return static_cast<double>(*integer);
  if (const auto* real = std::get_if<double>(&value)) return *real;
  throw UserError("expected a correction that is a real number");
}

double degrees_of_freedom(const LazyTensor& x, const Ints& axes,
                          const std::optional<Scalar>& correction) {
  return std::max(0.0, static_cast<double>(count_over(x.sizes(), axes)) - number(correction));
}

// |x|^2: the variance of complex numbers is real.
LazyTensor squared_magnitude(const LazyTensor& x) {
  return square(is_complex(x.dtype()) ? abs(x) : x);
}

LazyTensor variance(const LazyTensor& x, const Ints& axes, const std::optional<Scalar>& correction,
                    bool keepdim) {
  expect_floating(x.dtype());
  const LazyTensor wide = widened(x);
  return sum(squared_magnitude(wide - mean(wide, axes, true)), axes, keepdim) /
         degrees_of_freedom(x, axes, correction);
}

// g: of the variance, with its axes.
LazyTensor variance_back(const LazyTensor& g, const LazyTensor& x, const Ints& axes,
                         const std::optional<Scalar>& correction) {
  return g * (x - mean(x, axes, true)) * (2 / degrees_of_freedom(x, axes, correction));
}

LazyTensor var(const LazyTensor& x, const Ints& axes, const Scalar& correction, bool keepdim) {
  return apply_one("aten::var.correction", {x, axes, correction, keepdim});
}
LazyTensor deviation(const LazyTensor& x, const Ints& axes, const Scalar& correction,
                     bool keepdim) {
  return apply_one("aten::std.correction", {x, axes, correction, keepdim});
}
Scalar correction_of(bool unbiased) { return Scalar(int64_t{unbiased}); }

void add_spread(OperationTable& rows) {
  rows.add({.schema = "aten::var.correction(Tensor self, int[1]? dim=None, *, Scalar? "
                      "correction=None, bool keepdim=False) -> Tensor",
            .kind = OpKind::reduction,
            .decompose =
                [](LazyTensor x, Ints dim, std::optional<Scalar> correction, bool keepdim) {
                  return LazyTensors{narrowed(variance(x, dim, correction, keepdim), x.dtype())};
                },
            .vjp =
                [](Vjp v, LazyTensor x, Ints dim, std::optional<Scalar> correction, bool keepdim) {
                  const LazyTensor g = with_axes(v.cotangents[0], x, dim, keepdim);
                  return Gradients{variance_back(g, x, dim, correction)};
                },
            .samples = "f32[2,3,4] [0,2] | f32[2,5] [1] 0 True | f32[2,3] None 0.5 | f32[6] | "
                       "f32[1] [0] 1 | c64[2,3] [1]",
            .bad = "i64[3]: floating point | f32[2] [1]: expected an axis"});
  rows.add(
      {.schema = "aten::std.correction(Tensor self, int[1]? dim=None, *, Scalar? "
                 "correction=None, bool keepdim=False) -> Tensor",
       .kind = OpKind::reduction,
       .decompose =
           [](LazyTensor x, Ints dim, std::optional<Scalar> correction, bool keepdim) {
             return LazyTensors{narrowed(sqrt(variance(x, dim, correction, keepdim)), x.dtype())};
           },
       .vjp =
           [](Vjp v, LazyTensor x, Ints dim, std::optional<Scalar> correction, bool keepdim) {
             const LazyTensor y = with_axes(v.results[0], x, dim, keepdim);
             const LazyTensor g = with_axes(v.cotangents[0], x, dim, keepdim);
             const LazyTensor per_variance = where(eq(y, 0), 0, g / (2 * y));  // as torch: no NaN
             return Gradients{variance_back(per_variance, x, dim, correction)};
           },
       .samples = "f32[2,3,4] [0,2] | f32[2,5] [1] 0 True | f32[2,3] None 0.5 | f32[6] | "
                  "f32[3]=[2,2,2] [0]",
       .bad = "i64[3]: floating point"});
}

// The spellings of one of them: with and without its mean; over all elements, with `unbiased`, and
// with a correction.
using Spread = LazyTensor (*)(const LazyTensor&, const Ints&, const Scalar&, bool);

template <Spread kSpread>
void add_spellings(OperationTable& rows, std::string_view of_all, std::string_view of_axes,
                   std::string_view with_mean, std::string_view with_mean_all,
                   std::string_view with_mean_dim) {
  rows.add({.schema = of_all,
            .kind = OpKind::reduction,
            .decompose =
                [](LazyTensor x, bool unbiased) {
                  return LazyTensors{kSpread(x, {}, correction_of(unbiased), false)};
                },
            .samples = "f32[2,3] | f32[2,3] False"});
  rows.add({.schema = of_axes,
            .kind = OpKind::reduction,
            .decompose =
                [](LazyTensor x, Ints dim, bool unbiased, bool keepdim) {
                  return LazyTensors{kSpread(x, dim, correction_of(unbiased), keepdim)};
                },
            .samples = "f32[2,3] [1] | f32[2,3,4] [0,2] False True"});
  rows.add({.schema = with_mean,
            .kind = OpKind::reduction,
            .decompose =
                [](LazyTensor x, Ints dim, std::optional<Scalar> correction, bool keepdim) {
                  return LazyTensors{kSpread(x, dim, correction.value_or(kUnbiased), keepdim),
                                     mean(x, dim, keepdim)};
                },
            .samples = "f32[2,3] [1] | f32[2,3,4] [0,2] 0 True | f32[4]"});
  rows.add({.schema = with_mean_all,
            .kind = OpKind::reduction,
            .decompose =
                [](LazyTensor x, bool unbiased) {
                  return LazyTensors{kSpread(x, {}, correction_of(unbiased), false), mean(x)};
                },
            .samples = "f32[2,3] | f32[2,3] False"});
  rows.add({.schema = with_mean_dim,
            .kind = OpKind::reduction,
            .decompose =
                [](LazyTensor x, Ints dim, bool unbiased, bool keepdim) {
                  return LazyTensors{kSpread(x, dim, correction_of(unbiased), keepdim),
                                     mean(x, dim, keepdim)};
                },
            .samples = "f32[2,3] [1] | f32[2,3] [0] False True"});
}

}  // namespace

void add_statistics_rows(OperationTable& rows) {
  add_spread(rows);
  add_spellings<var>(
      rows, "aten::var(Tensor self, bool unbiased=True) -> Tensor",
      "aten::var.dim(Tensor self, int[1]? dim, bool unbiased=True, bool keepdim=False) -> Tensor",
      "aten::var_mean.correction(Tensor self, int[1]? dim=None, *, Scalar? correction=None, bool "
      "keepdim=False) -> (Tensor, Tensor)",
      "aten::var_mean(Tensor self, bool unbiased=True) -> (Tensor, Tensor)",
      "aten::var_mean.dim(Tensor self, int[1]? dim, bool unbiased=True, bool keepdim=False) -> "
      "(Tensor, Tensor)");
  add_spellings<deviation>(
      rows, "aten::std(Tensor self, bool unbiased=True) -> Tensor",
      "aten::std.dim(Tensor self, int[1]? dim, bool unbiased=True, bool keepdim=False) -> Tensor",
      "aten::std_mean.correction(Tensor self, int[1]? dim=None, *, Scalar? correction=None, bool "
      "keepdim=False) -> (Tensor, Tensor)",
      "aten::std_mean(Tensor self, bool unbiased=True) -> (Tensor, Tensor)",
      "aten::std_mean.dim(Tensor self, int[1]? dim, bool unbiased=True, bool keepdim=False) -> "
      "(Tensor, Tensor)");
}

}  // namespace composit
