// The rest of torch.nn.functional: linear maps, attention, look-ups, dropout, padding, resizing.
//
//   LazyTensor y = nn::linear(x, weight, bias);
//   LazyTensor attended = nn::scaled_dot_product_attention(q, k, v, {.is_causal = true});
//   LazyTensor larger = nn::interpolate(x, {.scale_factor = {2}, .mode = "bilinear"});
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "composit/ops/functions.h"

namespace composit::nn {

// x [..., in] times weight [out, in], plus bias [out].
LazyTensor linear(const LazyTensor& x, const LazyTensor& weight, const LazyTensor& bias = {});

// The options of `scaled_dot_product_attention`.
struct AttentionOptions {
  LazyTensor attn_mask = {};  // bool: true where a query sees a key; floats: added to the scores
  bool is_causal = false;     // a query sees no later key
  std::optional<double> scale = {};  // absent: 1 / sqrt(size of a query)
  bool enable_gqa = false;           // each head of key and value serves several of query
};
// query [..., queries, size], key [..., keys, size], value [..., keys, size of a result].
LazyTensor scaled_dot_product_attention(const LazyTensor& query, const LazyTensor& key,
                                        const LazyTensor& value,
                                        const AttentionOptions& options = {});

struct EmbeddingOptions {
  std::optional<int64_t> padding_idx = {};  // this row gets no gradient
};
// Rows of `weight` [rows, size] by number.
LazyTensor embedding(const LazyTensor& input, const LazyTensor& weight,
                     const EmbeddingOptions& options = {});
// int64 [..., num_classes].
LazyTensor one_hot(const LazyTensor& x, int64_t num_classes);

// `uniform`: random numbers from 0 to 1, 1 excluded, of the sizes of x; each below 1 - p keeps its
// element, divided by 1 - p. Absent: x itself, as outside of training.
LazyTensor dropout(const LazyTensor& x, double p = 0.5, const LazyTensor& uniform = {});

struct PadOptions {
  std::string mode = "constant";     // or "reflect", "replicate", "circular"
  std::optional<double> value = {};  // for the mode "constant"; absent: 0
};
// `pad`: numbers of elements to add before and after the last axis, then the one before, …
LazyTensor pad(const LazyTensor& x, const Ints& pad, const PadOptions& options = {});

struct InterpolateOptions {
  Ints size = {};                         // sizes of the result's last axes; or
  std::vector<double> scale_factor = {};  // one for all of these axes, or one per axis
  std::string mode = "nearest";  // nearest-exact, linear, bilinear, trilinear, bicubic, area
  std::optional<bool> align_corners = {};  // for the modes that are linear or cubic
};
// x [batch, channels, ...] at another resolution.
LazyTensor interpolate(const LazyTensor& x, const InterpolateOptions& options);
// x [..., channels * factor^2, h, w] as [..., channels, h * factor, w * factor], and back.
LazyTensor pixel_shuffle(const LazyTensor& x, int64_t upscale_factor);
LazyTensor pixel_unshuffle(const LazyTensor& x, int64_t downscale_factor);

// The options of `unfold` and `fold`, a number per axis.
struct WindowOptions {
  Ints dilation = {1, 1};  // elements from one tap of a window to the next
  Ints padding = {0, 0};   // zeros on both sides
  Ints stride = {1, 1};    // elements from one window to the next
};
// Windows of x [batch, channels, h, w] as columns [batch, channels * kernel, windows], and back:
// the sum of what falls onto each place of `output_size`.
LazyTensor unfold(const LazyTensor& x, const Ints& kernel_size, const WindowOptions& options = {});
LazyTensor fold(const LazyTensor& x, const Ints& output_size, const Ints& kernel_size,
                const WindowOptions& options = {});

struct PairwiseDistanceOptions {
  double p = 2;          // the p of the p-norm
  double eps = 1e-6;     // added to each difference
  bool keepdim = false;  // the last axis stays, with size 1
};
// Along the last axis.
LazyTensor pairwise_distance(const LazyTensor& x1, const LazyTensor& x2,
                             const PairwiseDistanceOptions& options = {});

struct CosineSimilarityOptions {
  int64_t dim = 1;    // the axis
  double eps = 1e-8;  // the least norm that is divided by
};
// The cosine of the angle between vectors along `dim`, which broadcast.
LazyTensor cosine_similarity(const LazyTensor& x1, const LazyTensor& x2,
                             const CosineSimilarityOptions& options = {});

}  // namespace composit::nn
