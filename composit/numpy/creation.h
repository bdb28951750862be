// Arrays from nothing, or from data.
//
//   cnp::NdArray x = cnp::asarray({{1.0, 2.0}, {3.0, 4.0}}, "x");   // an input with this value
//   cnp::NdArray y = cnp::ones({2, 3}, DType::float32);             // filled when evaluated
//
// An array with a name is an input of the graph, known by name and type: two graphs that differ in
// what their inputs hold are equal. Without a name it is a constant, known by its content.
// C++'s int and double stand for Python's: int64 and float64.
#pragma once

#include <complex>
#include <concepts>
#include <initializer_list>
#include <optional>
#include <string>
#include <type_traits>
#include <vector>

#include "composit/numpy/ndarray.h"
#include "composit/op/compute_type.h"

namespace composit::numpy {

namespace detail {

// The dtype of elements of T in memory.
template <class T>
constexpr DType dtype_of() {
  if constexpr (std::same_as<T, bool>) return DType::bool_;
  if constexpr (std::integral<T>) return DType::int64;
  if constexpr (std::same_as<T, float>) return DType::float32;
  if constexpr (std::same_as<T, double>) return DType::float64;
  if constexpr (std::same_as<T, std::complex<float>>) return DType::complex64;
  if constexpr (std::same_as<T, std::complex<double>>) return DType::complex128;
}
template <class T>
concept Element = std::is_arithmetic_v<T> || kIsComplex<T>;

// Elements of nested lists in order, and the sizes; UserError for lists of different lengths.
template <class T>
using Stored = std::conditional_t<std::integral<T> && !std::same_as<T, bool>, int64_t, T>;
template <Element T>
void flatten(const T& value, size_t, Ints&, std::vector<std::byte>& bytes) {
  const auto stored = static_cast<Stored<T>>(value);
  const auto* begin = reinterpret_cast<const std::byte*>(&stored);
  bytes.insert(bytes.end(), begin, begin + sizeof stored);
}
void expect_length(size_t depth, int64_t length, Ints& sizes);
template <class List>
void flatten(const List& list, size_t depth, Ints& sizes, std::vector<std::byte>& bytes) {
  expect_length(depth, static_cast<int64_t>(list.size()), sizes);
  for (const auto& item : list)
    flatten(static_cast<const typename List::value_type&>(item), depth + 1, sizes, bytes);
}

template <class List>
struct ElementOf : ElementOf<typename List::value_type> {};
template <Element T>
struct ElementOf<T> {
  using type = T;
};

template <class List>
Array array_of_lists(const List& list) {
  Ints sizes;
  std::vector<std::byte> bytes;
  flatten(list, 0, sizes, bytes);
  constexpr DType dtype = dtype_of<typename ElementOf<List>::type>();
  return Array::copy_of(tensor_type(dtype, sizes), bytes.data());
}

}  // namespace detail

// The value of an array, a number, or nested lists. UserError for lists of different lengths.
NdArray asarray(Array value, std::string name = "");
template <detail::Element T>
NdArray asarray(T value, std::string name = "") {
  return asarray(detail::array_of_lists(value), std::move(name));
}
template <class T>
NdArray asarray(const std::vector<T>& values, std::string name = "") {
  return asarray(detail::array_of_lists(values), std::move(name));
}
template <class T>
NdArray asarray(std::initializer_list<T> values, std::string name = "") {
  return asarray(detail::array_of_lists(values), std::move(name));
}
template <class T>
NdArray asarray(std::initializer_list<std::initializer_list<T>> values, std::string name = "") {
  return asarray(detail::array_of_lists(values), std::move(name));
}
template <class T>
NdArray asarray(std::initializer_list<std::initializer_list<std::initializer_list<T>>> values,
                std::string name = "") {
  return asarray(detail::array_of_lists(values), std::move(name));
}

// An input without a value; evaluation has to give it one.
NdArray ndarray(const Ints& shape, DType dtype, std::string name);

// With a name: inputs that hold these values.
NdArray zeros(const Ints& shape, DType dtype = DType::float64, std::string name = "");
NdArray ones(const Ints& shape, DType dtype = DType::float64, std::string name = "");
// Zeros: there is no memory that could be left as it is.
NdArray empty(const Ints& shape, DType dtype = DType::float64, std::string name = "");
// The dtype of the number, if none is given.
NdArray full(const Ints& shape, const Operand& value, std::optional<DType> dtype = {});
// An array of the shape of x, and of its dtype unless one is given.
NdArray zeros_like(const NdArray& x, std::optional<DType> dtype = {});
NdArray ones_like(const NdArray& x, std::optional<DType> dtype = {});
NdArray empty_like(const NdArray& x, std::optional<DType> dtype = {});
NdArray full_like(const NdArray& x, const Operand& value, std::optional<DType> dtype = {});

// int64 for integers, float64 where a number is a double, unless a dtype is given.
NdArray arange(const Operand& stop, std::optional<DType> dtype = {});
NdArray arange(const Operand& start, const Operand& stop, const Operand& step = 1,
               std::optional<DType> dtype = {});
// `num` numbers from `start` to `stop`: at equal distances; powers of `base` with such exponents;
// of equal ratios. float64 unless a dtype is given.
NdArray linspace(double start, double stop, int64_t num = 50, bool endpoint = true,
                 std::optional<DType> dtype = {});
NdArray logspace(double start, double stop, int64_t num = 50, bool endpoint = true,
                 double base = 10);
NdArray geomspace(double start, double stop, int64_t num = 50, bool endpoint = true);
// `m` columns (n, if absent); ones on the k-th diagonal.
NdArray eye(int64_t n, std::optional<int64_t> m = {}, int64_t k = 0, DType dtype = DType::float64);
// Ones on and below the k-th diagonal.
NdArray tri(int64_t n, std::optional<int64_t> m = {}, int64_t k = 0, DType dtype = DType::float64);
// Ones on the diagonal.
NdArray identity(int64_t n, DType dtype = DType::float64);
// xy: the first array runs along axis 1; ij: along axis 0.
NdArrays meshgrid(const NdArrays& arrays, std::string_view indexing = "xy");
// The places of elements along each axis, in one array.
NdArray indices(const Ints& shape);

}  // namespace composit::numpy
