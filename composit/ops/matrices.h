// Batches of matrices in memory, for rows with native code.
//
//   Matrices a(array);   a(0, i, j) *= 2;   Array result = a.array(type);
//
// Elements are complex double whatever the array holds; of real ones, the imaginary part is zero.
#pragma once

#include <complex>
#include <vector>

#include "composit/ir/array.h"

namespace composit {

struct Matrices {
  using Number = std::complex<double>;

  // Zeros.
  Matrices(int64_t count, int64_t rows, int64_t columns);
  // `array` has two axes at least: the last ones are those of the matrices.
  explicit Matrices(const Array& array);
  // Of `type`, which has as many elements.
  Array array(const Type& type) const;

  Number& operator()(int64_t matrix, int64_t i, int64_t j) { return elements[place(matrix, i, j)]; }
  const Number& operator()(int64_t matrix, int64_t i, int64_t j) const {
    return elements[place(matrix, i, j)];
  }

  int64_t count, rows, columns;
  std::vector<Number> elements;

 private:
  size_t place(int64_t matrix, int64_t i, int64_t j) const {
    return static_cast<size_t>((matrix * rows + i) * columns + j);
  }
};

// Conjugated and transposed.
Matrices adjoint(const Matrices& a);

}  // namespace composit
