// Calls of LibTorch on the memory of generated code.
//
//   fl::store(at::bincount(fl::tensor(x, {5}), {}, 0), counts);
//   fl::store(at::unique_dim(fl::tensor(x, {3, 4}), 0), rows, std::ignore, std::ignore);
#pragma once

#include <ATen/core/Tensor.h>
#include <ATen/ops/from_blob.h>

#include <stdexcept>
#include <string>
#include <tuple>
#include <type_traits>
#include <vector>

#include "flashlight/runtime/flashlight.hpp"

namespace fl {

// An element of generated code's memory as LibTorch names it.
template <class T>
struct ScalarTypeOf : c10::CppTypeToScalarType<T> {};
template <>
struct ScalarTypeOf<float16> : c10::CppTypeToScalarType<c10::Half> {};
template <>
struct ScalarTypeOf<bfloat16> : c10::CppTypeToScalarType<c10::BFloat16> {};
template <class T>
struct ScalarTypeOf<std::complex<T>> : c10::CppTypeToScalarType<c10::complex<T>> {};

// A tensor of these sizes over the memory of an array. LibTorch must not write to it.
template <class T>
at::Tensor tensor(const T* array, at::IntArrayRef sizes) {
  using Element = std::remove_all_extents_t<T>;
  return at::from_blob(const_cast<T*>(array), sizes, ScalarTypeOf<Element>::value);
}

// Copies the elements to `result`, an array or a number that has room for just as many of the type.
template <class T>
void store(const at::Tensor& value, T& result) {
  using Element = std::remove_all_extents_t<T>;
  constexpr auto kCount = static_cast<int64_t>(sizeof(T) / sizeof(Element));
  if (value.scalar_type() != ScalarTypeOf<Element>::value || value.numel() != kCount)
    throw std::runtime_error("LibTorch gave " + std::string(c10::toString(value.scalar_type())) +
                             c10::str(value.sizes()) + ", expected " + std::to_string(kCount) +
                             " elements of " + c10::toString(ScalarTypeOf<Element>::value));
  std::memcpy(static_cast<void*>(&result), value.contiguous().const_data_ptr(), sizeof(T));
}
inline void store(const at::Tensor&, decltype(std::ignore)&) {}

template <class... Values, class... Results>
void store(const std::tuple<Values...>& values, Results&... results) {
  std::apply([&](const Values&... value) { (store(value, results), ...); }, values);
}

inline void store_next(const std::vector<at::Tensor>&, size_t) {}
template <class Result, class... Results>
void store_next(const std::vector<at::Tensor>& values, size_t next, Result& result,
                Results&... results) {
  store(values.at(next), result);
  store_next(values, next + 1, results...);
}
template <class... Results>
void store(const std::vector<at::Tensor>& values, Results&... results) {
  store_next(values, 0, results...);
}

}  // namespace fl
