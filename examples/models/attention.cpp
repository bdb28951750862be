#include "examples/models/attention.h"

#include <optional>

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
  const auto optional_mask = mask.defined() ? std::optional(mask) : std::nullopt;
  const torch::Tensor queries = split_heads(query, heads), keys = split_heads(key, heads),
                      values = split_heads(value, heads);
  const torch::Tensor attended =
      torch::scaled_dot_product_attention(queries, keys, values, optional_mask, dropout);
  return merge_heads(attended);
}

}  // namespace models
