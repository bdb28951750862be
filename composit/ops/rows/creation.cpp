// Tensors made from numbers alone.
#include <cmath>

#include "composit/op/promotion.h"
#include "composit/ops/functions.h"

namespace composit {

static Loops filled(const Ints& sizes, const Scalar& value, std::optional<DType> dtype) {
  constexpr DType dtypes[] = {DType::bool_, DType::int64, kDefaultFloat, DType::complex64};
  for (int64_t size : sizes)
    if (size < 0) throw UserError("expected sizes of at least 0, received " + str(sizes));
  Nest nest;
  nest.parallel(sizes);
  return nest.store(Expr::literal(value.value, dtype.value_or(dtypes[value.value.index()])))
      .loops();
}

static Loops filled_like(const In& x, const Scalar& value, std::optional<DType> dtype) {
  return filled(x.sizes(), value, dtype.value_or(x.dtype()));
}

static double number(const Scalar& scalar) {
  if (const auto* integer = std::get_if<int64_t>(&scalar.value))
    return static_cast<double>(*integer);
  if (const auto* real = std::get_if<double>(&scalar.value)) return *real;
  throw UserError("expected a real number");
}

static Loops range(const Scalar& begin, const Scalar& end, const Scalar& step,
                   std::optional<DType> dtype) {
  const double from = number(begin), to = number(end), by = number(step);
  if (by == 0 || (to - from) * by < 0)
    throw UserError("expected a step that leads from start to end, received " + std::to_string(by));
  bool integers = true;
  for (const Scalar& value : {begin, end, step})
    integers = integers && std::holds_alternative<int64_t>(value.value);
  const DType result = dtype.value_or(integers ? DType::int64 : kDefaultFloat);
  Nest nest;
  const Expr i = nest.parallel(static_cast<int64_t>(std::ceil((to - from) / by)));
  const DType inner = category(result) == DTypeCategory::floating ? DType::float64 : DType::int64;
  const Expr value = cast(Expr(begin), inner) + cast(i, inner) * cast(Expr(step), inner);
  return nest.store(cast(value, result)).loops();
}

void add_creation_rows(OperationTable& rows) {
  rows.add({.schema = "aten::full(SymInt[] size, Scalar fill_value, *, ScalarType? dtype=None, "
                      "Layout? layout=None, Device? device=None, bool? pin_memory=None) -> Tensor",
            .loops = [](Ints size, Scalar value,
                        std::optional<DType> dtype) { return filled(size, value, dtype); },
            .samples = "[2,3] 1.5 | [2] 3 | [] 2 float64 | [0] True",
            .bad = "[-1] 2: at least 0"});
  rows.add({.schema = "aten::zeros(SymInt[] size, *, ScalarType? dtype=None, Layout? layout=None, "
                      "Device? device=None, bool? pin_memory=None) -> Tensor",
            .loops = [](Ints size,
                        std::optional<DType> dtype) { return filled(size, Scalar(0.0), dtype); },
            .samples = "[2,3] | [2] int64"});
  rows.add({.schema = "aten::ones(SymInt[] size, *, ScalarType? dtype=None, Layout? layout=None, "
                      "Device? device=None, bool? pin_memory=None) -> Tensor",
            .loops = [](Ints size,
                        std::optional<DType> dtype) { return filled(size, Scalar(1.0), dtype); },
            .samples = "[2,3] | [2] int64"});
  rows.add({.schema =
                "aten::zeros_like(Tensor self, *, ScalarType? dtype=None, Layout? layout=None, "
                "Device? device=None, bool? pin_memory=None, MemoryFormat? "
                "memory_format=None) -> Tensor",
            .loops =
                [](In x, std::optional<DType> dtype) {
                  return filled_like(x, Scalar(int64_t{0}), dtype);
                },
            .samples = "f32[2,3] | i64[2] float32"});
  rows.add({.schema =
                "aten::ones_like(Tensor self, *, ScalarType? dtype=None, Layout? layout=None, "
                "Device? device=None, bool? pin_memory=None, MemoryFormat? "
                "memory_format=None) -> Tensor",
            .loops =
                [](In x, std::optional<DType> dtype) {
                  return filled_like(x, Scalar(int64_t{1}), dtype);
                },
            .samples = "f32[2,3] | i64[2] float32"});
  rows.add({.schema = "aten::full_like(Tensor self, Scalar fill_value, *, ScalarType? dtype=None, "
                      "Layout? layout=None, Device? device=None, bool? pin_memory=None, "
                      "MemoryFormat? memory_format=None) -> Tensor",
            .loops = [](In x, Scalar value,
                        std::optional<DType> dtype) { return filled_like(x, value, dtype); },
            .samples = "f32[2,3] 2 | i64[2] 2.5 float32"});
  rows.add({.schema = "aten::arange(Scalar end, *, ScalarType? dtype=None, Layout? layout=None, "
                      "Device? device=None, bool? pin_memory=None) -> Tensor",
            .loops =
                [](Scalar end, std::optional<DType> dtype) {
                  return range(Scalar(int64_t{0}), end, Scalar(int64_t{1}), dtype);
                },
            .samples = "5 | 2.5 | 0 | 4 float32",
            .bad = "-1: leads from"});
  rows.add({.schema =
                "aten::arange.start_step(Scalar start, Scalar end, Scalar step=1, *, ScalarType? "
                "dtype=None, Layout? layout=None, Device? device=None, bool? "
                "pin_memory=None) -> Tensor",
            .loops = [](Scalar begin, Scalar end, Scalar step,
                        std::optional<DType> dtype) { return range(begin, end, step, dtype); },
            .samples = "1 5 | 5 0 -2 | 0 1 0.25 | 1 4 1 float64",
            .bad = "1 5 -1: leads from"});
  rows.add({.schema = "aten::tril(Tensor self, SymInt diagonal=0) -> Tensor",
            .loops =
                [](In x, int64_t diagonal) {
                  if (x.rank() < 2)
                    throw UserError("expected 2 axes at least, received sizes " + str(x.sizes()));
                  Nest nest;
                  const Index at = nest.parallel(x.sizes());
                  const Expr row = at[at.size() - 2], column = at.back();
                  return nest.store(select(column - row <= diagonal, x(at), 0)).loops();
                },
            .samples = "f32[3,3] | f32[2,3,4] 1 | f32[4,3] -1 | i64[3,3]",
            .bad = "f32[3]: 2 axes"});
  rows.add({.schema = "aten::triu(Tensor self, SymInt diagonal=0) -> Tensor",
            .loops =
                [](In x, int64_t diagonal) {
                  if (x.rank() < 2)
                    throw UserError("expected 2 axes at least, received sizes " + str(x.sizes()));
                  Nest nest;
                  const Index at = nest.parallel(x.sizes());
                  const Expr row = at[at.size() - 2], column = at.back();
                  return nest.store(select(column - row >= diagonal, x(at), 0)).loops();
                },
            .samples = "f32[3,3] | f32[2,3,4] 1 | f32[4,3] -1"});
}

}  // namespace composit
