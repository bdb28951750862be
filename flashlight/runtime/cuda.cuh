// The functions that kernels of the cuda backend call, and how they are launched.
//
//   cudaError_t error = fl::launch(relu3_kernel, fl::points(1000), stream, x, y);
//
// Functions of numbers are those of CUDA's math library (of complex ones, cuda_complex.cuh); min and max give NaN if an operand is NaN.
// An index out of range, or an integer division by zero, ends the kernel with an error that the
// next call of CUDA's runtime reports.
#pragma once

#include <cmath>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <type_traits>

#ifndef FLASHLIGHT_CUDA_HOST  // tests compile kernels for the host
#include <cuda_runtime.h>
#endif

#include "composit/shipped/half_types.h"

#define FLASHLIGHT_DEVICE __device__ __forceinline__
#ifndef FLASHLIGHT_CUDA_HOST
#define FLASHLIGHT_SHARED(type, name, count) __shared__ type name[count]
#endif

namespace fl {

// ---- launches -----------------------------------------------------------------------------------

constexpr int kBlockThreads = 256;

// The grid of a kernel.
struct Grid {
  int64_t blocks;
};
inline Grid limited(int64_t blocks) { return {blocks < 1 << 16 ? blocks : int64_t{1} << 16}; }
// A thread, a warp or a block for each point, up to a grid that keeps a GPU busy.
inline Grid points(int64_t count) { return limited((count + kBlockThreads - 1) / kBlockThreads); }
inline Grid warps(int64_t count) { return points(count * 32); }
inline Grid blocks(int64_t count) { return limited(count); }

#ifndef FLASHLIGHT_CUDA_HOST
template <class... Parameters, class... Arguments>
cudaError_t launch(void (*kernel)(Parameters...), Grid grid, cudaStream_t stream,
                   Arguments... arguments) {
  kernel<<<static_cast<unsigned>(grid.blocks), kBlockThreads, 0, stream>>>(arguments...);
  return cudaGetLastError();
}
#endif

// Ends the function with the error of a call, if there is one.
#define FLASHLIGHT_TRY(...) \
  if (const cudaError_t error = (__VA_ARGS__); error != cudaSuccess) return error

// Captures what `call` sends to the stream in a graph, which cudaGraphLaunch repeats.
template <class Call>
cudaError_t captured(cudaStream_t stream, cudaGraphExec_t* graph, const Call& call) {
  FLASHLIGHT_TRY(cudaStreamBeginCapture(stream, cudaStreamCaptureModeThreadLocal));
  cudaError_t error = call();
  cudaGraph_t launches = nullptr;
  const cudaError_t ended = cudaStreamEndCapture(stream, &launches);  // also after an error
  if (error == cudaSuccess) error = ended;
  if (error == cudaSuccess) error = cudaGraphInstantiateWithFlags(graph, launches, 0);
  if (launches != nullptr) cudaGraphDestroy(launches);
  return error;
}

// ---- memory -------------------------------------------------------------------------------------

// Copies, zeros, and numbers from and to the device. The host waits for what it reads.
inline cudaError_t copy(void* to, const void* from, size_t bytes, cudaStream_t stream) {
  return cudaMemcpyAsync(to, from, bytes, cudaMemcpyDeviceToDevice, stream);
}
inline cudaError_t zero(void* memory, size_t bytes, cudaStream_t stream) {
  return cudaMemsetAsync(memory, 0, bytes, stream);
}
template <class T>
cudaError_t read(T* number, const T* memory, cudaStream_t stream) {
  FLASHLIGHT_TRY(cudaMemcpyAsync(number, memory, sizeof(T), cudaMemcpyDeviceToHost, stream));
  return cudaStreamSynchronize(stream);
}
template <class T>
cudaError_t write(T* memory, T number, cudaStream_t stream) {
  FLASHLIGHT_TRY(cudaMemcpyAsync(memory, &number, sizeof(T), cudaMemcpyHostToDevice, stream));
  return cudaStreamSynchronize(stream);  // before `number` goes
}

// The address of a constant in the memory of the device; nullptr after an error.
template <class T, size_t N>
const T* address(const T (&constant)[N]) {
  void* memory = nullptr;
  return cudaGetSymbolAddress(&memory, constant) == cudaSuccess ? static_cast<const T*>(memory)
                                                                : nullptr;
}

// The array that begins `offset` bytes after the start of the arena.
template <class T>
T* at(void* arena, int64_t offset) {
  return reinterpret_cast<T*>(static_cast<char*>(arena) + offset);
}

// The number of this thread, and of all threads of the grid.
FLASHLIGHT_DEVICE int64_t thread() { return int64_t{blockIdx.x} * blockDim.x + threadIdx.x; }
FLASHLIGHT_DEVICE int64_t threads() { return int64_t{gridDim.x} * blockDim.x; }

// ---- folds --------------------------------------------------------------------------------------

// The value of the lane that is `offset` higher; shuffles move plain numbers.
template <class T>
FLASHLIGHT_DEVICE T higher(T value, int offset) {
  if constexpr (std::is_arithmetic<T>::value)
    return __shfl_down_sync(0xffffffffu, value, offset);
  else
    return T(higher(value.re, offset), higher(value.im, offset));
}
// Folds a value of each lane of a warp; lane 0 gets the result, in a fixed order.
template <class T>
FLASHLIGHT_DEVICE T of_warp(T value, T (*combine)(T, T)) {
  for (int offset = 16; offset > 0; offset /= 2) value = combine(value, higher(value, offset));
  return value;
}
// The same for all threads of a block, whose first one gets the result.
template <class T>
FLASHLIGHT_DEVICE T of_block(T value, T (*combine)(T, T)) {
  FLASHLIGHT_SHARED(T, parts, kBlockThreads / 32);
  value = of_warp(value, combine);
  if (threadIdx.x % 32 == 0) parts[threadIdx.x / 32] = value;
  __syncthreads();
  if (threadIdx.x == 0)
    for (int i = 1; i < kBlockThreads / 32; ++i) value = combine(value, parts[i]);
  __syncthreads();  // the next point writes parts
  return value;
}

// ---- functions of numbers -----------------------------------------------------------------------

#define FLASHLIGHT_UNARY(name, of_float, of_double)             \
  FLASHLIGHT_DEVICE float name(float x) { return of_float(x); } \
  FLASHLIGHT_DEVICE double name(double x) { return of_double(x); }
FLASHLIGHT_UNARY(exp, ::expf, ::exp)
FLASHLIGHT_UNARY(exp2, ::exp2f, ::exp2)
FLASHLIGHT_UNARY(expm1, ::expm1f, ::expm1)
FLASHLIGHT_UNARY(log, ::logf, ::log)
FLASHLIGHT_UNARY(log2, ::log2f, ::log2)
FLASHLIGHT_UNARY(log10, ::log10f, ::log10)
FLASHLIGHT_UNARY(log1p, ::log1pf, ::log1p)
FLASHLIGHT_UNARY(sqrt, ::sqrtf, ::sqrt)
FLASHLIGHT_UNARY(rsqrt, 1 / ::sqrtf, 1 / ::sqrt)
FLASHLIGHT_UNARY(sin, ::sinf, ::sin)
FLASHLIGHT_UNARY(cos, ::cosf, ::cos)
FLASHLIGHT_UNARY(tan, ::tanf, ::tan)
FLASHLIGHT_UNARY(asin, ::asinf, ::asin)
FLASHLIGHT_UNARY(acos, ::acosf, ::acos)
FLASHLIGHT_UNARY(atan, ::atanf, ::atan)
FLASHLIGHT_UNARY(sinh, ::sinhf, ::sinh)
FLASHLIGHT_UNARY(cosh, ::coshf, ::cosh)
FLASHLIGHT_UNARY(tanh, ::tanhf, ::tanh)
FLASHLIGHT_UNARY(asinh, ::asinhf, ::asinh)
FLASHLIGHT_UNARY(acosh, ::acoshf, ::acosh)
FLASHLIGHT_UNARY(atanh, ::atanhf, ::atanh)
FLASHLIGHT_UNARY(erf, ::erff, ::erf)
FLASHLIGHT_UNARY(erfc, ::erfcf, ::erfc)
FLASHLIGHT_UNARY(lgamma, ::lgammaf, ::lgamma)
FLASHLIGHT_UNARY(floor, ::floorf, ::floor)
FLASHLIGHT_UNARY(ceil, ::ceilf, ::ceil)
FLASHLIGHT_UNARY(round, ::rintf, ::rint)  // halves to even
FLASHLIGHT_UNARY(trunc, ::truncf, ::trunc)
#undef FLASHLIGHT_UNARY
// Integers have no fraction.
template <class T>
FLASHLIGHT_DEVICE T floor(T x) {
  return x;
}
template <class T>
FLASHLIGHT_DEVICE T ceil(T x) {
  return x;
}
template <class T>
FLASHLIGHT_DEVICE T round(T x) {
  return x;
}
template <class T>
FLASHLIGHT_DEVICE T trunc(T x) {
  return x;
}
#define FLASHLIGHT_BINARY(name, of_float, of_double)                        \
  FLASHLIGHT_DEVICE float name(float x, float y) { return of_float(x, y); } \
  FLASHLIGHT_DEVICE double name(double x, double y) { return of_double(x, y); }
FLASHLIGHT_BINARY(pow, ::powf, ::pow)
FLASHLIGHT_BINARY(atan2, ::atan2f, ::atan2)
FLASHLIGHT_BINARY(hypot, ::hypotf, ::hypot)
FLASHLIGHT_BINARY(copysign, ::copysignf, ::copysign)
FLASHLIGHT_BINARY(nextafter, ::nextafterf, ::nextafter)
#undef FLASHLIGHT_BINARY

// Complex numbers have functions of their own.
template <class T>
struct complex;
template <class T>
struct is_complex : std::false_type {};
template <class T>
struct is_complex<complex<T>> : std::true_type {};
// Devices read constants, but call no function of the host.
template <class T>
constexpr T kMin = std::numeric_limits<T>::min();
template <class T>
constexpr T kMax = std::numeric_limits<T>::max();
template <class T>
using NotComplex = std::enable_if_t<!is_complex<T>::value, T>;

template <class T>
FLASHLIGHT_DEVICE bool isnan(T x) {
  return x != x;
}
// Integers wrap. In C++ what leaves a signed type is undefined, and nvcc makes use of that.
template <class T>
using Wrapping = std::conditional_t<std::is_integral<T>::value,
                                    std::conditional_t<sizeof(T) <= 4, uint32_t, uint64_t>, T>;
template <class T>
FLASHLIGHT_DEVICE T plus(T x, T y) {
  return static_cast<T>(static_cast<Wrapping<T>>(x) + static_cast<Wrapping<T>>(y));
}
template <class T>
FLASHLIGHT_DEVICE T minus(T x, T y) {
  return static_cast<T>(static_cast<Wrapping<T>>(x) - static_cast<Wrapping<T>>(y));
}
template <class T>
FLASHLIGHT_DEVICE T times(T x, T y) {
  return static_cast<T>(static_cast<Wrapping<T>>(x) * static_cast<Wrapping<T>>(y));
}
template <class T>
FLASHLIGHT_DEVICE T negative(T x) {
  return static_cast<T>(-static_cast<Wrapping<T>>(x));
}
template <class T>
FLASHLIGHT_DEVICE NotComplex<T> abs(T x) {
  return x < 0 ? negative(x) : plus(x, T(0));  // -0 becomes 0
}
template <class T>
FLASHLIGHT_DEVICE T sign(T x) {  // of NaN: 0, as torch's
  return static_cast<T>((T(0) < x) - (x < T(0)));
}
template <class T>
FLASHLIGHT_DEVICE T min(T x, T y) {
  return x < y || x != x ? x : y;
}
template <class T>
FLASHLIGHT_DEVICE T max(T x, T y) {
  return x > y || x != x ? x : y;
}
}  // namespace fl

#include "flashlight/runtime/cuda_complex.cuh"

namespace fl {

// Of bools: or, and.
template <class T>
FLASHLIGHT_DEVICE T add(T x, T y) {
  return plus(x, y);
}
template <class T>
FLASHLIGHT_DEVICE T mul(T x, T y) {
  return times(x, y);
}
template <class T>
FLASHLIGHT_DEVICE T bitwise_not(T x) {
  return static_cast<T>(~x);
}
template <>
FLASHLIGHT_DEVICE bool bitwise_not(bool x) {
  return !x;
}

// The folds that warps and blocks divide.
template <class T>
__device__ T add_of(T x, T y) {
  return plus(x, y);
}
template <class T>
__device__ T mul_of(T x, T y) {
  return times(x, y);
}
template <class T>
__device__ T min_of(T x, T y) {
  return min(x, y);
}
template <class T>
__device__ T max_of(T x, T y) {
  return max(x, y);
}

// ---- integers -----------------------------------------------------------------------------------

FLASHLIGHT_DEVICE void expect(bool holds) {
  if (!holds) __trap();
}
FLASHLIGHT_DEVICE int64_t checked(int64_t index, int64_t size) {
  expect(index >= 0 && index < size);
  return index;
}
// Counts a negative index from the end.
FLASHLIGHT_DEVICE int64_t wrapped(int64_t index, int64_t size) {
  return checked(index < 0 ? index + size : index, size);
}
template <class T>
FLASHLIGHT_DEVICE T trunc_divide(T x, T y) {
  expect(y != 0);
  return y == -1 ? negative(x) : static_cast<T>(x / y);
}
template <>
FLASHLIGHT_DEVICE float trunc_divide(float x, float y) {
  return ::truncf(x / y);
}
template <>
FLASHLIGHT_DEVICE double trunc_divide(double x, double y) {
  return ::trunc(x / y);
}
template <class T>
FLASHLIGHT_DEVICE T fmod(T x, T y) {
  expect(y != 0);
  return y == -1 ? T(0) : static_cast<T>(x % y);
}
template <>
FLASHLIGHT_DEVICE float fmod(float x, float y) {
  return ::fmodf(x, y);
}
template <>
FLASHLIGHT_DEVICE double fmod(double x, double y) {
  return ::fmod(x, y);
}
// Python's: the sign of y.
template <class T>
FLASHLIGHT_DEVICE T remainder(T x, T y) {
  const T rest = fmod(x, y);
  return rest != 0 && (rest < 0) != (y < 0) ? static_cast<T>(rest + y) : rest;
}
// Rounds down.
template <class T>
FLASHLIGHT_DEVICE T floor_divide(T x, T y) {
  const T quotient = trunc_divide(x, y);
  return fmod(x, y) != 0 && (x < 0) != (y < 0) ? minus(quotient, T(1)) : quotient;
}
// Python's: the quotient of what fmod leaves is an integer up to rounding.
template <class T>
FLASHLIGHT_DEVICE T floor_divide_real(T x, T y) {
  if (y == 0) return x / y;
  const T rest = fmod(x, y);
  T quotient = (x - rest) / y;
  if (rest != 0 && (y < 0) != (rest < 0)) quotient -= 1;
  if (quotient == 0) return copysign(T(0), x / y);
  const T below = floor(quotient);
  return quotient - below > T(0.5) ? below + 1 : below;
}
template <>
FLASHLIGHT_DEVICE float floor_divide(float x, float y) {
  return floor_divide_real(x, y);
}
template <>
FLASHLIGHT_DEVICE double floor_divide(double x, double y) {
  return floor_divide_real(x, y);
}
// Wraps; a negative power of anything but 1 and -1 is 0.
template <class T>
FLASHLIGHT_DEVICE NotComplex<T> pow(T x, T y) {
  if (y < 0) return x == 1 ? T(1) : x == T(-1) ? (y % 2 == 0 ? T(1) : T(-1)) : T(0);
  T result = 1;
  for (; y > 0; y /= 2, x = times(x, x))
    if (y % 2 == 1) result = times(result, x);
  return result;
}
// A floating point number without its fraction. What does not fit, and NaN, becomes the least int32
// or int64, as on x86, of which narrower types take the low bits: a device would give the nearest
// number of a narrow type.
template <class T, class From>
FLASHLIGHT_DEVICE T truncated(From x) {
  using Wide = std::conditional_t<(sizeof(T) < 4) || std::is_same<T, int32_t>::value, int32_t, int64_t>;
  constexpr Wide kLeast = kMin<Wide>;
  constexpr From kLimit = -static_cast<From>(kLeast);
  const bool fits = x > -kLimit - 1 && x < kLimit;
  return static_cast<T>(fits ? static_cast<Wide>(x) : kLeast);
}

}  // namespace fl
