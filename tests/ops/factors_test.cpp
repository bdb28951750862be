// Factors whose vectors are open up to a factor of size 1: what they are whatever that is, and
// derivatives of what does not depend on it.
#include <gtest/gtest.h>

#include <cmath>

#include "composit/ad/chain_rule.h"
#include "composit/eval/evaluate.h"
#include "composit/ir/error.h"
#include "composit/ops/functions.h"
#include "composit/ops/native.h"

namespace composit {
namespace {

// Complex matrices of numbers that are inputs, so that both their parts can be differentiated by.
struct Matrix {
  Matrix(int64_t rows, int64_t columns)
      : real(input("real", tensor_type(DType::float64, {2, rows, columns}))),
        imaginary(input("imaginary", real.type())) {
    std::vector<double> x, y;
    for (int64_t i = 0; i < real.type().numel(); ++i) {
      x.push_back(std::sin(1.7 * static_cast<double>(i) + 0.3));
      y.push_back(std::cos(2.9 * static_cast<double>(i)));
    }
    values.set(real, array_of(real.type(), x));
    values.set(imaginary, array_of(real.type(), y));
  }
  LazyTensor value() const { return apply_one("aten::complex", {real, imaginary}); }

  LazyTensor real, imaginary;
  Values values;
};

LazyTensor adjoint(const LazyTensor& x) { return conj(transpose(x, -1, -2)); }

LazyTensor identity(int64_t n) { return apply_one("aten::eye", {n, DType::complex128}); }
LazyTensor scaled_columns(const LazyTensor& x, const LazyTensor& by) {
  return x * unsqueeze(by, -2);
}

double largest(const LazyTensor& x, const Values& values) {
  return elements<double>(evaluate({amax(abs(x))}, values)[0])[0];
}
void expect_equal(const LazyTensor& a, const LazyTensor& b, const Values& values) {
  EXPECT_EQ(a.sizes(), b.sizes());
  EXPECT_LT(largest(a - b, values), 1e-12 * (1 + largest(b, values)));
}

// Both depend on the matrix in the same way.
void expect_equal_derivatives(const LazyTensor& a, const LazyTensor& b, const Matrix& m) {
  const auto gradients_of = [&](const LazyTensor& x) {
    const LazyTensor parts = apply_one("aten::view_as_real", {x});
    const LazyTensor weights = reshape(cos(arange(parts.numel(), DType::float64)), parts.sizes());
    return grad(sum(parts * weights), {m.real, m.imaginary});
  };
  const auto first = gradients_of(a), second = gradients_of(b);
  for (size_t i = 0; i < 2; ++i) expect_equal(first[i], second[i], m.values);
}

TEST(Factors, eigenvectors_make_hermitian_matrices_diagonal) {
  const Matrix m(4, 4);
  const LazyTensor a = m.value() + adjoint(m.value());
  for (const char* triangle : {"L", "U"}) {
    const LazyTensors found = apply("aten::_linalg_eigh", {a, triangle});
    expect_equal(matmul(adjoint(found[1]), found[1]), expand(identity(4), {2, 4, 4}), m.values);
    expect_equal(matmul(a, found[1]), scaled_columns(found[1], found[0]), m.values);
    const LazyTensor steps = slice(found[0], -1, 1, 4) - slice(found[0], -1, 0, 3);
    EXPECT_GE(elements<double>(evaluate({apply_one("aten::amin", {steps})}, m.values)[0])[0], 0);
    const LazyTensor cube = matmul(scaled_columns(found[1], pow(found[0], 3)), adjoint(found[1]));
    expect_equal_derivatives(cube, matmul(a, matmul(a, a)), m);
  }
}

TEST(Factors, singular_vectors_make_matrices_diagonal) {
  for (const auto& [rows, columns] : {std::pair(4, 3), std::pair(3, 3), std::pair(2, 4)}) {
    SCOPED_TRACE(std::to_string(rows) + " rows");
    const Matrix m(rows, columns);
    const LazyTensor a = m.value();
    const int64_t inner = std::min(rows, columns);
    for (const bool full : {false, true}) {
      const LazyTensors usv = apply("aten::_linalg_svd", {a, full});
      const LazyTensor u = slice(usv[0], -1, 0, inner), vh = slice(usv[2], -2, 0, inner);
      const int64_t left = usv[0].size(-1), right = usv[2].size(-2);
      expect_equal(matmul(adjoint(usv[0]), usv[0]), expand(identity(left), {2, left, left}),
                   m.values);
      expect_equal(matmul(usv[2], adjoint(usv[2])), expand(identity(right), {2, right, right}),
                   m.values);
      expect_equal(matmul(scaled_columns(u, usv[1]), vh), a, m.values);
      const LazyTensor cube = matmul(scaled_columns(u, pow(usv[1], 3)), vh);
      expect_equal_derivatives(cube, matmul(a, matmul(adjoint(a), a)), m);
    }
  }
}

TEST(Factors, matrices_without_full_rank_have_complete_singular_vectors) {
  const Matrix m(4, 3);
  const LazyTensor a = cat({slice(m.value(), -1, 0, 2), slice(m.value(), -1, 0, 1)}, -1);
  const LazyTensors usv = apply("aten::_linalg_svd", {a, true});
  expect_equal(matmul(adjoint(usv[0]), usv[0]), expand(identity(4), {2, 4, 4}), m.values);
  expect_equal(matmul(scaled_columns(slice(usv[0], -1, 0, 3), usv[1]), usv[2]), a, m.values);
  EXPECT_LT(largest(select_at(usv[1], -1, 2), m.values), 1e-14);
}

TEST(Factors, pivots_out_of_range_are_refused) {
  const std::vector<int32_t> numbers = {1, 5};
  const LazyTensor pivots =
      constant(Array::copy_of(tensor_type(DType::int32, {2}), numbers.data()));
  const LazyTensor p = apply_one("composit::permutation", {pivots, 2, DType::float64});
  EXPECT_THROW(evaluate({p}), UserError);
}

}  // namespace
}  // namespace composit
