// The C++ types of a dtype: the type of its elements in memory, the type of arithmetic with them,
// and conversions.
//
//   with_storage(DType::bfloat16, [](auto type) { sizeof(typename decltype(type)::type); });
//   convert<int8_t>(300.7) == 44;   to_compute(BFloat16(1.5f)) == 1.5f;
//
// Compute types: bool, uint64_t, int64_t (all other integers), float (float16 and bfloat16, too),
// double, std::complex<float>, std::complex<double>.
#pragma once

#include <complex>
#include <cstdint>
#include <string>
#include <type_traits>

#include "composit/ir/dtype.h"
#include "composit/ir/error.h"
#include "composit/shipped/number_types.h"

namespace composit {

// Storage only: arithmetic on them is done in float.
using Half = fl::float16;
using BFloat16 = fl::bfloat16;

struct ComplexHalf {
  Half real, imag;
};

template <class S>
struct ComputeType {
  using type = std::conditional_t<std::is_integral_v<S> && !std::is_same_v<S, bool> &&
                                      !std::is_same_v<S, uint64_t>,
                                  int64_t, S>;
};
template <>
struct ComputeType<Half> {
  using type = float;
};
template <>
struct ComputeType<BFloat16> {
  using type = float;
};
template <>
struct ComputeType<ComplexHalf> {
  using type = std::complex<float>;
};
template <class S>
using Compute = typename ComputeType<S>::type;

template <class T>
inline constexpr bool kIsComplex = fl::is_complex<T>::value;

// Calls `f` with std::type_identity<S>, S being the type of elements in memory, and returns its
// result. UserError for a dtype that composit does not compute with.
template <class F>
auto with_storage(DType dtype, F&& f) {
  // clang-format off
  switch (dtype) {
    case DType::bool_: return f(std::type_identity<bool>());
    case DType::uint8: return f(std::type_identity<uint8_t>());
    case DType::uint16: return f(std::type_identity<uint16_t>());
    case DType::uint32: return f(std::type_identity<uint32_t>());
    case DType::uint64: return f(std::type_identity<uint64_t>());
    case DType::int8: return f(std::type_identity<int8_t>());
    case DType::int16: return f(std::type_identity<int16_t>());
    case DType::int32: return f(std::type_identity<int32_t>());
    case DType::int64: return f(std::type_identity<int64_t>());
    case DType::float16: return f(std::type_identity<Half>());
    case DType::bfloat16: return f(std::type_identity<BFloat16>());
    case DType::float32: return f(std::type_identity<float>());
    case DType::float64: return f(std::type_identity<double>());
    case DType::complex32: return f(std::type_identity<ComplexHalf>());
    case DType::complex64: return f(std::type_identity<std::complex<float>>());
    case DType::complex128: return f(std::type_identity<std::complex<double>>());
    default: throw UserError("composit does not compute with " + std::string(name(dtype)));
  }
  // clang-format on
}

// The same for the type that arithmetic is done in.
template <class F>
auto with_compute(DType dtype, F&& f) {
  return with_storage(
      dtype, [&]<class S>(std::type_identity<S>) { return f(std::type_identity<Compute<S>>()); });
}

inline size_t compute_size(DType dtype) {
  return with_compute(dtype, []<class T>(std::type_identity<T>) { return sizeof(T); });
}

template <class S>
Compute<S> to_compute(S x) {
  if constexpr (std::is_same_v<S, ComplexHalf>)
    return {static_cast<float>(x.real), static_cast<float>(x.imag)};
  else
    return static_cast<Compute<S>>(x);
}

// A value of a compute type as an element of type S: C++'s conversions, integers modulo 2^n, a
// complex number without its imaginary part. Every number but zero is true.
template <class S, class T>
S convert(T x) {
  if constexpr (std::is_same_v<S, bool>)
    return x != T(0);
  else if constexpr (std::is_same_v<S, ComplexHalf>)
    return {convert<Half>(std::real(x)), convert<Half>(std::imag(x))};
  else if constexpr (kIsComplex<S>)
    return {convert<typename S::value_type>(std::real(x)),
            convert<typename S::value_type>(std::imag(x))};
  else if constexpr (kIsComplex<T>)
    return convert<S>(x.real());
  else if constexpr (std::is_same_v<S, Half> || std::is_same_v<S, BFloat16>)
    return S(static_cast<float>(x));
  else if constexpr (std::is_integral_v<S> && std::is_floating_point_v<T>)
    return fl::truncated<S>(x);
  else
    return static_cast<S>(x);
}

}  // namespace composit
