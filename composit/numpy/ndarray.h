// The type of composit::numpy: a value of the graph on which NumPy's functions and operators work.
//
//   namespace cnp = composit::numpy;
//   cnp::NdArray x = cnp::ones({2, 3}, DType::float32);
//   cnp::NdArray y = 2 * x[{0, cnp::slice(1, 3)}] + 1;      // nodes; nothing is computed
//
// An NdArray is a LazyTensor and goes wherever one is expected. It is a class of its own because
// `int32 + float32` is float64 in NumPy and float32 in torch: overload resolution picks NumPy's
// rule for NdArray and torch's for LazyTensor where both namespaces have a function of that name.
#pragma once

#include <complex>
#include <concepts>
#include <initializer_list>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "composit/ir/graph.h"
#include "composit/ir/node.h"
#include "composit/op/nest.h"

namespace composit::numpy {

using composit::DType;
using composit::Ints;

class Indices;

// A value of a graph with NumPy's operators and functions. It holds no numbers: evaluate it.
class NdArray : public LazyTensor {
 public:
  NdArray() = default;
  NdArray(LazyTensor value) : LazyTensor(std::move(value)) {}  // NOLINT: every value is an array
  // NumPy's truth value is of elements, which an array of a graph does not have.
  explicit operator bool() const = delete;

  // NumPy's attributes: the sizes, the number of axes and of elements.
  Ints shape() const { return sizes(); }
  int64_t ndim() const { return rank(); }
  int64_t size() const { return numel(); }
  using LazyTensor::size;
  // The name of an input; empty for other values.
  std::string name() const;

  NdArray T() const;                         // all axes in reverse
  NdArray astype(DType dtype) const;         // elements cast to the dtype
  NdArray reshape(const Ints& shape) const;  // the same elements in this shape; one size may be -1
  // NumPy's x[...]; see composit/numpy/indexing.h. UserError for an index out of range.
  NdArray operator[](const Indices& indices) const;
};

using NdArrays = std::vector<NdArray>;  // in order

// NumPy's None, wherever it may stand for an argument.
using None = std::nullopt_t;
inline constexpr None none = std::nullopt;

// `axis`: None (all), an axis, or several. Axes count from the end where they are negative.
class Axes {
 public:
  Axes(None = none) {}                                        // NOLINT: any of these are axes
  Axes(int axis) : list_(Ints{axis}) {}                       // NOLINT
  Axes(int64_t axis) : list_(Ints{axis}) {}                   // NOLINT
  Axes(std::initializer_list<int64_t> axes) : list_(axes) {}  // NOLINT
  Axes(Ints axes) : list_(std::move(axes)) {}                 // NOLINT
  bool is_none() const { return !list_; }                     // all axes
  // The number of axes given; 0 for None.
  int64_t count() const { return list_ ? static_cast<int64_t>(list_->size()) : 0; }

  // From 0 to rank - 1, in the order given; all for None. UserError "[numpy.sum] expected an axis
  // in [-2, 2), received 3", or for an axis given twice.
  Ints of_rank(int64_t rank, std::string_view function) const;

 private:
  std::optional<Ints> list_;
};

// The axis `axis` of `rank`, from 0 on. UserError as Axes::of_rank.
int64_t axis_of_rank(int64_t axis, int64_t rank, std::string_view function);

// An operand of a function of two: an array, or a number of C++. Numbers are weak like Python's
// (NEP 50): they take the dtype of the array unless they are of a higher kind.
class Operand {
 public:
  // Arrays and numbers are operands.
  Operand(NdArray array) : value_(std::move(array)) {}              // NOLINT: numbers and arrays
  Operand(LazyTensor array) : value_(NdArray(std::move(array))) {}  // NOLINT
  Operand(bool number) : value_(Scalar::Value(number)) {}           // NOLINT
  template <std::integral T>
  Operand(T number) : value_(Scalar::Value(static_cast<int64_t>(number))) {}  // NOLINT
  template <std::floating_point T>
  Operand(T number) : value_(Scalar::Value(static_cast<double>(number))) {}  // NOLINT
  Operand(std::complex<double> number) : value_(Scalar::Value(number)) {}    // NOLINT

  // A number, not an array.
  bool is_number() const { return std::holds_alternative<Scalar::Value>(value_); }
  // std::bad_variant_access of an array.
  const Scalar::Value& number() const { return std::get<Scalar::Value>(value_); }
  // std::bad_variant_access of a number.
  const NdArray& array() const { return std::get<NdArray>(value_); }

 private:
  std::variant<NdArray, Scalar::Value> value_;
};

// Arguments of functions of two: at least one is an array.
template <class T>
concept IsArray = std::derived_from<T, LazyTensor>;
template <class A, class B>
concept OperandPair = std::convertible_to<A, Operand> && std::convertible_to<B, Operand> &&
    (IsArray<A> || IsArray<B>);

// UserError "[numpy.function] what".
[[noreturn]] void refuse(std::string_view function, const std::string& what);

}  // namespace composit::numpy
