// The rest of torch.nn.functional: linear maps, attention, look-ups, dropout, padding, resizing.
//
//   Tensor y = nn::linear(x, weight, bias);
//   Tensor attended = nn::scaled_dot_product_attention(q, k, v, {.is_causal = true});
//   Tensor larger = nn::interpolate(x, {.scale_factor = {2}, .mode = "bilinear"});
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "composit/ops/functions.h"

namespace composit::nn {

// x [..., in] times weight [out, in], plus bias [out].
Tensor linear(const Tensor& x, const Tensor& weight, const Tensor& bias = {});

// The options of `scaled_dot_product_attention`.
struct AttentionOptions {
  Tensor attn_mask = {};   // bool: true where a query sees a key; floats: added to the scores
  bool is_causal = false;  // a query sees no key behind it
  std::optional<double> scale = {};  // absent: 1 / sqrt(size of a query)
  bool enable_gqa = false;           // each head of key and value serves several of query
};
// query [..., queries, size], key [..., keys, size], value [..., keys, size of a result].
Tensor scaled_dot_product_attention(const Tensor& query, const Tensor& key, const Tensor& value,
                                    const AttentionOptions& options = {});

struct EmbeddingOptions {
  std::optional<int64_t> padding_idx = {};  // this row gets no gradient
};
// Rows of `weight` [rows, size] by number.
Tensor embedding(const Tensor& input, const Tensor& weight, const EmbeddingOptions& options = {});
// int64 [..., num_classes].
Tensor one_hot(const Tensor& x, int64_t num_classes);

// `uniform`: random numbers from 0 to 1, 1 excluded, of the sizes of x; each below 1 - p keeps its
// element, divided by 1 - p. Absent: x itself, as outside of training.
Tensor dropout(const Tensor& x, double p = 0.5, const Tensor& uniform = {});

struct PadOptions {
  std::string mode = "constant";     // or "reflect", "replicate", "circular"
  std::optional<double> value = {};  // of mode "constant"; absent: 0
};
// `pad`: how much to add before and behind the last axis, then the one before, …
Tensor pad(const Tensor& x, const Ints& pad, const PadOptions& options = {});

struct InterpolateOptions {
  Ints size = {};                         // of the result's last axes; or
  std::vector<double> scale_factor = {};  // one for all of these axes, or one per axis
  std::string mode = "nearest";  // nearest-exact, linear, bilinear, trilinear, bicubic, area
  std::optional<bool> align_corners = {};  // for the modes that are linear or cubic
};
// x [batch, channels, ...] at another resolution.
Tensor interpolate(const Tensor& x, const InterpolateOptions& options);
// x [..., channels * factor^2, h, w] as [..., channels, h * factor, w * factor], and back.
Tensor pixel_shuffle(const Tensor& x, int64_t upscale_factor);
Tensor pixel_unshuffle(const Tensor& x, int64_t downscale_factor);

// The options of `unfold` and `fold`, a number per axis.
struct WindowOptions {
  Ints dilation = {1, 1};  // elements from one tap of a window to the next
  Ints padding = {0, 0};   // zeros on both sides
  Ints stride = {1, 1};    // elements from one window to the next
};
// Windows of x [batch, channels, h, w] as columns [batch, channels * kernel, windows], and back:
// the sum of what falls onto each place of `output_size`.
Tensor unfold(const Tensor& x, const Ints& kernel_size, const WindowOptions& options = {});
Tensor fold(const Tensor& x, const Ints& output_size, const Ints& kernel_size,
            const WindowOptions& options = {});

struct PairwiseDistanceOptions {
  double p = 2;          // of the norm
  double eps = 1e-6;     // added to each difference
  bool keepdim = false;  // the last axis stays, with size 1
};
// Along the last axis.
Tensor pairwise_distance(const Tensor& x1, const Tensor& x2,
                         const PairwiseDistanceOptions& options = {});

struct CosineSimilarityOptions {
  int64_t dim = 1;    // the axis
  double eps = 1e-8;  // the least norm that is divided by
};
// The cosine of the angle between vectors along `dim`, which broadcast.
Tensor cosine_similarity(const Tensor& x1, const Tensor& x2,
                         const CosineSimilarityOptions& options = {});

}  // namespace composit::nn
