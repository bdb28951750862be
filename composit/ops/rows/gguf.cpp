// Blocks of numbers of few bits as GGUF files hold them: bytes, uint8 [..., bytes per row], become
// float32 [..., columns]. Layouts are those of ggml-common.h in ggml-org/llama.cpp.
//
// A block begins or ends with its scale, a float16 in two bytes, low byte first. Blocks of 256
// have scales of their own for parts of 16 or 32 ("super-blocks", whose names end in K).
#include <limits>
#include <string>

#include "composit/ops/functions.h"

namespace composit {
namespace {

// The block that has column `j` of a row, and the place there.
class Block {
 public:
  Block(const In& bytes, Index at, int64_t columns, int64_t size)
      : bytes_(bytes),
        at_(std::move(at)),
        begin_(floor_divide(at_.back(), columns) * size),
        place_(remainder(at_.back(), columns)) {}

  const Expr& place() const { return place_; }  // from 0 to `columns` - 1
  // The byte at `offset` of the block, as int32.
  Expr byte(const Expr& offset) const {
    Index at = at_;
    at.back() = begin_ + offset;
    return cast(bytes_(at), DType::int32);
  }
  // Two's complement.
  Expr signed_byte(const Expr& offset) const { return bitwise_xor(byte(offset), 128) - 128; }
  // The 4 bits `half` (0: low, 1: high) of a byte.
  Expr nibble(const Expr& offset, const Expr& half) const {
    const Expr both = byte(offset);
    return select(eq(half, 0), bitwise_and(both, 15), shift_right(both, 4));
  }
  Expr float16(int64_t offset) const;

 private:
  In bytes_;
  Index at_;
  Expr begin_, place_;
};

Expr as_float(const Expr& x) { return cast(x, DType::float32); }
Expr as_float(double x) { return Expr::literal(x, DType::float32); }

// A float16 by its bits: (-1)^s * (1024 + m) * 2^(e - 25). Powers of 2 are products of those of the
// exponent's bits, which are exact everywhere.
Expr Block::float16(int64_t offset) const {
  const Expr bits = byte(offset) + shift_left(byte(offset + 1), 8);
  const Expr mantissa = bitwise_and(bits, 1023);
  const Expr exponent = bitwise_and(shift_right(bits, 10), 31);
  const Expr whole = as_float(select(Expr(0) < exponent, mantissa + 1024, mantissa));
  const Expr steps = max(exponent, Expr(1));
  Expr power = as_float(1.0 / (1 << 25));
  for (int bit = 0; bit < 5; ++bit)
    power = power * select(eq(bitwise_and(shift_right(steps, bit), 1), 0), as_float(1.0),
                           as_float(static_cast<double>(int64_t{1} << (1 << bit))));
  const Expr special = select(eq(mantissa, 0), as_float(std::numeric_limits<double>::infinity()),
                              as_float(std::numeric_limits<double>::quiet_NaN()));
  const Expr size = select(eq(exponent, 31), special, whole * power);
  return select(bits < 32768, size, -size);
}

Expr q8_0(const Block& block) {
  return block.float16(0) * as_float(block.signed_byte(block.place() + 2));
}

// Low halves are the first 16 numbers of a block, high halves the others.
Expr halves(const Block& block, int64_t offset) {
  return block.nibble(remainder(block.place(), 16) + offset, floor_divide(block.place(), 16));
}
// The fifth bits of 32 numbers, in 4 bytes.
Expr fifth_bit(const Block& block, int64_t offset) {
  const Expr byte = block.byte(floor_divide(block.place(), 8) + offset);
  return shift_left(
      bitwise_and(shift_right(byte, cast(remainder(block.place(), 8), DType::int32)), 1), 4);
}

Expr q4_0(const Block& block) { return block.float16(0) * as_float(halves(block, 2) - 8); }
Expr q4_1(const Block& block) {
  return block.float16(0) * as_float(halves(block, 4)) + block.float16(2);
}
Expr q5_0(const Block& block) {
  return block.float16(0) * as_float(halves(block, 6) + fifth_bit(block, 2) - 16);
}
Expr q5_1(const Block& block) {
  return block.float16(0) * as_float(halves(block, 8) + fifth_bit(block, 4)) + block.float16(2);
}

// The scale and the minimum of the part of 32 numbers: 6 bits each, 8 of both in 12 bytes from
// byte 4 on. Of the last four, the upper 2 bits stand above those of the first four.
struct Part {
  Expr scale, least;
};
Part part_of(const Block& block) {
  const Expr part = floor_divide(block.place(), 32), late = remainder(part, 4);
  const Expr first = block.byte(late + 4), second = block.byte(late + 8),
             third = block.byte(late + 12);
  const Expr early = part < 4;
  const auto above = [](const Expr& byte) { return shift_left(shift_right(byte, 6), 4); };
  return {select(early, bitwise_and(first, 63), bitwise_and(third, 15) + above(first)),
          select(early, bitwise_and(second, 63), shift_right(third, 4) + above(second))};
}
// 64 numbers in 32 bytes: low halves, then high halves.
Expr quarter_nibble(const Block& block, int64_t offset) {
  const Expr place = block.place();
  return block.nibble(floor_divide(place, 64) * 32 + remainder(place, 32) + offset,
                      remainder(floor_divide(place, 32), 2));
}
Expr scaled_less_least(const Block& block, const Expr& number) {
  const Part part = part_of(block);
  return block.float16(0) * as_float(part.scale) * as_float(number) -
         block.float16(2) * as_float(part.least);
}

Expr q4_K(const Block& block) { return scaled_less_least(block, quarter_nibble(block, 16)); }
Expr q5_K(const Block& block) {
  const Expr part = cast(floor_divide(block.place(), 32), DType::int32);
  const Expr bits = block.byte(remainder(block.place(), 32) + 16);
  const Expr fifth = shift_left(bitwise_and(shift_right(bits, part), 1), 4);
  return scaled_less_least(block, quarter_nibble(block, 48) + fifth);
}
// 4 bits of 256 numbers, their upper 2 bits, 16 scales of int8, and the scale of all.
Expr q6_K(const Block& block) {
  const Expr place = block.place(), half = floor_divide(place, 128);
  const Expr quarter = remainder(floor_divide(place, 32), 4), l = remainder(place, 32);
  const Expr low =
      block.nibble(half * 64 + remainder(quarter, 2) * 32 + l, floor_divide(quarter, 2));
  const Expr bits = block.byte(half * 32 + l + 128);
  const Expr high = bitwise_and(shift_right(bits, cast(quarter * 2, DType::int32)), 3);
  const Expr scale = block.signed_byte(floor_divide(place, 16) + 192);
  return block.float16(208) * as_float(scale) * as_float(low + shift_left(high, 4) - 32);
}

// 2 bits of 256 numbers from byte `offset` on: 32 bytes for each 128, by quarters.
Expr pair_of_bits(const Block& block, int64_t offset) {
  const Expr place = block.place(), quarter = remainder(floor_divide(place, 32), 4);
  const Expr bits = block.byte(floor_divide(place, 128) * 32 + remainder(place, 32) + offset);
  return bitwise_and(shift_right(bits, cast(quarter * 2, DType::int32)), 3);
}

// 16 bytes of a scale and a minimum, 4 bits each; then numbers, and the scales of both.
Expr q2_K(const Block& block) {
  const Expr part = block.byte(floor_divide(block.place(), 16));
  return block.float16(80) * as_float(bitwise_and(part, 15)) * as_float(pair_of_bits(block, 16)) -
         block.float16(82) * as_float(shift_right(part, 4));
}

// The third bits of 256 numbers, their lower 2 bits, 16 scales of 6 bits in 12 bytes from byte 96
// on, as low halves, high halves and upper 2 bits; and the scale of all.
Expr q3_K(const Block& block) {
  const Expr place = block.place(), part = floor_divide(place, 16);
  const Expr third =
      shift_right(block.byte(remainder(place, 32)), cast(floor_divide(place, 32), DType::int32));
  const Expr number = pair_of_bits(block, 32) + shift_left(bitwise_and(third, 1), 2) - 4;
  const Expr low = block.nibble(remainder(part, 8) + 96, floor_divide(part, 8));
  const Expr high = shift_right(block.byte(remainder(part, 4) + 104),
                                cast(floor_divide(part, 4) * 2, DType::int32));
  const Expr scale = low + shift_left(bitwise_and(high, 3), 4) - 32;
  return block.float16(108) * as_float(scale) * as_float(number);
}

// The 16 numbers that 4 bits stand for in formats "NL": they lie closer near 0.
Expr uneven(const Expr& bits) {
  constexpr int kNumbers[] = {-127, -104, -83, -65, -49, -35, -22, -10,
                              1,    13,   25,  38,  53,  69,  89,  113};
  std::vector<Expr> left;
  for (const int number : kNumbers) left.push_back(cast(Expr(int64_t{number}), DType::int32));
  for (int bit = 0; left.size() > 1; ++bit) {
    const Expr is_set = eq(bitwise_and(shift_right(bits, bit), 1), 1);
    std::vector<Expr> halved;
    for (size_t i = 0; i < left.size(); i += 2)
      halved.push_back(select(is_set, left[i + 1], left[i]));
    left = std::move(halved);
  }
  return left[0];
}
Expr iq4_nl(const Block& block) { return block.float16(0) * as_float(uneven(halves(block, 2))); }
// Scales of 6 bits for parts of 32: upper 2 bits of all 8 in bytes 2 and 3, lower 4 from byte 4 on.
Expr iq4_xs(const Block& block) {
  const Expr place = block.place(), part = floor_divide(place, 32);
  const Expr low = block.nibble(floor_divide(part, 2) + 4, remainder(part, 2));
  const Expr high = shift_right(block.byte(floor_divide(part, 4) + 2),
                                cast(remainder(part, 4) * 2, DType::int32));
  const Expr scale = low + shift_left(bitwise_and(high, 3), 4) - 32;
  const Expr number =
      block.nibble(part * 16 + remainder(place, 16) + 8, remainder(floor_divide(place, 16), 2));
  return block.float16(0) * as_float(scale) * as_float(uneven(number));
}

Loops dequantized(const In& x, int64_t columns, int64_t size, Expr (*number)(const Block&)) {
  if (x.dtype() != DType::uint8 || x.rank() == 0 || x.size(-1) % size != 0)
    throw UserError("expected bytes, uint8, whose last axis is blocks of " + std::to_string(size) +
                    ", received " + std::string(name(x.dtype())) + " " + str(x.sizes()));
  Ints sizes = x.sizes();
  sizes.back() = sizes.back() / size * columns;
  Nest nest;
  return nest.store(number(Block(x, nest.parallel(sizes), columns, size))).loops();
}

}  // namespace

// clang-format off
#define COMPOSIT_BLOCKS(format, columns, size, samples_)                                           \
  rows.add({.schema = "gguf::dequantize_" #format "(Tensor blocks) -> Tensor",                     \
            .kind = OpKind::movement,                                                              \
            .loops = [](In x) { return dequantized(x, columns, size, format); },                   \
            .samples = samples_,                                                                   \
            .bad = "u8[3]: blocks of " #size " | i8[" #size "]: expected bytes"});
// clang-format on

void add_gguf_rows(OperationTable& rows) {
  COMPOSIT_BLOCKS(q4_0, 32, 18, "u8[2,36] | u8[18]")
  COMPOSIT_BLOCKS(q4_1, 32, 20, "u8[2,40]")
  COMPOSIT_BLOCKS(q5_0, 32, 22, "u8[2,44]")
  COMPOSIT_BLOCKS(q5_1, 32, 24, "u8[2,48]")
  COMPOSIT_BLOCKS(q8_0, 32, 34, "u8[2,68] | u8[34]")
  COMPOSIT_BLOCKS(q4_K, 256, 144, "u8[2,144]")
  COMPOSIT_BLOCKS(q5_K, 256, 176, "u8[2,176]")
  COMPOSIT_BLOCKS(q6_K, 256, 210, "u8[2,210]")
  COMPOSIT_BLOCKS(q2_K, 256, 84, "u8[2,84]")
  COMPOSIT_BLOCKS(q3_K, 256, 110, "u8[2,110]")
  COMPOSIT_BLOCKS(iq4_nl, 32, 18, "u8[2,36]")
  COMPOSIT_BLOCKS(iq4_xs, 256, 136, "u8[2,136]")
}
#undef COMPOSIT_BLOCKS

}  // namespace composit
