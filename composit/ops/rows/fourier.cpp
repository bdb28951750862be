// Discrete Fourier transforms, as products with matrices of roots of unity.
#include <cmath>
#include <numbers>

#include "composit/op/promotion.h"
#include "composit/ops/functions.h"

namespace composit {
namespace {

enum Scaling : int64_t { kNone, kByRoot, kByCount };

// exp(sign 2 pi i j k / n) for row j and column k. Turns are whole numbers modulo n, so that large
// angles lose no digits.
LazyTensor roots(int64_t n, int64_t rows, int64_t columns, double sign, DType complex) {
  const LazyTensor turns = apply_one("aten::outer", {arange(rows), arange(columns)});
  const LazyTensor angle = to(apply_one("aten::remainder.Scalar", {turns, n}), DType::float64) *
                           (sign * 2 * std::numbers::pi / static_cast<double>(n));
  return to(apply_one("aten::complex", {cos(angle), sin(angle)}), complex);
}

// x times `matrix` along one axis.
LazyTensor times_along(const LazyTensor& x, int64_t axis, const LazyTensor& matrix) {
  return transpose(matmul(transpose(x, axis, -1), matrix), axis, -1);
}

LazyTensor transformed(LazyTensor x, const Ints& axes, double sign) {
  for (int64_t axis : axes) {
    const int64_t n = x.size(axis);
    x = times_along(x, axis, roots(n, n, n, sign, x.dtype()));
  }
  return x;
}

LazyTensor scaled(const LazyTensor& x, const Ints& lengths, int64_t scaling) {
  double count = 1;
  for (int64_t length : lengths) count *= static_cast<double>(length);
  if (scaling == kNone) return x;
  if (scaling != kByRoot && scaling != kByCount)
    throw UserError("expected a normalization of 0, 1 or 2, received " + std::to_string(scaling));
  return x * (scaling == kByRoot ? 1 / std::sqrt(count) : 1 / count);
}

Ints lengths_of(const LazyTensor& x, const Ints& axes) {
  Ints lengths;
  for (int64_t axis : axes) lengths.push_back(x.size(axis));
  return lengths;
}

void expect_axes(const Ints& axes) {
  if (axes.empty()) throw UserError("expected an axis at least");
}

// The first half of the last axis determines the rest: real numbers have symmetric spectra.
LazyTensor of_real(const LazyTensor& x, const Ints& axes, int64_t scaling, bool one_sided) {
  expect_axes(axes);
  if (category(x.dtype()) != DTypeCategory::floating)
    throw UserError("expected real floats, received " + std::string(name(x.dtype())));
  const int64_t n = x.size(axes.back()), columns = one_sided ? n / 2 + 1 : n;
  const DType complex = complex_dtype(x.dtype());
  const LazyTensor last =
      times_along(to(x, complex), axes.back(), roots(n, n, columns, -1, complex));
  return scaled(transformed(last, Ints(axes.begin(), axes.end() - 1), -1), lengths_of(x, axes),
                scaling);
}

// Its inverse: places beside the first and the middle one count twice, for the half that is not
// there.
LazyTensor to_real(const LazyTensor& x, const Ints& axes, int64_t scaling, int64_t length) {
  expect_axes(axes);
  if (length < 1) throw UserError("expected a length above 0, received " + std::to_string(length));
  const Ints others(axes.begin(), axes.end() - 1);
  const int64_t half = length / 2 + 1;
  const LazyTensor spectrum = transformed(slice(x, axes.back(), 0, half), others, 1);
  const LazyTensor place = arange(half), twice = place * 2;
  const LazyTensor counts =
      where(logical_or(eq(place, 0), eq(twice, length)), 1.0, full({half}, 2.0, DType::float64));
  const LazyTensor matrix = roots(length, half, length, 1, x.dtype()) * unsqueeze(counts, 1);
  Ints lengths = lengths_of(x, others);
  lengths.push_back(length);
  return scaled(
      apply_one("aten::real", {times_along(spectrum, axes.back(), to(matrix, x.dtype()))}), lengths,
      scaling);
}

}  // namespace

void add_fourier_rows(OperationTable& rows) {
  rows.add({.schema = "aten::_fft_c2c(Tensor self, SymInt[] dim, int normalization, bool forward) "
                      "-> Tensor",
            .decompose =
                [](LazyTensor x, Ints dim, int64_t scaling, bool forward) {
                  if (!is_complex(x.dtype()))
                    throw UserError("expected complex numbers, received " +
                                    std::string(name(x.dtype())));
                  return LazyTensors{
                      scaled(transformed(x, dim, forward ? -1 : 1), lengths_of(x, dim), scaling)};
                },
            .samples = "c64[4] [0] 0 True | c64[2,3] [0,1] 2 False | c64[3,5] [1] 1 True",
            .bad = "f32[4] [0] 0 True: complex | c64[4] [0] 3 True: 0, 1 or 2"});
  rows.add(
      {.schema = "aten::_fft_r2c(Tensor self, int[] dim, int normalization, bool onesided) -> "
                 "Tensor",
       .decompose = [](LazyTensor x, Ints dim, int64_t scaling,
                       bool one_sided) { return LazyTensors{of_real(x, dim, scaling, one_sided)}; },
       .samples = "f32[4] [0] 0 True | f32[5] [0] 1 True | f32[3,4] [0,1] 2 False",
       .bad = "c64[4] [0] 0 True: real floats"});
  rows.add(
      {.schema = "aten::_fft_c2r(Tensor self, int[] dim, int normalization, SymInt "
                 "last_dim_size) -> Tensor",
       .decompose = [](LazyTensor x, Ints dim, int64_t scaling,
                       int64_t length) { return LazyTensors{to_real(x, dim, scaling, length)}; },
       .samples = "c64[3] [0] 2 4 | c64[3] [0] 2 5 | c64[2,3] [0,1] 1 4",
       .bad = "c64[3] [0] 2 0: above 0"});
}

}  // namespace composit
