// Truth and bits: logical and bitwise functions, shifts, and questions about one element.
#include <cmath>

#include "composit/op/promotion.h"
#include "composit/ops/functions.h"

namespace composit {

static void add_logic(OperationTable& rows) {
  rows.add({.schema = "aten::logical_not(Tensor self) -> Tensor",
            .scalar = [](Expr x) { return !x; },
            .samples = "f32[2,3] | bool[3] | i64[3]<2"});
  rows.add({.schema = "aten::logical_and(Tensor self, Tensor other) -> Tensor",
            .scalar = [](Expr x, Expr y) { return x && y; },
            .samples = "f32[2,3] bool[3] | i64[3]<2 i64[3]<2"});
  rows.add({.schema = "aten::logical_or(Tensor self, Tensor other) -> Tensor",
            .scalar = [](Expr x, Expr y) { return x || y; },
            .samples = "f32[2,3] bool[3] | i64[3]<2 i64[3]<2"});
  rows.add(
      {.schema = "aten::logical_xor(Tensor self, Tensor other) -> Tensor",
       .scalar = [](Expr x, Expr y) { return ne(cast(x, DType::bool_), cast(y, DType::bool_)); },
       .samples = "f32[2,3] bool[3] | i64[3]<2 i64[3]<2 | bool[4] bool[4]"});
}

// clang-format off
// The three overloads of a function of bits, and the spelling Python's operator has.
#define COMPOSIT_BITS(name, other_name, expression)                                               \
  rows.add({.schema = "aten::" name ".Tensor(Tensor self, Tensor other) -> Tensor",               \
            .scalar = [](Expr x, Expr y) { return expression; },                                  \
            .samples = "i64[2,3] i64[3] | bool[3] bool[2,3] | u8[3] bool[3] | i32[3] i64[]",      \
            .bad = "f32[2] f32[2]: an integer or bool",                                           \
            .also = {"aten::" other_name ".Tensor"}});                                            \
  rows.add({.schema = "aten::" name ".Scalar(Tensor self, Scalar other) -> Tensor",               \
            .scalar = [](Expr x, Expr y) { return expression; },                                  \
            .samples = "i64[2,3] 6 | bool[3] True | bool[3] 2 | i32[3] -1",                       \
            .bad = "i64[2] 2.5: an integer or bool",                                              \
            .also = {"aten::" other_name ".Scalar"}});                                            \
  rows.add({.schema = "aten::" name ".Scalar_Tensor(Scalar self, Tensor other) -> Tensor",        \
            .scalar = [](Expr x, Expr y) { return expression; },                                  \
            .samples = "6 i64[2,3] | True bool[3]"});

#define COMPOSIT_SHIFT(name, other_name, expression)                                              \
  rows.add({.schema = "aten::" name ".Tensor(Tensor self, Tensor other) -> Tensor",               \
            .scalar = [](Expr x, Expr y) { return expression; },                                  \
            .samples = "i64[2,3] i64[3]<5 | i32[5]=[-8,8,-8,8,-8] i32[5]=[1,2,40,40,-1] | "       \
                       "u8[3] i32[3]<9",                                                          \
            .bad = "f32[2] f32[2]: an integer or bool",                                           \
            .also = {"aten::" other_name ".Tensor"}});                                            \
  rows.add({.schema = "aten::" other_name ".Scalar(Tensor self, Scalar other) -> Tensor",         \
            .scalar = [](Expr x, Expr y) { return expression; },                                  \
            .samples = "i64[2,3] 2 | i32[3] 70",                                                  \
            .also = {"aten::" name ".Tensor_Scalar"}});                                           \
  rows.add({.schema = "aten::" name ".Scalar_Tensor(Scalar self, Tensor other) -> Tensor",        \
            .scalar = [](Expr x, Expr y) { return expression; },                                  \
            .samples = "6 i64[2,3]<4"});
// clang-format on

static void add_bits(OperationTable& rows) {
  rows.add({.schema = "aten::bitwise_not(Tensor self) -> Tensor",
            .scalar = [](Expr x) { return bitwise_not(x); },
            .samples = "i64[3] | bool[3] | u8[3]",
            .bad = "f32[2]: an integer or bool"});
  COMPOSIT_BITS("bitwise_and", "__and__", bitwise_and(x, y))
  COMPOSIT_BITS("bitwise_or", "__or__", bitwise_or(x, y))
  COMPOSIT_BITS("bitwise_xor", "__xor__", bitwise_xor(x, y))
  COMPOSIT_SHIFT("bitwise_left_shift", "__lshift__", shift_left(x, y))
  COMPOSIT_SHIFT("bitwise_right_shift", "__rshift__", shift_right(x, y))
}
#undef COMPOSIT_BITS
#undef COMPOSIT_SHIFT

// |x - y| <= atol + rtol |y|, where equal infinities are close, and NaN is to NaN if so asked.
static Expr is_close(const Expr& x, Expr y, double rtol, double atol, bool equal_nan) {
  if (rtol < 0 || atol < 0) throw UserError("expected rtol and atol of at least 0");
  if (category(y.dtype()) < DTypeCategory::floating) y = cast(y, kDefaultFloat);
  const Expr distance = abs(x - y);
  Expr close = eq(x, y) || (distance < INFINITY && distance <= atol + abs(rtol * y));
  return equal_nan ? close || (isnan(x) && isnan(y)) : close;
}

static void add_questions(OperationTable& rows) {
  rows.add({.schema = "aten::isnan(Tensor self) -> Tensor",
            .scalar = [](Expr x) { return isnan(x); },
            .samples = "f32[2,3] | f32[3]=nan | i64[3]"});
  rows.add({.schema = "aten::isinf(Tensor self) -> Tensor",
            .scalar = [](Expr x) { return eq(abs(x), INFINITY); },
            .samples = "f32[4]=[1,inf,-inf,nan] | i64[3] | c64[2] | bool[2]"});
  rows.add({.schema = "aten::isfinite(Tensor self) -> Tensor",
            .scalar = [](Expr x) { return abs(x) < INFINITY; },
            .samples = "f32[4]=[1,inf,-inf,nan] | i64[3] | c64[2] | bool[2]"});
  rows.add({.schema = "aten::isposinf(Tensor self) -> Tensor",
            .scalar = [](Expr x) { return x >= INFINITY; },
            .samples = "f32[4]=[1,inf,-inf,nan] | i64[3]",
            .bad = "c64[2]: real numbers"});
  rows.add({.schema = "aten::isneginf(Tensor self) -> Tensor",
            .scalar = [](Expr x) { return x <= -INFINITY; },
            .samples = "f32[4]=[1,inf,-inf,nan] | i64[3]",
            .bad = "c64[2]: real numbers"});
  rows.add({.schema = "aten::isreal(Tensor self) -> Tensor",
            .scalar = [](Expr x) { return eq(imag(x), 0); },
            .samples = "f32[2] | c64[3] | i64[2]"});
  rows.add({.schema = "aten::signbit(Tensor self) -> Tensor",
            .scalar =
                [](Expr x) {  // of a float: that of -0, too
                  return (category(x.dtype()) == DTypeCategory::floating ? copysign(1, x) : x) < 0;
                },
            .samples = "f32[4]=[1,-1,0,-0.0] | i64[3] | bool[2] | u8[2]",
            .bad = "c64[2]: real number"});
  rows.add({.schema = "aten::isclose(Tensor self, Tensor other, float rtol=1.0000000000000001e-05, "
                      "float atol=1e-08, bool equal_nan=False) -> Tensor",
            .scalar = [](Expr x, Expr y, double rtol, double atol,
                         bool equal_nan) { return is_close(x, y, rtol, atol, equal_nan); },
            .samples = "f32[2,3] f32[3] | f32[4]=[1,inf,inf,nan] f32[4]=[1.000001,inf,-inf,nan] | "
                       "f32[3]=[1,inf,nan] f32[3]=[1.2,1,nan] 0.3 0.0 True | i64[3]=[1,2,30] "
                       "i64[3]=[1,3,31] 0.1 0.0",
            .bad = "f32[2] f32[2] -1.0: at least 0"});
}

void add_logic_rows(OperationTable& rows) {
  add_logic(rows);
  add_bits(rows);
  add_questions(rows);
}

}  // namespace composit
