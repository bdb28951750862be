#include "flashlight.hpp"

namespace gmm {

struct Weights {
  const int64_t* constant;
};

void gmm_part(const double (&sub)[200][1000], double& __restrict sum, std::byte* arena) {
  auto& where = fl::at<double[1000]>(arena, 0);
  {
    double largest[1000];
    for (int j = 0; j < 1000; ++j) largest[j] = -INFINITY;
    for (int i = 0; i < 200; ++i)
      for (int j = 0; j < 1000; ++j) largest[j] = fl::max(largest[j], sub[i][j]);
    for (int j = 0; j < 1000; ++j) where[j] = fl::abs(largest[j]) == INFINITY ? 0.0 : largest[j];
  }
  auto& reshape = fl::at<double[1000]>(arena, 8000);
  {
    double sum_2[1000];
    for (int j = 0; j < 1000; ++j) sum_2[j] = 0.0;
    for (int i = 0; i < 200; ++i)
      for (int j = 0; j < 1000; ++j) sum_2[j] += fl::exp(sub[i][j] - where[j]);
    for (int j = 0; j < 1000; ++j) reshape[j] = fl::log(sum_2[j]) + where[j];
  }
  sum = fl::sum<double>(1000, [&](int i) { return reshape[i]; });
}

void gmm(const Weights& weights, const double (&alphas)[200], const double (&means)[200][64],
         const double (&icf)[200][2080], const double (&x)[1000][64],
         double& __restrict log_posterior, std::byte* arena) {
  auto& exp = fl::at<double[200][64]>(arena, 5953600);
  auto& cat = fl::at<double[200][2081]>(arena, 0);
  auto& triangles_times_own = fl::at<double[200][64]>(arena, 6056000);
  for (int i = 0; i < 200; ++i) {
    for (int j = 0; j < 64; ++j) {
      exp[i][j] = fl::exp(icf[i][j]);
      cat[i][j] = exp[i][j];
    }
    for (int j = 0; j < 2016; ++j) cat[i][j + 64] = icf[i][j + 64];
    cat[i][2080] = 0.0;
    for (int j = 0; j < 64; ++j)
      triangles_times_own[i][j] = fl::sum<double>(0, std::min(64, j + 1), [&](int k) {
        return cat[i][weights.constant[j * 64 + k]] * means[i][k];
      });
  }
  auto& permute = fl::at<double[64][1000]>(arena, 4929600);
  for (int i = 0; i < 64; ++i)
    for (int j = 0; j < 1000; ++j) permute[i][j] = x[j][i];
  auto& sum = fl::at<double[200]>(arena, 6158400);
  auto& square = fl::at<double[64][1000]>(arena, 5441600);
  auto& sub = fl::at<double[200][1000]>(arena, 3329600);
  for (int i = 0; i < 200; ++i) {
    sum[i] = fl::sum<double>(64, [&](int j) { return icf[i][j]; });
    const auto terms = fl::within(64, [&](int j) { return fl::Range{0, j + 1}; });
    fl::product<double>(
        64, 1000, terms,
        [&](int j, int k) {
          if (k > j) return 0.0;
          return cat[i][weights.constant[j * 64 + k]];
        },
        [&](int k, int m) -> auto& { return permute[k][m]; },
        [&](int j, int m, double sum_4) {
          const double difference = sum_4 - triangles_times_own[i][j];
          square[j][m] = difference * difference;
        });
    const double reshape = alphas[i] + sum[i];
    {
      double sum_4[1000];
      for (int k = 0; k < 1000; ++k) sum_4[k] = 0.0;
      for (int j = 0; j < 64; ++j)
        for (int k = 0; k < 1000; ++k) sum_4[k] += square[j][k];
      for (int k = 0; k < 1000; ++k) sub[i][k] = reshape - 0.5 * sum_4[k];
    }
  }
  const double largest = fl::largest<double>(200, [&](int i) { return alphas[i]; });
  const double where = fl::abs(largest) == INFINITY ? 0.0 : largest;
  double sum_2;
  gmm_part(sub, sum_2, arena + 6160000);
  const double sum_3 =
      fl::sum<double, 200, 64>([&](int i, int j) { return exp[i][j] * exp[i][j]; });
  const double mul = 0.0 * fl::sum<double>(200, [&](int i) { return sum[i]; });
  const double sum_4 =
      fl::sum<double, 200, 2016>([&](int i, int j) { return icf[i][j + 64] * icf[i][j + 64]; });
  const double sub_2 = 0.5 * (sum_3 + sum_4) - mul;
  const double sum_5 = fl::sum<double>(200, [&](int i) { return fl::exp(alphas[i] - where); });
  log_posterior = sum_2 - 1000.0 * (fl::log(sum_5) + where) + sub_2 + 882533.5145654328;
}

}  // namespace gmm

extern "C" const char* gmm_entry([[maybe_unused]] const void* const* arguments,
                                 [[maybe_unused]] const void* const* weights,
                                 [[maybe_unused]] void* const* results,
                                 [[maybe_unused]] void* arena, [[maybe_unused]] void* generator) {
  gmm::Weights bound;
  std::memcpy(&bound, weights, sizeof bound);
  try {
    gmm::gmm(bound, *static_cast<std::add_pointer_t<const double[200]>>(arguments[0]),
             *static_cast<std::add_pointer_t<const double[200][64]>>(arguments[1]),
             *static_cast<std::add_pointer_t<const double[200][2080]>>(arguments[2]),
             *static_cast<std::add_pointer_t<const double[1000][64]>>(arguments[3]),
             *static_cast<std::add_pointer_t<double>>(results[0]), static_cast<std::byte*>(arena));
  } catch (const std::exception& error) {
    return fl::keep_message(error.what());
  }
  return nullptr;
}
