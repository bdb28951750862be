// Memory and calls of LibTorch between kernels of the cuda backend.
//
//   fl::Session session("bert", inputs, 1);
//   const float* const x = session.input<float>(0, "x", {2, 3});
//   session.check(fl::launch(kernel, fl::points(6), session.stream(), x, y));
//
// All work goes to LibTorch's current stream of the device that the inputs are on; memory comes
// from LibTorch's allocator, so a call can be captured in a CUDA graph as one of LibTorch's own.
#pragma once

#include <ATen/core/Tensor.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/from_blob.h>

#ifndef FLASHLIGHT_CUDA_HOST
#include <c10/cuda/CUDAGuard.h>
#include <c10/cuda/CUDAStream.h>
#endif

#include <stdexcept>
#include <string>
#include <type_traits>
#include <vector>

#include "flashlight/runtime/cuda.cuh"

namespace fl {

// ---- the device ---------------------------------------------------------------------------------

#ifdef FLASHLIGHT_CUDA_HOST  // tests run kernels on the host
inline at::Device device() { return at::kCPU; }
struct DeviceGuard {
  explicit DeviceGuard(at::Device) {}
};
inline cudaStream_t current_stream() { return nullptr; }
#else
inline at::Device device() {
  return at::Device(at::kCUDA, static_cast<at::DeviceIndex>(c10::cuda::current_device()));
}
using DeviceGuard = c10::cuda::CUDAGuard;
inline cudaStream_t current_stream() { return c10::cuda::getCurrentCUDAStream().stream(); }
#endif

// ---- tensors ------------------------------------------------------------------------------------

template <class T>
constexpr at::ScalarType scalar_type = c10::CppTypeToScalarType<T>::value;

// A tensor over memory of the device.
template <class T>
at::Tensor tensor(const T* memory, at::IntArrayRef sizes) {
  return at::from_blob(const_cast<T*>(memory), sizes,
                       at::TensorOptions(scalar_type<T>).device(device()));
}

template <class T>
at::Tensor empty(at::IntArrayRef sizes) {
  return at::empty(sizes, at::TensorOptions(scalar_type<T>).device(device()));
}

// The first element of what LibTorch gave, whose elements are put in order.
template <class T>
T* elements(at::Tensor& value, int64_t count) {
  if (value.scalar_type() != scalar_type<T> || value.numel() != count)
    throw std::runtime_error("LibTorch gave " + std::string(c10::toString(value.scalar_type())) +
                             c10::str(value.sizes()) + ", expected " + std::to_string(count) +
                             " elements of " + c10::toString(scalar_type<T>));
  value = value.contiguous();
  return value.mutable_data_ptr<T>();
}

// Copies what LibTorch gave to memory of the device.
template <class T>
void store(at::Tensor& value, T* memory, int64_t count) {
  elements<T>(value, count);
  tensor(memory, {count}).copy_(value.view({count}));
}

// ---- guards -------------------------------------------------------------------------------------

// An element on the host, which waits for it.
template <class T>
T number(const T* memory) {
  return tensor(memory, {}).template item<T>();
}

// Whole numbers are equal; real ones up to rounding, as they were computed in another order.
template <class T, class Captured>
void expect(T number, Captured captured, const char* place) {
  const auto expected = static_cast<T>(captured);
  if (number == expected || (number != number && expected != expected)) return;
  if constexpr (std::is_floating_point_v<T>) {
    // As fl::kTolerance of generated C++.
    constexpr T kTolerance = sizeof(T) == sizeof(float) ? T(1e-4) : T(1e-10);
    if (std::abs(number - expected) <= kTolerance * std::abs(expected)) return;
  }
  throw std::runtime_error("guard: " + std::string(place) + " gave " + c10::str(number) +
                           ", captured with " + c10::str(expected));
}

template <class T>
void require(T condition, const char* message) {
  if (!(condition != T(0))) throw std::runtime_error("guard: " + std::string(message));
}

// ---- a call -------------------------------------------------------------------------------------

class Session {
 public:
  // Throws std::invalid_argument for another number of inputs than `count`.
  Session(const char* program, const std::vector<at::Tensor>& inputs, size_t count)
      : program_(program), guard_(first_device(inputs)), inputs_(inputs) {
    if (inputs.size() != count)
      refuse(std::to_string(count) + " tensors", std::to_string(inputs.size()));
  }

  // The elements of an input, in order. Throws std::invalid_argument if it has another type or
  // sizes, or is not on the device of the first input.
  template <class T>
  const T* input(size_t number, const char* name, at::IntArrayRef sizes) {
    at::Tensor& given = inputs_[number];
    expect(given, name, scalar_type<T>, sizes);
    given = given.contiguous();
    return given.const_data_ptr<T>();
  }
  cudaStream_t stream() const { return current_stream(); }
  void check(cudaError_t error) const {
    if (error == cudaSuccess) return;
    throw std::runtime_error(std::string(program_) + ": a kernel was not launched, CUDA's error " +
                             std::to_string(static_cast<int>(error)));
  }

 private:
  static at::Device first_device(const std::vector<at::Tensor>& inputs) {
    return inputs.empty() ? fl::device() : inputs[0].device();
  }
  [[noreturn]] void refuse(const std::string& expected, const std::string& received) const {
    throw std::invalid_argument(std::string(program_) + ": expected " + expected + ", received " +
                                received);
  }
  void expect(const at::Tensor& given, const char* name, at::ScalarType dtype,
              at::IntArrayRef sizes) const {
    const auto text = [](at::ScalarType one, at::IntArrayRef its_sizes, at::Device device) {
      return std::string(c10::toString(one)) + c10::str(its_sizes) + " on " + device.str();
    };
    if (given.defined() && given.scalar_type() == dtype && given.sizes() == sizes &&
        given.device() == fl::device())
      return;
    refuse("for '" + std::string(name) + "' " + text(dtype, sizes, fl::device()),
           given.defined() ? text(given.scalar_type(), given.sizes(), given.device())
                           : "an undefined tensor");
  }

  const char* program_;
  DeviceGuard guard_;
  std::vector<at::Tensor> inputs_;
};

}  // namespace fl
