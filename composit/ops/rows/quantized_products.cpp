// Integers of 4 bits, two in a byte; products with integers of 8 bits; gradients through rounding.
#include "composit/ops/functions.h"

namespace composit {
namespace {

// ---- integers of 4 bits -------------------------------------------------------------------------

// The integer of 4 bits that has index `j` of a row of bytes, low half first.
Expr nibble(const In& x, Index at) {
  const Expr j = at.back();
  at.back() = floor_divide(j, 2);
  const Expr byte = x(at);
  return select(eq(remainder(j, 2), 0), bitwise_and(byte, 15), shift_right(byte, 4));
}

Loops unpacked(const In& x, bool is_signed) {
  if (x.dtype() != DType::uint8 || x.rank() == 0)
    throw UserError("expected bytes, uint8, along a last axis, received " + str(x.sizes()) +
                    " of " + std::string(name(x.dtype())));
  Ints sizes = x.sizes();
  sizes.back() *= 2;
  Nest nest;
  const Expr bits = nibble(x, nest.parallel(sizes));
  if (!is_signed) return nest.store(bits).loops();
  // Two's complement.
  return nest.store(cast(cast(bitwise_xor(bits, 8), DType::int32) - 8, DType::int8)).loops();
}

void add_int4_rows(OperationTable& rows) {
  rows.add({.schema = "composit::unpack_int4(Tensor bytes) -> Tensor",
            .kind = OpKind::movement,
            .loops = [](In x) { return unpacked(x, true); },
            .samples = "u8[2,3] | u8[2]=[143,112]",
            .bad = "i8[2]: expected bytes"});
  rows.add({.schema = "composit::unpack_uint4(Tensor bytes) -> Tensor",
            .kind = OpKind::movement,
            .loops = [](In x) { return unpacked(x, false); },
            .samples = "u8[2,3] | u8[2]=[143,112]",
            .bad = "f32[2]: expected bytes"});
}

// ---- products -----------------------------------------------------------------------------------

// x [M, K] times the transpose of w, int8 [N, K], and a scale per row of w; sums are float32.
LazyTensor int8_product(const LazyTensor& x, const LazyTensor& w, const LazyTensor& scales) {
  const bool fits = x.rank() == 2 && w.rank() == 2 && scales.rank() == 1 &&
                    x.size(1) == w.size(1) && scales.size(0) == w.size(0);
  if (!fits || w.dtype() != DType::int8)
    throw UserError("expected [M, K], int8 [N, K] and a scale per row of it, received " +
                    str(x.sizes()) + ", " + std::string(name(w.dtype())) + " " + str(w.sizes()) +
                    " and " + str(scales.sizes()));
  if (!is_floating_point(x.dtype()) || x.dtype() == DType::float64 || scales.dtype() != x.dtype())
    throw UserError("expected numbers and scales of float32, float16 or bfloat16, received " +
                    std::string(name(x.dtype())) + " and " + std::string(name(scales.dtype())));
  const LazyTensor sums = matmul(to(x, DType::float32), transpose(to(w, DType::float32), 0, 1));
  return to(sums * to(scales, DType::float32), x.dtype());
}

void add_int8_products(OperationTable& rows) {
  rows.add(
      {.schema = "aten::_weight_int8pack_mm(Tensor self, Tensor mat2, Tensor scales) -> Tensor",
       .kind = OpKind::contraction,
       .decompose = [](LazyTensor x, LazyTensor w,
                       LazyTensor scales) { return LazyTensors{int8_product(x, w, scales)}; },
       .samples = "bf16[4,64] i8[32,64] bf16[32] | f16[4,64] i8[32,64] f16[32]",
       .bad = "f32[2,3] i8[4,2] f32[4]: expected [M, K] | f32[2,3] u8[4,3] f32[4]: int8 [N, K]"});
  rows.add({.schema = "aten::_int_mm(Tensor self, Tensor mat2) -> Tensor",
            .kind = OpKind::contraction,
            .loops =
                [](In a, In b) {
                  if (a.rank() != 2 || b.rank() != 2 || a.size(1) != b.size(0) ||
                      (a.dtype() != DType::int8 && a.dtype() != DType::uint8) ||
                      b.dtype() != DType::int8)
                    throw UserError("expected int8 or uint8 [M, K] and int8 [K, N], received " +
                                    std::string(name(a.dtype())) + " " + str(a.sizes()) + " and " +
                                    std::string(name(b.dtype())) + " " + str(b.sizes()));
                  Nest nest;
                  const Expr m = nest.parallel(a.size(0), "m"), n = nest.parallel(b.size(1), "n");
                  const Expr k = nest.reduction(a.size(1), "k");
                  const Expr sum =
                      nest.sum(cast(a(m, k), DType::int32) * cast(b(k, n), DType::int32));
                  return nest.store(sum).loops();
                },
            .samples = "i8[2,8] i8[8,4] | u8[2,8] i8[8,4]",
            .bad = "i8[2,3] i8[2,3]: expected int8 or uint8 | f32[2,3] f32[3,2]: int8 or uint8"});
}

// ---- derivatives --------------------------------------------------------------------------------

void add_straight_through(OperationTable& rows) {
  rows.add({.schema = "composit::straight_through(Tensor value, Tensor input) -> Tensor",
            .decompose =
                [](LazyTensor value, LazyTensor input) {
                  if (value.sizes() != input.sizes())
                    throw UserError("expected a value of the input's sizes " + str(input.sizes()) +
                                    ", received " + str(value.sizes()));
                  return LazyTensors{apply_one("aten::alias", {value})};
                },
            .vjp =
                [](Vjp v) {
                  return Gradients{LazyTensor(), v.cotangents[0]};
                },
            .samples = "f32[2]=[1,2] f32[2]=[1.25,1.75]",
            .bad = "f32[2] f32[3]: the input's sizes",
            .nondifferentiable = "value"});
}

}  // namespace

void add_quantized_products_rows(OperationTable& rows) {
  add_int4_rows(rows);
  add_int8_products(rows);
  add_straight_through(rows);
}

}  // namespace composit
