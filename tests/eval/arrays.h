// Arrays for tests: made of numbers, and read back.
//
//   Array x = array<float>({2, 3}, {1, 2, 3, 4, 5, 6});   values<float>(x)[4] == 5
#pragma once

#include <cmath>
#include <complex>
#include <memory>
#include <type_traits>
#include <vector>

#include "composit/ir/array.h"
#include "composit/op/compute_type.h"

namespace composit {

// The dtype whose elements are S in memory.
template <class S>
DType dtype_of() {
  for (int dtype = 0; dtype < static_cast<int>(DType::count_); ++dtype)
    if (is_computable(static_cast<DType>(dtype)) &&
        with_storage(static_cast<DType>(dtype),
                     []<class T>(std::type_identity<T>) { return std::is_same_v<S, T>; }))
      return static_cast<DType>(dtype);
  return DType::count_;
}

inline Dims dims(const std::vector<int64_t>& sizes) { return Dims(sizes.begin(), sizes.end()); }

template <class S>
Array array(const std::vector<int64_t>& sizes, const std::vector<double>& numbers) {
  const auto elements = std::make_unique<S[]>(numbers.size());
  for (size_t i = 0; i < numbers.size(); ++i) elements[i] = convert<S>(numbers[i]);
  return Array::copy_of(tensor_type(dtype_of<S>(), dims(sizes)), elements.get());
}

// Some number for every element, from -1 to 1, each dtype having its own rounding of it.
inline std::vector<double> waves(int64_t count, double seed) {
  std::vector<double> numbers;
  for (int64_t i = 0; i < count; ++i)
    numbers.push_back(std::sin(seed + 1.37 * static_cast<double>(i)));
  return numbers;
}
template <class S>
Array waves(const std::vector<int64_t>& sizes, double seed) {
  const Type type = tensor_type(dtype_of<S>(), dims(sizes));
  return array<S>(sizes, waves(type.numel(), seed));
}

// The elements of a contiguous array, in row-major order.
template <class S>
std::vector<S> values(const Array& array) {
  const auto* data = reinterpret_cast<const S*>(array.data());
  return std::vector<S>(data, data + array.type().numel());
}

}  // namespace composit
