// A chunk of points at a time; in it Gaussian by Gaussian, a block of points at a time, with a
// point in each lane: so Q_k, the points and the sums come from the caches next to the core. Q_k (x
// - mean_k) is taken as Q_k x - Q_k mean_k, which spares a copy of the points per Gaussian. The
// adjoint computes it anew rather than fetch it from memory, and has a column of Q_k in each lane.
// Both products stop at the diagonal.
#include <algorithm>
#include <cmath>
#include <numeric>
#include <vector>

#include "benchmarks/cpp/handwritten.h"

namespace handwritten {
namespace {

#if defined(__AVX512F__)
constexpr int64_t kVectorBytes = 64;
constexpr int kTile = 4;  // vectors of columns in a tile, whose sums stay in registers
#elif defined(__AVX__)
constexpr int64_t kVectorBytes = 32;
constexpr int kTile = 2;
#else
constexpr int64_t kVectorBytes = 16;
constexpr int kTile = 2;
#endif
constexpr int64_t kPoints = 64;  // in a block
constexpr int64_t kBlocks = 16;  // in a chunk
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

int64_t rounded_up(int64_t n, int64_t multiple) { return (n + multiple - 1) / multiple * multiple; }

// The lower triangle of icf, from column to column.
template <class Visit>
void for_each_below(int64_t d, const Visit& visit) {
  int64_t place = d;
  for (int64_t j = 0; j < d; ++j)
    for (int64_t i = j + 1; i < d; ++i) visit(i, j, place++);
}

// Zeros at first; begins at a line of the cache, so that no vector lies in two.
template <class T>
class Numbers {
 public:
  explicit Numbers(int64_t count) : lines_(static_cast<size_t>(count / kPerLine + 1)) {}
  T* begin() { return lines_.front().numbers; }
  T* end() { return begin() + lines_.size() * kPerLine; }
  T& operator[](int64_t i) { return begin()[i]; }

 private:
  static constexpr size_t kLineBytes = 64;
  static constexpr int64_t kPerLine = kLineBytes / sizeof(T);
  struct alignas(kLineBytes) Line {
    T numbers[kPerLine] = {};
  };
  std::vector<Line> lines_;
};

template <class T>
class Gmm {
 public:
  Gmm(const GmmSizes& sizes, const GmmParameters<const T>& parameters, const T* x,
      const Wishart& wishart)
      : sizes_(sizes), parameters_(parameters), x_(x), wishart_(wishart) {
    const T most = *std::max_element(parameters.alphas, parameters.alphas + sizes.k);
    T sum = 0;
    for (int64_t k = 0; k < sizes.k; ++k) sum += std::exp(parameters.alphas[k] - most);
    log_sum_of_alphas_ = most + std::log(sum);
  }

  T value() {
    T sum = without_points();
    for (int64_t begin = 0; begin < sizes_.n; begin += kBlocks * kPoints) sum += take_chunk(begin);
    return sum;
  }

  T gradient(const GmmParameters<T>& gradient) {
    Numbers<T> outer(sizes_.k * width_ * width_), moved_sums(sizes_.k * width_ * kLanes<T>);
    std::fill_n(gradient.alphas, sizes_.k, T(0));
    T sum = without_points();
    for (int64_t begin = 0; begin < sizes_.n; begin += kBlocks * kPoints) {
      sum += take_chunk(begin);
      for (int64_t k = 0; k < sizes_.k; ++k)
        gradient.alphas[k] +=
            add_adjoint(k, &outer[k * width_ * width_], &moved_sums[k * width_ * kLanes<T>]);
    }
    for (int64_t k = 0; k < sizes_.k; ++k)
      give_gradient(k, &outer[k * width_ * width_], &moved_sums[k * width_ * kLanes<T>], gradient);
    return sum;
  }

 private:
  int64_t triangle() const { return sizes_.d * (sizes_.d + 1) / 2; }
  const T* mean(int64_t k) const { return parameters_.means + k * sizes_.d; }
  int64_t points_of(int64_t block) const {
    return std::min(kPoints, sizes_.n - begin_ - block * kPoints);
  }
  const T* row(int64_t block, int64_t point) const {
    return x_ + (begin_ + block * kPoints + point) * sizes_.d;
  }
  T* columns(int64_t block) { return &columns_[block * width_ * kPoints]; }
  T* terms(int64_t k, int64_t block) { return &terms_[(block * sizes_.k + k) * kPoints]; }
  T* moved(int64_t i) { return &moved_[i * kPoints]; }
  // Q_ij: what a tile reads of one column lies side by side.
  T& factor(int64_t i, int64_t j) { return factor_[(i / kRows * width_ + j) * kRows + i % kRows]; }

  // Q_k, and Q_k mean_k; the logarithm of the determinant of Q_k.
  T take_factor(int64_t k) {
    const T* icf = parameters_.icf + k * triangle();
    T log_determinant = 0;
    for (int64_t i = 0; i < sizes_.d; ++i) {
      log_determinant += icf[i];
      factor(i, i) = std::exp(icf[i]);
    }
    for_each_below(sizes_.d,
                   [&](int64_t i, int64_t j, int64_t place) { factor(i, j) = icf[place]; });
    std::fill(moved_mean_.begin(), moved_mean_.end(), T(0));
    for (int64_t j = 0; j < sizes_.d; ++j)
      for (int64_t i = j; i < sizes_.d; ++i) moved_mean_[i] += factor(i, j) * mean(k)[j];
    return log_determinant;
  }

  // The chunk's shares of Gaussians in points; the sum of its logsumexp.
  T take_chunk(int64_t begin) {
    begin_ = begin;
    blocks_ = std::min(kBlocks, (sizes_.n - begin + kPoints - 1) / kPoints);
    std::fill(columns_.begin(), columns_.end(), T(0));
    for (int64_t block = 0; block < blocks_; ++block)
      for (int64_t point = 0; point < points_of(block); ++point)
        for (int64_t j = 0; j < sizes_.d; ++j)
          columns(block)[j * kPoints + point] = row(block, point)[j];
    for (int64_t k = 0; k < sizes_.k; ++k) {
      const T log_determinant = take_factor(k);
      for (int64_t block = 0; block < blocks_; ++block)
        distances<false>(k, block, parameters_.alphas[k] + log_determinant);
    }
    T sum = 0;
    for (int64_t block = 0; block < blocks_; ++block) sum += take_shares(block);
    return sum;
  }

  // Q_k (x - mean_k) if kMoved; else the terms of logsumexp: the bias - |Q_k (x - mean_k)|^2 / 2.
  template <bool kMoved>
  void distances(int64_t k, int64_t block, T bias) {
    for (int64_t point = 0; point < kPoints; point += kTile * kLanes<T>) {
      Vector<T> squares[kTile] = {};
      for (int64_t i = 0; i < sizes_.d; i += kRows) {
        Vector<T> sums[kRows][kTile];
        for (int64_t row = 0; row < kRows; ++row)
          for (int v = 0; v < kTile; ++v) sums[row][v] = Vector<T>{} - moved_mean_[i + row];
        const T *x = columns(block) + point, *column = &factor(i, 0);
        for (int64_t j = 0; j < i + kRows; ++j, x += kPoints, column += kRows)
          for (int64_t row = 0; row < kRows; ++row)
            for (int v = 0; v < kTile; ++v) sums[row][v] += column[row] * load(x + v * kLanes<T>);
        for (int64_t row = 0; row < kRows; ++row)
          for (int v = 0; v < kTile; ++v)
            if constexpr (kMoved)
              store(moved(i + row) + point + v * kLanes<T>, sums[row][v]);
            else
              squares[v] += sums[row][v] * sums[row][v];
      }
      if constexpr (!kMoved)
        for (int v = 0; v < kTile; ++v)
          store(terms(k, block) + point + v * kLanes<T>, bias - T(0.5) * squares[v]);
    }
  }

  // Terms become shares of the Gaussians in each point; the sum of logsumexp over the points.
  T take_shares(int64_t block) {
    const int64_t points = points_of(block);
    T most[kPoints], sum[kPoints] = {}, total = 0;
    std::copy_n(terms(0, block), kPoints, most);
    for (int64_t k = 1; k < sizes_.k; ++k)
      for (int64_t point = 0; point < kPoints; ++point)
        most[point] = std::max(most[point], terms(k, block)[point]);
    for (int64_t k = 0; k < sizes_.k; ++k)
      for (int64_t point = 0; point < kPoints; ++point)
        sum[point] += terms(k, block)[point] = std::exp(terms(k, block)[point] - most[point]);
    for (int64_t point = 0; point < kPoints; ++point) {
      if (point < points) total += most[point] + std::log(sum[point]);
      sum[point] = point < points ? 1 / sum[point] : 0;
    }
    for (int64_t k = 0; k < sizes_.k; ++k)
      for (int64_t point = 0; point < kPoints; ++point) terms(k, block)[point] *= sum[point];
    return total;
  }

  // Adds share Q_k (x - mean_k) x^T, and the same without x^T, over the points of the chunk; the
  // sum of the shares.
  T add_adjoint(int64_t k, T* outer, T* moved_sums) {
    take_factor(k);
    T sum = 0;
    for (int64_t block = 0; block < blocks_; ++block) {
      distances<true>(k, block, 0);
      sum += take_shared_rows(k, block);
      add_moved(terms(k, block), moved_sums);
      add_outer(outer);
    }
    return sum;
  }

  // The points times their shares, whose sum is returned.
  T take_shared_rows(int64_t k, int64_t block) {
    const int64_t points = points_of(block);
    const T* shares = terms(k, block);
    T sum = 0;
    for (int64_t point = 0; point < points; ++point) {
      sum += shares[point];
      T* shared = &shared_rows_[point * width_];
      for (int64_t j = 0; j < sizes_.d; ++j) shared[j] = shares[point] * row(block, point)[j];
    }
    std::fill(&shared_rows_[points * width_], shared_rows_.end(), T(0));
    return sum;
  }

  void add_moved(const T* shares, T* sums) {
    for (int64_t i = 0; i < sizes_.d; ++i, sums += kLanes<T>) {
      Vector<T> sum = load(sums);
      for (int64_t point = 0; point < kPoints; point += kLanes<T>)
        sum += load(moved(i) + point) * load(shares + point);
      store(sums, sum);
    }
  }

  void add_outer(T* outer) {
    for (int64_t i = 0; i < sizes_.d; i += kRows) {
      int64_t j = 0, vectors = (i + kRows + kLanes<T> - 1) / kLanes<T>;
      for (; vectors > kTile; vectors -= kTile, j += kTile * kLanes<T>)
        add_tile<kTile>(i, j, outer);
      switch (vectors) {
        case 4:
          add_tile<4>(i, j, outer);
          break;
        case 3:
          add_tile<3>(i, j, outer);
          break;
        case 2:
          add_tile<2>(i, j, outer);
          break;
        default:
          add_tile<1>(i, j, outer);
      }
    }
  }

  template <int kVectors>
  void add_tile(int64_t i, int64_t j, T* outer) {
    outer += i * width_ + j;
    const T *moved = this->moved(i), *x = &shared_rows_[j];
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
  void give_gradient(int64_t k, const T* outer, const T* moved_sums,
                     const GmmParameters<T>& gradient) {
    take_factor(k);
    const T weight = static_cast<T>(wishart_.gamma * wishart_.gamma);
    const T share_sum = gradient.alphas[k];
    T *icf = gradient.icf + k * triangle(), *means = gradient.means + k * sizes_.d;
    T* sums = moved_mean_.begin();  // which is not needed any more
    for (int64_t i = 0; i < sizes_.d; ++i)
      sums[i] = std::accumulate(moved_sums + i * kLanes<T>, moved_sums + (i + 1) * kLanes<T>, T(0));
    const auto by_factor = [&](int64_t i, int64_t j) {
      return sums[i] * mean(k)[j] - outer[i * width_ + j] + weight * factor(i, j);
    };
    for (int64_t i = 0; i < sizes_.d; ++i)
      icf[i] = by_factor(i, i) * factor(i, i) + share_sum - static_cast<T>(wishart_.m);
    for_each_below(sizes_.d,
                   [&](int64_t i, int64_t j, int64_t place) { icf[place] = by_factor(i, j); });
    for (int64_t j = 0; j < sizes_.d; ++j) {
      means[j] = 0;
      for (int64_t i = j; i < sizes_.d; ++i) means[j] += factor(i, j) * sums[i];
    }
    gradient.alphas[k] -=
        static_cast<T>(sizes_.n) * std::exp(parameters_.alphas[k] - log_sum_of_alphas_);
  }

  // The prior, and what else does not depend on the points.
  T without_points() const {
    T squares = 0, log_determinants = 0;
    for (int64_t k = 0; k < sizes_.k; ++k) {
      const T* icf = parameters_.icf + k * triangle();
      for (int64_t i = 0; i < sizes_.d; ++i) {
        log_determinants += icf[i];
        squares += std::exp(2 * icf[i]);
      }
      for (int64_t i = sizes_.d; i < triangle(); ++i) squares += icf[i] * icf[i];
    }
    const auto gamma = static_cast<T>(wishart_.gamma), m = static_cast<T>(wishart_.m);
    return gamma * gamma / 2 * squares - m * log_determinants -
           static_cast<T>(sizes_.n) * log_sum_of_alphas_ +
           static_cast<T>(objectives::gmm_constant(sizes_.d, sizes_.k, sizes_.n, wishart_));
  }

  GmmSizes sizes_;
  GmmParameters<const T> parameters_;
  const T* x_;
  Wishart wishart_;
  T log_sum_of_alphas_;
  int64_t width_ = rounded_up(sizes_.d, std::max(kLanes<T>, kRows));  // of padded rows
  // For one chunk:
  int64_t begin_ = 0, blocks_ = 0;
  Numbers<T> columns_{kBlocks * width_ * kPoints};  // [kBlocks, width, kPoints]: x
  Numbers<T> terms_{kBlocks * sizes_.k * kPoints};  // [kBlocks, k, kPoints]
  // For one Gaussian:
  Numbers<T> factor_{width_ * width_};  // see factor()
  Numbers<T> moved_mean_{width_};       // Q mean
  // For one Gaussian and one block:
  Numbers<T> moved_{width_ * kPoints};        // [width, kPoints]: Q (x - mean)
  Numbers<T> shared_rows_{kPoints * width_};  // [kPoints, width]: share x
};

}  // namespace

template <class T>
T gmm(const GmmSizes& sizes, const GmmParameters<const T>& parameters, const T* x,
      const Wishart& wishart) {
  return Gmm<T>(sizes, parameters, x, wishart).value();
}

template <class T>
T gmm_gradient(const GmmSizes& sizes, const GmmParameters<const T>& parameters, const T* x,
               const Wishart& wishart, const GmmParameters<T>& gradient) {
  return Gmm<T>(sizes, parameters, x, wishart).gradient(gradient);
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
