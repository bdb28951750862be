// Q_k (x - mean_k) is taken as Q_k x - Q_k mean_k, so that one copy of the points serves all
// Gaussians. A block of points at a time: first the distances, with a point in each lane; then the
// shares of the Gaussians in each point; then, from what the first step kept, the adjoint of Q_k,
// with a column of Q_k in each lane. Both products stop at the diagonal.
#include <algorithm>
#include <cmath>
#include <vector>

#include "benchmarks/cpp/handwritten.h"

namespace handwritten {
namespace {

#ifdef __AVX512F__
constexpr int64_t kVectorBytes = 64;
constexpr int kTile = 4;  // rows, and vectors of columns, whose sums stay in registers
#else
constexpr int64_t kVectorBytes = 32;
constexpr int kTile = 2;
#endif
constexpr int64_t kPoints = 64;  // in a block
constexpr int64_t kRows = 4;     // in a tile

template <class T>
struct VectorOf {
  typedef T type __attribute__((vector_size(kVectorBytes), aligned(sizeof(T)), may_alias));
};
template <class T>
using Vector = typename VectorOf<T>::type;
template <class T>
constexpr int64_t kLanes = kVectorBytes / static_cast<int64_t>(sizeof(T));

template <class T>
Vector<T> load(const T* from) {
  return *reinterpret_cast<const Vector<T>*>(from);
}
template <class T>
void store(T* to, Vector<T> value) {
  *reinterpret_cast<Vector<T>*>(to) = value;
}

template <class T>
T sum_of(const T* values, int64_t n) {
  Vector<T> lanes = {};
  for (int64_t i = 0; i < n; i += kLanes<T>) lanes += load(values + i);
  T sum = 0;
  for (int64_t i = 0; i < kLanes<T>; ++i) sum += lanes[i];
  return sum;
}

// The lower triangle of icf, from column to column.
template <class Visit>
void for_each_below(int64_t d, const Visit& visit) {
  int64_t place = d;
  for (int64_t j = 0; j < d; ++j)
    for (int64_t i = j + 1; i < d; ++i) visit(i, j, place++);
}

template <class T>
class Gmm {
 public:
  Gmm(const GmmSizes& sizes, const GmmParameters<const T>& parameters, const Wishart& wishart)
      : sizes_(sizes), parameters_(parameters), wishart_(wishart) {
    const auto square = static_cast<size_t>(sizes.k * width_ * width_);
    factors_.resize(square);
    moved_means_.resize(static_cast<size_t>(sizes.k * width_));
    biases_.resize(static_cast<size_t>(sizes.k));
    terms_.resize(static_cast<size_t>(sizes.k * kPoints));
    for (int64_t k = 0; k < sizes.k; ++k) unpack(k);
  }

  T value(const T* x) {
    T sum = 0;
    for (int64_t begin = 0; begin < sizes_.n; begin += kPoints) {
      take_points(x, begin);
      for (int64_t k = 0; k < sizes_.k; ++k) distances<false>(k);
      sum += shares();
    }
    return sum + without_points();
  }

  T gradient(const T* x, const GmmParameters<T>& gradient) {
    moved_.resize(static_cast<size_t>(sizes_.k * width_ * kPoints));
    outer_.resize(factors_.size());
    moved_sums_.resize(moved_means_.size());
    std::fill_n(gradient.alphas, sizes_.k, T(0));
    T sum = 0;
    for (int64_t begin = 0; begin < sizes_.n; begin += kPoints) {
      take_points(x, begin);
      for (int64_t k = 0; k < sizes_.k; ++k) distances<true>(k);
      sum += shares();
      for (int64_t k = 0; k < sizes_.k; ++k) add_adjoint(k, gradient.alphas[k]);
    }
    for (int64_t k = 0; k < sizes_.k; ++k) pack_adjoint(k, gradient);
    subtract_shares_of_all(gradient.alphas);
    return sum + without_points();
  }

 private:
  int64_t triangle() const { return sizes_.d * (sizes_.d + 1) / 2; }
  const T* icf(int64_t k) const { return parameters_.icf + k * triangle(); }
  const T* mean(int64_t k) const { return parameters_.means + k * sizes_.d; }
  T* factor(int64_t k) { return &factors_[static_cast<size_t>(k * width_ * width_)]; }

  void unpack(int64_t k) {
    T* factor = this->factor(k);
    T log_determinant = 0;
    for (int64_t i = 0; i < sizes_.d; ++i) {
      log_determinant += icf(k)[i];
      factor[i * width_ + i] = std::exp(icf(k)[i]);
    }
    for_each_below(sizes_.d, [&](int64_t i, int64_t j, int64_t place) {
      factor[i * width_ + j] = icf(k)[place];
    });
    for (int64_t i = 0; i < sizes_.d; ++i)
      for (int64_t j = 0; j <= i; ++j)
        moved_means_[static_cast<size_t>(k * width_ + i)] += factor[i * width_ + j] * mean(k)[j];
    biases_[static_cast<size_t>(k)] = parameters_.alphas[k] + log_determinant;
  }

  // Points as rows and as columns; zeros behind the last one.
  void take_points(const T* x, int64_t begin) {
    points_ = std::min(kPoints, sizes_.n - begin);
    std::fill(rows_.begin(), rows_.end(), T(0));
    std::fill(columns_.begin(), columns_.end(), T(0));
    for (int64_t point = 0; point < points_; ++point)
      for (int64_t j = 0; j < sizes_.d; ++j) {
        const T number = x[(begin + point) * sizes_.d + j];
        rows_[static_cast<size_t>(point * width_ + j)] = number;
        columns_[static_cast<size_t>(j * kPoints + point)] = number;
      }
  }

  // The terms of logsumexp of Gaussian k, and Q_k (x - mean_k) if it is needed again.
  template <bool kKeep>
  void distances(int64_t k) {
    constexpr int64_t kTilePoints = kTile * kLanes<T>;
    const T* factor = this->factor(k);
    const T* moved_mean = &moved_means_[static_cast<size_t>(k * width_)];
    for (int64_t point = 0; point < kPoints; point += kTilePoints) {
      Vector<T> squares[kTile] = {};
      for (int64_t i = 0; i < sizes_.d; i += kRows) {
        Vector<T> sums[kRows][kTile];
        for (int64_t row = 0; row < kRows; ++row)
          for (int v = 0; v < kTile; ++v) sums[row][v] = Vector<T>{} - moved_mean[i + row];
        const T* x = &columns_[static_cast<size_t>(point)];
        for (int64_t j = 0; j < i + kRows; ++j, x += kPoints)
          for (int64_t row = 0; row < kRows; ++row)
            for (int v = 0; v < kTile; ++v)
              sums[row][v] += factor[(i + row) * width_ + j] * load(x + v * kLanes<T>);
        for (int64_t row = 0; row < kRows; ++row)
          for (int v = 0; v < kTile; ++v) {
            squares[v] += sums[row][v] * sums[row][v];
            if constexpr (kKeep) store(moved(k, i + row) + point + v * kLanes<T>, sums[row][v]);
          }
      }
      for (int v = 0; v < kTile; ++v)
        store(terms(k) + point + v * kLanes<T>,
              biases_[static_cast<size_t>(k)] - T(0.5) * squares[v]);
    }
  }

  // Terms become shares of the Gaussians in each point; the sum of logsumexp over the points.
  T shares() {
    T most[kPoints], sum[kPoints] = {}, total = 0;
    std::copy_n(terms(0), kPoints, most);
    for (int64_t k = 1; k < sizes_.k; ++k)
      for (int64_t point = 0; point < kPoints; ++point)
        most[point] = std::max(most[point], terms(k)[point]);
    for (int64_t k = 0; k < sizes_.k; ++k)
      for (int64_t point = 0; point < kPoints; ++point)
        sum[point] += terms(k)[point] = std::exp(terms(k)[point] - most[point]);
    for (int64_t point = 0; point < kPoints; ++point) {
      const bool exists = point < points_;
      if (exists) total += most[point] + std::log(sum[point]);
      sum[point] = exists ? 1 / sum[point] : 0;
    }
    for (int64_t k = 0; k < sizes_.k; ++k)
      for (int64_t point = 0; point < kPoints; ++point) terms(k)[point] *= sum[point];
    return total;
  }

  // Adds share Q_k (x - mean_k) x^T, and the same without x^T, over the points of the block.
  void add_adjoint(int64_t k, T& share_sum) {
    share_sum += sum_of(terms(k), kPoints);
    for (int64_t i = 0; i < sizes_.d; ++i) {
      T* moved = this->moved(k, i);
      for (int64_t point = 0; point < kPoints; ++point) moved[point] *= terms(k)[point];
      moved_sums_[static_cast<size_t>(k * width_ + i)] += sum_of(moved, kPoints);
    }
    for (int64_t i = 0; i < sizes_.d; i += kRows) {
      int64_t j = 0, vectors = (i + kRows + kLanes<T> - 1) / kLanes<T>;
      for (; vectors >= kTile; vectors -= kTile, j += kTile * kLanes<T>) add_outer<kTile>(k, i, j);
      for (; vectors > 0; --vectors, j += kLanes<T>) add_outer<1>(k, i, j);
    }
  }

  template <int kVectors>
  void add_outer(int64_t k, int64_t i, int64_t j) {
    T* outer = &outer_[static_cast<size_t>((k * width_ + i) * width_ + j)];
    const T* moved = this->moved(k, i);
    const T* x = &rows_[static_cast<size_t>(j)];
    Vector<T> sums[kRows][kVectors];
    for (int64_t row = 0; row < kRows; ++row)
      for (int v = 0; v < kVectors; ++v) sums[row][v] = load(outer + row * width_ + v * kLanes<T>);
    for (int64_t point = 0; point < kPoints; ++point, x += width_)
      for (int64_t row = 0; row < kRows; ++row)
        for (int v = 0; v < kVectors; ++v)
          sums[row][v] += moved[row * kPoints + point] * load(x + v * kLanes<T>);
    for (int64_t row = 0; row < kRows; ++row)
      for (int v = 0; v < kVectors; ++v) store(outer + row * width_ + v * kLanes<T>, sums[row][v]);
  }

  // By Q_k: -share Q_k (x - mean_k) (x - mean_k)^T, and the prior.
  void pack_adjoint(int64_t k, const GmmParameters<T>& gradient) {
    const T* factor = this->factor(k);
    const T* outer = &outer_[static_cast<size_t>(k * width_ * width_)];
    const T* moved_sum = &moved_sums_[static_cast<size_t>(k * width_)];
    const T weight = static_cast<T>(wishart_.gamma * wishart_.gamma);
    const auto by_factor = [&](int64_t i, int64_t j) {
      return moved_sum[i] * mean(k)[j] - outer[i * width_ + j] + weight * factor[i * width_ + j];
    };
    T* icf = gradient.icf + k * triangle();
    for (int64_t i = 0; i < sizes_.d; ++i)
      icf[i] = by_factor(i, i) * factor[i * width_ + i] + gradient.alphas[k] -
               static_cast<T>(wishart_.m);
    for_each_below(sizes_.d,
                   [&](int64_t i, int64_t j, int64_t place) { icf[place] = by_factor(i, j); });
    T* means = gradient.means + k * sizes_.d;
    std::fill_n(means, sizes_.d, T(0));
    for (int64_t i = 0; i < sizes_.d; ++i)
      for (int64_t j = 0; j <= i; ++j) means[j] += factor[i * width_ + j] * moved_sum[i];
  }

  void subtract_shares_of_all(T* by_alphas) const {
    const T sum = log_sum_of_alphas();
    for (int64_t k = 0; k < sizes_.k; ++k)
      by_alphas[k] -= static_cast<T>(sizes_.n) * std::exp(parameters_.alphas[k] - sum);
  }

  T log_sum_of_alphas() const {
    const T most = *std::max_element(parameters_.alphas, parameters_.alphas + sizes_.k);
    T sum = 0;
    for (int64_t k = 0; k < sizes_.k; ++k) sum += std::exp(parameters_.alphas[k] - most);
    return most + std::log(sum);
  }

  T without_points() {
    T squares = 0, log_determinants = 0;
    for (const T entry : factors_) squares += entry * entry;
    for (int64_t k = 0; k < sizes_.k; ++k)
      log_determinants += biases_[static_cast<size_t>(k)] - parameters_.alphas[k];
    const auto gamma = static_cast<T>(wishart_.gamma), m = static_cast<T>(wishart_.m);
    return gamma * gamma / 2 * squares - m * log_determinants -
           static_cast<T>(sizes_.n) * log_sum_of_alphas() +
           static_cast<T>(objectives::gmm_constant(sizes_.d, sizes_.k, sizes_.n, wishart_));
  }

  T* terms(int64_t k) { return &terms_[static_cast<size_t>(k * kPoints)]; }
  T* moved(int64_t k, int64_t i) {
    return &moved_[static_cast<size_t>((k * width_ + i) * kPoints)];
  }

  GmmSizes sizes_;
  GmmParameters<const T> parameters_;
  Wishart wishart_;
  int64_t width_ = (sizes_.d + kLanes<T> - 1) / kLanes<T> * kLanes<T>;  // of padded rows
  int64_t points_ = 0;                                                  // in this block
  std::vector<T> factors_;      // [k, width, width]: Q, zeros above the diagonal
  std::vector<T> moved_means_;  // [k, width]: Q mean
  std::vector<T> biases_;       // [k]
  std::vector<T> rows_ = std::vector<T>(static_cast<size_t>(kPoints * width_));
  std::vector<T> columns_ = rows_;
  std::vector<T> terms_;       // [k, kPoints]
  std::vector<T> moved_;       // [k, width, kPoints]: Q (x - mean)
  std::vector<T> outer_;       // [k, width, width]
  std::vector<T> moved_sums_;  // [k, width]
};

}  // namespace

template <class T>
T gmm(const GmmSizes& sizes, const GmmParameters<const T>& parameters, const T* x,
      const Wishart& wishart) {
  return Gmm<T>(sizes, parameters, wishart).value(x);
}

template <class T>
T gmm_gradient(const GmmSizes& sizes, const GmmParameters<const T>& parameters, const T* x,
               const Wishart& wishart, const GmmParameters<T>& gradient) {
  return Gmm<T>(sizes, parameters, wishart).gradient(x, gradient);
}

template float gmm(const GmmSizes&, const GmmParameters<const float>&, const float*,
                   const Wishart&);
template double gmm(const GmmSizes&, const GmmParameters<const double>&, const double*,
                    const Wishart&);
template float gmm_gradient(const GmmSizes&, const GmmParameters<const float>&, const float*,
                            const Wishart&, const GmmParameters<float>&);
template double gmm_gradient(const GmmSizes&, const GmmParameters<const double>&, const double*,
                             const Wishart&, const GmmParameters<double>&);

}  // namespace handwritten
