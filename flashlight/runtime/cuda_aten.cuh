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
#include <c10/core/GradMode.h>

#ifndef FLASHLIGHT_CUDA_HOST
#include <ATen/cuda/CUDAGraph.h>
#include <c10/cuda/CUDAFunctions.h>
#include <c10/cuda/CUDAGuard.h>
#include <c10/cuda/CUDAStream.h>
#endif

#include <memory>
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
template <class T>
constexpr bool is_half = std::is_same_v<T, float16> || std::is_same_v<T, bfloat16>;
template <>
constexpr at::ScalarType scalar_type<float16> = at::kHalf;
template <>
constexpr at::ScalarType scalar_type<bfloat16> = at::kBFloat16;
template <class T>
constexpr at::ScalarType scalar_type<complex<T>> = c10::CppTypeToScalarType<c10::complex<T>>::value;

// In order in memory, where LibTorch left signs to whoever reads (conj, and imag of it).
inline at::Tensor in_order(const at::Tensor& x) {
  return x.resolve_conj().resolve_neg().contiguous();
}

// A tensor over memory of the device. LibTorch would ask the driver whose memory it is, which does
// not know null, of no elements.
template <class T>
at::Tensor tensor(const T* memory, at::IntArrayRef sizes) {
  return at::for_blob(const_cast<T*>(memory), sizes)
      .options(at::TensorOptions(scalar_type<T>).device(device()))
      .target_device(device())
      .make_tensor();
}

// The same for elements that do not lie in order.
template <class T>
at::Tensor view(const T* memory, at::IntArrayRef sizes, at::IntArrayRef strides) {
  return at::for_blob(const_cast<T*>(memory), sizes)
      .strides(strides)
      .options(at::TensorOptions(scalar_type<T>).device(device()))
      .target_device(device())
      .make_tensor();
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
  value = in_order(value);
  return static_cast<T*>(value.mutable_data_ptr());
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
  if constexpr (is_half<T>) {
    return tensor(memory, {}).template item<float>();
  } else if constexpr (is_complex<T>::value) {
    const auto z = tensor(memory, {}).template item<c10::complex<typename T::Part>>();
    return T(z.real(), z.imag());
  } else {
    return tensor(memory, {}).template item<T>();
  }
}

// As fl::kTolerance of generated C++.
template <class T>
constexpr float kTolerance = sizeof(T) == sizeof(float) ? 1e-4f : 1e-10f;
template <>
constexpr float kTolerance<float16> = 1e-2f;
template <>
constexpr float kTolerance<bfloat16> = 5e-2f;
template <class T>
constexpr float kTolerance<complex<T>> = kTolerance<T>;

// Whole numbers are equal; real ones up to rounding, as they were computed in another order.
template <class T, class Captured>
void expect(T number, Captured captured, const char* place) {
  using Known = std::conditional_t<is_complex<T>::value, c10::complex<double>, T>;
  Known received, expected = static_cast<Known>(captured);
  if constexpr (is_complex<T>::value)
    received = Known(number.re, number.im);
  else
    received = number;
  if (received == expected || (received != received && expected != expected)) return;
  constexpr bool is_whole = std::is_integral_v<T>;
  if constexpr (!is_whole)
    if (std::abs(received - expected) <= kTolerance<T> * std::abs(expected)) return;
  throw std::runtime_error("guard: " + std::string(place) + " gave " + c10::str(received) +
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
    given = in_order(given);
    return static_cast<const T*>(given.const_data_ptr());
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
  // Derivatives are programs of their own: values are computed, and written to inputs that LibTorch
  // would differentiate by.
  c10::NoGradGuard no_grad_;
  std::vector<at::Tensor> inputs_;
};

// ---- CUDA graphs --------------------------------------------------------------------------------

#ifndef FLASHLIGHT_CUDA_HOST
// A program that is captured in a CUDA graph.
//
// The first call with inputs runs the program; the second one in a row with inputs in the same
// memory captures it and launches the graph, further ones launch the graph. New values are written
// into the tensors that were given (`x.copy_(next)`). Results are the caller's own. Copies of an
// object share a graph; one thread calls it at a time.
class Graph {
 public:
  using Program = std::vector<at::Tensor> (*)(const std::vector<at::Tensor>& inputs);
  explicit Graph(Program program) : program_(program), state_(std::make_shared<State>()) {}

  std::vector<at::Tensor> operator()(const std::vector<at::Tensor>& inputs) {
    if (!state_->is_of(inputs)) {
      std::vector<at::Tensor> results = program_(inputs);
      *state_ = State(inputs);
      return results;
    }
    const DeviceGuard guard(inputs.empty() ? device() : inputs[0].device());
    if (state_->graph == nullptr) capture(inputs);
    state_->graph->replay();
    std::vector<at::Tensor> results;
    for (const at::Tensor& result : state_->results) results.push_back(result.clone());
    return results;
  }

 private:
  // A tensor's place in memory, and how it lies there.
  struct Place {
    const void* memory = nullptr;
    at::ScalarType dtype;
    std::vector<int64_t> sizes, strides;
    bool is_conj, is_neg;  // z and conj(z) share memory

    explicit Place(const at::Tensor& tensor)
        : memory(tensor.const_data_ptr()),
          dtype(tensor.scalar_type()),
          sizes(tensor.sizes().vec()),
          strides(tensor.strides().vec()),
          is_conj(tensor.is_conj()),
          is_neg(tensor.is_neg()) {}
    bool operator==(const Place& other) const {
      return memory == other.memory && dtype == other.dtype && sizes == other.sizes &&
             strides == other.strides && is_conj == other.is_conj && is_neg == other.is_neg;
    }
  };

  struct State {
    bool has_run = false;
    std::vector<Place> places;
    std::unique_ptr<at::cuda::CUDAGraph> graph;
    std::vector<at::Tensor> results;  // in the graph's memory

    State() = default;
    explicit State(const std::vector<at::Tensor>& inputs) : has_run(true) {
      for (const at::Tensor& input : inputs) places.emplace_back(input);
    }
    bool is_of(const std::vector<at::Tensor>& inputs) const {
      bool same = has_run && inputs.size() == places.size();
      for (size_t i = 0; same && i < inputs.size(); ++i) same = places[i] == Place(inputs[i]);
      return same;
    }
  };

  // A capture needs a stream that is not the default one.
  void capture(const std::vector<at::Tensor>& inputs) {
    auto graph = std::make_unique<at::cuda::CUDAGraph>();
    c10::cuda::device_synchronize();
    {
      const c10::cuda::CUDAStreamGuard guard(c10::cuda::getStreamFromPool());
      graph->capture_begin();
      try {
        state_->results = program_(inputs);
      } catch (...) {
        try {
          graph->capture_end();
        } catch (...) {  // the first error tells more
        }
        throw;
      }
      graph->capture_end();
    }
    state_->graph = std::move(graph);
  }

  Program program_;
  std::shared_ptr<State> state_;
};
#endif

}  // namespace fl
