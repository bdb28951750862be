#include "composit/nn/transforms.h"

#include "composit/nn/pooling.h"

namespace composit::nn {

LazyTensor linear(const LazyTensor& x, const LazyTensor& weight, const LazyTensor& bias) {
  return apply_one("aten::linear", {x, weight, bias});
}

LazyTensor scaled_dot_product_attention(const LazyTensor& query, const LazyTensor& key,
                                        const LazyTensor& value, const AttentionOptions& o) {
  constexpr double kNoDropout = 0;
  const ArgumentValue scale = o.scale ? ArgumentValue(*o.scale) : ArgumentValue();
  return apply_one("aten::scaled_dot_product_attention",
                   {query, key, value, o.attn_mask, kNoDropout, o.is_causal, scale, o.enable_gqa});
}

LazyTensor embedding(const LazyTensor& input, const LazyTensor& weight, const EmbeddingOptions& o) {
  if (weight.rank() != 2)
    throw UserError("[embedding] expected a weight of 2 axes, received sizes " +
                    str(weight.sizes()));
  int64_t padding = o.padding_idx.value_or(-1);
  const int64_t rows = weight.size(0);
  if (o.padding_idx && (padding < -rows || padding >= rows))
    throw UserError("[embedding] expected a padding_idx among " + std::to_string(rows) +
                    " rows, received " + std::to_string(padding));
  if (o.padding_idx && padding < 0) padding += rows;
  return apply_one("aten::embedding", {weight, input, padding});
}
LazyTensor one_hot(const LazyTensor& x, int64_t num_classes) {
  return apply_one("aten::one_hot", {x, num_classes});
}

LazyTensor dropout(const LazyTensor& x, double p, const LazyTensor& uniform) {
  if (!(p >= 0 && p <= 1))
    throw UserError("[dropout] expected a probability from 0 to 1, received " + std::to_string(p));
  if (!uniform.defined() || p == 0) return x;
  if (uniform.sizes() != x.sizes())
    throw UserError("[dropout] expected as many random numbers as elements, sizes " +
                    str(x.sizes()) + ", received " + str(uniform.sizes()));
  if (p == 1) return x * 0;
  return x * (to(uniform < 1 - p, x.dtype()) / (1 - p));
}

LazyTensor pad(const LazyTensor& x, const Ints& pad, const PadOptions& o) {
  const ArgumentValue value = o.value ? ArgumentValue(*o.value) : ArgumentValue();
  return apply_one("aten::pad", {x, pad, o.mode, value});
}

// ---- resolution ---------------------------------------------------------------------------------

namespace {

struct Resampling {
  std::string_view mode;
  int64_t axes;
  std::string_view operation;
  bool has_corners;
};
constexpr Resampling kResamplings[] = {
    {"nearest", 1, "aten::upsample_nearest1d.vec", false},
    {"nearest", 2, "aten::upsample_nearest2d.vec", false},
    {"nearest", 3, "aten::upsample_nearest3d.vec", false},
    {"nearest-exact", 1, "aten::_upsample_nearest_exact1d.vec", false},
    {"nearest-exact", 2, "aten::_upsample_nearest_exact2d.vec", false},
    {"nearest-exact", 3, "aten::_upsample_nearest_exact3d.vec", false},
    {"linear", 1, "aten::upsample_linear1d.vec", true},
    {"bilinear", 2, "aten::upsample_bilinear2d.vec", true},
    {"trilinear", 3, "aten::upsample_trilinear3d.vec", true},
    {"bicubic", 2, "aten::upsample_bicubic2d.vec", true}};

const Resampling& resampling(const std::string& mode, int64_t axes) {
  for (const Resampling& row : kResamplings)
    if (row.mode == mode && row.axes == axes) return row;
  throw UserError("[interpolate] expected a mode for inputs of " + std::to_string(axes + 2) +
                  " axes, received '" + mode + "'");
}

// The mean of what lies below each new pixel.
LazyTensor area(const LazyTensor& x, const Ints& size) {
  if (x.rank() == 3) return adaptive_avg_pool1d(x, size);
  return x.rank() == 4 ? adaptive_avg_pool2d(x, size) : adaptive_avg_pool3d(x, size);
}

}  // namespace

LazyTensor interpolate(const LazyTensor& x, const InterpolateOptions& o) {
  const int64_t axes = x.rank() - 2;
  if (o.size.empty() == o.scale_factor.empty())
    throw UserError(std::string("[interpolate] expected either size or scale_factor, received ") +
                    (o.size.empty() ? "neither" : "both"));
  const auto per_axis = [&](auto values) {  // one for all
    if (values.size() == 1)
      values.resize(static_cast<size_t>(std::max<int64_t>(axes, 1)), values[0]);
    return values;
  };
  const Ints size = per_axis(o.size);
  if (o.mode == "area" && axes >= 1 && axes <= 3 && !size.empty()) return area(x, size);
  const Resampling& row = resampling(o.mode, axes);
  if (o.align_corners && !row.has_corners)
    throw UserError("[interpolate] expected a linear or cubic mode with align_corners, received '" +
                    o.mode + "'");
  std::vector<ArgumentValue> arguments{x, size.empty() ? ArgumentValue() : ArgumentValue(size)};
  if (row.has_corners) arguments.emplace_back(o.align_corners.value_or(false));
  arguments.emplace_back(o.scale_factor.empty() ? Attribute()
                                                : Attribute(float_list(per_axis(o.scale_factor))));
  return apply_one(row.operation, std::move(arguments));
}

LazyTensor pixel_shuffle(const LazyTensor& x, int64_t upscale_factor) {
  return apply_one("aten::pixel_shuffle", {x, upscale_factor});
}
LazyTensor pixel_unshuffle(const LazyTensor& x, int64_t downscale_factor) {
  return apply_one("aten::pixel_unshuffle", {x, downscale_factor});
}

LazyTensor unfold(const LazyTensor& x, const Ints& kernel_size, const WindowOptions& o) {
  return apply_one("aten::im2col", {x, kernel_size, o.dilation, o.padding, o.stride});
}
LazyTensor fold(const LazyTensor& x, const Ints& output_size, const Ints& kernel_size,
                const WindowOptions& o) {
  return apply_one("aten::col2im", {x, output_size, kernel_size, o.dilation, o.padding, o.stride});
}

LazyTensor pairwise_distance(const LazyTensor& x1, const LazyTensor& x2,
                             const PairwiseDistanceOptions& o) {
  return apply_one("aten::linalg_vector_norm", {x1 - x2 + o.eps, o.p, Ints{-1}, o.keepdim});
}
LazyTensor cosine_similarity(const LazyTensor& x1, const LazyTensor& x2,
                             const CosineSimilarityOptions& o) {
  return apply_one("aten::cosine_similarity", {x1, x2, o.dim, o.eps});
}

}  // namespace composit::nn
