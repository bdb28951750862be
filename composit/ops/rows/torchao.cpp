// Integers with a scale per block, under the names of torchao's operators (0.18).
//
// `block_size` has a size per axis of the tensor: elements of a block share a scale and a zero
// point. A program that torchao quantized calls these for its activations, and for weights that it
// does not hand to a kernel. Definitions are torchao's quant_primitives.py, step by step, in the
// dtypes that promotion gives each step.
#include <limits>

#include "composit/ops/functions.h"
#include "composit/ops/integer_limits.h"

namespace composit {
namespace {

IntegerLimits bounds_of(DType dtype) {
  const auto limits = integer_limits(dtype);
  if (limits && dtype != DType::uint16) return *limits;
  throw UserError("expected uint8, int8, int16 or int32 for quantized numbers, received " +
                  std::string(name(dtype)));
}

int64_t bound(const std::optional<Scalar>& given, int64_t otherwise, const char* what) {
  if (!given) return otherwise;
  if (const auto* number = std::get_if<int64_t>(&given->value)) return *number;
  throw UserError(std::string("expected an integer for ") + what);
}

IntegerLimits bounds_of(DType dtype, const std::optional<Scalar>& low,
                        const std::optional<Scalar>& high) {
  const IntegerLimits most = bounds_of(dtype);
  const IntegerLimits given = {bound(low, most.low, "quant_min"),
                               bound(high, most.high, "quant_max")};
  if (given.low < most.low || given.high > most.high || given.low >= given.high)
    throw UserError("expected quant_min and quant_max in order and in the range of " +
                    std::string(name(dtype)) + ", received " + std::to_string(given.low) + " and " +
                    std::to_string(given.high));
  return given;
}

void expect_real(DType dtype) {
  if (dtype != DType::float32 && !is_half(dtype))
    throw UserError("expected float32, float16 or bfloat16, received " + std::string(name(dtype)));
}

// A tensor whose blocks are axes of their own.
struct Blocks {
  Ints sizes;    // of the tensor, an axis that several blocks lie along being two
  Ints scales;   // the same with 1 for axes within blocks
  Ints reduced;  // the axes within blocks
};

Blocks blocks_of(const LazyTensor& x, const Ints& block) {
  if (block.size() != x.sizes().size())
    throw UserError("expected a size of blocks per axis of " + str(x.sizes()) + ", received " +
                    str(block));
  Blocks result;
  const auto add = [&](int64_t size, bool within) {
    if (within) result.reduced.push_back(static_cast<int64_t>(result.sizes.size()));
    result.sizes.push_back(size);
    result.scales.push_back(within ? 1 : size);
  };
  for (size_t axis = 0; axis < block.size(); ++axis) {
    const int64_t size = x.size(static_cast<int64_t>(axis)), part = block[axis];
    if (part < 1 || size % part != 0)
      throw UserError("blocks of " + std::to_string(part) + " do not divide the " +
                      std::to_string(size) + " elements of axis " + std::to_string(axis));
    if (part != size && part > 1) {
      add(size / part, false);
      add(part, true);
    } else {
      add(size, part != 1);
    }
  }
  return result;
}

LazyTensor beside(const LazyTensor& list, const Blocks& blocks, const char* what) {
  int64_t count = 1;
  for (const int64_t size : blocks.scales) count *= size;
  if (list.numel() != count)
    throw UserError(std::string("expected a ") + what + " per block, which are " +
                    std::to_string(count) + ", received sizes " + str(list.sizes()));
  return reshape(list, blocks.scales);
}

double smallest_normal(DType dtype) {
  return dtype == DType::float16 ? 6.103515625e-05 : double{std::numeric_limits<float>::min()};
}

LazyTensor rounded(const LazyTensor& x) { return apply_one("aten::round", {x}); }
LazyTensor clamped(const LazyTensor& x, const IntegerLimits& bounds) {
  return apply_one("aten::clamp", {x, Scalar(bounds.low), Scalar(bounds.high)});
}

// How the scale of a block follows from its numbers.
struct Choice {
  std::string mapping;
  DType dtype;
  IntegerLimits bounds;
  std::optional<double> eps;
  std::optional<DType> scale_dtype, zero_dtype;
};

LazyTensors chosen(const LazyTensor& low, const LazyTensor& high, const Choice& how) {
  const double span = static_cast<double>(how.bounds.high - how.bounds.low);
  const double eps = how.eps.value_or(smallest_normal(low.dtype()));
  const auto at_least_eps = [&](const LazyTensor& scale) {
    return apply_one("aten::clamp_min", {scale, Scalar(eps)});
  };
  if (how.mapping == "ASYMMETRIC") {
    const LazyTensor scale = at_least_eps((high - low) / span);
    const LazyTensor zero = clamped(Number(how.bounds.low) - rounded(low / scale), how.bounds);
    return {scale, to(zero, how.zero_dtype.value_or(DType::int32))};
  }
  LazyTensor scale;
  if (how.mapping == "SYMMETRIC") {
    scale = maximum(-low, high) / (span / 2);
  } else if (how.mapping == "SYMMETRIC_NO_CLIPPING_ERR") {
    const LazyTensor least = low / static_cast<double>(how.bounds.low),
                     most = high / static_cast<double>(how.bounds.high);
    scale = where(least > most, least, most);
  } else {
    throw UserError(
        "expected mapping_type 'SYMMETRIC', 'SYMMETRIC_NO_CLIPPING_ERR' or 'ASYMMETRIC', received "
        "'" +
        how.mapping + "'");
  }
  // Towards 0, as Python's int().
  const int64_t middle = (how.bounds.high + how.bounds.low + 1) / 2;
  const DType zero_dtype = how.zero_dtype.value_or(scale.dtype());
  return {at_least_eps(scale),
          to(full(scale.sizes(), static_cast<double>(middle), scale.dtype()), zero_dtype)};
}

LazyTensors chosen_for(const LazyTensor& x, const Ints& block, const Choice& how, bool keepdim) {
  expect_real(x.dtype());
  const Blocks blocks = blocks_of(x, block);
  if (x.numel() == 0) throw UserError("expected elements, received sizes " + str(x.sizes()));
  const LazyTensor blocked = reshape(x, blocks.sizes);
  const auto extreme = [&](const char* operation) {
    return apply_one(operation, {blocked, blocks.reduced, keepdim});
  };
  const LazyTensor low = extreme("aten::amin"), high = extreme("aten::amax");
  LazyTensors results = chosen(minimum(low, zeros_like(low)), maximum(high, zeros_like(high)), how);
  if (keepdim) {
    Ints sizes = x.sizes();
    for (size_t axis = 0; axis < sizes.size(); ++axis) sizes[axis] /= block[axis];
    for (LazyTensor& result : results) result = reshape(result, sizes);
  }
  results[0] = to(results[0], how.scale_dtype.value_or(x.dtype()));
  return results;
}

LazyTensor quantized(const LazyTensor& x, const Ints& block, const LazyTensor& scale,
                     const std::optional<LazyTensor>& zero, DType dtype,
                     const IntegerLimits& bounds) {
  expect_real(x.dtype());
  if (!zero || zero->numel() == 0) throw UserError("expected zero points, received none");
  const Blocks blocks = blocks_of(x, block);
  const LazyTensor inverse = 1.0 / beside(scale, blocks, "scale");
  const LazyTensor scaled = rounded(reshape(x, blocks.sizes) * inverse);
  const LazyTensor moved = clamped(scaled + beside(*zero, blocks, "zero point"), bounds);
  return to(reshape(moved, x.sizes()), dtype);
}

LazyTensor dequantized(const LazyTensor& x, const Ints& block, const LazyTensor& scale,
                       const std::optional<LazyTensor>& zero, DType dtype, DType out) {
  if (x.dtype() != dtype)
    throw UserError("expected a tensor of " + std::string(name(dtype)) +
                    ", as input_dtype says, received " + std::string(name(x.dtype())));
  if (out != DType::float64) expect_real(out);
  const Blocks blocks = blocks_of(x, block);
  LazyTensor moved = to(reshape(x, blocks.sizes), out);
  if (zero) moved = moved - to(beside(*zero, blocks, "zero point"), out);
  const LazyTensor scaled = moved * beside(scale, blocks, "scale");
  return to(reshape(scaled, x.sizes()), out);
}

}  // namespace

void add_torchao_rows(OperationTable& rows) {
  rows.add(
      {.schema = "torchao::choose_qparams_affine(Tensor? input, str mapping_type, SymInt[] "
                 "block_size, ScalarType target_dtype, Scalar? quant_min=None, Scalar? "
                 "quant_max=None, float? eps=None, ScalarType? scale_dtype=None, ScalarType? "
                 "zero_point_dtype=None, bool keepdim=False) -> (Tensor, Tensor)",
       .decompose =
           [](std::optional<LazyTensor> x, std::string mapping, Ints block, DType dtype,
              std::optional<Scalar> low, std::optional<Scalar> high, std::optional<double> eps,
              std::optional<DType> scale_dtype, std::optional<DType> zero_dtype, bool keepdim) {
             if (!x) throw UserError("expected a tensor");
             return chosen_for(*x, block,
                               {.mapping = std::move(mapping),
                                .dtype = dtype,
                                .bounds = bounds_of(dtype, low, high),
                                .eps = eps,
                                .scale_dtype = scale_dtype,
                                .zero_dtype = zero_dtype},
                               keepdim);
           },
       .samples = "f16[2,4] 'SYMMETRIC' [1,4] int8 -127 127 1e-05 float32 int8 True | "
                  "bf16[2,4] 'ASYMMETRIC' [1,2] uint8 0 15 | "
                  "f16[2,4] 'SYMMETRIC_NO_CLIPPING_ERR' [2,2] int8 -8 7",
       .bad = "f32[2,4] 'LINEAR' [1,4] int8: expected mapping_type | "
              "f32[2,4] 'SYMMETRIC' [1,3] int8: do not divide | "
              "f32[2,4] 'SYMMETRIC' [4] int8: per axis | "
              "f32[2,4] 'SYMMETRIC' [1,4] int8 -129 127: in the range | "
              "i64[2,4] 'SYMMETRIC' [1,4] int8: expected float32 | "
              "f32[2,4] 'SYMMETRIC' [1,4] float32: quantized numbers",
       .nondifferentiable = "input"});
  rows.add({.schema =
                "torchao::quantize_affine(Tensor input, SymInt[] block_size, Tensor scale, "
                "Tensor? zero_point, ScalarType output_dtype, Scalar? quant_min=None, Scalar? "
                "quant_max=None) -> Tensor",
            .decompose =
                [](LazyTensor x, Ints block, LazyTensor scale, std::optional<LazyTensor> zero,
                   DType dtype, std::optional<Scalar> low, std::optional<Scalar> high) {
                  return LazyTensors{
                      quantized(x, block, scale, zero, dtype, bounds_of(dtype, low, high))};
                },
            .samples = "f16[2,4] [1,2] f32[2,2]=0.1..0.2 i32[2,2] int8 -8 7",
            .bad = "f16[2,4] [1,2] f32[2] i32[2,2] int8: a scale per block | "
                   "f16[2,4] [1,2] f32[2,2] None int8: zero points, received none",
            .nondifferentiable = "input scale zero_point"});
  rows.add({.schema = "torchao::dequantize_affine(Tensor input, SymInt[] block_size, Tensor scale, "
                      "Tensor? zero_point, ScalarType input_dtype, Scalar? quant_min=None, Scalar? "
                      "quant_max=None, ScalarType output_dtype=6) -> Tensor",
            .decompose =
                [](LazyTensor x, Ints block, LazyTensor scale, std::optional<LazyTensor> zero,
                   DType dtype, std::optional<Scalar> low, std::optional<Scalar> high, DType out) {
                  static_cast<void>(bounds_of(dtype, low, high));
                  return LazyTensors{dequantized(x, block, scale, zero, dtype, out)};
                },
            .samples = "i8[2,4] [1,2] f16[2,2] i8[2,2] int8 -8 7 float32 | "
                       "i8[2,4] [1,4] bf16[2] None int8 None None bfloat16",
            .bad = "i8[2,4] [1,2] f32[2] None int8: a scale per block | "
                   "i8[2,4] [1,2] f32[4] None uint8: as input_dtype says"});
}

}  // namespace composit
