// Scaled dot product attention.
#include <cmath>

#include "composit/ops/functions.h"

namespace composit {

// Each head of k and v serves as many of q.
static Tensor repeat_heads(const Tensor& x, int64_t heads) {
  const int64_t times = heads / x.size(-3);
  if (times == 1) return x;
  Ints sizes = x.sizes(), repeated = sizes;
  const auto axis = repeated.end() - 2;
  repeated.insert(axis, times);
  sizes[sizes.size() - 3] = heads;
  return reshape(expand(unsqueeze(x, -3), repeated), sizes);
}

// True where query i may see key j.
static Tensor causal_mask(int64_t queries, int64_t keys) {
  return tril(full({queries, keys}, Number(Scalar(true)), DType::bool_));
}

static Tensors attention(Tensor q, Tensor k, Tensor v, std::optional<Tensor> mask, double dropout,
                         bool causal, std::optional<double> scale, bool gqa) {
  if (q.rank() < 2 || k.rank() < 2 || v.rank() < 2)
    throw UserError("expected query, key and value of 2 axes at least");
  if (dropout > 0)
    throw UserError(
        "dropout draws random numbers, which a decomposition does not; apply it outside");
  if (causal && mask) throw UserError("expected a mask or is_causal, received both");
  if (gqa) {
    k = repeat_heads(k, q.size(-3));
    v = repeat_heads(v, q.size(-3));
  }
  Tensor scores = matmul(q, transpose(k, -2, -1)) *
                  scale.value_or(1 / std::sqrt(static_cast<double>(q.size(-1))));
  if (causal) mask = causal_mask(q.size(-2), k.size(-2));
  if (mask)
    scores = mask->dtype() == DType::bool_ ? where(*mask, scores, -INFINITY) : scores + *mask;
  return {matmul(softmax(scores, -1), v)};
}

void add_attention_rows(OperationTable& rows) {
  rows.add(
      {.schema = "aten::scaled_dot_product_attention(Tensor query, Tensor key, Tensor value, "
                 "Tensor? attn_mask=None, float dropout_p=0.0, bool is_causal=False, *, float? "
                 "scale=None, bool enable_gqa=False) -> Tensor",
       .decompose = [](Tensor q, Tensor k, Tensor v, std::optional<Tensor> mask, double dropout,
                       bool causal, std::optional<double> scale,
                       bool gqa) { return attention(q, k, v, mask, dropout, causal, scale, gqa); },
       .samples = "f32[2,3,4] f32[2,5,4] f32[2,5,3] | f32[2,2,3,4] f32[2,2,5,4] f32[2,2,5,4] "
                  "f32[3,5] | f32[3,4] f32[5,4] f32[5,4] bool[3,5]=mask | f32[2,4,4] f32[2,4,4] "
                  "f32[2,4,4] None 0.0 True | f32[2,3,4] f32[2,3,4] f32[2,3,4] None 0.0 False 0.5 "
                  "| f32[1,4,3,2] f32[1,2,3,2] f32[1,2,3,2] None 0.0 False None True",
       .bad = "f32[2,3] f32[2,3] f32[2,3] f32[2,2] 0.0 True: received both | f32[2,3] f32[2,3] "
              "f32[2,3] None 0.5: dropout"});
}

}  // namespace composit
