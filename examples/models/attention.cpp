#include "examples/models/attention.h"

namespace models {
namespace {

/// (N, T, C) -> (N, heads, T, C / heads).
torch::Tensor split_heads(const torch::Tensor& x, int64_t heads) {
  return x.view({x.size(0), -1, heads, x.size(2) / heads}).transpose(1, 2);
}

/// (N, heads, T, C / heads) -> (N, T, C).
torch::Tensor merge_heads(const torch::Tensor& x) { return x.transpose(1, 2).flatten(2); }

}  // namespace

torch::Tensor multi_head_attention(const torch::Tensor& query, const torch::Tensor& key,
                                   const torch::Tensor& value, int64_t heads,
                                   const torch::Tensor& mask, double dropout) {
  const std::optional<torch::Tensor> bias = mask.defined() ? std::optional(mask) : std::nullopt;
  return merge_heads(torch::scaled_dot_product_attention(split_heads(query, heads),
                                                         split_heads(key, heads),
                                                         split_heads(value, heads), bias, dropout));
}

}  // namespace models
