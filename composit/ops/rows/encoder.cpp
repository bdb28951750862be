// The single operators that torch runs for attention and encoder layers in inference: the "fast
// path" of torch.nn.MultiheadAttention and torch.nn.TransformerEncoderLayer.
#include <cmath>

#include "composit/ops/linear_algebra.h"

namespace composit {

static LazyTensor layer_norm(const LazyTensor& x, const LazyTensor& weight, const LazyTensor& bias,
                             double eps) {
  return apply("aten::native_layer_norm", {x, Ints{x.size(-1)}, weight, bias, eps})[0];
}

// Query, key and value side by side in `weight` and `bias`, of a width each.
struct MultiHead {
  int64_t width, heads;
  LazyTensor weight, bias, result_weight, result_bias;
};

// [batch, length, width] as [batch, heads, length, width of a head], of projection `number`.
static LazyTensor projected(const MultiHead& of, const LazyTensor& x, int64_t number) {
  const int64_t begin = number * of.width, end = begin + of.width;
  const LazyTensor y = linear(x, slice(of.weight, 0, begin, end), slice(of.bias, 0, begin, end));
  return transpose(reshape(y, {x.size(0), x.size(1), of.heads, of.width / of.heads}), 1, 2);
}

// Masks the scores: elements that are true in the mask do not count. The kind of a mask of two
// axes: 0 has queries and keys; 1 has batch and keys.
static LazyTensor masked(const LazyTensor& scores, const LazyTensor& mask,
                         std::optional<int64_t> kind) {
  Ints sizes = scores.sizes();
  if (mask.rank() == 2) {
    if (kind != 0 && kind != 1) throw UserError("expected mask_type 0 or 1 for a mask of two axes");
    if (kind == 0) sizes = {sizes[2], sizes[3]};
    if (kind == 1) sizes = {sizes[0], sizes[3]};
  }
  if (mask.sizes() != sizes)
    throw UserError("expected a mask of sizes " + str(sizes) + ", received " + str(mask.sizes()));
  const LazyTensor hidden = to(mask, DType::bool_);
  const bool by_batch = mask.rank() == 2 && kind == 1;
  return where(by_batch ? reshape(hidden, {sizes[0], 1, 1, sizes[1]}) : hidden, -INFINITY, scores);
}

// Also the weights of all keys, by batch, head and query.
static LazyTensors attend(const MultiHead& of, const LazyTensor& query, const LazyTensor& key,
                          const LazyTensor& value, const std::optional<LazyTensor>& mask,
                          std::optional<int64_t> mask_kind) {
  if (query.rank() != 3 || key.rank() != 3 || value.rank() != 3)
    throw UserError("expected query, key and value of 3 axes");
  if (of.heads <= 0 || of.width % of.heads != 0)
    throw UserError("expected a width that is a multiple of the number of heads, received " +
                    std::to_string(of.width) + " and " + std::to_string(of.heads));
  const int64_t width_of_head = of.width / of.heads;
  const double scale = 1 / std::sqrt(static_cast<double>(width_of_head));
  const LazyTensor q = projected(of, query, 0) * scale, k = projected(of, key, 1),
                   v = projected(of, value, 2);
  LazyTensor scores = matmul(q, transpose(k, -2, -1));
  if (mask) scores = masked(scores, *mask, mask_kind);
  const LazyTensor weights = softmax(scores, -1);
  const LazyTensor joined =
      reshape(transpose(matmul(weights, v), 1, 2), {query.size(0), query.size(1), of.width});
  return {linear(joined, of.result_weight, of.result_bias), weights};
}

static void add_multi_head_attention(OperationTable& rows) {
  rows.add(
      {.schema = "aten::_native_multi_head_attention(Tensor query, Tensor key, Tensor value, int "
                 "embed_dim, int num_head, Tensor qkv_weight, Tensor qkv_bias, Tensor "
                 "proj_weight, Tensor proj_bias, Tensor? mask=None, bool need_weights=True, bool "
                 "average_attn_weights=True, int? mask_type=None) -> (Tensor, Tensor)",
       .decompose =
           [](LazyTensor q, LazyTensor k, LazyTensor v, int64_t width, int64_t heads,
              LazyTensor weight, LazyTensor bias, LazyTensor result_weight, LazyTensor result_bias,
              std::optional<LazyTensor> mask, bool need_weights, bool average,
              std::optional<int64_t> mask_kind) {
             LazyTensors results = attend({width, heads, weight, bias, result_weight, result_bias},
                                          q, k, v, mask, mask_kind);
             if (!need_weights)
               results[1] = LazyTensor();
             else if (average)
               results[1] = mean(results[1], {1});
             return results;
           },
       .samples = "f32[2,3,4] f32[2,3,4] f32[2,3,4] 4 2 f32[12,4] f32[12] f32[4,4] f32[4] | "
                  "f32[2,3,4] f32[2,3,4] f32[2,3,4] 4 2 f32[12,4] f32[12] f32[4,4] f32[4] "
                  "bool[2,3]=[0,1,0,0,0,1] True False 1 | "
                  "f32[1,2,4] f32[1,2,4] f32[1,2,4] 4 1 f32[12,4] f32[12] f32[4,4] f32[4] "
                  "bool[2,2]=[0,1,0,0] True True 0 | "
                  "f32[1,2,4] f32[1,2,4] f32[1,2,4] 4 1 f32[12,4] f32[12] f32[4,4] f32[4] "
                  "bool[1,1,2,2]=[0,1,0,0] False True 1",
       .bad = "f32[3,4] f32[3,4] f32[3,4] 4 2 f32[12,4] f32[12] f32[4,4] f32[4]: 3 axes | "
              "f32[1,3,4] f32[1,3,4] f32[1,3,4] 4 3 f32[12,4] f32[12] f32[4,4] f32[4]: multiple of "
              "the number of heads | "
              "f32[1,3,4] f32[1,3,4] f32[1,3,4] 4 2 f32[12,4] f32[12] f32[4,4] f32[4] "
              "bool[3,3]: mask_type 0 or 1 | "
              "f32[1,3,4] f32[1,3,4] f32[1,3,4] 4 2 f32[12,4] f32[12] f32[4,4] f32[4] "
              "bool[1,1,3,3] True True 2: mask of sizes [1, 2, 3, 3]"});
}

static void add_encoder_layer(OperationTable& rows) {
  rows.add(
      {.schema = "aten::_transformer_encoder_layer_fwd(Tensor src, int embed_dim, int num_heads, "
                 "Tensor qkv_weight, Tensor qkv_bias, Tensor proj_weight, Tensor proj_bias, bool "
                 "use_gelu, bool norm_first, float eps, Tensor norm_weight_1, Tensor norm_bias_1, "
                 "Tensor norm_weight_2, Tensor norm_bias_2, Tensor ffn_weight_1, Tensor "
                 "ffn_bias_1, Tensor ffn_weight_2, Tensor ffn_bias_2, Tensor? mask=None, int? "
                 "mask_type=None) -> Tensor",
       .decompose =
           [](LazyTensor x, int64_t width, int64_t heads, LazyTensor weight, LazyTensor bias,
              LazyTensor result_weight, LazyTensor result_bias, bool gelu, bool norm_first,
              double eps, LazyTensor norm_weight_1, LazyTensor norm_bias_1,
              LazyTensor norm_weight_2, LazyTensor norm_bias_2, LazyTensor weight_1,
              LazyTensor bias_1, LazyTensor weight_2, LazyTensor bias_2,
              std::optional<LazyTensor> mask, std::optional<int64_t> mask_kind) {
             const MultiHead attention = {width, heads, weight, bias, result_weight, result_bias};
             const auto norm_1 = [&](const LazyTensor& y) {
               return layer_norm(y, norm_weight_1, norm_bias_1, eps);
             };
             const auto norm_2 = [&](const LazyTensor& y) {
               return layer_norm(y, norm_weight_2, norm_bias_2, eps);
             };
             const auto attended = [&](const LazyTensor& y) {
               return attend(attention, y, y, y, mask, mask_kind)[0];
             };
             const auto forward = [&](const LazyTensor& y) {
               const LazyTensor hidden = linear(y, weight_1, bias_1);
               return linear(gelu ? apply_one("aten::gelu", {hidden}) : relu(hidden), weight_2,
                             bias_2);
             };
             if (norm_first) {
               const LazyTensor middle = x + attended(norm_1(x));
               return LazyTensors{middle + forward(norm_2(middle))};
             }
             const LazyTensor middle = norm_1(x + attended(x));
             return LazyTensors{norm_2(middle + forward(middle))};
           },
       .samples = "f32[2,3,4] 4 2 f32[12,4] f32[12] f32[4,4] f32[4] False False 1e-05 f32[4] "
                  "f32[4] f32[4] f32[4] f32[6,4] f32[6] f32[4,6] f32[4] | "
                  "f32[2,3,4] 4 2 f32[12,4] f32[12] f32[4,4] f32[4] True True 1e-05 f32[4] f32[4] "
                  "f32[4] f32[4] f32[6,4] f32[6] f32[4,6] f32[4] bool[2,3]=[0,1,0,0,0,1] 1"});
}

void add_encoder_rows(OperationTable& rows) {
  add_multi_head_attention(rows);
  add_encoder_layer(rows);
}

}  // namespace composit
