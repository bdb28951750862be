// Factors of matrices, and what is solved by them. Matrices are row-major, one after the other;
// arithmetic is in double.
//
//   fl::lu_factor(a, {2, 3, 3}, true, lu, pivots, info);   // of a[2][3][3]
//   fl::svd(a, {1, 4, 2}, false, u, s, vh);
//
// G. Golub and C. Van Loan, "Matrix Computations".
#pragma once

#include <algorithm>
#include <numeric>
#include <vector>

#include "composit/shipped/checked_index.h"
#include "composit/shipped/scalar_functions.h"

namespace fl {

// A number of matrices, all with the same rows and columns.
struct Matrices {
  int64_t count, rows, columns;
};

namespace detail {

template <class T>
using Wide = std::conditional_t<is_complex<T>::value, std::complex<double>, double>;

// One matrix to work on, zero at first. T: double or std::complex<double>.
template <class T>
struct Matrix {
  Matrix(int64_t height, int64_t width)
      : rows(height), columns(width), elements(static_cast<std::size_t>(height * width)) {}
  template <class From>
  Matrix(int64_t height, int64_t width, const From* from) : Matrix(height, width) {
    for (T& x : elements) x = static_cast<T>(*from++);
  }
  static Matrix identity(int64_t n, int64_t width) {
    Matrix one(n, width);
    for (int64_t i = 0; i < std::min(n, width); ++i) one(i, i) = 1;
    return one;
  }
  template <class To>
  void write(To* to) const {
    for (const T& x : elements) *to++ = static_cast<To>(x);
  }
  T& operator()(int64_t i, int64_t j) {
    return elements[static_cast<std::size_t>(i * columns + j)];
  }
  T operator()(int64_t i, int64_t j) const {
    return elements[static_cast<std::size_t>(i * columns + j)];
  }
  Matrix adjoint() const {
    Matrix result(columns, rows);
    for (int64_t i = 0; i < rows; ++i)
      for (int64_t j = 0; j < columns; ++j) result(j, i) = conj((*this)(i, j));
    return result;
  }

  int64_t rows, columns;
  std::vector<T> elements;
};

}  // namespace detail

// ---- systems of equations -----------------------------------------------------------------------

// A = P L U by Gauss's elimination, with the largest element of each column unless `pivoted` is
// false. Pivots count from 1; `info` is the first zero on the diagonal of U, from 1, or 0.
template <class T>
void lu_factor(const T* from, Matrices shape, bool pivoted, T* lu, int32_t* pivots, int32_t* info) {
  using Wide = detail::Wide<T>;
  const auto size = [](Wide x) { return std::abs(std::real(x)) + std::abs(std::imag(x)); };
  const int64_t steps = std::min(shape.rows, shape.columns), area = shape.rows * shape.columns;
  for (int64_t m = 0; m < shape.count; ++m) {
    detail::Matrix<Wide> a(shape.rows, shape.columns, from + m * area);
    info[m] = 0;
    for (int64_t k = 0; k < steps; ++k) {
      int64_t best = k;
      for (int64_t i = k; pivoted && i < a.rows; ++i)
        if (size(a(i, k)) > size(a(best, k))) best = i;
      pivots[m * steps + k] = static_cast<int32_t>(best + 1);
      if (a(best, k) == Wide(0)) {
        if (info[m] == 0) info[m] = static_cast<int32_t>(k + 1);
        continue;
      }
      for (int64_t j = 0; j < a.columns; ++j) std::swap(a(k, j), a(best, j));
      for (int64_t i = k + 1; i < a.rows; ++i) {
        const Wide factor = a(i, k) /= a(k, k);
        for (int64_t j = k + 1; j < a.columns; ++j) a(i, j) -= factor * a(k, j);
      }
    }
    a.write(lu + m * area);
  }
}

// P of A = P L U: `n` rows for the exchanges of `steps` rows.
template <class T>
void permutation(const int32_t* pivots, int64_t count, int64_t steps, int64_t n, T* p) {
  std::vector<int64_t> order(static_cast<std::size_t>(n));
  for (int64_t m = 0; m < count; ++m, pivots += steps, p += n * n) {
    std::iota(order.begin(), order.end(), int64_t{0});
    for (int64_t k = 0; k < steps; ++k) {
      const int64_t other = checked(pivots[k] - 1, n);
      std::swap(order[static_cast<std::size_t>(k)], order[static_cast<std::size_t>(other)]);
    }
    for (int64_t i = 0; i < n * n; ++i) p[i] = T(0);
    for (int64_t i = 0; i < n; ++i) p[order[static_cast<std::size_t>(i)] * n + i] = T(1);
  }
}

// x of A x = B, where A is a triangle, of the shape of B; with ones on the diagonal of a `unit`
// one.
template <class T>
void solve_triangular(const T* a, const T* b, Matrices shape, bool upper, bool unit, T* to) {
  using Wide = detail::Wide<T>;
  const int64_t n = shape.rows;
  for (int64_t m = 0; m < shape.count; ++m) {
    const detail::Matrix<Wide> triangle(n, n, a + m * n * n);
    detail::Matrix<Wide> x(n, shape.columns, b + m * n * shape.columns);
    for (int64_t step = 0; step < n; ++step) {
      const int64_t i = upper ? n - 1 - step : step;
      for (int64_t j = 0; j < x.columns; ++j) {
        Wide rest = x(i, j);
        for (int64_t k = upper ? i + 1 : 0; k < (upper ? n : i); ++k)
          rest -= triangle(i, k) * x(k, j);
        x(i, j) = unit ? rest : rest / triangle(i, i);
      }
    }
    x.write(to + m * n * shape.columns);
  }
}

// A = L L^H of what stands on and below the diagonal, or A = U^H U. `info`: the first row, counted
// from 1, that shows that there is none, or 0.
template <class T>
void cholesky(const T* from, Matrices shape, bool upper, T* to, int32_t* info) {
  using Wide = detail::Wide<T>;
  const int64_t n = shape.rows;
  for (int64_t m = 0; m < shape.count; ++m) {
    const detail::Matrix<Wide> given(n, n, from + m * n * n);
    const detail::Matrix<Wide> a = upper ? given.adjoint() : given;
    detail::Matrix<Wide> l(n, n);
    info[m] = 0;
    for (int64_t j = 0; j < n; ++j)
      for (int64_t i = j; i < n; ++i) {
        Wide rest = a(i, j);
        for (int64_t k = 0; k < j; ++k) rest -= l(i, k) * conj(l(j, k));
        if (i == j && !(std::real(rest) > 0) && info[m] == 0) info[m] = static_cast<int32_t>(j + 1);
        l(i, j) = i == j ? Wide(std::sqrt(std::real(rest))) : rest / l(j, j);
      }
    (upper ? l.adjoint() : l).write(to + m * n * n);
  }
}

// ---- orthogonal factors -------------------------------------------------------------------------

namespace detail {

// I - scale v v^H, with v zero above `first`.
template <class T>
struct Reflection {
  std::vector<T> v;
  T scale = 0;
  int64_t first = 0;

  // That which leaves nothing below the diagonal of column `k` when its adjoint is applied; signs
  // as LAPACK's larfg has them.
  Reflection(const Matrix<T>& a, int64_t k) : v(static_cast<std::size_t>(a.rows)), first(k) {
    double below = 0;
    for (int64_t i = k + 1; i < a.rows; ++i) below += std::norm(a(i, k));
    const T alpha = a(k, k);
    if (below == 0 && std::imag(alpha) == 0) return;
    const double length = -std::copysign(std::sqrt(std::norm(alpha) + below), std::real(alpha));
    scale = (length - alpha) / length;
    v[static_cast<std::size_t>(k)] = 1;
    for (int64_t i = k + 1; i < a.rows; ++i)
      v[static_cast<std::size_t>(i)] = a(i, k) / (alpha - length);
  }

  // (I - by v v^H) a, for the columns from `column` on.
  void apply(T by, Matrix<T>& a, int64_t column) const {
    for (int64_t j = column; j < a.columns; ++j) {
      T along = 0;
      for (int64_t i = first; i < a.rows; ++i)
        along += conj(v[static_cast<std::size_t>(i)]) * a(i, j);
      for (int64_t i = first; i < a.rows; ++i)
        a(i, j) -= by * along * v[static_cast<std::size_t>(i)];
    }
  }
};

// `a` becomes R, of as many rows as before; Q of `columns` columns.
template <class T>
Matrix<T> householder(Matrix<T>& a, int64_t columns) {
  std::vector<Reflection<T>> reflections;
  for (int64_t k = 0; k < std::min(a.rows, a.columns); ++k) {
    reflections.emplace_back(a, k);
    reflections.back().apply(conj(reflections.back().scale), a, k);
    for (int64_t i = k + 1; i < a.rows; ++i) a(i, k) = 0;
  }
  Matrix<T> q = Matrix<T>::identity(a.rows, columns);
  for (auto h = reflections.rbegin(); h != reflections.rend(); ++h) h->apply(h->scale, q, 0);
  return q;
}

// The unitary matrix [c, s; -conj(s), c] that makes a Hermitian one, [p, r; conj(r), q], diagonal.
template <class T>
struct Rotation {
  double c = 1;
  T s = 0;

  Rotation(double p, double q, T r) {
    const double size = std::abs(r), apart = (q - p) / (2 * size);
    if (size == 0) return;
    const double t = std::copysign(1.0, apart) / (std::abs(apart) + std::hypot(1.0, apart));
    c = 1 / std::hypot(1.0, t);
    s = t * c * (r / size);
  }
  void columns(Matrix<T>& a, int64_t p, int64_t q) const {
    for (int64_t i = 0; i < a.rows; ++i) {
      const T x = a(i, p), y = a(i, q);
      a(i, p) = c * x - conj(s) * y;
      a(i, q) = s * x + c * y;
    }
  }
  void rows(Matrix<T>& a, int64_t p, int64_t q) const {
    for (int64_t j = 0; j < a.columns; ++j) {
      const T x = a(p, j), y = a(q, j);
      a(p, j) = c * x - s * y;
      a(q, j) = conj(s) * x + c * y;
    }
  }
};

template <class T>
T product_of_columns(const Matrix<T>& a, int64_t p, int64_t q) {
  T sum = 0;
  for (int64_t i = 0; i < a.rows; ++i) sum += conj(a(i, p)) * a(i, q);
  return sum;
}

// Jacobi's sweeps: `rotate(p, q)` for all pairs, until it says of each that nothing was to do.
template <class Rotate>
void sweep(int64_t n, Rotate rotate) {
  constexpr int kMostSweeps = 60;
  bool changed = true;
  for (int round = 0; changed && round < kMostSweeps; ++round) {
    changed = false;
    for (int64_t p = 0; p < n; ++p)
      for (int64_t q = p + 1; q < n; ++q) changed |= rotate(p, q);
  }
}

template <class T>
void swap_columns(Matrix<T>& a, int64_t p, int64_t q) {
  for (int64_t i = 0; i < a.rows; ++i) std::swap(a(i, p), a(i, q));
}

// The columns of `a` become orthogonal to each other, the longest first; `v`: what a is multiplied
// with for that. One-sided Jacobi, 8.6.3.
template <class T>
void make_columns_orthogonal(Matrix<T>& a, Matrix<T>& v) {
  constexpr double kSmall = 1e-15;
  sweep(a.columns, [&](int64_t p, int64_t q) {
    const double first = std::real(product_of_columns(a, p, p)),
                 second = std::real(product_of_columns(a, q, q));
    const T both = product_of_columns(a, p, q);
    if (!(std::abs(both) > kSmall * std::sqrt(first * second))) return false;
    const Rotation<T> by(first, second, both);
    by.columns(a, p, q);
    by.columns(v, p, q);
    return true;
  });
  const auto length = [&](int64_t j) { return std::real(product_of_columns(a, j, j)); };
  for (int64_t k = 0; k < a.columns; ++k) {
    int64_t best = k;
    for (int64_t j = k; j < a.columns; ++j)
      if (length(j) > length(best)) best = j;
    swap_columns(a, k, best);
    swap_columns(v, k, best);
  }
}

template <class T>
struct SingularValues {
  Matrix<T> u, v;
  std::vector<double> s;
};

// For a matrix that has at most as many columns as rows; u has `columns` columns.
template <class T>
SingularValues<T> tall_svd(Matrix<T> a, int64_t columns) {
  Matrix<T> v = Matrix<T>::identity(a.columns, a.columns);
  make_columns_orthogonal(a, v);
  SingularValues<T> found = {householder(a, columns), v, {}};  // R is diagonal
  for (int64_t k = 0; k < a.columns; ++k) {
    found.s.push_back(std::abs(a(k, k)));
    for (int64_t i = 0; std::real(a(k, k)) < 0 && i < a.rows; ++i) found.u(i, k) = -found.u(i, k);
  }
  return found;
}

// `a` becomes diagonal by rotations from both sides, v^H a v. Jacobi, 8.5.
template <class T>
void make_diagonal(Matrix<T>& a, Matrix<T>& v) {
  constexpr double kSmall = 1e-16;
  double size = 0;
  for (const T& x : a.elements) size += std::norm(x);
  sweep(a.rows, [&](int64_t p, int64_t q) {
    if (!(std::abs(a(p, q)) > kSmall * std::sqrt(size))) return false;
    const Rotation<T> by(std::real(a(p, p)), std::real(a(q, q)), a(p, q));
    by.columns(a, p, q);
    by.columns(v, p, q);
    by.rows(a, p, q);
    return true;
  });
}

}  // namespace detail

// A = Q R, with `inner` columns of Q and rows of R. `q` may be nullptr.
template <class T>
void qr(const T* from, Matrices shape, int64_t inner, T* q, T* r) {
  using Wide = detail::Wide<T>;
  for (int64_t m = 0; m < shape.count; ++m) {
    detail::Matrix<Wide> a(shape.rows, shape.columns, from + m * shape.rows * shape.columns);
    const detail::Matrix<Wide> orthogonal = detail::householder(a, inner);
    if (q != nullptr) orthogonal.write(q + m * shape.rows * inner);
    T* to = r + m * inner * shape.columns;
    for (int64_t i = 0; i < inner; ++i)
      for (int64_t j = 0; j < shape.columns; ++j) *to++ = static_cast<T>(a(i, j));
  }
}

// A = U diag(s) V^H; with square U and V if `full`. `u` and `vh` may be nullptr.
template <class T, class Real>
void svd(const T* from, Matrices shape, bool full, T* u, Real* s, T* vh) {
  using Wide = detail::Wide<T>;
  const bool wide = shape.rows < shape.columns;
  const int64_t inner = std::min(shape.rows, shape.columns),
                outer = std::max(shape.rows, shape.columns), columns = full ? outer : inner;
  for (int64_t m = 0; m < shape.count; ++m) {
    const detail::Matrix<Wide> a(shape.rows, shape.columns, from + m * shape.rows * shape.columns);
    const auto found = detail::tall_svd(wide ? a.adjoint() : a, columns);
    const detail::Matrix<Wide>&left = wide ? found.v : found.u, &right = wide ? found.u : found.v;
    for (int64_t k = 0; k < inner; ++k)
      s[m * inner + k] = static_cast<Real>(found.s[static_cast<std::size_t>(k)]);
    if (u != nullptr) left.write(u + m * left.rows * left.columns);
    if (vh != nullptr) right.adjoint().write(vh + m * right.rows * right.columns);
  }
}

// Eigenvalues, in ascending order, and vectors of the Hermitian matrix with the lower, or the
// `upper`, triangle of A. `vectors` may be nullptr.
template <class T, class Real>
void eigh(const T* from, Matrices shape, bool upper, Real* values, T* vectors) {
  using Wide = detail::Wide<T>;
  const int64_t n = shape.rows;
  for (int64_t m = 0; m < shape.count; ++m) {
    const detail::Matrix<Wide> given(n, n, from + m * n * n);
    detail::Matrix<Wide> a(n, n), v = detail::Matrix<Wide>::identity(n, n);
    for (int64_t i = 0; i < n; ++i)
      for (int64_t j = 0; j <= i; ++j) {
        a(i, j) = i == j ? Wide(std::real(given(i, i))) : upper ? conj(given(j, i)) : given(i, j);
        a(j, i) = conj(a(i, j));
      }
    detail::make_diagonal(a, v);
    for (int64_t k = 0; k < n; ++k) {
      int64_t least = k;
      for (int64_t j = k; j < n; ++j)
        if (std::real(a(j, j)) < std::real(a(least, least))) least = j;
      std::swap(a(k, k), a(least, least));
      detail::swap_columns(v, k, least);
      values[m * n + k] = static_cast<Real>(std::real(a(k, k)));
    }
    if (vectors != nullptr) v.write(vectors + m * n * n);
  }
}

}  // namespace fl
