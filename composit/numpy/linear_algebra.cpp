#include "composit/numpy/linear_algebra.h"

#include <cmath>

#include "composit/ir/error.h"
#include "composit/numpy/creation.h"
#include "composit/numpy/math.h"
#include "composit/numpy/reductions.h"
#include "composit/numpy/result_type.h"
#include "composit/numpy/shape.h"
#include "composit/op/promotion.h"

namespace composit::numpy {
namespace {

// A product in NumPy's common dtype. Of bools it says whether any pair of them is true.
template <class Product>
NdArray promoted(const NdArrays& operands, Product product) {
  DType dtype = operands[0].dtype();
  for (const NdArray& x : operands) dtype = result_type(dtype, x.dtype());
  LazyTensors tensors;
  for (const NdArray& x : operands)
    tensors.push_back(to(x, dtype == DType::bool_ ? DType::int64 : dtype));
  return to(product(tensors), dtype);
}

[[noreturn]] void refuse_shapes(std::string_view function, const std::string& expected,
                                const NdArray& a, const NdArray& b) {
  refuse(function,
         "expected " + expected + ", received shapes " + str(a.shape()) + " and " + str(b.shape()));
}

Ints last_axes(int64_t count, int64_t rank) {
  Ints axes;
  for (int64_t axis = rank - count; axis < rank; ++axis) axes.push_back(axis);
  return axes;
}

}  // namespace

NdArray matmul(const NdArray& a, const NdArray& b, std::optional<DType> dtype) {
  if (dtype) return matmul(a.astype(*dtype), b.astype(*dtype));
  if (a.ndim() == 0 || b.ndim() == 0) refuse_shapes("matmul", "arrays with axes", a, b);
  if (a.size(-1) != b.size(b.ndim() == 1 ? 0 : -2))
    refuse_shapes("matmul", "as many columns as rows", a, b);
  return promoted({a, b}, [](const LazyTensors& t) { return composit::matmul(t[0], t[1]); });
}

NdArray dot(const NdArray& a, const NdArray& b) {
  if (a.ndim() == 0 || b.ndim() == 0) return multiply(a, b);
  if (a.ndim() <= 2 && b.ndim() <= 2) return matmul(a, b);
  return tensordot(a, b, {{-1}, {b.ndim() == 1 ? -1 : -2}});
}
NdArray inner(const NdArray& a, const NdArray& b) {
  if (a.ndim() == 0 || b.ndim() == 0) return multiply(a, b);
  return tensordot(a, b, {{-1}, {-1}});
}
NdArray outer(const NdArray& a, const NdArray& b) {
  return multiply(reshape(a, {-1, 1}), reshape(b, {1, -1}));
}
NdArray vdot(const NdArray& a, const NdArray& b) {
  if (a.size() != b.size()) refuse_shapes("vdot", "as many elements in both", a, b);
  return matmul(ravel(NdArray(composit::conj(a))), ravel(b));
}
NdArray kron(const NdArray& a, const NdArray& b) {
  return promoted({a, b}, [](const LazyTensors& t) {
    return apply_one("aten::kron", {t[0], t[1]});
  });
}
NdArray cross(const NdArray& a, const NdArray& b) {
  if (a.ndim() == 0 || b.ndim() == 0 || a.size(-1) != 3 || b.size(-1) != 3)
    refuse_shapes("cross", "vectors of three numbers along the last axis", a, b);
  expect_no_bool("cross", result_type(a.dtype(), b.dtype()));
  const NdArrays both = broadcast_arrays({a, b});
  return promoted(both, [](const LazyTensors& t) {
    return apply_one("aten::linalg_cross", {t[0], t[1], -1});
  });
}

NdArray tensordot(const NdArray& a, const NdArray& b, int64_t axes) {
  if (axes < 0 || axes > a.ndim() || axes > b.ndim())
    refuse_shapes("tensordot", std::to_string(axes) + " axes in both", a, b);
  return tensordot(a, b, {last_axes(axes, a.ndim()), last_axes(axes, axes)});
}
NdArray tensordot(const NdArray& a, const NdArray& b, const std::pair<Ints, Ints>& axes) {
  const Ints first = Axes(axes.first).of_rank(a.ndim(), "tensordot");
  const Ints second = Axes(axes.second).of_rank(b.ndim(), "tensordot");
  bool fits = first.size() == second.size();
  for (size_t i = 0; fits && i < first.size(); ++i) fits = a.size(first[i]) == b.size(second[i]);
  if (!fits)
    refuse_shapes("tensordot", "equal sizes along axes " + str(first) + " and " + str(second), a,
                  b);
  return promoted({a, b}, [&](const LazyTensors& t) {
    return apply_one("aten::tensordot", {t[0], t[1], first, second});
  });
}
NdArray einsum(const std::string& subscripts, const NdArrays& operands) {
  if (operands.empty()) refuse("einsum", "expected an array at least, received none");
  return promoted(operands, [&](const LazyTensors& t) {
    return call_as("einsum", "aten::einsum", {subscripts, t});
  });
}

NdArray diagonal(const NdArray& x, int64_t offset, int64_t axis1, int64_t axis2) {
  if (x.ndim() < 2)
    refuse("diagonal", "expected two axes at least, received shape " + str(x.shape()));
  const Ints axes = Axes({axis1, axis2}).of_rank(x.ndim(), "diagonal");
  return apply_one("aten::diagonal", {LazyTensor(x), offset, axes[0], axes[1]});
}
NdArray trace(const NdArray& x, int64_t offset, int64_t axis1, int64_t axis2) {
  return sum(diagonal(x, offset, axis1, axis2), -1);
}
NdArray diag(const NdArray& x, int64_t k) {
  if (x.ndim() != 1 && x.ndim() != 2)
    refuse("diag", "expected one or two axes, received shape " + str(x.shape()));
  return x.ndim() == 2 ? diagonal(x, k)
                       : NdArray(apply_one("aten::diag_embed", {LazyTensor(x), k}));
}
// A vector counts as the rows of a square.
static NdArray as_matrix(const NdArray& x, std::string_view function) {
  if (x.ndim() == 0) refuse(function, "expected an axis at least, received shape []");
  return x.ndim() > 1 ? x : broadcast_to(x, {x.size(), x.size()});
}
NdArray tril(const NdArray& x, int64_t k) { return composit::tril(as_matrix(x, "tril"), k); }
NdArray triu(const NdArray& x, int64_t k) {
  return apply_one("aten::triu", {LazyTensor(as_matrix(x, "triu")), k});
}

NdArray linalg::matrix_power(const NdArray& x, int64_t n) {
  if (x.ndim() < 2 || x.size(-1) != x.size(-2))
    refuse("linalg.matrix_power", "expected square matrices, received shape " + str(x.shape()));
  if (n < 0)
    refuse("linalg.matrix_power", "expected n of at least 0, received " + std::to_string(n));
  if (n == 0) return broadcast_to(eye(x.size(-1), {}, 0, x.dtype()), x.shape());
  if (n == 1) return x;
  const NdArray half = matrix_power(x, n / 2), square = matmul(half, half);
  return n % 2 == 0 ? square : matmul(square, x);
}

NdArray linalg::norm(const NdArray& x, const Axes& axis, const NormOptions& options) {
  const Ints axes = axis.of_rank(x.ndim(), "linalg.norm");
  if (options.ord && axes.size() > 1)
    refuse("linalg.norm",
           "expected an order for vectors along one axis, received axes " + str(axes));
  const NdArray y = to(x, divided_dtype(x.dtype()));
  if (axes.empty()) return abs(y);
  return apply_one("aten::linalg_vector_norm",
                   {y, Scalar(options.ord.value_or(2)), axes, options.keepdims});
}

}  // namespace composit::numpy
