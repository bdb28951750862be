// Torch's functions on values of the graph, for decompositions and derivatives: each call makes a
// node. Names, argument order and defaults are ATen's.
//
//   LazyTensor e = exp(x - amax(x, {-1}, true));
//   LazyTensor softmax = e / sum(e, {-1}, true);
#pragma once

#include <optional>
#include <string_view>
#include <vector>

#include "composit/ops/operations.h"

namespace composit {

// A number beside a tensor, wrapped as torch wraps those of Python.
struct Number {
  Number(int value) : value(value) {}              // NOLINT: numbers are Numbers
  Number(int64_t value) : value(value) {}          // NOLINT
  Number(double value) : value(value) {}           // NOLINT
  Number(const Scalar& scalar) : value(scalar) {}  // NOLINT
  ArgumentValue value;                             // as a wrapped Scalar
};

// clang-format off
#define COMPOSIT_BINARY_FUNCTIONS(f)                                                                \
  f(operator+, "aten::add.Tensor") f(operator-, "aten::sub.Tensor") f(operator*, "aten::mul.Tensor") \
  f(operator/, "aten::div.Tensor") f(operator<, "aten::lt.Tensor") f(operator<=, "aten::le.Tensor") \
  f(operator>, "aten::gt.Tensor") f(operator>=, "aten::ge.Tensor") f(eq, "aten::eq.Tensor")         \
  f(ne, "aten::ne.Tensor") f(maximum, "aten::maximum") f(minimum, "aten::minimum")                  \
  f(pow, "aten::pow.Tensor_Tensor") f(logical_and, "aten::logical_and")                             \
  f(logical_or, "aten::logical_or")
#define COMPOSIT_UNARY_FUNCTIONS(f)                                                                 \
  f(operator-, "aten::neg") f(abs, "aten::abs") f(exp, "aten::exp") f(log, "aten::log")             \
  f(sqrt, "aten::sqrt") f(rsqrt, "aten::rsqrt") f(sin, "aten::sin") f(cos, "aten::cos")             \
  f(tanh, "aten::tanh") f(erf, "aten::erf") f(sigmoid, "aten::sigmoid") f(relu, "aten::relu")       \
  f(sign, "aten::sign") f(square, "aten::square") f(reciprocal, "aten::reciprocal")                 \
  f(logical_not, "aten::logical_not") f(floor, "aten::floor")        \
  f(isnan, "aten::isnan") f(log1p, "aten::log1p") f(expm1, "aten::expm1")
#define COMPOSIT_DECLARE(name, op)            \
  LazyTensor name(const LazyTensor& a, const LazyTensor& b); \
  LazyTensor name(const LazyTensor& a, const Number& b); \
  LazyTensor name(const Number& a, const LazyTensor& b);
// ATen's functions and operators of two operands, element by element: they broadcast, and dtypes
// are promoted. UserError where sizes do not broadcast or the dtype has no such function.
COMPOSIT_BINARY_FUNCTIONS(COMPOSIT_DECLARE)
#undef COMPOSIT_DECLARE
#define COMPOSIT_DECLARE(name, op) LazyTensor name(const LazyTensor& x);
// ATen's functions of one element, of the sizes of x. UserError where the dtype has no such function.
COMPOSIT_UNARY_FUNCTIONS(COMPOSIT_DECLARE)
#undef COMPOSIT_DECLARE
// clang-format on

// The only result of an operation.
LazyTensor apply_one(std::string_view name, std::vector<ArgumentValue> arguments);

// x where `condition`, of bool, holds, y elsewhere; the three broadcast.
LazyTensor where(const LazyTensor& condition, const LazyTensor& x, const LazyTensor& y);
LazyTensor where(const LazyTensor& condition, const LazyTensor& x, const Number& y);
LazyTensor where(const LazyTensor& condition, const Number& x, const LazyTensor& y);
// The power of each element.
LazyTensor pow(const LazyTensor& x, double exponent);
LazyTensor to(const LazyTensor& x, DType dtype);  // x itself where it has the dtype
LazyTensor conj(const LazyTensor& x);             // x itself where it is real
// LibTorch's kernels compute sums and squares of 16-bit floats, which leave their range, in
// float32: x in that dtype, and x back in `dtype` of 16 bits. Others stay as they are.
DType opmath_dtype(DType dtype);
LazyTensor widened(const LazyTensor& x);
LazyTensor narrowed(const LazyTensor& x, DType dtype);

// Over `axes` (all, if empty), which are left out, or with `keepdim` kept with size 1. UserError
// for an axis out of range.
LazyTensor sum(const LazyTensor& x, const Ints& axes = {}, bool keepdim = false);
LazyTensor mean(const LazyTensor& x, const Ints& axes = {}, bool keepdim = false);
LazyTensor amax(const LazyTensor& x, const Ints& axes = {}, bool keepdim = false);
// Along `axis`, of the sizes of x.
LazyTensor cumsum(const LazyTensor& x, int64_t axis);
LazyTensor softmax(const LazyTensor& x, int64_t axis);

// Products of matrices, the last two axes; those before broadcast. A vector is a matrix of one row
// or column. UserError where the sizes that are summed over differ.
LazyTensor matmul(const LazyTensor& a, const LazyTensor& b);
LazyTensor mm(const LazyTensor& a, const LazyTensor& b);   // the product of two matrices
LazyTensor bmm(const LazyTensor& a, const LazyTensor& b);  // products of two batches of matrices

// The same elements in other sizes; one of them may be -1. UserError where their number differs.
LazyTensor reshape(const LazyTensor& x, const Ints& sizes);
LazyTensor expand(const LazyTensor& x,
                  const Ints& sizes);  // axes of size 1 repeated, and new ones in front
LazyTensor permute(const LazyTensor& x, const Ints& axes);        // axis i is axis `axes[i]` of x
LazyTensor transpose(const LazyTensor& x, int64_t a, int64_t b);  // two axes exchanged
LazyTensor unsqueeze(const LazyTensor& x, int64_t axis);          // a new axis of size 1 there
LazyTensor squeeze(const LazyTensor& x,
                   const Ints& axes);  // those of `axes` left out that have size 1
LazyTensor slice(const LazyTensor& x, int64_t axis, int64_t begin, int64_t end,
                 int64_t step = 1);  // indices begin, begin + step, … before end along the axis
LazyTensor select_at(const LazyTensor& x, int64_t axis,
                     int64_t index);                     // one index of the axis, which is left out
LazyTensor cat(const LazyTensors& parts, int64_t axis);  // concatenates along the axis
LazyTensor flip(const LazyTensor& x, const Ints& axes);  // in reverse order along the axes
LazyTensor tril(const LazyTensor& x, int64_t diagonal = 0);  // zeros above the diagonal

// UserError: "expected a floating point dtype, received int64"; complex numbers are let through.
void expect_floating(DType dtype);

// Filled tensors: of the given sizes; `_like`: sizes and dtype of x.
LazyTensor full(const Ints& sizes, const Number& value, DType dtype);
LazyTensor zeros(const Ints& sizes, DType dtype);
LazyTensor zeros_like(const LazyTensor& x);
LazyTensor ones_like(const LazyTensor& x);
LazyTensor arange(int64_t end, DType dtype = DType::int64);

// A loss as its `reduction` says: 0 the loss of each element, 1 their mean, 2 their sum. UserError
// for another number.
LazyTensor reduced(const LazyTensor& loss, int64_t reduction);
// The cotangent of each of `loss`, from that of `reduced(loss, reduction)`.
LazyTensor spread(const LazyTensor& cotangent, const LazyTensor& loss, int64_t reduction);

// x summed over what broadcasting to its sizes from `sizes` repeated: the derivative of expand.
LazyTensor sum_to_size(const LazyTensor& x, const Ints& sizes);

}  // namespace composit
