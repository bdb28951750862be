#include "composit/numpy/result_type.h"

#include <algorithm>
#include <limits>

#include "composit/ir/error.h"
#include "composit/op/compute_type.h"
#include "composit/op/promotion.h"

namespace composit::numpy {
namespace {

bool is_unsigned(DType dtype) {
  return dtype == DType::uint8 || (dtype >= DType::uint16 && dtype <= DType::uint64);
}

DType signed_dtype(size_t bytes) {
  switch (bytes) {
    case 1:
      return DType::int8;
    case 2:
      return DType::int16;
    case 4:
      return DType::int32;
    default:
      return DType::int64;
  }
}

DType promote_integers(DType a, DType b) {
  if (is_unsigned(a) == is_unsigned(b)) return item_size(a) >= item_size(b) ? a : b;
  const DType without = is_unsigned(a) ? a : b, with = is_unsigned(a) ? b : a;
  if (item_size(with) > item_size(without)) return with;
  return item_size(without) == 8 ? DType::float64 : signed_dtype(2 * item_size(without));
}

DType wider_float(DType a, DType b) {
  if (a == b) return a;
  if (item_size(a) == item_size(b)) return DType::float32;  // float16 with bfloat16
  return item_size(a) > item_size(b) ? a : b;
}

bool fits(int64_t number, DType dtype) {
  return with_storage(dtype, [&]<class S>(std::type_identity<S>) {
    if constexpr (!std::is_integral_v<S>)
      return true;
    else
      return std::is_same_v<S, uint64_t>
                 ? number >= 0
                 : number >= int64_t{std::numeric_limits<S>::min()} &&
                       number <= static_cast<int64_t>(std::numeric_limits<S>::max());
  });
}

// NumPy has no complex dtype of two float16.
DType complex_of(DType dtype) {
  return dtype == DType::float16 ? DType::complex64 : complex_dtype(dtype);
}

// The dtype of a result whose operands are arrays of `dtype` and a number of C++.
DType beside_number(DType dtype, const Scalar::Value& number) {
  constexpr DTypeCategory categories[] = {DTypeCategory::boolean, DTypeCategory::integer,
                                          DTypeCategory::floating, DTypeCategory::complex};
  const DTypeCategory kind = categories[number.index()];
  if (category(dtype) >= kind) return dtype;
  if (kind == DTypeCategory::integer) return DType::int64;
  if (kind == DTypeCategory::floating) return DType::float64;
  return category(dtype) == DTypeCategory::floating ? complex_of(dtype) : DType::complex128;
}

}  // namespace

DType result_type(DType a, DType b) {
  if (a == b) return a;
  const DTypeCategory low = std::min(category(a), category(b));
  const DTypeCategory high = std::max(category(a), category(b));
  if (low == DTypeCategory::boolean) return a == DType::bool_ ? b : a;
  if (high == DTypeCategory::integer) return promote_integers(a, b);
  const DType width = wider_float(real_dtype(inexact_dtype(a)), real_dtype(inexact_dtype(b)));
  return high == DTypeCategory::complex ? complex_of(width) : width;
}

DType result_type(std::string_view function, const std::vector<Operand>& operands) {
  std::optional<DType> common;
  for (const Operand& operand : operands) {
    if (operand.is_number()) continue;
    const DType dtype = operand.array().dtype();
    common = common ? result_type(*common, dtype) : dtype;
  }
  for (const Operand& operand : operands)
    if (operand.is_number()) common = beside_number(*common, operand.number());
  for (const Operand& operand : operands) {
    if (!operand.is_number() || !std::holds_alternative<int64_t>(operand.number())) continue;
    const int64_t number = std::get<int64_t>(operand.number());
    if (!fits(number, *common))
      refuse(function, "expected a number that " + std::string(name(*common)) +
                           " has room for, received " + std::to_string(number));
  }
  return *common;
}

DType number_dtype(DType dtype) { return dtype == DType::bool_ ? DType::int8 : dtype; }

DType inexact_dtype(DType dtype) {
  if (category(dtype) >= DTypeCategory::floating) return dtype;
  if (item_size(dtype) == 1) return DType::float16;
  return item_size(dtype) == 2 ? DType::float32 : DType::float64;
}

DType divided_dtype(DType dtype) {
  return category(dtype) >= DTypeCategory::floating ? dtype : DType::float64;
}

DType total_dtype(DType dtype) {
  if (category(dtype) >= DTypeCategory::floating) return dtype;
  return is_unsigned(dtype) ? DType::uint64 : DType::int64;
}

ArgumentValue argument(const Operand& operand, DType dtype) {
  if (operand.is_number()) {
    const auto* truth = std::get_if<bool>(&operand.number());
    const bool as_integer = truth != nullptr && dtype != DType::bool_;
    return as_integer ? Scalar(int64_t{*truth}) : Scalar(operand.number());
  }
  return to(operand.array(), dtype);
}

NdArray as_array(const Operand& operand, DType dtype) {
  return operand.is_number() ? composit::full({}, Scalar(operand.number()), dtype)
                             : to(operand.array(), dtype);
}

NdArray call_as(std::string_view function, std::string_view op,
                std::vector<ArgumentValue> arguments) {
  try {
    return apply_one(op, std::move(arguments));
  } catch (const UserError& error) {
    const std::string_view text = error.what();
    const size_t end = text.find("] ");
    refuse(function, "in " + std::string(op) + ": " +
                         std::string(end == text.npos ? text : text.substr(end + 2)));
  }
}

void expect_no_bool(std::string_view function, DType dtype) {
  if (dtype == DType::bool_) refuse(function, "expected numbers, received bool");
}

void expect_real(std::string_view function, DType dtype) {
  if (is_complex(dtype))
    refuse(function, "expected real numbers, received " + std::string(name(dtype)));
}

}  // namespace composit::numpy
