// Tensors whose sizes are part of their type, and the loops over them.
//
//   Tensor<float, 2, 3> x = Tensor<float, 2, 3>::of(1, 2, 3, 4, 5, 6);
//   x(1, 2);                                       // 6
//   x(2, 0);                                       // out of range: std::out_of_range
#pragma once

#include <algorithm>
#include <array>
#include <concepts>
#include <cstdint>
#include <memory>
#include <stdexcept>
#include <string>
#include <type_traits>
#include <utility>

#include "flashlight/fixed/shape.h"

namespace flashlight::fixed {
namespace detail {

// Larger tensors are on the heap: a stack has a few MiB.
inline constexpr size_t kMostOnStack = 16384;  // bytes

// Elements on the heap, which a copy copies.
template <class T, size_t kElements>
class HeapArray {
 public:
  HeapArray() : elements_(new T[kElements]) {}
  HeapArray(const HeapArray& other) : HeapArray() { copy(other); }
  HeapArray(HeapArray&&) noexcept = default;
  HeapArray& operator=(const HeapArray& other) {
    if (elements_ == nullptr) elements_.reset(new T[kElements]);  // was moved from
    copy(other);
    return *this;
  }
  HeapArray& operator=(HeapArray&&) noexcept = default;
  ~HeapArray() = default;
  T* data() { return elements_.get(); }
  const T* data() const { return elements_.get(); }

 private:
  void copy(const HeapArray& other) { std::copy_n(other.data(), kElements, data()); }
  std::unique_ptr<T[]> elements_;
};

template <class T, size_t kElements>
using Storage = std::conditional_t<(kElements * sizeof(T) <= kMostOnStack),
                                   std::array<T, kElements>, HeapArray<T, kElements>>;

// For a tensor whose elements are written next.
struct Unwritten {};

}  // namespace detail

// A tensor of arithmetic T, row-major, with its elements; a copy has its own.
template <class T, int64_t... kAxes>
class Tensor {
 public:
  static_assert(std::is_arithmetic_v<T>, "the elements of a tensor are numbers");
  using Element = T;                                      // of the tensor
  using value_type = T;                                   // as containers of the standard library
  using iterator = T*;                                    // over elements in their order
  using const_iterator = const T*;                        // over elements in their order
  using Shape = fixed::Shape<kAxes...>;                   // its sizes
  static constexpr size_t kRank = Shape::kRank;           // the number of axes
  static constexpr int64_t kElements = Shape::kElements;  // the number of elements

  // Zeros.
  Tensor() { std::fill(begin(), end(), T{}); }
  explicit Tensor(detail::Unwritten) {}
  // All elements are `value`.
  static Tensor full(T value) {
    Tensor x{detail::Unwritten{}};
    std::fill(x.begin(), x.end(), value);
    return x;
  }
  // The elements in their order, the last axis fastest.
  template <class... Values>
  static Tensor of(Values... values) {
    static_assert(sizeof...(Values) == kElements, "expected a value for every element");
    Tensor x{detail::Unwritten{}};
    T* next = x.data();
    ((*next++ = static_cast<T>(values)), ...);
    return x;
  }
  // 0, 1, 2, ...
  static Tensor arange() {
    Tensor x{detail::Unwritten{}};
    for (int64_t i = 0; i < kElements; ++i) x.data()[i] = static_cast<T>(i);
    return x;
  }
  // A copy of row-major elements at `from`: kElements of them.
  static Tensor copy_of(const T* from) {
    Tensor x{detail::Unwritten{}};
    std::copy_n(from, kElements, x.data());
    return x;
  }

  // Elements in their order, the last axis fastest.
  T* data() { return elements_.data(); }
  const T* data() const { return elements_.data(); }
  static constexpr size_t size() { return static_cast<size_t>(kElements); }
  T* begin() { return data(); }
  const T* begin() const { return data(); }
  T* end() { return data() + kElements; }
  const T* end() const { return data() + kElements; }

  // The element at an index per axis. std::out_of_range for one that is not below the size.
  template <std::convertible_to<int64_t>... Indices>
  T& operator()(Indices... indices) {
    return data()[offset(static_cast<int64_t>(indices)...)];
  }
  template <std::convertible_to<int64_t>... Indices>
  const T& operator()(Indices... indices) const {
    return data()[offset(static_cast<int64_t>(indices)...)];
  }
  // The only element.
  operator T() const requires(kElements == 1 && kRank == 0) { return *data(); }
  // True if all elements are equal.
  bool operator==(const Tensor& other) const { return std::equal(begin(), end(), other.begin()); }

 private:
  template <class... Indices>
  static int64_t offset(Indices... indices) {
    static_assert(sizeof...(Indices) == kRank, "expected an index for every axis");
    constexpr auto kStrides = detail::row_major(Shape::kSizes);
    int64_t sum = 0;
    size_t axis = 0;
    const auto add = [&](int64_t index) {
      if (index < 0 || index >= Shape::kSizes[axis])
        throw std::out_of_range("index " + std::to_string(index) + " of axis " +
                                std::to_string(axis) + ", which has " +
                                std::to_string(Shape::kSizes[axis]));
      sum += index * kStrides[axis++];
    };
    (add(indices), ...);
    return sum;
  }

  detail::Storage<T, static_cast<size_t>(kElements)> elements_;
};

namespace detail {

template <class T, class S>
struct TensorOfShape;
template <class T, int64_t... kAxes>
struct TensorOfShape<T, Shape<kAxes...>> {
  using type = Tensor<T, kAxes...>;
};

}  // namespace detail

// The tensor of a shape.
template <class T, class S>
using TensorOf = typename detail::TensorOfShape<T, S>::type;

namespace detail {

// Calls f(a, b, ...) with pointers to elements, at each index of Loops::kSizes, the last axis
// fastest. Loops::kStrides: by pointer, elements from an index of an axis to the next. All are
// constants, so that the compiler unrolls and vectorizes what is short. They are those of a type,
// since g++ 12 gives functions one name whose arguments are arrays that differ in a 0 alone.
template <class Loops, size_t kAxis = 0, class F, class... Pointers>
inline void for_each_index(const F& f, Pointers... at) {
  if constexpr (kAxis == Loops::kSizes.size()) {
    f(at...);
  } else {
    for (int64_t i = 0; i < Loops::kSizes[kAxis]; ++i)
      [&]<size_t... kWhich>(std::index_sequence<kWhich...>) {
        for_each_index<Loops, kAxis + 1>(f, (at + i * Loops::kStrides[kWhich][kAxis])...);
      }
    (std::make_index_sequence<sizeof...(Pointers)>());
  }
}

// Over a result, with operands that broadcast to it.
template <class Result, class... Operands>
struct BroadcastLoops {
  static constexpr auto kSizes = Result::kSizes;
  static constexpr std::array kStrides = {row_major(kSizes),
                                          broadcast_strides(Operands::kSizes, kSizes)...};
};

}  // namespace detail
}  // namespace flashlight::fixed
