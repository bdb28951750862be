#include "composit/op/promotion.h"

#include <algorithm>

#include "composit/ir/error.h"
#include "composit/ir/literal.h"

namespace composit {
namespace {

bool is_unsigned(DType dtype) {
  return dtype == DType::uint8 || (dtype >= DType::uint16 && dtype <= DType::uint64);
}

// torch's table for integers: the wider wins; uint8 beside a signed one gives the next wider
// signed dtype. The unsigned dtypes above 8 bits have no partner but themselves.
DType promote_integers(DType a, DType b) {
  const bool wide = (is_unsigned(a) && a != DType::uint8) || (is_unsigned(b) && b != DType::uint8);
  if (wide)
    throw UserError("[promote] " + std::string(name(a)) + " and " + std::string(name(b)) +
                    " have no common dtype; cast one of them");
  if (is_unsigned(a) == is_unsigned(b)) return item_size(a) >= item_size(b) ? a : b;
  const DType other = is_unsigned(a) ? b : a;
  return other == DType::int8 ? DType::int16 : other;
}

DType promote_floats(DType a, DType b) {
  if (item_size(a) == item_size(b)) return a == b ? a : DType::float32;  // float16 with bfloat16
  return item_size(a) > item_size(b) ? a : b;
}

void merge(std::optional<DType>& all, DType one) { all = all ? promote(*all, one) : one; }

// `high` unless `low` is of a higher category.
DType combine(std::optional<DType> high, std::optional<DType> low) {
  if (!high) return *low;
  if (!low || category(*high) >= category(*low)) return *high;
  if (category(*high) == DTypeCategory::floating) return complex_dtype(*high);
  return promote(*high, *low);
}

}  // namespace

DTypeCategory category(DType dtype) {
  if (dtype == DType::count_)
    throw UserError("[promote] expected a tensor with elements, received an undefined one");
  if (!is_computable(dtype))
    throw UserError("[promote] composit does not compute with " + std::string(name(dtype)));
  if (dtype == DType::bool_) return DTypeCategory::boolean;
  if (is_complex(dtype)) return DTypeCategory::complex;
  return is_floating_point(dtype) ? DTypeCategory::floating : DTypeCategory::integer;
}

DType promote(DType a, DType b) {
  if (a == b) return a;
  const DTypeCategory low = std::min(category(a), category(b));
  const DTypeCategory high = std::max(category(a), category(b));
  if (low != high) {
    const DType upper = category(a) == high ? a : b, lower = category(a) == high ? b : a;
    if (high != DTypeCategory::complex || low != DTypeCategory::floating) return upper;
    return complex_dtype(promote_floats(real_dtype(upper), lower));
  }
  if (high == DTypeCategory::integer) return promote_integers(a, b);
  if (high == DTypeCategory::floating) return promote_floats(a, b);
  return item_size(a) > item_size(b) ? a : b;
}

DType to_float(DType dtype) {
  return category(dtype) >= DTypeCategory::floating ? dtype : kDefaultFloat;
}

DType real_dtype(DType dtype) { return part_of_complex(dtype).value_or(dtype); }

DType complex_dtype(DType dtype) {
  switch (dtype) {
    case DType::float16:
      return DType::complex32;
    case DType::float64:
      return DType::complex128;
    default:
      return is_complex(dtype) ? dtype : DType::complex64;
  }
}

void Promotion::add(const Type& tensor) {
  merge(tensor.rank() > 0 ? tensors_ : zero_dim_, tensor.dtype);
}

void Promotion::add_number(DType dtype) {
  // Numbers count by their category: a Python float is of the default dtype.
  if (category(dtype) == DTypeCategory::floating) dtype = kDefaultFloat;
  if (category(dtype) == DTypeCategory::complex) dtype = complex_dtype(kDefaultFloat);
  merge(numbers_, dtype);
}

DType Promotion::result() const {
  if (!tensors_ && !zero_dim_ && !numbers_) throw UserError("[promote] no operand has a dtype");
  std::optional<DType> lower;
  if (zero_dim_ || numbers_) lower = combine(zero_dim_, numbers_);
  return combine(tensors_, lower);
}

}  // namespace composit
