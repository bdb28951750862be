// Attention as onnxruntime has it: with the projections of its inputs, with heads that share keys
// and values and a cache of them, and the rotation of positions. Meanings are those of its
// ContribOperators.md and, where that is silent, of its kernels for CPUs.
#include <algorithm>
#include <cmath>
#include <limits>

#include "composit/interchange/onnx_read/rows.h"
#include "composit/ir/error.h"

namespace composit::onnx_read {
namespace {

// What stands for minus infinity: rows that see nothing are means of all values.
double lowest(DType dtype) {
  return dtype == DType::float16 ? -65504.0 : double{std::numeric_limits<float>::lowest()};
}

// Batch, tokens, heads x size -> batch, heads, tokens, size.
LazyTensor by_head(const OperatorCall& call, const LazyTensor& x, int64_t heads) {
  if (x.rank() != 3 || heads < 1 || x.size(2) % heads != 0)
    call.refuse("expected a batch, tokens, and a multiple of the heads");
  return permute(reshape(x, {x.size(0), x.size(1), heads, x.size(2) / heads}), {0, 2, 1, 3});
}
LazyTensor side_by_side(const LazyTensor& x) {
  return reshape(permute(x, {0, 2, 1, 3}), {x.size(0), x.size(2), x.size(1) * x.size(3)});
}

// Of [batch, heads, tokens, size] each; `added` to the products, where there is one.
struct Heads {
  LazyTensor q, k, v, added;
  double scale = 0, cap = 0;
};
LazyTensor attended(const OperatorCall& call, Heads heads) {
  const int64_t groups = heads.k.size(1);
  if (groups < 1 || heads.q.size(1) % groups != 0) call.refuse("its heads are no multiple");
  if (const int64_t repeats = heads.q.size(1) / groups; repeats != 1) {
    heads.k = op("aten::repeat_interleave.self_int", {heads.k, repeats, int64_t{1}});
    heads.v = op("aten::repeat_interleave.self_int", {heads.v, repeats, int64_t{1}});
  }
  if (heads.cap == 0)
    return op("aten::scaled_dot_product_attention",
              {heads.q, heads.k, heads.v, heads.added, 0.0, false, heads.scale});
  LazyTensor products = matmul(heads.q, transpose(heads.k, 2, 3)) * Number(heads.scale);
  products = tanh(products / Number(heads.cap)) * Number(heads.cap);
  return matmul(softmax(heads.added ? products + heads.added : products, 3), heads.v);
}

double scale_of(const OperatorCall& call, int64_t size) {
  const double given = call.real("scale", 0);
  return given == 0 ? 1 / std::sqrt(static_cast<double>(size)) : given;
}

LazyTensor sum_of(const LazyTensor& a, const LazyTensor& b) { return a && b ? a + b : a ? a : b; }

// 0 where a query sees a key.
LazyTensor hidden_unless(const LazyTensor& visible, double otherwise, DType dtype) {
  return where(visible, number_like(0, dtype), number_like(otherwise, dtype));
}

// `past`: tokens before the first query.
LazyTensor causal(int64_t queries, int64_t keys, int64_t past, DType dtype) {
  const LazyTensor query = reshape(arange(queries), {queries, 1}) + Number(past);
  return hidden_unless(query >= reshape(arange(keys), {1, keys}), lowest(dtype), dtype);
}

// Of keys: their number for each batch, or 1 where a key is to be seen.
LazyTensor of_mask(const OperatorCall& call, const LazyTensor& mask, int64_t batch, int64_t queries,
                   int64_t keys, DType dtype) {
  if (!mask) return {};
  const double filter = call.real("mask_filter_value", -10000);
  if (mask.sizes() == Dims{batch}) {
    const LazyTensor seen = reshape(arange(keys), {1, 1, 1, keys}) <
                            reshape(cast(mask, DType::int64), {batch, 1, 1, 1});
    return hidden_unless(seen, filter, dtype);
  }
  const LazyTensor seen = cast(mask, DType::float32) > 0;
  if (mask.sizes() == Dims{batch, keys})
    return hidden_unless(reshape(seen, {batch, 1, 1, keys}), filter, dtype);
  if (mask.sizes() == Dims{batch, queries, keys})
    return hidden_unless(reshape(seen, {batch, 1, queries, keys}), filter, dtype);
  call.refuse("masks of sizes " + str(mask.sizes()) + " are not read");
}

LazyTensors attention(const OperatorCall& call) {
  const LazyTensor &x = call.operand(0), &weight = call.operand(1), bias = call.optional(2);
  const LazyTensor mask = call.optional(3), past = call.optional(4), added = call.optional(5);
  if (call.optional(6)) call.refuse("a cache that is shared (past_sequence_length) is not read");
  if (call.flag("do_rotary")) call.refuse("do_rotary: expected 0");
  call.pass_over({"past_present_share_buffer", "rotary_embedding_dim"});
  if (x.rank() != 3 || weight.rank() != 2 || x.size(2) != weight.size(0))
    call.refuse("expected a batch, tokens and features, and a weight for them");
  Ints widths = call.ints("qkv_hidden_sizes");
  if (widths.empty()) widths = Ints(3, weight.size(1) / 3);
  if (widths.size() != 3 || widths[0] != widths[1] || widths[0] < 1 || widths[2] < 1 ||
      widths[0] > weight.size(1) || widths[0] * 2 + widths[2] != weight.size(1))
    call.refuse("its weight does not have queries, keys and values");
  const int64_t heads = call.integer("num_heads");
  const LazyTensor products = matmul(x, weight), all = bias ? products + bias : products;
  const auto part = [&](int64_t begin, int64_t width) {
    return by_head(call, slice(all, 2, begin, begin + width), heads);
  };
  const LazyTensor q = part(0, widths[0]);
  LazyTensor k = part(widths[0], widths[1]), v = part(2 * widths[0], widths[2]);
  const int64_t before = past ? past.size(-2) : 0;
  if (past) {
    if (past.rank() != 5 || past.size(0) != 2)
      call.refuse("expected keys and values that are past");
    k = cat({op("aten::select.int", {past, int64_t{0}, int64_t{0}}), k}, 2);
    v = cat({op("aten::select.int", {past, int64_t{0}, int64_t{1}}), v}, 2);
  }
  LazyTensor more = sum_of(added, of_mask(call, mask, q.size(0), q.size(2), k.size(2), q.dtype()));
  if (call.flag("unidirectional"))
    more = sum_of(more, causal(q.size(2), k.size(2), before, q.dtype()));
  const LazyTensor y = attended(call, {q, k, v, more, scale_of(call, q.size(3))});
  LazyTensor present;
  if (call.wants(1)) present = cat({unsqueeze(k, 0), unsqueeze(v, 0)}, 0);
  return {side_by_side(y), present};
}

LazyTensors multi_head_attention(const OperatorCall& call) {
  const int64_t heads = call.integer("num_heads");
  if (!call.optional(1) || !call.optional(2) || call.operand(1).rank() != 3 ||
      call.operand(2).rank() != 3)
    call.refuse("queries, keys and values that are packed, or keys by heads, are not read");
  LazyTensor parts[] = {call.operand(0), call.operand(1), call.operand(2)};
  if (const LazyTensor bias = call.optional(3)) {
    int64_t begin = 0;
    for (LazyTensor& one : parts) {
      one = one + slice(bias, 0, begin, begin + one.size(-1));
      begin += one.size(-1);
    }
  }
  const LazyTensor q = by_head(call, parts[0], heads);
  LazyTensor k = by_head(call, parts[1], heads), v = by_head(call, parts[2], heads);
  const int64_t before = call.optional(6) ? call.operand(6).size(2) : 0;
  if (call.optional(6)) k = cat({call.operand(6), k}, 2);
  if (call.optional(7)) v = cat({call.operand(7), v}, 2);
  LazyTensor more = sum_of(call.optional(5), of_mask(call, call.optional(4), q.size(0), q.size(2),
                                                     k.size(2), q.dtype()));
  if (call.flag("unidirectional"))
    more = sum_of(more, causal(q.size(2), k.size(2), before, q.dtype()));
  const LazyTensor y = attended(call, {q, k, v, more, scale_of(call, q.size(3))});
  return {side_by_side(y), k, v};
}

// ---- positions ----------------------------------------------------------------------------------

// Rows of a cache for each token, int64 [batch, tokens]: [batch, 1, tokens, pairs].
LazyTensor rows_at(const LazyTensor& cache, const LazyTensor& places) {
  return unsqueeze(op("aten::embedding", {cache, places}), 1);
}

LazyTensors rotary(const OperatorCall& call) {
  const LazyTensor &given = call.operand(0), &cosines = call.operand(2);
  if (call.flag("is_packed_batching")) call.refuse("is_packed_batching: expected 0");
  if (call.real("scale", 1) != 1) call.refuse("scale: expected 1");
  if (cosines.rank() != 2) call.refuse("its caches are no matrices");
  const int64_t asked = call.integer("rotary_embedding_dim", 0), size = 2 * cosines.size(1);
  if (asked != 0 && asked != size) call.refuse("its caches have another size than it rotates");
  int64_t heads = call.integer("num_heads", 0);
  if (given.rank() == 3 && heads == 0) heads = given.size(2) / std::max<int64_t>(size, 1);
  const LazyTensor x = given.rank() == 4 ? given : by_head(call, given, heads);
  if (size < 2 || size > x.size(3)) call.refuse("its size is out of range");
  LazyTensor places = cast(call.operand(1), DType::int64);
  if (places.numel() == 1 && (x.size(0) != 1 || x.size(2) != 1))
    places = reshape(places, {1, 1}) + reshape(arange(x.size(2)), {1, x.size(2)});
  if (places.rank() != 2 || places.size(1) != x.size(2))
    call.refuse("expected a position for each token, or that of the first");
  const LazyTensor y = rotated(x, rows_at(cosines, places), rows_at(call.operand(3), places), size,
                               call.flag("interleaved"));
  return {given.rank() == 4 ? y : side_by_side(y)};
}

// ---- heads that share keys and values -----------------------------------------------------------

// A call's tokens among those that the cache has: `past` [batch], the tokens before them.
struct Tokens {
  LazyTensor past;
  int64_t count = 0, present = 0;

  LazyTensor places() const {  // [batch, tokens]
    return reshape(past, {past.numel(), 1}) + reshape(arange(count), {1, count});
  }
  // Of the cache, with what is new at its place.
  LazyTensor written(const LazyTensor& cache, const LazyTensor& fresh) const {
    if (!cache || cache.size(2) == 0) return fresh;
    const int64_t batch = fresh.size(0);
    const LazyTensor place = reshape(arange(present), {1, present});
    const LazyTensor of_fresh = place - reshape(past, {batch, 1});
    const auto taken = [&](const LazyTensor& x, const LazyTensor& index) {
      const LazyTensor valid =
          op("aten::clamp", {index, Scalar(int64_t{0}), Scalar(x.size(2) - 1)});
      const LazyTensor all = expand(reshape(valid, {valid.size(0), 1, present, 1}),
                                    {batch, x.size(1), present, x.size(3)});
      return op("aten::gather", {x, int64_t{2}, all});
    };
    const LazyTensor is_fresh = logical_and(of_fresh >= 0, of_fresh < Number(count));
    return where(reshape(is_fresh, {batch, 1, present, 1}), taken(fresh, of_fresh),
                 taken(cache, place));
  }
  LazyTensor hidden(int64_t window, DType dtype) const {
    const LazyTensor distance = reshape(places(), {past.numel(), 1, count, 1}) -
                                reshape(arange(present), {1, 1, 1, present});
    LazyTensor visible = distance >= 0;
    if (window >= 0) visible = logical_and(visible, distance < Number(window));
    return hidden_unless(visible, lowest(dtype), dtype);
  }
};

Tokens tokens_of(const OperatorCall& call, const LazyTensor& q, const LazyTensor& cache) {
  Tokens tokens;
  tokens.count = q.size(2);
  const int64_t total = call.known_int(6), held = cache ? cache.size(2) : 0;
  if (total < tokens.count || (held == 0 && total != tokens.count) || total > held + tokens.count)
    call.refuse("total_sequence_length does not fit what is past and what comes");
  tokens.present = std::max(total, held);
  const LazyTensor last = reshape(cast(call.operand(5), DType::int64), {-1});
  if (last.numel() != q.size(0)) call.refuse("expected a length for each batch");
  tokens.past = total == tokens.count ? zeros({q.size(0)}, DType::int64)
                                      : last + Number(int64_t{1}) - Number(tokens.count);
  return tokens;
}

LazyTensors group_query_attention(const OperatorCall& call) {
  const int64_t heads = call.integer("num_heads"), groups = call.integer("kv_num_heads");
  if (call.flag("smooth_softmax")) call.refuse("smooth_softmax: expected 0");
  if (call.integer("qk_output", 0) != 0) call.refuse("qk_output: expected 0");
  LazyTensor q = call.operand(0), k = call.optional(1), v = call.optional(2);
  if (heads < 1 || groups < 1 || heads > (1 << 20) || groups > (1 << 20))
    call.refuse("its numbers of heads are out of range");
  if (!k) {
    const int64_t size = q.size(-1) / (heads + 2 * groups);
    const LazyTensor all = q;
    q = slice(all, 2, 0, heads * size);
    k = slice(all, 2, heads * size, (heads + groups) * size);
    v = slice(all, 2, (heads + groups) * size, (heads + 2 * groups) * size);
  }
  if (!v) call.refuse("expected values beside its keys");
  q = by_head(call, q, heads);
  k = by_head(call, k, groups);
  v = by_head(call, v, groups);
  const LazyTensor past_keys = call.optional(3), past_values = call.optional(4);
  const Tokens tokens = tokens_of(call, q, past_keys);
  if (call.flag("do_rotary")) {
    const LazyTensor &cosines = call.operand(7), &sines = call.operand(8);
    const LazyTensor given = call.optional(9);
    const LazyTensor places = given ? cast(given, DType::int64) : tokens.places();
    const bool pairs = call.flag("rotary_interleaved");
    const auto turned = [&](const LazyTensor& x) {
      return rotated(x, rows_at(cosines, places), rows_at(sines, places), 2 * cosines.size(1),
                     pairs);
    };
    q = turned(q);
    k = turned(k);
  } else {
    call.pass_over({"rotary_interleaved"}, 10);
  }
  if (call.optional(11)) call.refuse("head_sink is not read");
  k = tokens.written(past_keys, k);
  v = tokens.written(past_values, v);
  LazyTensor more = tokens.hidden(call.integer("local_window_size", -1), q.dtype());
  if (const LazyTensor bias = call.optional(10)) more = more + bias;
  const double scale = scale_of(call, q.size(3)), cap = call.real("softcap", 0);
  return {side_by_side(attended(call, {q, k, v, more, scale, cap})), k, v};
}

}  // namespace

void add_microsoft_attention_rows(std::vector<Row>& rows) {
  rows.insert(rows.end(), {{"Attention", attention},
                           {"GroupQueryAttention", group_query_attention},
                           {"MultiHeadAttention", multi_head_attention},
                           {"RotaryEmbedding", rotary}});
}

}  // namespace composit::onnx_read
