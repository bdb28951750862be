#include <cmath>
#include <limits>

#include "composit/interchange/onnx_read/rows.h"
#include "composit/ir/error.h"

namespace composit::onnx_read {
namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity();

// Batch, tokens, heads x size -> batch, heads, tokens, size.
LazyTensor by_head(const OperatorCall& call, const LazyTensor& x, std::string_view heads) {
  if (x.rank() == 4) return x;
  const int64_t count = call.integer(heads);
  if (x.rank() != 3 || count < 1 || x.size(2) % count != 0)
    call.refuse("expected a batch, tokens, and a multiple of the heads");
  return permute(reshape(x, {x.size(0), x.size(1), count, x.size(2) / count}), {0, 2, 1, 3});
}

// What is added to the products: 0, or minus infinity where a token is not to be seen.
struct Mask {
  const OperatorCall& call;
  DType dtype;
  int64_t queries, keys;
  LazyTensor offset;  // tokens before the first query; absent: 0
  int64_t past = 0;
  LazyTensor value = {};

  LazyTensor hidden(const LazyTensor& visible) const {
    return where(visible, number_like(0, dtype), number_like(-kInfinity, dtype));
  }
  void add(const LazyTensor& more) { value = value ? value + more : more; }

  void add_given(LazyTensor mask) {
    if (mask.rank() < 1 || mask.size(-1) > keys) call.refuse("its mask has more tokens than keys");
    const bool is_bool = mask.dtype() == DType::bool_;
    if (mask.size(-1) < keys) {
      const Ints pads = {0, keys - mask.size(-1)};
      const Scalar none = is_bool ? Scalar(int64_t{0}) : Scalar(-kInfinity);
      mask = op("aten::constant_pad_nd", {mask, pads, none});
    }
    add(is_bool ? hidden(mask) : cast(mask, dtype));
  }

  // Query less key, in tokens: [queries, keys], or of each batch.
  LazyTensor distance() const {
    LazyTensor query = reshape(arange(queries), {queries, 1}) + Number(past);
    if (offset) query = query + reshape(offset, {offset.numel(), 1, 1, 1});
    return query - reshape(arange(keys), {1, keys});
  }
};

LazyTensor seen_within(const OperatorCall& call, const Mask& mask) {
  const int64_t left = call.integer("left_window_size", -1);
  const int64_t right = call.integer("right_window_size", -1);
  LazyTensor visible;
  const auto both = [&](const LazyTensor& more) {
    visible = visible ? logical_and(visible, more) : more;
  };
  if (call.flag("is_causal")) both(mask.distance() >= 0);
  if (left >= 0) both(mask.distance() <= Number(left));
  if (right >= 0) both(-mask.distance() <= Number(right));
  return visible;
}

Mask mask_of(const OperatorCall& call, const LazyTensor& q, const LazyTensor& k) {
  Mask mask{call, q.dtype(), q.size(2), k.size(2), {}};
  if (call.optional(4)) mask.past = call.operand(4).size(2);
  LazyTensor lengths;
  if (call.optional(6)) {
    lengths = cast(call.operand(6), DType::int64);
    mask.offset = lengths - Number(mask.queries);
  }
  if (call.optional(3)) mask.add_given(call.operand(3));
  if (const LazyTensor visible = seen_within(call, mask)) mask.add(mask.hidden(visible));
  if (lengths) {
    const LazyTensor token = reshape(arange(mask.keys), {1, 1, 1, mask.keys});
    mask.add(mask.hidden(token < reshape(lengths, {lengths.numel(), 1, 1, 1})));
  }
  return mask;
}

LazyTensors attention(const OperatorCall& call) {
  LazyTensor q = by_head(call, call.operand(0), "q_num_heads");
  LazyTensor k = by_head(call, call.operand(1), "kv_num_heads");
  LazyTensor v = by_head(call, call.operand(2), "kv_num_heads");
  if (call.optional(4)) k = cat({call.operand(4), k}, 2);
  if (call.optional(5)) v = cat({call.operand(5), v}, 2);
  LazyTensors results = {{}, k, v, {}};
  const Mask mask = mask_of(call, q, k);
  if (q.size(1) != k.size(1)) {
    if (k.size(1) < 1 || q.size(1) % k.size(1) != 0) call.refuse("its heads are no multiple");
    const int64_t repeats = q.size(1) / k.size(1);
    k = op("aten::repeat_interleave.self_int", {k, repeats, int64_t{1}});
    v = op("aten::repeat_interleave.self_int", {v, repeats, int64_t{1}});
  }
  const double scale = call.real("scale", 1 / std::sqrt(static_cast<double>(q.size(3))));
  const double cap = call.real("softcap", 0);
  const int64_t shown = call.integer("qk_matmul_output_mode", 0);
  const DType precision = call.dtype("softmax_precision", q.dtype());
  LazyTensor y;
  if (cap == 0 && !call.wants(3) && precision == q.dtype() && q.dtype() == DType::float32) {
    y = op("aten::scaled_dot_product_attention", {q, k, v, mask.value, 0.0, false, scale});
  } else {
    // The operator is defined by others, whose numbers have the dtype of the tensors.
    const LazyTensor root = number_like(std::sqrt(scale), q.dtype()),
                     most = number_like(cap, q.dtype());
    LazyTensor products = matmul(q * root, transpose(k, 2, 3) * root);
    results[3] = products;
    if (cap > 0) products = tanh(products / most) * most;
    if (shown == 1) results[3] = products;
    const LazyTensor masked = mask.value ? products + mask.value : products;
    if (shown == 2) results[3] = masked;
    LazyTensor weights = softmax(cast(masked, precision), 3);
    if (mask.value) {
      const LazyTensor blind = eq(amax(mask.value, {-1}, true), Number(-kInfinity));
      weights = where(blind, number_like(0, precision), weights);
    }
    weights = cast(weights, q.dtype());
    if (shown == 3) results[3] = weights;
    y = matmul(weights, v);
  }
  if (call.operand(0).rank() == 3)
    y = reshape(permute(y, {0, 2, 1, 3}), {y.size(0), y.size(2), y.size(1) * y.size(3)});
  results[0] = y;
  return results;
}

LazyTensors rotary(const OperatorCall& call) {
  const LazyTensor& given = call.operand(0);
  LazyTensor x = by_head(call, given, "num_heads");  // batch, heads, tokens, size
  const int64_t asked = call.integer("rotary_embedding_dim", 0);
  const int64_t size = asked == 0 ? x.size(3) : asked;
  if (size < 0 || size > x.size(3) || size % 2 != 0) call.refuse("its size is out of range");
  const auto cache = [&](size_t index) {
    LazyTensor table = call.operand(index);
    if (const LazyTensor places = call.optional(3))
      table = op("aten::embedding", {table, cast(places, DType::int64)});
    if (table.rank() != 3) call.refuse("its caches have not three axes");
    return unsqueeze(table, 1);
  };
  LazyTensor y = rotated(x, cache(1), cache(2), size, call.flag("interleaved"));
  if (given.rank() == 3) y = reshape(permute(y, {0, 2, 1, 3}), given.sizes());
  return {y};
}

LazyTensors swiglu(const OperatorCall& call) {
  const LazyTensor &a = call.operand(0), &b = call.operand(1);
  if (a.sizes() != b.sizes()) call.refuse("its operands differ in sizes");
  return {a * sigmoid(a * Number(call.real("alpha", 1))) * b};
}

}  // namespace

LazyTensor rotated(const LazyTensor& x, const LazyTensor& c, const LazyTensor& s, int64_t size,
                   bool pairs) {
  const LazyTensor part = slice(x, 3, 0, size);
  const LazyTensor a = pairs ? slice(part, 3, 0, size, 2) : slice(part, 3, 0, size / 2);
  const LazyTensor b = pairs ? slice(part, 3, 1, size, 2) : slice(part, 3, size / 2, size);
  const LazyTensor real = c * a - s * b, imaginary = s * a + c * b;
  const LazyTensor turned =
      pairs ? reshape(cat({unsqueeze(real, 4), unsqueeze(imaginary, 4)}, 4), part.sizes())
            : cat({real, imaginary}, 3);
  return size == x.size(3) ? turned : cat({turned, slice(x, 3, size, x.size(3))}, 3);
}

void add_attention_rows(std::vector<Row>& rows) {
  rows.insert(rows.end(),
              {{"Attention", attention}, {"RotaryEmbedding", rotary}, {"SwiGLU", swiglu}});
}

}  // namespace composit::onnx_read
