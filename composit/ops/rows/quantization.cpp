// Numbers as integers with a scale, under the names of torch's quantized_decomposed.
//
// A quantized weight is data and the row that says what it means: `dequantize_per_channel(w8, …)`,
// `dequantize_per_channel_group(unpack_int4(w4), …)`. Definitions are torch's, step by step, in the
// dtypes that promotion gives each step.
#include <limits>

#include "composit/ops/functions.h"
#include "composit/ops/integer_limits.h"

namespace composit {
namespace {

IntegerLimits limits_of(DType dtype) {
  if (const auto limits = integer_limits(dtype)) return *limits;
  throw UserError("expected an integer dtype of at most 32 bits, received " +
                  std::string(name(dtype)));
}

void expect_range(int64_t low, int64_t high, DType dtype) {
  const IntegerLimits limits = limits_of(dtype);
  if (low < limits.low || high > limits.high || low > high)
    throw UserError("expected quant_min and quant_max in order and in the range of " +
                    std::string(name(dtype)) + ", received " + std::to_string(low) + " and " +
                    std::to_string(high));
}

// x, as float32 where it has 16 bits.
LazyTensor expect_real(const LazyTensor& x) {
  if (is_half(x.dtype())) return to(x, DType::float32);
  if (x.dtype() != DType::float32)
    throw UserError("expected float32, float16 or bfloat16, received " +
                    std::string(name(x.dtype())));
  return x;
}

void expect_dtype(const LazyTensor& x, DType dtype) {
  if (x.dtype() != dtype)
    throw UserError("expected a tensor of " + std::string(name(dtype)) +
                    ", as dtype says, received " + std::string(name(x.dtype())));
}

LazyTensor rounded(const LazyTensor& x) { return apply_one("aten::round", {x}); }
LazyTensor clamped(const LazyTensor& x, int64_t low, int64_t high) {
  return apply_one("aten::clamp", {x, Scalar(low), Scalar(high)});
}
// At least `low`; NaN stays.
LazyTensor at_least(const LazyTensor& x, double low) {
  return apply_one("aten::clamp_min", {x, Scalar(low)});
}

// ---- one scale for a tensor ---------------------------------------------------------------------

LazyTensor only_element(const LazyTensor& x, const char* what) {
  if (x.numel() != 1)
    throw UserError(std::string("expected ") + what + " of one element, received sizes " +
                    str(x.sizes()));
  return reshape(x, {});
}

LazyTensor quantized(const LazyTensor& x, const LazyTensor& scale, const LazyTensor& zero,
                     int64_t low, int64_t high, DType dtype) {
  expect_range(low, high, dtype);
  const LazyTensor real = expect_real(x);
  const LazyTensor inverse = 1.0 / to(only_element(scale, "a scale"), DType::float64);
  const LazyTensor scaled = rounded(real * to(inverse, DType::float32));
  return to(clamped(scaled + to(only_element(zero, "a zero point"), DType::float32), low, high),
            dtype);
}

LazyTensor dequantized(const LazyTensor& x, const LazyTensor& scale, const LazyTensor& zero,
                       DType dtype, std::optional<DType> out) {
  expect_dtype(x, dtype);
  static_cast<void>(limits_of(dtype));
  const DType real = out.value_or(DType::float32);
  // A number of Python's in arithmetic of 16 bits is one of float32.
  const DType computed = opmath_dtype(real);
  const LazyTensor moved = to(x, real) - to(only_element(zero, "a zero point"), computed);
  return to(moved * to(only_element(scale, "a scale"), computed), real);
}

LazyTensor number(double value) { return full({}, value, DType::float64); }
LazyTensor number(int64_t value) { return full({}, value, DType::int64); }

void add_per_tensor(OperationTable& rows) {
  rows.add(
      {.schema = "quantized_decomposed::quantize_per_tensor(Tensor input, float scale, int "
                 "zero_point, int quant_min, int quant_max, ScalarType dtype) -> Tensor",
       .decompose =
           [](LazyTensor x, double scale, int64_t zero, int64_t low, int64_t high, DType dtype) {
             if (scale == 0) throw UserError("expected a scale other than 0");
             return LazyTensors{quantized(x, number(scale), number(zero), low, high, dtype)};
           },
       .samples = "f16[2,3] 0.1 3 -128 127 int8 | bf16[5] 0.02 0 0 255 uint8",
       .bad = "i64[2] 0.1 0 0 255 uint8: expected float32 | f16[2] 0.1 0 0 256 uint8: range",
       .nondifferentiable = "input"});
  rows.add(
      {.schema = "quantized_decomposed::quantize_per_tensor.tensor(Tensor input, Tensor scale, "
                 "Tensor zero_point, int quant_min, int quant_max, ScalarType dtype) -> Tensor",
       .decompose =
           [](LazyTensor x, LazyTensor scale, LazyTensor zero, int64_t low, int64_t high,
              DType dtype) { return LazyTensors{quantized(x, scale, zero, low, high, dtype)}; },
       .samples = "f16[2,3] f64[1]=0.1..0.2 i64[1] -128 127 int8",
       .bad = "f16[2] f64[2] i64[1] 0 255 uint8: one element",
       .nondifferentiable = "input scale"});
  rows.add({.schema = "quantized_decomposed::dequantize_per_tensor(Tensor input, float scale, int "
                      "zero_point, int quant_min, int quant_max, ScalarType dtype, *, ScalarType? "
                      "out_dtype=None) -> Tensor",
            .decompose =
                [](LazyTensor x, double scale, int64_t zero, int64_t, int64_t, DType dtype,
                   std::optional<DType> out) {
                  return LazyTensors{dequantized(x, number(scale), number(zero), dtype, out)};
                },
            .samples = "i8[2,3] 0.1 3 -128 127 int8 | u8[4] 0.5 128 0 255 uint8 bfloat16",
            .bad = "i8[2] 0.1 0 0 255 uint8: as dtype says"});
  rows.add({.schema =
                "quantized_decomposed::dequantize_per_tensor.tensor(Tensor input, Tensor scale, "
                "Tensor zero_point, int quant_min, int quant_max, ScalarType dtype, *, ScalarType? "
                "out_dtype=None) -> Tensor",
            .decompose =
                [](LazyTensor x, LazyTensor scale, LazyTensor zero, int64_t, int64_t, DType dtype,
                   std::optional<DType> out) {
                  return LazyTensors{dequantized(x, scale, zero, dtype, out)};
                },
            .samples = "i8[2,3] f64[1] i64[1] -128 127 int8 float64",
            .bad = "i8[2] f64[2] i64[1] -128 127 int8: one element"});
}

// Scale and zero point that cover all elements of x, and 0.
LazyTensors chosen(const LazyTensor& given, int64_t low, int64_t high, double eps, DType dtype,
                   bool symmetric) {
  expect_range(low, high, dtype);
  if (low > 0 || high < 0 || low == high)
    throw UserError("expected a range with 0 in it, received " + std::to_string(low) + " to " +
                    std::to_string(high));
  if (given.numel() == 0)
    throw UserError("expected elements, received sizes " + str(given.sizes()));
  static_cast<void>(expect_real(given));
  const LazyTensor zero = zeros({}, given.dtype());
  const LazyTensor least = minimum(apply_one("aten::amin", {given}), zero);
  const LazyTensor most = maximum(amax(given), zero);
  const double span = static_cast<double>(high - low);
  // What is of float32 beside a tensor of 16 bits makes float32 of it.
  const LazyTensor floor = full({1}, eps, DType::float32);
  LazyTensor scale = symmetric ? maximum(-least, most) / (span / 2) : (most - least) / span;
  scale = maximum(scale, floor);
  LazyTensor point;
  if (symmetric)
    point = full({1}, int64_t{dtype == DType::uint8 ? 128 : 0}, DType::int64);
  else
    point = clamped(Number(low) - to(rounded(least / scale), DType::int32), low, high);
  return {to(scale, DType::float64), to(point, DType::int64)};
}

void add_chosen(OperationTable& rows) {
  rows.add({.schema =
                "quantized_decomposed::choose_qparams.tensor(Tensor input, int quant_min, int "
                "quant_max, float eps, ScalarType dtype) -> (Tensor, Tensor)",
            .decompose = [](LazyTensor x, int64_t low, int64_t high, double eps,
                            DType dtype) { return chosen(x, low, high, eps, dtype, false); },
            .samples = "f16[2,3] -128 127 1e-05 int8 | bf16[2,3] 0 255 0.1 uint8",
            .bad = "f16[2] 1 127 1e-05 int8: with 0 in it | f16[0] 0 127 1e-05 int8: elements",
            .nondifferentiable = "input"});
  rows.add({.schema = "quantized_decomposed::choose_qparams_symmetric.tensor(Tensor input, int "
                      "quant_min, int quant_max, float eps, ScalarType dtype) -> (Tensor, Tensor)",
            .decompose = [](LazyTensor x, int64_t low, int64_t high, double eps,
                            DType dtype) { return chosen(x, low, high, eps, dtype, true); },
            .samples = "f16[2,3] -128 127 1e-05 int8 | f16[2,3] 0 255 1e-05 uint8",
            .bad = "i64[2] 0 127 1e-05 int8: expected float32",
            .nondifferentiable = "input"});
}

// ---- a scale per index of an axis ---------------------------------------------------------------

// `list` beside an axis of x: sizes [1, C, 1].
LazyTensor beside(const LazyTensor& list, const LazyTensor& x, int64_t given, const char* what) {
  const int64_t axis = wrap_axis(given, x.rank());
  if (list.rank() != 1 || list.size(0) != x.size(axis))
    throw UserError(std::string("expected a ") + what + " per index of axis " +
                    std::to_string(given) + " of " + str(x.sizes()) + ", received sizes " +
                    str(list.sizes()));
  Ints sizes(static_cast<size_t>(x.rank()), 1);
  sizes[static_cast<size_t>(axis)] = -1;
  return reshape(list, sizes);
}

void add_per_channel(OperationTable& rows) {
  rows.add({.schema = "quantized_decomposed::quantize_per_channel(Tensor input, Tensor scales, "
                      "Tensor zero_points, int axis, int quant_min, int quant_max, ScalarType "
                      "dtype) -> Tensor",
            .decompose =
                [](LazyTensor x, LazyTensor scales, LazyTensor zeros, int64_t axis, int64_t low,
                   int64_t high, DType dtype) {
                  expect_range(low, high, dtype);
                  const LazyTensor inverse = 1.0 / beside(scales, x, axis, "scale");
                  const LazyTensor points = beside(zeros, x, axis, "zero point");
                  const LazyTensor scaled = rounded(expect_real(x) * inverse) + points;
                  return LazyTensors{to(clamped(scaled, low, high), dtype)};
                },
            .samples = "f16[2,3] f32[3]=0.1..0.2 i64[3] 1 -128 127 int8",
            .bad = "f16[2,3] f32[2] i64[3] 1 -128 127 int8: a scale per index",
            .nondifferentiable = "input scales"});
  rows.add(
      {.schema = "quantized_decomposed::dequantize_per_channel(Tensor input, Tensor scales, "
                 "Tensor? zero_points, int axis, int quant_min, int quant_max, ScalarType "
                 "dtype, *, ScalarType? out_dtype=None) -> Tensor",
       .decompose =
           [](LazyTensor x, LazyTensor scales, std::optional<LazyTensor> zeros, int64_t axis,
              int64_t low, int64_t high, DType dtype, std::optional<DType> out) {
             expect_dtype(x, dtype);
             expect_range(low, high, dtype);
             const LazyTensor moved = zeros ? x - beside(*zeros, x, axis, "zero point") : x;
             const LazyTensor scaled = moved * beside(scales, x, axis, "scale");
             return LazyTensors{to(scaled, out.value_or(DType::float32))};
           },
       .samples =
           "i8[2,3] f32[2] i64[2] 0 -128 127 int8 float64 | u8[2,3,2] bf16[3] None 1 0 255 uint8 "
           "| i8[2,3] bf16[2] i32[2] 0 -128 127 int8 bfloat16",
       .bad = "i8[2,3] f32[2] None 1 -128 127 int8: a scale per index | "
              "i8[2] f32[2] None 0 0 255 uint8: as dtype says"});
}

// ---- a scale per group of a row -----------------------------------------------------------------

// The group that x, a matrix, is quantized by. One that is larger than a row with one scale is the
// row, as in torch.
int64_t group_of(const LazyTensor& x, const LazyTensor& scales, int64_t group) {
  if (x.rank() != 2) throw UserError("expected a matrix, received sizes " + str(x.sizes()));
  if (group <= 1)
    throw UserError("expected groups of more than 1, received " + std::to_string(group));
  if (group > x.size(1) && scales.rank() > 0 && scales.size(-1) == 1) group = x.size(1);
  if (group == 0 || x.size(1) % group != 0)
    throw UserError("groups of " + std::to_string(group) + " do not divide the " +
                    std::to_string(x.size(1)) + " columns");
  return group;
}
// A number per group, beside each element of x.
LazyTensor spread_over(const LazyTensor& list, const LazyTensor& x, int64_t group,
                       const char* what) {
  const int64_t rows = x.size(0), groups = x.size(1) / group;
  if (list.numel() != rows * groups)
    throw UserError(std::string("expected a ") + what + " per group, which are " +
                    std::to_string(rows * groups) + ", received sizes " + str(list.sizes()));
  const LazyTensor repeated = expand(reshape(list, {rows, groups, 1}), {rows, groups, group});
  return reshape(repeated, x.sizes());
}

void add_per_group(OperationTable& rows) {
  rows.add({.schema = "quantized_decomposed::quantize_per_channel_group(Tensor input, Tensor "
                      "scales, Tensor zero_points, int quant_min, int quant_max, ScalarType dtype, "
                      "int group_size) -> Tensor",
            .decompose =
                [](LazyTensor x, LazyTensor scales, LazyTensor zeros, int64_t low, int64_t high,
                   DType dtype, int64_t group) {
                  expect_range(low, high, dtype);
                  group = group_of(x, scales, group);
                  const LazyTensor inverse = 1.0 / spread_over(scales, x, group, "scale");
                  const LazyTensor points = spread_over(zeros, x, group, "zero point");
                  return LazyTensors{to(clamped(rounded(x * inverse + points), low, high), dtype)};
                },
            .samples = "f16[2,8] f32[2,2]=0.1..0.2 i32[2,2] -8 7 int8 4",
            .bad = "f16[2,6] f32[2,2] i32[2,2] -8 7 int8 4: do not divide",
            .nondifferentiable = "input scales zero_points"});
  rows.add(
      {.schema = "quantized_decomposed::dequantize_per_channel_group(Tensor input, Tensor "
                 "scales, Tensor? zero_points, int quant_min, int quant_max, ScalarType dtype, "
                 "int group_size, ScalarType output_dtype) -> Tensor",
       .decompose =
           [](LazyTensor x, LazyTensor scales, std::optional<LazyTensor> zeros, int64_t, int64_t,
              DType, int64_t group, DType out) {
             group = group_of(x, scales, group);
             const LazyTensor moved = zeros ? x - spread_over(*zeros, x, group, "zero point") : x;
             return LazyTensors{to(moved * spread_over(scales, x, group, "scale"), out)};
           },
       .samples = "i8[2,8] f32[2,2] i32[2,2] -8 7 int8 4 float64 | "
                  "u8[2,6] f16[2,1] None 0 15 uint8 32 float32 | "
                  "i8[2,8] bf16[2,4] bf16[2,4] -8 7 int8 2 bfloat16",
       .bad = "i8[2,6] f32[2,2] None -8 7 int8 4 float32: do not divide | "
              "i8[2,8] f32[2] None -8 7 int8 4 float32: a scale per group | "
              "i8[8] f32[2] None -8 7 int8 4 float32: a matrix"});
}

// ---- a scale per token, the last axis -----------------------------------------------------------

void expect_tokens(const LazyTensor& x, const LazyTensor& list, const char* what) {
  if (x.rank() == 0) throw UserError("expected tokens, received a number");
  int64_t tokens = 1;
  for (int64_t axis = 0; axis + 1 < x.rank(); ++axis) tokens *= x.size(axis);
  if (list.numel() != tokens)
    throw UserError(std::string("expected a ") + what + " per token, which are " +
                    std::to_string(tokens) + ", received sizes " + str(list.sizes()));
}

LazyTensors chosen_per_token(const LazyTensor& x, DType dtype) {
  if (dtype != DType::int8) throw UserError("expected int8, received " + std::string(name(dtype)));
  expect_floating(x.dtype());
  LazyTensor scales = amax(abs(x), {-1}, true);
  if (scales.dtype() == DType::float16) scales = to(scales, DType::float32);
  scales = at_least(scales, 1e-5) / 127;
  return {scales, zeros_like(scales)};
}

LazyTensors chosen_asymmetric(const LazyTensor& x) {
  expect_floating(x.dtype());
  const LazyTensor least = apply_one("aten::amin", {x, Ints{-1}, true}), most = amax(x, {-1}, true);
  const LazyTensor low = minimum(least, zeros_like(least)), high = maximum(most, zeros_like(most));
  const double eps = std::numeric_limits<float>::epsilon();
  const LazyTensor scale = at_least((high - low) / 255.0, eps);
  const LazyTensor scaled_low = low / scale, scaled_high = high / scale;
  const LazyTensor errors = (Number(-128) + scaled_low) + (Number(127) + scaled_high);
  const LazyTensor point = where(errors > 0, Number(-128) - scaled_low, Number(127) - scaled_high);
  return {to(scale, DType::float64), to(rounded(clamped(point, -128, 127)), DType::int64)};
}

void add_per_token(OperationTable& rows) {
  rows.add({.schema = "quantized_decomposed::choose_qparams_per_token(Tensor input, ScalarType "
                      "dtype) -> (Tensor, Tensor)",
            .decompose = [](LazyTensor x, DType dtype) { return chosen_per_token(x, dtype); },
            .samples = "f32[2,3] int8 | f16[2,3] int8 | bf16[2,2,3] int8",
            .bad = "f32[2,3] uint8: expected int8",
            .nondifferentiable = "input"});
  rows.add({.schema = "quantized_decomposed::choose_qparams_per_token_asymmetric(Tensor input, "
                      "ScalarType dtype) -> (Tensor, Tensor)",
            .decompose = [](LazyTensor x, DType) { return chosen_asymmetric(x); },
            .samples = "f32[2,3] int8 | f32[2,2,3]=1..2 int8",
            .bad = "i64[2,3] int8: floating point",
            .nondifferentiable = "input",
            .also = {}});
  rows.add({.schema = "quantized_decomposed::_choose_qparams_per_token_asymmetric_impl(Tensor "
                      "input, ScalarType dtype) -> (Tensor, Tensor)",
            .decompose = [](LazyTensor x, DType) { return chosen_asymmetric(x); },
            .samples = "f32[2,3] int8",
            .bad = "i64[2,3] int8: floating point",
            .nondifferentiable = "input"});
  rows.add({.schema =
                "quantized_decomposed::quantize_per_token(Tensor input, Tensor scales, Tensor "
                "zero_points, int quant_min, int quant_max, ScalarType dtype) -> Tensor",
            .decompose =
                [](LazyTensor x, LazyTensor scales, LazyTensor zeros, int64_t low, int64_t high,
                   DType dtype) {
                  expect_range(low, high, dtype);
                  expect_tokens(x, scales, "scale");
                  expect_tokens(x, zeros, "zero point");
                  const LazyTensor scaled = rounded(x * (1.0 / scales) + zeros);
                  return LazyTensors{to(clamped(scaled, low, high), dtype)};
                },
            .samples = "f32[2,3] f32[2,1]=0.1..0.2 f32[2,1] -128 127 int8 | "
                       "f32[2,3] f64[2,1]=0.1..0.2 i64[2,1] -128 127 int8",
            .bad = "f32[2,3] f32[3] f32[3] -128 127 int8: a scale per token",
            .nondifferentiable = "input scales zero_points"});
  rows.add({.schema = "quantized_decomposed::dequantize_per_token(Tensor input, Tensor scales, "
                      "Tensor zero_points, int quant_min, int quant_max, ScalarType dtype, "
                      "ScalarType output_dtype) -> Tensor",
            .decompose =
                [](LazyTensor x, LazyTensor scales, LazyTensor zeros, int64_t, int64_t, DType,
                   DType out) {
                  expect_tokens(x, scales, "scale");
                  expect_tokens(x, zeros, "zero point");
                  return LazyTensors{to((x - zeros) * scales, out)};
                },
            .samples = "i8[2,3] f32[2,1] f32[2,1] -128 127 int8 float64 | "
                       "i8[2,3] f16[2,1] i64[2,1] -128 127 int8 float32",
            .bad = "i8[2,3] f32[3] f32[3] -128 127 int8 float32: a scale per token"});
}

}  // namespace

void add_quantization_rows(OperationTable& rows) {
  add_per_tensor(rows);
  add_chosen(rows);
  add_per_channel(rows);
  add_per_group(rows);
  add_per_token(rows);
}

}  // namespace composit
