// Softmax and the norms.
#include <cmath>
#include <limits>
#include <numeric>

#include "composit/op/promotion.h"
#include "composit/ops/moments.h"

namespace composit {

// Zeros where all of a row is -inf, as where a mask takes everything away.
static LazyTensor safe_softmax(const LazyTensor& x, int64_t dim) {
  expect_floating(x.dtype());
  if (x.numel() == 0) return x;
  const LazyTensor wide = widened(x), most = amax(wide, {dim}, true);
  const LazyTensor e = exp(wide - where(eq(most, -INFINITY), 0, most));
  const LazyTensor total = sum(e, {dim}, true);
  return narrowed(e / where(eq(total, 0), 1, total), x.dtype());
}

static void add_softmax(OperationTable& rows) {
  rows.add(
      {.schema = "aten::_softmax(Tensor self, int dim, bool half_to_float) -> Tensor",
       .kind = OpKind::normalisation,
       .decompose =
           [](LazyTensor x, int64_t dim, bool half_to_float) {
             expect_floating(x.dtype());
             if (half_to_float) x = to(x, DType::float32);
             if (x.numel() == 0) return LazyTensors{x};
             const LazyTensor wide = widened(x), e = exp(wide - amax(wide, {dim}, true));
             return LazyTensors{narrowed(e / sum(e, {dim}, true), x.dtype())};
           },
       .vjp =
           [](Vjp v, LazyTensor x, int64_t dim) {
             return Gradients{apply_one("aten::_softmax_backward_data",
                                        {v.cotangents[0], v.results[0], dim, x.dtype()})};
           },
       .samples =
           "f32[2,5] 1 False | f32[2,3,4] 0 False | f32[2,3]=-200..200 1 False | f32[2,0] 1 False",
       .bad = "i64[3] 0 False: floating point"});
  rows.add({.schema = "aten::_softmax_backward_data(Tensor grad_output, Tensor output, int dim, "
                      "ScalarType input_dtype) -> Tensor",
            .decompose =
                [](LazyTensor g, LazyTensor y, int64_t dim, DType dtype) {
                  const LazyTensor wide = widened(y), gy = widened(g) * wide;
                  return LazyTensors{to(gy - wide * sum(gy, {dim}, true), dtype)};
                },
            .samples = "f32[2,5] f32[2,5] 1 float32"});
}

static void add_log_softmax(OperationTable& rows) {
  rows.add({.schema = "aten::_log_softmax(Tensor self, int dim, bool half_to_float) -> Tensor",
            .kind = OpKind::normalisation,
            .decompose =
                [](LazyTensor x, int64_t dim, bool half_to_float) {
                  expect_floating(x.dtype());
                  if (half_to_float) x = to(x, DType::float32);
                  if (x.numel() == 0) return LazyTensors{x};
                  const LazyTensor wide = widened(x), shifted = wide - amax(wide, {dim}, true);
                  return LazyTensors{
                      narrowed(shifted - log(sum(exp(shifted), {dim}, true)), x.dtype())};
                },
            .vjp =
                [](Vjp v, LazyTensor x, int64_t dim) {
                  return Gradients{apply_one("aten::_log_softmax_backward_data",
                                             {v.cotangents[0], v.results[0], dim, x.dtype()})};
                },
            .samples = "f32[2,5] 1 False | f32[2,3]=-200..200 1 False | f32[2,0] 1 False"});
  rows.add({.schema =
                "aten::_log_softmax_backward_data(Tensor grad_output, Tensor output, int dim, "
                "ScalarType input_dtype) -> Tensor",
            .decompose =
                [](LazyTensor g, LazyTensor y, int64_t dim, DType dtype) {
                  const LazyTensor wide = widened(g);
                  return LazyTensors{to(wide - exp(widened(y)) * sum(wide, {dim}, true), dtype)};
                },
            .samples = "f32[2,5] f32[2,5] 1 float32"});
}

static void add_softmax_by_dtype(OperationTable& rows) {
  rows.add({.schema = "aten::_safe_softmax(Tensor self, int dim, ScalarType? dtype=None) -> Tensor",
            .decompose =
                [](LazyTensor x, int64_t dim, std::optional<DType> dtype) {
                  return LazyTensors{safe_softmax(to(x, dtype.value_or(x.dtype())), dim)};
                },
            .vjp =
                [](Vjp v, LazyTensor x, int64_t dim, std::optional<DType> /*dtype*/) {
                  return Gradients{apply_one("aten::_softmax_backward_data",
                                             {v.cotangents[0], v.results[0], dim, x.dtype()})};
                },
            .samples = "f32[2,5] 1 | f32[2,2]=[-inf,-inf,0,1] 1"});
  rows.add({.schema = "aten::softmax.int(Tensor self, int dim, ScalarType? dtype=None) -> Tensor",
            .kind = OpKind::normalisation,
            .decompose =
                [](LazyTensor x, int64_t dim, std::optional<DType> dtype) {
                  return LazyTensors{softmax(to(x, dtype.value_or(x.dtype())), dim)};
                },
            .samples = "f32[2,5] 1 | i64[3]<4 0 float32"});
  rows.add(
      {.schema = "aten::log_softmax.int(Tensor self, int dim, ScalarType? dtype=None) -> Tensor",
       .kind = OpKind::normalisation,
       .decompose =
           [](LazyTensor x, int64_t dim, std::optional<DType> dtype) {
             return LazyTensors{
                 apply_one("aten::_log_softmax", {to(x, dtype.value_or(x.dtype())), dim, false})};
           },
       .samples = "f32[2,5] 1 | i64[3]<4 0 float32"});
}

// ---- normalising over axes ----------------------------------------------------------------------

static Ints last_axes(int64_t count) {
  Ints axes(static_cast<size_t>(count));
  std::iota(axes.begin(), axes.end(), -count);
  return axes;
}

static void expect_normalized(const LazyTensor& x, const Ints& shape) {
  const Ints sizes = x.sizes();
  if (shape.empty() || shape.size() > sizes.size() ||
      !std::equal(shape.begin(), shape.end(), sizes.end() - static_cast<int64_t>(shape.size())))
    throw UserError("expected an input that ends with sizes " + str(shape) + ", received " +
                    str(sizes));
}

static LazyTensors layer_norm_back(const LazyTensor& g, const LazyTensor& x, const Ints& shape,
                                   const LazyTensor& mean, const LazyTensor& rstd,
                                   const std::optional<LazyTensor>& weight,
                                   const std::optional<LazyTensor>& bias,
                                   const std::vector<bool>& mask) {
  const LazyTensor normalized = (x - mean) * rstd;
  const Ints axes = last_axes(static_cast<int64_t>(shape.size()));
  LazyTensors results(3);
  if (mask[0]) results[0] = normalized_back(weight ? g * *weight : g, normalized, rstd, axes);
  if (mask[1] && weight) results[1] = sum_to_size(g * normalized, weight->sizes());
  if (mask[2] && bias) results[2] = sum_to_size(g, bias->sizes());
  return results;
}

static void add_layer_norm(OperationTable& rows) {
  rows.add(
      {.schema = "aten::native_layer_norm(Tensor input, SymInt[] normalized_shape, Tensor? weight, "
                 "Tensor? bias, float eps) -> (Tensor, Tensor, Tensor)",
       .kind = OpKind::normalisation,
       .decompose =
           [](LazyTensor x, Ints shape, std::optional<LazyTensor> weight,
              std::optional<LazyTensor> bias, double eps) {
             expect_normalized(x, shape);
             const DType saved = moments_dtype(x, {weight, bias});
             const Ints axes = last_axes(static_cast<int64_t>(shape.size()));
             const Moments m = moments(widened(x), axes, eps);
             return LazyTensors{to(affine(m.centered * m.rstd, weight, bias), x.dtype()),
                                to(m.mean, saved), to(m.rstd, saved)};
           },
       .vjp =
           [](Vjp v, LazyTensor x, Ints shape, std::optional<LazyTensor> weight,
              std::optional<LazyTensor> bias) {
             if (v.cotangents[1].defined() || v.cotangents[2].defined()) return Gradients{};
             return apply(
                 "aten::native_layer_norm_backward",
                 {v.cotangents[0], x, shape, v.results[1], v.results[2], weight, bias, v.wanted});
           },
       .samples = "f32[2,3,4] [4] f32[4] f32[4] 1e-05 | f32[2,3,4] [3,4] None None 0.1",
       .bad = "f32[2,3] [2] None None 0.1: ends with sizes"});
  rows.add({.schema = "aten::native_layer_norm_backward(Tensor grad_out, Tensor input, SymInt[] "
                      "normalized_shape, Tensor mean, Tensor rstd, Tensor? weight, Tensor? bias, "
                      "bool[3] output_mask) -> (Tensor, Tensor, Tensor)",
            .kind = OpKind::normalisation,
            .decompose =
                [](LazyTensor g, LazyTensor x, Ints shape, LazyTensor mean, LazyTensor rstd,
                   std::optional<LazyTensor> weight, std::optional<LazyTensor> bias,
                   std::vector<bool> mask) {
                  return norm_gradients(layer_norm_back(widened(g), widened(x), shape, mean, rstd,
                                                        weight, bias, mask),
                                        x.dtype(), moments_dtype(x, {weight, bias}));
                },
            .samples = "f32[2,3,4] f32[2,3,4] [4] f32[2,3,1] f32[2,3,1] f32[4] f32[4] "
                       "[True,True,True]"});
  rows.add(
      {.schema = "aten::layer_norm(Tensor input, SymInt[] normalized_shape, Tensor? weight=None, "
                 "Tensor? bias=None, float eps=1e-05, bool cudnn_enable=True) -> Tensor",
       .kind = OpKind::normalisation,
       .decompose =
           [](LazyTensor x, Ints shape, std::optional<LazyTensor> weight,
              std::optional<LazyTensor> bias, double eps) {
             return LazyTensors{apply("aten::native_layer_norm", {x, shape, weight, bias, eps})[0]};
           },
       .samples = "f32[2,3,4] [4] f32[4] f32[4] | f32[2,3] [3]"});
}

// x over the root of the mean of its squares; the eps is the dtype's own where none is given.
static LazyTensors rms_norm(const LazyTensor& x, const Ints& shape,
                            const std::optional<LazyTensor>& weight, std::optional<double> eps) {
  expect_normalized(x, shape);
  expect_floating(x.dtype());
  const double least = x.dtype() == DType::float64 ? std::numeric_limits<double>::epsilon()
                                                   : std::numeric_limits<float>::epsilon();
  const Ints axes = last_axes(static_cast<int64_t>(shape.size()));
  const LazyTensor wide = widened(x);
  const LazyTensor rstd = rsqrt(mean(square(wide), axes, true) + eps.value_or(least));
  return {to(affine(wide * rstd, weight, {}), x.dtype()), rstd};
}

static void add_rms_norm(OperationTable& rows) {
  rows.add({.schema = "aten::rms_norm(Tensor input, SymInt[] normalized_shape, Tensor? "
                      "weight=None, float? eps=None) -> Tensor",
            .kind = OpKind::normalisation,
            .decompose =
                [](LazyTensor x, Ints shape, std::optional<LazyTensor> weight,
                   std::optional<double> eps) {
                  return LazyTensors{rms_norm(x, shape, weight, eps)[0]};
                },
            .samples = "f32[2,3,4] [4] f32[4] 1e-05 | f32[2,3] [3] | f32[2,3,4] [3,4] f32[3,4]",
            .bad = "f32[2,3] [2]: ends with sizes"});
  rows.add({.schema = "aten::_fused_rms_norm(Tensor input, int[] normalized_shape, Tensor? weight, "
                      "float? eps) -> (Tensor, Tensor)",
            .decompose = [](LazyTensor x, Ints shape, std::optional<LazyTensor> weight,
                            std::optional<double> eps) { return rms_norm(x, shape, weight, eps); },
            .samples = "f32[2,3,4] [4] f32[4] 1e-05"});
}

// Weights by their direction and length: one length for each index of the axis `dim`, the first or
// the last, in as many axes as `g` has them.
static void add_weight_norm(OperationTable& rows) {
  rows.add({.schema = "aten::_weight_norm_interface(Tensor v, Tensor g, int dim=0) -> (Tensor, "
                      "Tensor)",
            .decompose =
                [](LazyTensor v, LazyTensor g, int64_t dim) {
                  expect_floating(v.dtype());
                  if (dim != 0 && dim != v.rank() - 1)
                    throw UserError("expected the first axis or the last, received " +
                                    std::to_string(dim));
                  Ints axes;
                  for (int64_t axis = 0; axis < v.rank(); ++axis)
                    if (axis != dim) axes.push_back(axis);
                  const LazyTensor length =
                      axes.empty() ? abs(v) : sqrt(sum(square(v), axes, true));
                  return LazyTensors{v * (reshape(g, length.sizes()) / length),
                                     reshape(length, g.sizes())};
                },
            .samples = "f32[2,3,4] f32[2,1,1] | f32[2,3,4] f32[1,1,4] 2 | f32[3] f32[3] | "
                       "f32[2,3] f32[3] 1",
            .bad = "f32[2,3,4] f32[1,3,1] 1: first axis or the last"});
}

void add_normalization_rows(OperationTable& rows) {
  add_softmax(rows);
  add_log_softmax(rows);
  add_softmax_by_dtype(rows);
  add_layer_norm(rows);
  add_rms_norm(rows);
  add_weight_norm(rows);
}

}  // namespace composit
