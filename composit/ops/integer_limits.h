// The least and the greatest number of an integer dtype, for quantized numbers.
//
//   const IntegerLimits limits = integer_limits(DType::int8).value();     // -128, 127
#pragma once

#include <cstdint>
#include <limits>
#include <optional>

#include "composit/ir/dtype.h"

namespace composit {

struct IntegerLimits {
  int64_t low, high;
};

// Nothing for other dtypes than integers of at most 32 bits with or without a sign.
inline std::optional<IntegerLimits> integer_limits(DType dtype) {
  const auto of = [](auto number) {
    using Limits = std::numeric_limits<decltype(number)>;
    return IntegerLimits{Limits::min(), Limits::max()};
  };
  switch (dtype) {
    case DType::uint8:
      return of(uint8_t{});
    case DType::int8:
      return of(int8_t{});
    case DType::uint16:
      return of(uint16_t{});
    case DType::int16:
      return of(int16_t{});
    case DType::int32:
      return of(int32_t{});
    default:
      return std::nullopt;
  }
}

}  // namespace composit
