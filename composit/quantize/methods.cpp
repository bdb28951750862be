#include "composit/quantize/methods.h"

#include <algorithm>
#include <cmath>
#include <thread>

#include "composit/ir/error.h"

namespace composit::quantization {
namespace {

using Square = std::vector<double>;  // row-major [n, n]

// The upper triangle U with inverse(H) = transpose(U) * U: the inverse of the upper R with
// H = R * transpose(R), which is the Cholesky factor taken from the last row up.
Square inverse_factor(Square h, size_t n) {
  for (size_t j = n; j-- > 0;) {
    double pivot = h[j * n + j];
    for (size_t k = j + 1; k < n; ++k) pivot -= h[j * n + k] * h[j * n + k];
    if (!(pivot > 0))
      throw UserError("the sums of squares of its inputs in the examples are not finite");
    const double root = h[j * n + j] = std::sqrt(pivot);
    for (size_t i = 0; i < j; ++i) {
      double sum = h[i * n + j];
      for (size_t k = j + 1; k < n; ++k) sum -= h[i * n + k] * h[j * n + k];
      h[i * n + j] = sum / root;
    }
  }
  Square u(n * n);
  for (size_t i = n; i-- > 0;) {  // row i of U is (e_i - R[i, i+1:] U[i+1:, :]) / R[i, i]
    double* row = &u[i * n];
    row[i] = 1;
    for (size_t k = i + 1; k < n; ++k) {
      const double factor = h[i * n + k];
      for (size_t j = k; j < n; ++j) row[j] -= factor * u[k * n + j];
    }
    for (size_t j = i; j < n; ++j) row[j] /= h[i * n + i];
  }
  return u;
}

// Inputs that are always 0 say nothing of their column; a hundredth of the mean keeps the matrix
// far from singular, as in the paper.
Square damped(Square h, size_t n) {
  double trace = 0;
  for (size_t i = 0; i < n; ++i) trace += h[i * n + i];
  const double damping = 0.01 * trace / static_cast<double>(n);
  for (size_t i = 0; i < n; ++i) {
    if (h[i * n + i] == 0) h[i * n + i] = 1;
    h[i * n + i] += damping;
  }
  return h;
}

// One row of a matrix; `steps` are those of its groups.
void round_row(float* row, const Square& u, size_t n, const WeightFormat& format, size_t group,
               int8_t* integers, Step* steps) {
  const Limits limits = limits_of(format.bits);
  std::vector<double> now(row, row + n);
  std::vector<float> values(group);
  for (size_t i = 0; i < n; ++i) {
    if (i % group == 0) {  // what the columns so far have left for this group
      std::copy(now.begin() + static_cast<std::ptrdiff_t>(i),
                now.begin() + static_cast<std::ptrdiff_t>(i + group), values.begin());
      steps[i / group] = step_for(values.data(), static_cast<int64_t>(group), format);
    }
    const Step& step = steps[i / group];
    const int32_t q = rounded(static_cast<float>(now[i]), step, limits);
    integers[i] = static_cast<int8_t>(q);
    const double error = (now[i] - value_of(q, step)) / u[i * n + i];
    for (size_t j = i + 1; j < n; ++j) now[j] -= error * u[i * n + j];
  }
}

// Runs `work` for all indices below `count`, in threads.
template <class Work>
void in_threads(int64_t count, const Work& work) {
  const int64_t threads =
      std::clamp<int64_t>(std::thread::hardware_concurrency(), 1, std::max<int64_t>(count, 1));
  std::vector<std::thread> running;
  for (int64_t t = 0; t < threads; ++t)
    running.emplace_back([=, &work] {
      for (int64_t i = t; i < count; i += threads) work(i);
    });
  for (std::thread& thread : running) thread.join();
}

// The square of what the output of a row differs by: d G transpose(d).
double output_difference(const float* d, const Square& gram, size_t n) {
  double total = 0;
  for (size_t i = 0; i < n; ++i) {
    double sum = 0;
    for (size_t j = 0; j < n; ++j) sum += gram[i * n + j] * d[j];
    total += sum * d[i];
  }
  return total;
}

// Every so many rows, for a choice between methods.
Matrix some_rows(const Matrix& matrix, int64_t most) {
  const int64_t step = (matrix.rows + most - 1) / most;
  Matrix some{0, matrix.columns};
  for (int64_t i = 0; i < matrix.rows; i += std::max<int64_t>(step, 1), ++some.rows)
    some.values.insert(some.values.end(), matrix.row(i), matrix.row(i) + matrix.columns);
  return some;
}

double loss_with(const Matrix& matrix, const std::vector<float>& factors,
                 const WeightFormat& format, const Square& gram) {
  const Matrix again = divided(dequantized(nearest(multiplied(matrix, factors), format)), factors);
  double loss = 0;
  std::vector<float> d(static_cast<size_t>(matrix.columns));
  for (int64_t i = 0; i < matrix.rows; ++i) {
    for (size_t k = 0; k < d.size(); ++k) d[k] = again.row(i)[k] - matrix.row(i)[k];
    loss += output_difference(d.data(), gram, d.size());
  }
  return loss;
}

// Factors as they are used: none is so small or large that it spoils others.
std::vector<float> normalised(std::vector<float> factors) {
  float low = INFINITY, high = 0;
  for (float& factor : factors) {
    if (!(factor > 0)) factor = 1;
    low = std::min(low, factor);
    high = std::max(high, factor);
  }
  const float middle = std::sqrt(low * high);
  for (float& factor : factors) factor = std::max(factor / middle, 1e-4F);
  return factors;
}

}  // namespace

Integers gptq(const Matrix& matrix, const WeightFormat& format, const InputStatistics& inputs) {
  const auto n = static_cast<size_t>(matrix.columns);
  const Square u = inverse_factor(damped(inputs.gram, n), n);
  Integers integers{format, matrix.rows, matrix.columns};
  integers.values.resize(matrix.values.size());
  integers.steps.resize(static_cast<size_t>(matrix.rows * integers.groups()));
  Matrix work = matrix;
  in_threads(matrix.rows, [&](int64_t i) {
    round_row(work.row(i), u, n, format, static_cast<size_t>(integers.group()),
              integers.values.data() + i * matrix.columns,
              integers.steps.data() + i * integers.groups());
  });
  return integers;
}

std::vector<float> awq_factors(const Matrix& matrix, const WeightFormat& format,
                               const InputStatistics& inputs) {
  constexpr int kChoices = 20;
  // Rows tell much the same; as many as take about a second.
  const int64_t most = std::max<int64_t>((1 << 27) / (matrix.columns * matrix.columns), 32);
  const Matrix some = some_rows(matrix, most);
  std::vector<std::vector<float>> choices(kChoices);
  std::vector<double> losses(kChoices);
  in_threads(kChoices, [&](int64_t choice) {
    std::vector<float>& factors = choices[static_cast<size_t>(choice)];
    for (const double sum : inputs.sums)
      factors.push_back(static_cast<float>(
          std::pow(std::max(sum, 1e-8), static_cast<double>(choice) / kChoices)));
    factors = normalised(std::move(factors));
    losses[static_cast<size_t>(choice)] = loss_with(some, factors, format, inputs.gram);
  });
  return choices[static_cast<size_t>(std::min_element(losses.begin(), losses.end()) -
                                     losses.begin())];
}

std::vector<float> smooth_factors(const Matrix& matrix, const InputStatistics& inputs) {
  std::vector<float> factors(inputs.largest.size());
  for (size_t k = 0; k < factors.size(); ++k) {
    float largest = 0;
    for (int64_t i = 0; i < matrix.rows; ++i)
      largest = std::max(largest, std::abs(matrix.row(i)[k]));
    factors[k] = largest > 0 ? std::sqrt(inputs.largest[k] / largest) : 1;
  }
  return normalised(std::move(factors));
}

Matrix multiplied(Matrix matrix, const std::vector<float>& factors) {
  for (int64_t i = 0; i < matrix.rows; ++i)
    for (size_t k = 0; k < factors.size(); ++k) matrix.row(i)[k] *= factors[k];
  return matrix;
}

Matrix divided(Matrix matrix, const std::vector<float>& factors) {
  for (int64_t i = 0; i < matrix.rows; ++i)
    for (size_t k = 0; k < factors.size(); ++k) matrix.row(i)[k] /= factors[k];
  return matrix;
}

}  // namespace composit::quantization
