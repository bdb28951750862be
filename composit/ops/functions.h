// Torch's functions on values of the graph, for decompositions and derivatives: each call makes a
// node. Names, argument order and defaults are ATen's.
//
//   Tensor e = exp(x - amax(x, {-1}, true));
//   Tensor softmax = e / sum(e, {-1}, true);
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
  Tensor name(const Tensor& a, const Tensor& b); \
  Tensor name(const Tensor& a, const Number& b); \
  Tensor name(const Number& a, const Tensor& b);
// ATen's functions and operators of two operands, element by element: they broadcast, and dtypes
// are promoted. UserError where sizes do not broadcast or the dtype has no such function.
COMPOSIT_BINARY_FUNCTIONS(COMPOSIT_DECLARE)
#undef COMPOSIT_DECLARE
#define COMPOSIT_DECLARE(name, op) Tensor name(const Tensor& x);
// ATen's functions of one element, of the sizes of x. UserError where the dtype has no such function.
COMPOSIT_UNARY_FUNCTIONS(COMPOSIT_DECLARE)
#undef COMPOSIT_DECLARE
// clang-format on

// The only result of an operation.
Tensor apply_one(std::string_view name, std::vector<ArgumentValue> arguments);

// x where `condition`, of bool, holds, y elsewhere; the three broadcast.
Tensor where(const Tensor& condition, const Tensor& x, const Tensor& y);
Tensor where(const Tensor& condition, const Tensor& x, const Number& y);
Tensor where(const Tensor& condition, const Number& x, const Tensor& y);
// Of each element.
Tensor pow(const Tensor& x, double exponent);
Tensor to(const Tensor& x, DType dtype);  // x itself where it has the dtype
Tensor conj(const Tensor& x);             // x itself where it is real

// Over `axes` (all, if empty), which are left out, or with `keepdim` kept with size 1. UserError
// for an axis out of range.
Tensor sum(const Tensor& x, const Ints& axes = {}, bool keepdim = false);
Tensor mean(const Tensor& x, const Ints& axes = {}, bool keepdim = false);
Tensor amax(const Tensor& x, const Ints& axes = {}, bool keepdim = false);
// Along `axis`, of the sizes of x.
Tensor cumsum(const Tensor& x, int64_t axis);
Tensor softmax(const Tensor& x, int64_t axis);

// Products of matrices, the last two axes; those before broadcast. A vector is a matrix of one row
// or column. UserError where the sizes that are summed over differ.
Tensor matmul(const Tensor& a, const Tensor& b);
Tensor mm(const Tensor& a, const Tensor& b);   // of two matrices
Tensor bmm(const Tensor& a, const Tensor& b);  // of two batches of matrices

// The same elements in other sizes; one of them may be -1. UserError where their number differs.
Tensor reshape(const Tensor& x, const Ints& sizes);
Tensor expand(const Tensor& x,
              const Ints& sizes);  // axes of size 1 repeated, and new ones in front
Tensor permute(const Tensor& x, const Ints& axes);        // axis i is axis `axes[i]` of x
Tensor transpose(const Tensor& x, int64_t a, int64_t b);  // two axes exchanged
Tensor unsqueeze(const Tensor& x, int64_t axis);          // a new axis of size 1 there
Tensor squeeze(const Tensor& x, const Ints& axes);  // those of `axes` left out that have size 1
Tensor slice(const Tensor& x, int64_t axis, int64_t begin, int64_t end,
             int64_t step = 1);  // indices begin, begin + step, … before end along the axis
Tensor select_at(const Tensor& x, int64_t axis,
                 int64_t index);                     // one index of the axis, which is left out
Tensor cat(const Tensors& parts, int64_t axis);      // one behind the other along the axis
Tensor flip(const Tensor& x, const Ints& axes);      // in reverse order along the axes
Tensor tril(const Tensor& x, int64_t diagonal = 0);  // zeros above the diagonal

// UserError: "expected a floating point dtype, received int64"; complex numbers are let through.
void expect_floating(DType dtype);

// Filled tensors: of the given sizes; `_like`: sizes and dtype of x.
Tensor full(const Ints& sizes, const Number& value, DType dtype);
Tensor zeros(const Ints& sizes, DType dtype);
Tensor zeros_like(const Tensor& x);
Tensor ones_like(const Tensor& x);
Tensor arange(int64_t end, DType dtype = DType::int64);

// A loss as its `reduction` says: 0 the loss of each element, 1 their mean, 2 their sum. UserError
// for another number.
Tensor reduced(const Tensor& loss, int64_t reduction);
// The cotangent of each of `loss`, from that of `reduced(loss, reduction)`.
Tensor spread(const Tensor& cotangent, const Tensor& loss, int64_t reduction);

// x summed over what broadcasting to its sizes from `sizes` repeated: the derivative of expand.
Tensor sum_to_size(const Tensor& x, const Ints& sizes);

}  // namespace composit
