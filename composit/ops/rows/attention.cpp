// Scaled dot product attention.
#include <cmath>

#include "composit/op/promotion.h"
#include "composit/ops/functions.h"

namespace composit {

// Each head of k and v serves as many of q.
static LazyTensor repeat_heads(const LazyTensor& x, int64_t heads) {
  const int64_t times = heads / x.size(-3);
  if (times == 1) return x;
  Ints sizes = x.sizes(), repeated = sizes;
  const auto axis = repeated.end() - 2;
  repeated.insert(axis, times);
  sizes[sizes.size() - 3] = heads;
  return reshape(expand(unsqueeze(x, -3), repeated), sizes);
}

// True where query i may see key j.
static LazyTensor causal_mask(int64_t queries, int64_t keys) {
  return tril(full({queries, keys}, Number(Scalar(true)), DType::bool_));
}

static void expect_no_dropout(double dropout) {
  if (dropout > 0)
    throw UserError(
        "dropout draws random numbers, which a decomposition does not; apply it outside");
}

static double scale_of(const LazyTensor& q, const std::optional<double>& scale) {
  return scale.value_or(1 / std::sqrt(static_cast<double>(q.size(-1))));
}

// The scores of each query and key, before the softmax.
static LazyTensor attention_scores(const LazyTensor& q, const LazyTensor& k,
                                   std::optional<LazyTensor> mask, bool causal,
                                   const std::optional<double>& scale) {
  if (causal && mask) throw UserError("expected a mask or is_causal, received both");
  const LazyTensor scores = matmul(q, transpose(k, -2, -1)) * scale_of(q, scale);
  if (causal) mask = causal_mask(q.size(-2), k.size(-2));
  if (!mask) return scores;
  return mask->dtype() == DType::bool_ ? where(*mask, scores, -INFINITY) : scores + *mask;
}

// A query that a mask lets see no key gives zeros.
static LazyTensor attention_weights(const LazyTensor& scores, bool masked) {
  if (!masked) return softmax(scores, -1);
  return apply_one("aten::_safe_softmax", {scores, -1});
}

static LazyTensors attention(const LazyTensor& q, LazyTensor k, LazyTensor v,
                             const std::optional<LazyTensor>& mask, double dropout, bool causal,
                             const std::optional<double>& scale, bool gqa) {
  if (q.rank() < 2 || k.rank() < 2 || v.rank() < 2)
    throw UserError("expected query, key and value of 2 axes at least");
  expect_no_dropout(dropout);
  if (gqa) {
    k = repeat_heads(k, q.size(-3));
    v = repeat_heads(v, q.size(-3));
  }
  const LazyTensor scores = attention_scores(q, k, mask, causal, scale);
  return {matmul(attention_weights(scores, mask.has_value()), v)};
}

// ---- the kernel that LibTorch runs on a CPU -----------------------------------------------------

// Scores of half floats are float32.
static std::optional<LazyTensor> widened(const std::optional<LazyTensor>& x) {
  return x ? std::optional(widened(*x)) : x;
}

static void expect_heads(const LazyTensor& q, const LazyTensor& k, const LazyTensor& v,
                         const std::optional<LazyTensor>& mask) {
  expect_floating(q.dtype());
  if (q.rank() != 4 || k.rank() != 4 || v.rank() != 4)
    throw UserError("expected query, key and value of 4 axes");
  if (k.size(3) != q.size(3) || v.size(3) != q.size(3))
    throw UserError("expected heads of one size, received sizes " + str(q.sizes()) + ", " +
                    str(k.sizes()) + " and " + str(v.sizes()));
  if (mask && mask->dtype() != q.dtype())
    throw UserError("expected a mask of " + std::string(name(q.dtype())) + ", received " +
                    std::string(name(mask->dtype())));
}

// The result, and of each query's scores the logarithm of the sum of exponentials; 0 where a mask
// takes them all away.
static LazyTensors flash_attention(const LazyTensor& q, const LazyTensor& k, const LazyTensor& v,
                                   double dropout, bool causal,
                                   const std::optional<LazyTensor>& mask,
                                   const std::optional<double>& scale) {
  expect_heads(q, k, v, mask);
  expect_no_dropout(dropout);
  const LazyTensor scores = attention_scores(widened(q), widened(k), widened(mask), causal, scale);
  const LazyTensor total = apply_one("aten::logsumexp", {scores, Ints{-1}});
  return {to(matmul(attention_weights(scores, mask.has_value()), widened(v)), q.dtype()),
          mask ? where(eq(total, -INFINITY), 0, total) : total};
}

static LazyTensors flash_attention_back(const LazyTensor& g, const LazyTensor& q,
                                        const LazyTensor& k, const LazyTensor& v,
                                        const LazyTensor& out, const LazyTensor& logsumexp,
                                        bool causal, const std::optional<LazyTensor>& mask,
                                        const std::optional<double>& scale) {
  expect_heads(q, k, v, mask);
  const LazyTensor wide_g = widened(g), wide_q = widened(q), wide_k = widened(k);
  const LazyTensor scores = attention_scores(wide_q, wide_k, widened(mask), causal, scale);
  const LazyTensor shares = exp(scores - unsqueeze(logsumexp, -1));
  const LazyTensor mean_share = sum(wide_g * widened(out), {-1}, true);
  const LazyTensor to_shares = matmul(wide_g, transpose(widened(v), -2, -1));
  const LazyTensor to_scores = shares * (to_shares - mean_share) * scale_of(q, scale);
  return {to(matmul(to_scores, wide_k), q.dtype()),
          to(matmul(transpose(to_scores, -2, -1), wide_q), k.dtype()),
          to(matmul(transpose(shares, -2, -1), wide_g), v.dtype())};
}

static void add_flash_attention(OperationTable& rows) {
  rows.add(
      {.schema = "aten::_scaled_dot_product_flash_attention_for_cpu(Tensor query, Tensor key, "
                 "Tensor value, float dropout_p=0., bool is_causal=False, *, Tensor? "
                 "attn_mask=None, float? scale=None) -> (Tensor output, Tensor logsumexp)",
       .kind = OpKind::contraction,
       .decompose =
           [](LazyTensor q, LazyTensor k, LazyTensor v, double dropout, bool causal,
              std::optional<LazyTensor> mask, std::optional<double> scale) {
             return flash_attention(q, k, v, dropout, causal, mask, scale);
           },
       .vjp =
           [](Vjp v, LazyTensor q, LazyTensor k, LazyTensor value, double dropout, bool causal,
              std::optional<LazyTensor> mask, std::optional<double> scale) {
             if (!v.cotangents[0].defined() || v.cotangents[1].defined()) return Gradients();
             return apply("aten::_scaled_dot_product_flash_attention_for_cpu_backward",
                          {v.cotangents[0], q, k, value, v.results[0], v.results[1], dropout,
                           causal, mask, scale ? ArgumentValue(*scale) : ArgumentValue()});
           },
       .samples = "f32[1,2,3,4] f32[1,2,5,4] f32[1,2,5,4] | f32[2,1,4,3] f32[2,1,4,3] f32[2,1,4,3] "
                  "0.0 True | f32[1,2,3,2] f32[1,2,4,2] f32[1,2,4,2] 0.0 False f32[3,4] 0.5 | "
                  "f32[1,1,2,3] f32[1,1,2,3] f32[1,1,2,3] 0.0 False f32[2,2]=[-inf,-inf,0,1]",
       .bad = "f32[2,3,4] f32[2,3,4] f32[2,3,4]: 4 axes | f32[1,1,2,3] f32[1,1,2,3] f32[1,1,2,2]: "
              "heads of one size | f32[1,1,2,3] f32[1,1,2,3] f32[1,1,2,3] 0.5: dropout | "
              "f32[1,1,2,3] f32[1,1,2,3] f32[1,1,2,3] 0.0 False bool[2,2]: a mask of float32",
       .nondifferentiable = "attn_mask"});
  rows.add({.schema = "aten::_scaled_dot_product_flash_attention_for_cpu_backward(Tensor grad_out, "
                      "Tensor query, Tensor key, Tensor value, Tensor out, Tensor logsumexp, float "
                      "dropout_p, bool is_causal, *, Tensor? attn_mask=None, float? scale=None) -> "
                      "(Tensor grad_query, Tensor grad_key, Tensor grad_value)",
            .kind = OpKind::contraction,
            .decompose =
                [](LazyTensor g, LazyTensor q, LazyTensor k, LazyTensor v, LazyTensor out,
                   LazyTensor logsumexp, double dropout, bool causal,
                   std::optional<LazyTensor> mask, std::optional<double> scale) {
                  expect_no_dropout(dropout);
                  return flash_attention_back(g, q, k, v, out, logsumexp, causal, mask, scale);
                },
            .samples =
                "f32[1,2,3,4] f32[1,2,3,4] f32[1,2,5,4] f32[1,2,5,4] f32[1,2,3,4] "
                "f32[1,2,3]=2..5 0.0 False | f32[2,1,4,3] f32[2,1,4,3] f32[2,1,4,3] f32[2,1,4,3] "
                "f32[2,1,4,3] f32[2,1,4]=2..5 0.0 True",
            .nondifferentiable = "attn_mask"});
}

void add_attention_rows(OperationTable& rows) {
  rows.add(
      {.schema = "aten::scaled_dot_product_attention(Tensor query, Tensor key, Tensor value, "
                 "Tensor? attn_mask=None, float dropout_p=0.0, bool is_causal=False, *, float? "
                 "scale=None, bool enable_gqa=False) -> Tensor",
       .kind = OpKind::contraction,
       .decompose = [](LazyTensor q, LazyTensor k, LazyTensor v, std::optional<LazyTensor> mask,
                       double dropout, bool causal, std::optional<double> scale,
                       bool gqa) { return attention(q, k, v, mask, dropout, causal, scale, gqa); },
       .samples =
           "f32[2,3,4] f32[2,5,4] f32[2,5,3] | f32[2,2,3,4] f32[2,2,5,4] f32[2,2,5,4] "
           "f32[3,5] | f32[3,4] f32[5,4] f32[5,4] bool[3,5]=mask | f32[2,4] f32[2,4] f32[2,4] "
           "bool[2,2]=[0,0,1,0] | f32[2,4,4] f32[2,4,4] "
           "f32[2,4,4] None 0.0 True | f32[2,3,4] f32[2,3,4] f32[2,3,4] None 0.0 False 0.5 "
           "| f32[1,4,3,2] f32[1,2,3,2] f32[1,2,3,2] None 0.0 False None True",
       .bad = "f32[2,3] f32[2,3] f32[2,3] f32[2,2] 0.0 True: received both | f32[2,3] f32[2,3] "
              "f32[2,3] None 0.5: dropout"});
  add_flash_attention(rows);
}

}  // namespace composit
