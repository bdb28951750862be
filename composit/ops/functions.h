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
  ArgumentValue value;
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
COMPOSIT_BINARY_FUNCTIONS(COMPOSIT_DECLARE)
#undef COMPOSIT_DECLARE
#define COMPOSIT_DECLARE(name, op) Tensor name(const Tensor& x);
COMPOSIT_UNARY_FUNCTIONS(COMPOSIT_DECLARE)
#undef COMPOSIT_DECLARE
// clang-format on

// The only result of an operation.
Tensor apply_one(std::string_view name, std::vector<ArgumentValue> arguments);

Tensor where(const Tensor& condition, const Tensor& x, const Tensor& y);
Tensor where(const Tensor& condition, const Tensor& x, const Number& y);
Tensor where(const Tensor& condition, const Number& x, const Tensor& y);
Tensor pow(const Tensor& x, double exponent);
Tensor to(const Tensor& x, DType dtype);  // x itself where it has the dtype
Tensor conj(const Tensor& x);             // x itself where it is real

Tensor sum(const Tensor& x, const Ints& axes = {}, bool keepdim = false);
Tensor mean(const Tensor& x, const Ints& axes = {}, bool keepdim = false);
Tensor amax(const Tensor& x, const Ints& axes = {}, bool keepdim = false);
Tensor cumsum(const Tensor& x, int64_t axis);
Tensor softmax(const Tensor& x, int64_t axis);

Tensor matmul(const Tensor& a, const Tensor& b);
Tensor mm(const Tensor& a, const Tensor& b);
Tensor bmm(const Tensor& a, const Tensor& b);

Tensor reshape(const Tensor& x, const Ints& sizes);
Tensor expand(const Tensor& x, const Ints& sizes);
Tensor permute(const Tensor& x, const Ints& axes);
Tensor transpose(const Tensor& x, int64_t a, int64_t b);
Tensor unsqueeze(const Tensor& x, int64_t axis);
Tensor squeeze(const Tensor& x, const Ints& axes);
Tensor slice(const Tensor& x, int64_t axis, int64_t begin, int64_t end, int64_t step = 1);
Tensor select_at(const Tensor& x, int64_t axis, int64_t index);
Tensor cat(const Tensors& parts, int64_t axis);
Tensor flip(const Tensor& x, const Ints& axes);
Tensor tril(const Tensor& x, int64_t diagonal = 0);

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
