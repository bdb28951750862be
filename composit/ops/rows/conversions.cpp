// The same elements in another dtype, as another tensor, as real and imaginary parts.
#include "composit/op/promotion.h"
#include "composit/ops/functions.h"

namespace composit {

static Loops converted(const In& x, DType dtype) {
  Nest nest;
  return nest.store(cast(x(nest.parallel(x.sizes())), dtype)).loops();
}

static Gradients converted_back(const Vjp& v, const LazyTensor& x) {
  return {to(v.cotangents[0], x.dtype())};
}

static void add_casts(OperationTable& rows) {
  rows.add({.schema = "aten::to.dtype(Tensor(a) self, ScalarType dtype, bool non_blocking=False, "
                      "bool copy=False, MemoryFormat? memory_format=None) -> Tensor(a)",
            .kind = OpKind::movement,
            .loops = [](In x, DType dtype) { return converted(x, dtype); },
            .vjp = [](Vjp v, LazyTensor x) { return converted_back(v, x); },
            .samples = "f32[2,3] float64 | f32[4]=-3..3 int64 | i64[3] float32 | f32[3] bool | "
                       "f32[2]=[1,2] complex64"});
  rows.add(
      {.schema = "aten::to.dtype_layout(Tensor(a) self, *, ScalarType? dtype=None, Layout? "
                 "layout=None, Device? device=None, bool? pin_memory=None, bool "
                 "non_blocking=False, bool copy=False, MemoryFormat? "
                 "memory_format=None) -> Tensor(a)",
       .kind = OpKind::movement,
       .loops = [](In x,
                   std::optional<DType> dtype) { return converted(x, dtype.value_or(x.dtype())); },
       .vjp = [](Vjp v, LazyTensor x) { return converted_back(v, x); },
       .samples = "f32[2,3] float64 | f32[2] | i64[3] float32"});
  rows.add(
      {.schema = "aten::_to_copy(Tensor self, *, ScalarType? dtype=None, Layout? layout=None, "
                 "Device? device=None, bool? pin_memory=None, bool non_blocking=False, "
                 "MemoryFormat? memory_format=None) -> Tensor",
       .kind = OpKind::movement,
       .loops = [](In x,
                   std::optional<DType> dtype) { return converted(x, dtype.value_or(x.dtype())); },
       .vjp = [](Vjp v, LazyTensor x) { return converted_back(v, x); },
       .samples = "f32[2,3] float64 | f32[2] | i64[3] float32 | f32[] int32"});
  rows.add({.schema = "aten::to.other(Tensor(a) self, Tensor other, bool non_blocking=False, bool "
                      "copy=False, MemoryFormat? memory_format=None) -> Tensor(a)",
            .kind = OpKind::movement,
            .loops = [](In x, In other) { return converted(x, other.dtype()); },
            .vjp = [](Vjp v, LazyTensor x) { return converted_back(v, x); },
            .samples = "f32[2,3] f64[] | i64[3] f32[2] | f32[2] i64[1]"});
  rows.add({.schema = "aten::type_as(Tensor self, Tensor other) -> Tensor",
            .kind = OpKind::movement,
            .loops = [](In x, In other) { return converted(x, other.dtype()); },
            .vjp = [](Vjp v, LazyTensor x) { return converted_back(v, x); },
            .samples = "f32[2,3] f64[] | i64[3] f32[2] | f32[2] i64[1]"});
}

// clang-format off
#define COMPOSIT_CAST(name, dtype, samples_)                                                      \
  rows.add({.schema = "aten::_cast_" name "(Tensor self, bool non_blocking=False) -> Tensor",     \
            .loops = [](In x) { return converted(x, DType::dtype); },                             \
            .vjp = [](Vjp v, LazyTensor x) { return converted_back(v, x); },                          \
            .samples = samples_});
// clang-format on

static void add_named_casts(OperationTable& rows) {
  COMPOSIT_CAST("Byte", uint8, "f32[2,3]=0..9 | i64[3]<9")
  COMPOSIT_CAST("Char", int8, "f32[2,3]=0..9 | i64[3]<9")
  COMPOSIT_CAST("Short", int16, "f32[2,3]=-9..9 | i64[3]")
  COMPOSIT_CAST("Int", int32, "f32[2,3]=-9..9 | i64[3]")
  COMPOSIT_CAST("Long", int64, "f32[2,3]=-9..9 | i32[3]")
  COMPOSIT_CAST("Half", float16, "i64[2,3] | bool[2]")
  COMPOSIT_CAST("Float", float32, "i64[2,3] | bool[2]")
  COMPOSIT_CAST("Double", float64, "f32[2,3] | i64[3]")
}
#undef COMPOSIT_CAST

// clang-format off
#define COMPOSIT_SAME(schema_, ...)                                                               \
  rows.add({.schema = schema_,                                                                    \
            .kind = OpKind::movement,                                                             \
            .loops = [](In x) { return converted(x, x.dtype()); },                                \
            .vjp = [](Vjp v) { return Gradients{v.cotangents[0]}; },                              \
            .samples = "f32[2,3] | i64[3] | f32[] | c64[2]",                                      \
            .also = {__VA_ARGS__}});
// clang-format on

static void add_copies(OperationTable& rows) {
  COMPOSIT_SAME("aten::clone(Tensor self, *, MemoryFormat? memory_format=None) -> Tensor")
  COMPOSIT_SAME(
      "aten::contiguous(Tensor(a) self, *, MemoryFormat memory_format="
      "contiguous_format) -> Tensor(a)")
  COMPOSIT_SAME("aten::alias(Tensor(a) self) -> Tensor(a)", "aten::alias_copy", "aten::lift",
                "aten::lift_fresh", "aten::lift_fresh_copy", "aten::resolve_conj",
                "aten::resolve_neg")
  rows.add({.schema = "aten::positive(Tensor(a) self) -> Tensor(a)",
            .loops =
                [](In x) {
                  if (x.dtype() == DType::bool_) throw UserError("expected numbers, received bool");
                  return converted(x, x.dtype());
                },
            .vjp = [](Vjp v) { return Gradients{v.cotangents[0]}; },
            .samples = "f32[2,3] | i64[3]",
            .bad = "bool[2]: received bool"});
  rows.add({.schema = "aten::detach(Tensor(a) self) -> Tensor(a)",
            .kind = OpKind::movement,
            .loops = [](In x) { return converted(x, x.dtype()); },
            .samples = "f32[2,3] | i64[3]",
            .nondifferentiable = "self",
            .also = {"aten::detach_copy"}});
}

// `value` in every element of a tensor of x's sizes and dtype, which alone is looked at.
static Loops filled(const In& x, const Expr& value) {
  Nest nest;
  nest.parallel(x.sizes());
  return nest.store(cast(value, x.dtype())).loops();
}

static void add_fills(OperationTable& rows) {
  rows.add(
      {.schema = "aten::copy(Tensor self, Tensor src, bool non_blocking=False) -> Tensor",
       .kind = OpKind::movement,
       .loops =
           [](In x, In src) {
             if (broadcast_sizes({x.sizes(), src.sizes()}) != x.sizes())
               throw UserError("sizes " + str(src.sizes()) + " do not broadcast to " +
                               str(x.sizes()));
             Nest nest;
             return nest.store(cast(src.broadcast(nest.parallel(x.sizes())), x.dtype())).loops();
           },
       .samples = "f32[2,3] f32[2,3] | f32[2,3] f32[3] | f32[2,3] i64[] | i64[3] f32[3]",
       .bad = "f32[3] f32[2,3]: do not broadcast"});
  rows.add({.schema = "aten::fill.Scalar(Tensor self, Scalar value) -> Tensor",
            .loops = [](In x, Scalar value) { return filled(x, Expr(value)); },
            .samples = "f32[2,3] 1.5 | i64[3] 2.5 | f32[] 1 | bool[2] 1"});
  rows.add({.schema = "aten::fill.Tensor(Tensor self, Tensor value) -> Tensor",
            .loops =
                [](In x, In value) {
                  if (value.rank() > 0)
                    throw UserError("expected a value without axes, received sizes " +
                                    str(value.sizes()));
                  return filled(x, value(Index{}));
                },
            .samples = "f32[2,3] f32[] | i64[3] i64[] | f32[2] i64[]",
            .bad = "f32[2] f32[1]: without axes"});
  rows.add({.schema = "aten::zero(Tensor self) -> Tensor",
            .loops = [](In x) { return filled(x, 0); },
            .samples = "f32[2,3] | i64[3]"});
}

// ---- complex numbers ----------------------------------------------------------------------------

static void add_parts(OperationTable& rows) {
  rows.add({.schema = "aten::real(Tensor(a) self) -> Tensor(a)",
            .scalar = [](Expr x) { return real(x); },
            .samples = "c64[2,3] | f32[3] | i64[2]"});
  rows.add({.schema = "aten::imag(Tensor(a) self) -> Tensor(a)",
            .scalar =
                [](Expr x) {
                  if (!is_complex(x.dtype()))
                    throw UserError("expected a complex dtype, received " +
                                    std::string(name(x.dtype())));
                  return imag(x);
                },
            .samples = "c64[2,3]",
            .bad = "f32[2]: a complex dtype"});
  rows.add({.schema = "aten::conj_physical(Tensor self) -> Tensor",
            .scalar = [](Expr x) { return conj(x); },
            .samples = "f32[2,3] | c64[3]",
            .also = {"aten::conj", "aten::_conj_physical"}});
  rows.add({.schema = "aten::_conj(Tensor(a) self) -> Tensor(a)",
            .scalar = [](Expr x) { return conj(x); },
            .samples = "c64[3]"});
  rows.add({.schema = "aten::complex(Tensor real, Tensor imag) -> Tensor",
            .scalar = [](Expr x, Expr y) { return complex(x, y); },
            .samples = "f32[2,3] f32[3]"});
  rows.add({.schema = "aten::polar(Tensor abs, Tensor angle) -> Tensor",
            .scalar = [](Expr r, Expr angle) { return complex(r * cos(angle), r * sin(angle)); },
            .samples = "f32[2,3] f32[3]"});
  rows.add({.schema = "aten::view_as_real(Tensor(a) self) -> Tensor(a)",
            .loops =
                [](In x) {
                  if (!is_complex(x.dtype()))
                    throw UserError("expected a complex dtype, received " +
                                    std::string(name(x.dtype())));
                  Nest nest;
                  const Expr z = x(nest.parallel(x.sizes())), part = nest.parallel(2);
                  return nest.store(select(eq(part, 0), real(z), imag(z))).loops();
                },
            .vjp = [](Vjp v) { return apply("aten::view_as_complex", {v.cotangents[0]}); },
            .samples = "c64[2,3] | c64[]",
            .bad = "f32[2]: a complex dtype",
            .also = {"aten::view_as_real_copy"}});
  rows.add({.schema = "aten::view_as_complex(Tensor(a) self) -> Tensor(a)",
            .loops =
                [](In x) {
                  expect_floating(x.dtype());
                  Ints sizes = x.sizes();
                  if (sizes.empty() || sizes.back() != 2)
                    throw UserError("expected a last axis of size 2, received sizes " + str(sizes));
                  sizes.pop_back();
                  Nest nest;
                  Index first = nest.parallel(sizes), second = first;
                  first.emplace_back(0);
                  second.emplace_back(1);
                  return nest.store(complex(x(first), x(second))).loops();
                },
            .vjp = [](Vjp v) { return apply("aten::view_as_real", {v.cotangents[0]}); },
            .samples = "f32[3,2] | f32[2]",
            .bad = "f32[2,3]: axis of size 2 | i64[2]: floating point",
            .also = {"aten::view_as_complex_copy"}});
}

void add_conversions_rows(OperationTable& rows) {
  add_casts(rows);
  add_named_casts(rows);
  add_copies(rows);
  add_fills(rows);
  add_parts(rows);
}

}  // namespace composit
