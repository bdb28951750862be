#pragma once

// The attention that BERT, CLIP and Stable Diffusion share: heads are split, attended and merged
// again. The projections belong to the models, because each names them differently.
//
//   torch::Tensor out = models::multi_head_attention(query(x), key(x), value(x), /*heads=*/12);

#include <torch/torch.h>

#include <cstdint>

namespace models {

/// softmax(q k^T / sqrt(C / heads)) v in each of `heads` heads.
/// `query` (N, T, C), `key` and `value` (N, S, C) -> (N, T, C). `mask`, when defined, is true where
/// a query sees a key and broadcasts to (N, heads, T, S). `dropout` is the probability that an
/// attention weight is dropped.
torch::Tensor multi_head_attention(const torch::Tensor& query, const torch::Tensor& key,
                                   const torch::Tensor& value, int64_t heads,
                                   const torch::Tensor& mask = {}, double dropout = 0.0);

}  // namespace models
