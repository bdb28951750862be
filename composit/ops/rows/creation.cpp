// Tensors made from numbers alone.
#include <cmath>

#include "composit/op/promotion.h"
#include "composit/ops/functions.h"
#include "composit/ops/places.h"

namespace composit {

static Loops filled(const Ints& sizes, const Scalar& value, std::optional<DType> dtype) {
  for (int64_t size : sizes)
    if (size < 0) throw UserError("expected sizes of at least 0, received " + str(sizes));
  Nest nest;
  nest.parallel(sizes);
  return nest.store(Expr::literal(value.value, dtype.value_or(Expr(value).dtype()))).loops();
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

static Loops range(Scalar begin, Scalar end, Scalar step, std::optional<DType> dtype) {
  if (dtype == DType::int64)  // torch counts in the dtype of the result here, in float64 elsewhere
    for (Scalar* value : {&begin, &end, &step})
      *value = Scalar(static_cast<int64_t>(number(*value)));
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

// As torch, from both ends to the middle, so that both are exact.
static Loops spaced(double begin, double end, int64_t steps, DType dtype) {
  if (steps < 0) throw UserError("expected steps of at least 0, received " + std::to_string(steps));
  const bool integers = category(dtype) == DTypeCategory::integer;
  if (integers) {
    begin = std::trunc(begin);
    end = std::trunc(end);
  }
  const DType inner = integers ? DType::float64 : dtype;
  const Expr step = cast(steps > 1 ? (end - begin) / static_cast<double>(steps - 1) : 0.0, inner);
  Nest nest;
  const Expr i = nest.parallel(steps);
  const Expr from_begin = cast(begin, inner) + step * cast(i, inner);
  const Expr from_end = cast(end, inner) - step * cast(steps - 1 - i, inner);
  return nest.store(cast(select(i < (steps + 1) / 2, from_begin, from_end), dtype)).loops();
}

// The same where an end is a tensor.
static LazyTensor spaced(const LazyTensor& begin, const LazyTensor& end, int64_t steps,
                         DType dtype) {
  for (const LazyTensor& one : {begin, end})
    if (one.rank() != 0) throw UserError("expected numbers, received sizes " + str(one.sizes()));
  if (steps < 0) throw UserError("expected steps of at least 0, received " + std::to_string(steps));
  const bool floats = category(dtype) >= DTypeCategory::floating;
  const LazyTensor from = to(begin, dtype), until = to(end, dtype);
  const DType inner = floats ? dtype : DType::float64;
  const LazyTensor first = to(from, inner), last = to(until, inner);
  if (steps < 2) return to(expand(first, {steps}), dtype);
  const LazyTensor step = (last - first) / static_cast<double>(steps - 1);
  const LazyTensor place = arange(steps), behind = (steps - 1) - place;
  return to(where(place < (steps + 1) / 2, first + step * to(place, inner),
                  last - step * to(behind, inner)),
            dtype);
}
static LazyTensor tensor_of(const Scalar& value) {
  return full({}, Number(value), Expr(value).dtype());
}

// Powers of `base`, rounded last.
static LazyTensor powers(const LazyTensor& begin, const LazyTensor& end, int64_t steps, double base,
                         std::optional<DType> dtype) {
  const DType result = dtype.value_or(kDefaultFloat);
  const bool floats = category(result) >= DTypeCategory::floating;
  const LazyTensor exponent = spaced(begin, end, steps, floats ? result : DType::float64);
  return to(apply_one("aten::pow.Scalar", {Scalar(base), exponent}), result);
}

static Loops eye(int64_t n, int64_t m, std::optional<DType> dtype) {
  if (n < 0 || m < 0) throw UserError("expected sizes of at least 0, received " + str({n, m}));
  Nest nest;
  const Expr i = nest.parallel(n), j = nest.parallel(m);
  return nest.store(cast(eq(i, j), dtype.value_or(kDefaultFloat))).loops();
}

static void add_filled(OperationTable& rows) {
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
  // Two operators of LibTorch's forward derivatives: zeros without memory, and the zeros of a
  // tangent.
  rows.add({.schema = "aten::_efficientzerotensor(SymInt[] size, *, ScalarType? dtype=None, "
                      "Layout? layout=None, Device? device=None, bool? pin_memory=None) -> Tensor",
            .loops = [](Ints size,
                        std::optional<DType> dtype) { return filled(size, Scalar(0.0), dtype); },
            .samples = "[2,3] | [2] int64"});
  rows.add({.schema = "aten::_new_zeros_with_same_feature_meta(Tensor self, Tensor other, *, int "
                      "self_num_batch_dims=0) -> Tensor",
            .loops =
                [](In x, In like, int64_t batch_axes) {
                  if (batch_axes < 0 || batch_axes > static_cast<int64_t>(x.sizes().size()))
                    throw UserError(
                        "expected a number of batch axes of the first tensor, received " +
                        std::to_string(batch_axes));
                  const Ints sizes = x.sizes(), batch(sizes.begin(), sizes.begin() + batch_axes);
                  return filled(joined(batch, like.sizes()), Scalar(0.0), x.dtype());
                },
            .samples = "f32[2] f32[2,3] | f32[4,2] f32[3] 1",
            .bad = "f32[2] f32[3] 2: number of batch axes"});
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
}

// Sizes given, dtype and device of another tensor. What torch leaves unset holds zeros here.
static void add_new(OperationTable& rows) {
  rows.add({.schema = "aten::new_zeros(Tensor self, SymInt[] size, *, ScalarType? dtype=None, "
                      "Layout? layout=None, Device? device=None, bool? pin_memory=None) -> Tensor",
            .loops =
                [](In x, Ints size, std::optional<DType> dtype) {
                  return filled(size, Scalar(int64_t{0}), dtype.value_or(x.dtype()));
                },
            .samples = "f32[2] [2,3] | i64[2] [3] float32",
            .bad = "f32[2] [-1]: at least 0"});
  rows.add({.schema = "aten::new_ones(Tensor self, SymInt[] size, *, ScalarType? dtype=None, "
                      "Layout? layout=None, Device? device=None, bool? pin_memory=None) -> Tensor",
            .loops =
                [](In x, Ints size, std::optional<DType> dtype) {
                  return filled(size, Scalar(int64_t{1}), dtype.value_or(x.dtype()));
                },
            .samples = "f32[2] [2,3] | i64[2] [3] float32"});
  rows.add({.schema = "aten::new_full(Tensor self, SymInt[] size, Scalar fill_value, *, "
                      "ScalarType? dtype=None, Layout? layout=None, Device? device=None, bool? "
                      "pin_memory=None) -> Tensor",
            .loops =
                [](In x, Ints size, Scalar value, std::optional<DType> dtype) {
                  return filled(size, value, dtype.value_or(x.dtype()));
                },
            .samples = "f32[2] [2,3] 2 | i64[2] [3] 2.5 float32"});
  rows.add({.schema = "aten::new_empty(Tensor self, SymInt[] size, *, ScalarType? dtype=None, "
                      "Layout? layout=None, Device? device=None, bool? pin_memory=None) -> Tensor",
            .loops =
                [](In x, Ints size, std::optional<DType> dtype) {
                  return filled(size, Scalar(int64_t{0}), dtype.value_or(x.dtype()));
                },
            .samples = "f32[2] [0,3] | i64[2] [0] float32"});
  rows.add({.schema = "aten::new_empty_strided(Tensor self, SymInt[] size, SymInt[] stride, *, "
                      "ScalarType? dtype=None, Layout? layout=None, Device? device=None, bool? "
                      "pin_memory=None) -> Tensor",
            .loops =
                [](In x, Ints size, Ints, std::optional<DType> dtype) {
                  return filled(size, Scalar(int64_t{0}), dtype.value_or(x.dtype()));
                },
            .samples = "f32[2] [0,3] [3,1]"});
  rows.add({.schema = "aten::empty.memory_format(SymInt[] size, *, ScalarType? dtype=None, "
                      "Layout? layout=None, Device? device=None, bool? pin_memory=None, "
                      "MemoryFormat? memory_format=None) -> Tensor",
            .loops = [](Ints size,
                        std::optional<DType> dtype) { return filled(size, Scalar(0.0), dtype); },
            .samples = "[0,3] | [0] int64"});
  rows.add({.schema = "aten::empty_strided(SymInt[] size, SymInt[] stride, *, ScalarType? "
                      "dtype=None, Layout? layout=None, Device? device=None, bool? "
                      "pin_memory=None) -> Tensor",
            .loops = [](Ints size, Ints,
                        std::optional<DType> dtype) { return filled(size, Scalar(0.0), dtype); },
            .samples = "[0,3] [3,1] | [0] [1] int64"});
  rows.add({.schema = "aten::empty_permuted(SymInt[] size, int[] physical_layout, *, ScalarType? "
                      "dtype=None, Layout? layout=None, Device? device=None, bool? "
                      "pin_memory=None) -> Tensor",
            .loops = [](Ints size, Ints,
                        std::optional<DType> dtype) { return filled(size, Scalar(0.0), dtype); },
            .samples = "[0,3] [1,0]"});
  rows.add({.schema = "aten::empty_like(Tensor self, *, ScalarType? dtype=None, Layout? "
                      "layout=None, Device? device=None, bool? pin_memory=None, MemoryFormat? "
                      "memory_format=None) -> Tensor",
            .loops =
                [](In x, std::optional<DType> dtype) {
                  return filled_like(x, Scalar(int64_t{0}), dtype);
                },
            .samples = "f32[0,3] | i64[0] float32"});
  rows.add({.schema = "aten::scalar_tensor(Scalar s, *, ScalarType? dtype=None, Layout? "
                      "layout=None, Device? device=None, bool? pin_memory=None) -> Tensor",
            .loops =
                [](Scalar value, std::optional<DType> dtype) {
                  return filled({}, value, dtype.value_or(kDefaultFloat));
                },
            .samples = "2.5 | 3 int64 | True"});
}

static void add_ranges(OperationTable& rows) {
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
            .samples = "1 5 | 5 0 -2 | 0 1 0.25 | 1 4 1 float64 | -0.9 2.1 2.0 int64",
            .bad = "1 5 -1: leads from"});
  rows.add({.schema = "aten::arange.start(Scalar start, Scalar end, *, ScalarType? dtype=None, "
                      "Layout? layout=None, Device? device=None, bool? pin_memory=None) -> Tensor",
            .loops =
                [](Scalar begin, Scalar end, std::optional<DType> dtype) {
                  return range(begin, end, Scalar(int64_t{1}), dtype);
                },
            .samples = "1 5 | 0.5 3 | -2 2 float64",
            .bad = "5 1: leads from"});
  rows.add({.schema = "aten::linspace(Scalar start, Scalar end, int steps, *, ScalarType? "
                      "dtype=None, Layout? layout=None, Device? device=None, bool? "
                      "pin_memory=None) -> Tensor",
            .loops =
                [](Scalar begin, Scalar end, int64_t steps, std::optional<DType> dtype) {
                  return spaced(number(begin), number(end), steps, dtype.value_or(kDefaultFloat));
                },
            .samples = "0 1 5 | -1 1 4 float64 | 3 3 1 | 2 8 0 | 4.3 -3 9 int64 | 5 -5 6",
            .bad = "0 1 -1: at least 0"});
#define COMPOSIT_SPACES(overload, Begin, End, begin_type, end_type, from, to_, samples_)           \
  rows.add({.schema = "aten::linspace." overload "(" begin_type " start, " end_type                \
                      " end, int steps, *, ScalarType? dtype=None, Layout? layout=None, Device? "  \
                      "device=None, bool? pin_memory=None) -> Tensor",                             \
            .decompose =                                                                           \
                [](Begin begin, End end, int64_t steps, std::optional<DType> dtype) {              \
                  return LazyTensors{spaced(from, to_, steps, dtype.value_or(kDefaultFloat))};     \
                },                                                                                 \
            .samples = samples_ " 5 float64 | " samples_ " 4 int64"});                             \
  rows.add({.schema = "aten::logspace." overload "(" begin_type " start, " end_type                \
                      " end, int steps, float base=10., *, ScalarType? dtype=None, Layout? "       \
                      "layout=None, Device? device=None, bool? pin_memory=None) -> Tensor",        \
            .decompose =                                                                           \
                [](Begin begin, End end, int64_t steps, double base, std::optional<DType> dtype) { \
                  return LazyTensors{powers(from, to_, steps, base, dtype)};                       \
                },                                                                                 \
            .samples = samples_ " 5 2.0 float64"});
  COMPOSIT_SPACES("Tensor_Tensor", LazyTensor, LazyTensor, "Tensor", "Tensor", begin, end,
                  "f32[] f32[]")
  COMPOSIT_SPACES("Tensor_Scalar", LazyTensor, Scalar, "Tensor", "Scalar", begin, tensor_of(end),
                  "f32[] 2")
  COMPOSIT_SPACES("Scalar_Tensor", Scalar, LazyTensor, "Scalar", "Tensor", tensor_of(begin), end,
                  "2 f32[]")
#undef COMPOSIT_SPACES
  rows.add(
      {.schema = "aten::logspace(Scalar start, Scalar end, int steps, float base=10., *, "
                 "ScalarType? dtype=None, Layout? layout=None, Device? device=None, bool? "
                 "pin_memory=None) -> Tensor",
       .decompose =
           [](Scalar begin, Scalar end, int64_t steps, double base, std::optional<DType> dtype) {
             return LazyTensors{powers(tensor_of(begin), tensor_of(end), steps, base, dtype)};
           },
       .samples = "0 1 5 | -1 2 4 2.0 float64 | 0 3 1"});
  rows.add({.schema = "aten::eye(SymInt n, *, ScalarType? dtype=None, Layout? layout=None, Device? "
                      "device=None, bool? pin_memory=None) -> Tensor",
            .loops = [](int64_t n, std::optional<DType> dtype) { return eye(n, n, dtype); },
            .samples = "3 | 2 int64 | 0",
            .bad = "-1: at least 0"});
  rows.add(
      {.schema = "aten::eye.m(SymInt n, SymInt m, *, ScalarType? dtype=None, Layout? "
                 "layout=None, Device? device=None, bool? pin_memory=None) -> Tensor",
       .loops = [](int64_t n, int64_t m, std::optional<DType> dtype) { return eye(n, m, dtype); },
       .samples = "3 2 | 2 4 bool"});
  rows.add({.schema = "aten::one_hot(Tensor self, int num_classes=-1) -> Tensor",
            .loops =
                [](In x, int64_t classes) {
                  if (classes < 1)
                    throw SizesDependOnValues(
                        "expected the number of classes: without it the sizes of the result "
                        "depend on values, which composit does not have");
                  if (x.dtype() != DType::int64)
                    throw UserError("expected classes of int64, received " +
                                    std::string(name(x.dtype())));
                  Nest nest;
                  const Index at = nest.parallel(x.sizes());
                  return nest.store(cast(eq(x(at), nest.parallel(classes)), DType::int64)).loops();
                },
            .samples = "i64[2,3]<4 4 | i64[]<3 5",
            .bad = "i64[3]<3: the number of classes | f32[2] 3: of int64"});
}

void add_creation_rows(OperationTable& rows) {
  add_filled(rows);
  add_new(rows);
  add_ranges(rows);
}

}  // namespace composit
