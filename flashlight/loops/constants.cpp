#include "flashlight/loops/constants.h"

#include <algorithm>

#include "composit/op/compute_type.h"

namespace flashlight::loops {

using composit::DType;
using composit::Scalar;

Scalar::Value element(const composit::Array& array, int64_t index) {
  return composit::with_storage(
      array.type().dtype, [&]<class S>(std::type_identity<S>) -> Scalar::Value {
        const auto value = composit::to_compute(reinterpret_cast<const S*>(array.data())[index]);
        using T = std::decay_t<decltype(value)>;
        if constexpr (std::is_same_v<T, bool>)
          return value;
        else if constexpr (std::is_integral_v<T>)
          return static_cast<int64_t>(value);
        else if constexpr (std::is_floating_point_v<T>)
          return static_cast<double>(value);
        else
          return std::complex<double>(value);
      });
}

std::optional<std::pair<int64_t, int64_t>> range_of(const composit::Array& array) {
  if (!array.defined() || array.type().dtype != DType::int64 || array.type().numel() == 0)
    return std::nullopt;
  const auto* first = reinterpret_cast<const int64_t*>(array.data());
  const auto [least, largest] = std::minmax_element(first, first + array.type().numel());
  return std::pair(*least, *largest);
}

}  // namespace flashlight::loops
