// Weights of 4 bits as LibTorch packs them for its CPU kernels, and products with them.
//
// The layout is that of aten/src/ATen/native/cpu/int4mm_kernel.cpp (torch 2.13). Rows of the weight
// are taken in blocks, each of which lies term by term: a byte has two rows of one term, low half
// first. How many rows a block has, and which two share a byte, depends on the instructions of the
// processor that packed:
//
// ```text
//   AVX512    64 rows; rows r and r + 32 share a byte
//   AVX2      32 rows; rows r and r + 16 share a byte
//   DEFAULT   32 rows; neighbouring rows share a byte
// ```
//
// In a last block that is not full, neighbours share a byte. A captured call says what it was
// packed for (`packed_for`, what at::get_cpu_capability() was): LibTorch's schema has no such
// argument, and on another processor LibTorch reads the same bytes as other numbers.
#include "composit/ops/functions.h"

namespace composit {
namespace {

struct Layout {
  int64_t rows;     // of a full block
  bool neighbours;  // share a byte in full blocks as well
};

using Processor = std::optional<std::string>;

Layout layout_for(const Processor& processor) {
  if (!processor)
    throw UserError(
        "how a weight of 4 bits is packed depends on the processor, which this call does not name: "
        "capture the program where it was packed, or write packed_for='AVX512', 'AVX2' or "
        "'DEFAULT'");
  if (*processor == "AVX512") return {64, false};
  if (*processor == "AVX2") return {32, false};
  if (*processor == "DEFAULT") return {32, true};
  throw UserError("expected a weight packed for AVX512, AVX2 or DEFAULT, received '" + *processor +
                  "', whose layout is not known");
}

void expect_rows(int64_t rows) {
  if (rows % 16 != 0)
    throw UserError("expected a weight whose rows are a multiple of 16, received " +
                    std::to_string(rows));
}

// Where the integer of a row and a term is: its byte, and whether it is the upper half.
struct Place {
  Expr byte, upper;
};
Place place_of(const Layout& layout, int64_t rows, int64_t terms, const Expr& row,
               const Expr& term) {
  const Expr block = floor_divide(row, layout.rows), within = remainder(row, layout.rows);
  const Expr begin = block * (layout.rows * terms / 2);
  const auto split = [&](int64_t width) {
    return Place{begin + term * (width / 2) + remainder(within, width / 2),
                 floor_divide(within, width / 2)};
  };
  const auto paired = [&](int64_t width) {
    return Place{begin + term * (width / 2) + floor_divide(within, 2), remainder(within, 2)};
  };
  const int64_t last = rows % layout.rows;
  const Place full = layout.neighbours ? paired(layout.rows) : split(layout.rows);
  if (last == 0) return full;
  const Place rest = paired(last);
  if (rows < layout.rows) return rest;
  const Expr is_full = row < rows - last;
  return {select(is_full, full.byte, rest.byte), select(is_full, full.upper, rest.upper)};
}

// uint8 [rows, terms], numbers from 0 to 15, of bytes in a row.
Loops unpacked(const In& bytes, int64_t rows, const Processor& processor) {
  if (bytes.dtype() != DType::uint8 || bytes.rank() != 1 || rows <= 0 ||
      bytes.size(0) * 2 % rows != 0)
    throw UserError("expected bytes, uint8, of " + std::to_string(rows) + " rows, received " +
                    std::string(name(bytes.dtype())) + " " + str(bytes.sizes()));
  const Layout layout = layout_for(processor);
  expect_rows(rows);
  const int64_t terms = bytes.size(0) * 2 / rows;
  Nest nest;
  const Expr row = nest.parallel(rows, "row"), term = nest.parallel(terms, "term");
  const Place place = place_of(layout, rows, terms, row, term);
  const Expr byte = bytes(place.byte);
  return nest.store(select(eq(place.upper, 0), bitwise_and(byte, 15), shift_right(byte, 4)))
      .loops();
}

// The bytes of a weight, int32 [rows, terms].
Loops packed(const In& weight, const Processor& processor) {
  if (weight.dtype() != DType::int32 || weight.rank() != 2 || weight.size(1) % 2 != 0)
    throw UserError("expected int32 [rows, terms], terms even, received " +
                    std::string(name(weight.dtype())) + " " + str(weight.sizes()));
  const int64_t rows = weight.size(0), terms = weight.size(1);
  const Layout layout = layout_for(processor);
  expect_rows(rows);
  Nest nest;
  const Expr i = nest.parallel(rows, "row"), j = nest.parallel(terms / 2, "byte");
  const Expr place = i * (terms / 2) + j;
  const int64_t block_bytes = layout.rows * terms / 2;
  const Expr block = floor_divide(place, block_bytes), within = remainder(place, block_bytes);
  const auto byte = [&](int64_t width, bool neighbours) {
    // Both sides of the selection below are read, so each stays within the weight.
    const Expr at = remainder(within, width / 2);
    const Expr term = min(floor_divide(within, width / 2), terms - 1);
    const Expr row = block * layout.rows + (neighbours ? at * 2 : at);
    const auto read = [&](const Expr& one) { return weight(min(one, rows - 1), term); };
    const Expr low = read(row), high = read(row + (neighbours ? 1 : width / 2));
    return bitwise_and(bitwise_or(shift_left(high, 4), bitwise_and(low, 255)), 255);
  };
  const int64_t last = rows % layout.rows;
  Expr value;
  if (rows >= layout.rows) value = byte(layout.rows, layout.neighbours);
  if (last != 0) {
    const Expr rest = byte(last, true);
    value = value.defined() ? select(block < rows / layout.rows, value, rest) : rest;
  }
  return nest.store(cast(value, DType::uint8)).loops();
}

LazyTensor codes_of(const LazyTensor& weight, const Processor& processor) {
  return apply_one("composit::unpack_int4_blocks",
                   {reshape(weight, {-1}), weight.size(0), *processor});
}

// x [M, K] times the transpose of (code - 8) * scale + zero, in float32.
LazyTensor product(const LazyTensor& x, const LazyTensor& weight, int64_t group,
                   const LazyTensor& scales, const Processor& processor) {
  static_cast<void>(layout_for(processor));
  if (x.rank() != 2 || weight.rank() != 2 || weight.dtype() != DType::uint8 ||
      weight.size(1) * 2 != x.size(1))
    throw UserError("expected [M, K] and bytes, uint8 [N, K / 2], received " + str(x.sizes()) +
                    " and " + std::string(name(weight.dtype())) + " " + str(weight.sizes()));
  const int64_t rows = weight.size(0), terms = x.size(1);
  expect_rows(rows);
  if (group != 32 && group != 64 && group != 128 && group != 256)
    throw UserError("expected groups of 32, 64, 128 or 256, received " + std::to_string(group));
  if (terms % group != 0)
    throw UserError("groups of " + std::to_string(group) + " do not divide the " +
                    std::to_string(terms) + " columns");
  const int64_t groups = terms / group;
  if (scales.rank() != 3 || scales.size(0) < groups || scales.size(1) != rows ||
      scales.size(2) != 2)
    throw UserError("expected a scale and a zero point for each group and row, sizes [" +
                    std::to_string(groups) + ", " + std::to_string(rows) + ", 2], received " +
                    str(scales.sizes()));
  if (!is_floating_point(x.dtype()) || x.dtype() == DType::float64 || scales.dtype() != x.dtype())
    throw UserError("expected numbers and scales of float32, float16 or bfloat16, received " +
                    std::string(name(x.dtype())) + " and " + std::string(name(scales.dtype())));
  const auto beside = [&](int64_t which) {
    const LazyTensor used = apply_one("aten::slice.Tensor", {scales, 0, 0, groups, 1});
    const LazyTensor one = apply_one("aten::select.int", {used, 2, which});
    return reshape(to(transpose(one, 0, 1), DType::float32), {rows, groups, 1});
  };
  const LazyTensor codes = to(codes_of(weight, processor), DType::float32) - 8.0;
  const LazyTensor numbers = reshape(codes, {rows, groups, group}) * beside(0) + beside(1);
  const LazyTensor matrix = reshape(numbers, {rows, terms});
  return to(matmul(to(x, DType::float32), transpose(matrix, 0, 1)), x.dtype());
}

}  // namespace

void add_packed_int4_rows(OperationTable& rows) {
  rows.add(
      {.schema = "composit::unpack_int4_blocks(Tensor bytes, int rows, str? packed_for) -> Tensor",
       .kind = OpKind::movement,
       .loops = [](In bytes, int64_t count,
                   Processor processor) { return unpacked(bytes, count, processor); },
       .samples = "u8[640] 80 'AVX512' | u8[384] 48 'AVX2' | u8[384] 48 'DEFAULT'",
       .bad = "i8[64] 16 'AVX2': expected bytes | u8[64] 16 None: does not name | u8[64] 16 "
              "'SVE': layout is not known | u8[64] 8 'AVX2': a multiple of 16"});
  rows.add(
      {.schema = "aten::_convert_weight_to_int4pack_for_cpu(Tensor self, int innerKTiles, *, "
                 "str? packed_for=None) -> Tensor",
       .kind = OpKind::movement,
       .loops = [](In weight, int64_t, Processor processor) { return packed(weight, processor); },
       .samples = "i32[16,4]=0..15 1 'AVX512' | i32[16,6] 1 'AVX2'",
       .bad = "i64[16,4] 1 'AVX2': expected int32 | i32[16,3] 1 'AVX2': terms even | "
              "i32[16,4] 1: does not name | i32[8,4] 1 'AVX2': a multiple of 16"});
  rows.add({.schema = "aten::_weight_int4pack_mm_for_cpu(Tensor self, Tensor mat2, int qGroupSize, "
                      "Tensor qScaleAndZeros, *, str? packed_for=None) -> Tensor",
            .kind = OpKind::contraction,
            .decompose =
                [](LazyTensor x, LazyTensor weight, int64_t group, LazyTensor scales,
                   Processor processor) {
                  return LazyTensors{product(x, weight, group, scales, processor)};
                },
            .samples = "bf16[3,64] u8[16,32] 32 bf16[2,16,2] 'AVX512' | "
                       "f16[3,64] u8[16,32] 64 f16[1,16,2] 'AVX2'",
            .bad = "f32[3,64] u8[16,32] 32 f32[2,16,2]: does not name | "
                   "f32[3,64] u8[16,31] 32 f32[2,16,2] 'AVX2': uint8 [N, K / 2] | "
                   "f32[3,64] u8[16,32] 16 f32[4,16,2] 'AVX2': groups of 32, 64 | "
                   "f32[3,32] u8[16,16] 64 f32[1,16,2] 'AVX2': do not divide | "
                   "f32[3,64] u8[16,32] 32 f32[1,16,2] 'AVX2': a scale and a zero point | "
                   "f32[3,64] u8[16,32] 32 bf16[2,16,2] 'AVX2': numbers and scales"});
}

}  // namespace composit
