#include "flashlight.hpp"

namespace gmm_gradient {

struct GmmGradientPart2Weights {
  const int64_t* constant;
};

struct Weights {
  const int64_t* constant;
  GmmGradientPart2Weights gmm_gradient_part_2;
};

FLASHLIGHT_INLINE void gmm_gradient_body(
    const double& alphas, const double (&means)[64], const double (&icf)[2080],
    const double (&exp)[64], const double (&cat)[2081], const double (&triangles_times_own)[64],
    const double (&sub)[1000], const double (&x)[1000][64], const int64_t (&constant)[4096],
    const double (&permute)[64][1000], const double& reshape, const double (&reshape_2)[1000],
    double (&__restrict d_means)[64], double& __restrict d_alphas, double (&__restrict d_icf)[2080],
    std::byte* arena) {
  double mul[1000];
  double reshape_3[1000];
  for (int i = 0; i < 1000; ++i) {
    mul[i] = fl::exp(sub[i] - reshape_2[i]);
    reshape_3[i] = -mul[i] * 0.5;
  }
  auto& sub_2 = fl::at<double[64][1000]>(arena, 0);
  const auto terms = fl::within(64, [&](int i) { return fl::Range{0, i + 1}; });
  fl::product<double>(
      64, 1000, terms,
      [&](int i, int k) {
        if (k > i) return 0.0;
        return cat[constant[i * 64 + k]];
      },
      [&](int k, int j) -> auto& { return permute[k][j]; },
      [&](int i, int j, double sum_2) { sub_2[i][j] = sum_2 - triangles_times_own[i]; });
  double sum[64];
  auto& loops = fl::at<double[64][64]>(arena, 512000);
  for (int i = 0; i < 64; ++i) {
    sum[i] =
        fl::sum<double>(1000, [&](int j) { return -(reshape_3[j] * (sub_2[i][j] + sub_2[i][j])); });
    for (int j = 0; j < 64; ++j) {
      loops[i][j] = 0.0;
      if (j <= i) loops[i][j] = sum[i] * means[j];
    }
  }
  for (int i = 0; i < 64; ++i)
    d_means[i] = fl::sum<double>(std::max(0, i), 64,
                                 [&](int j) { return sum[j] * cat[constant[i + j * 64]]; });
  auto& index_put = fl::at<double[2081]>(arena, 544768);
  for (int i = 0; i < 2081; ++i) {
    index_put[i] = 0.0;
    index_put[i] = 0.0;
  }
  const auto columns = fl::within(64, [&](int i) { return fl::Range{0, i + 1}; });
  fl::product<double>(
      64, columns, 1000, [&](int i, int k) { return reshape_3[k] * (sub_2[i][k] + sub_2[i][k]); },
      [&](int k, int j) -> auto& { return x[k][j]; },
      [&](int i, int j, double sum_2) { index_put[constant[i * 64 + j]] += loops[i][j] + sum_2; });
  const double reshape_4 = fl::sum<double>(1000, [&](int i) { return mul[i]; });
  d_alphas = (-1000.0) * fl::exp(alphas - reshape) + reshape_4;
  const double reshape_5 = (-0.0) + reshape_4;
  for (int i = 0; i < 64; ++i)
    d_icf[i] = (0.5 * (exp[i] + exp[i]) + index_put[i]) * exp[i] + reshape_5;
  for (int i = 0; i < 2016; ++i)
    d_icf[i + 64] = 0.5 * (icf[i + 64] + icf[i + 64]) + index_put[i + 64];
}

void gmm_gradient_part(const double (&sub)[200][1000], double (&__restrict reshape)[1000],
                       std::byte* arena) {
  auto& where = fl::at<double[1000]>(arena, 0);
  {
    double largest[1000];
    for (int j = 0; j < 1000; ++j) largest[j] = -INFINITY;
    for (int i = 0; i < 200; ++i)
      for (int j = 0; j < 1000; ++j) largest[j] = fl::max(largest[j], sub[i][j]);
    for (int j = 0; j < 1000; ++j) where[j] = fl::abs(largest[j]) == INFINITY ? 0.0 : largest[j];
  }
  {
    double sum[1000];
    for (int j = 0; j < 1000; ++j) sum[j] = 0.0;
    for (int i = 0; i < 200; ++i)
      for (int j = 0; j < 1000; ++j) sum[j] += fl::exp(sub[i][j] - where[j]);
    for (int j = 0; j < 1000; ++j) reshape[j] = fl::log(sum[j]) + where[j];
  }
}

void gmm_gradient_part_2(const GmmGradientPart2Weights& weights, const double (&icf)[200][2080],
                         const double (&means)[200][64], const double (&x)[1000][64],
                         const double (&alphas)[200], double (&__restrict exp)[200][64],
                         double (&__restrict sum)[200], double (&__restrict cat)[200][2081],
                         double (&__restrict triangles_times_own)[200][64],
                         double (&__restrict permute)[64][1000],
                         double (&__restrict sub_2)[200][1000], std::byte* arena) {
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
  for (int i = 0; i < 64; ++i)
    for (int j = 0; j < 1000; ++j) permute[i][j] = x[j][i];
  auto& sub = fl::at<double[64][1000]>(arena, 0);
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
        [&](int j, int m, double sum_2) { sub[j][m] = sum_2 - triangles_times_own[i][j]; });
    const double reshape = alphas[i] + sum[i];
    {
      double sum_2[1000];
      for (int k = 0; k < 1000; ++k) sum_2[k] = 0.0;
      for (int j = 0; j < 64; ++j)
        for (int k = 0; k < 1000; ++k) sum_2[k] += sub[j][k] * sub[j][k];
      for (int k = 0; k < 1000; ++k) sub_2[i][k] = reshape - 0.5 * sum_2[k];
    }
  }
}

void gmm_gradient(const Weights& weights, const double (&alphas)[200],
                  const double (&means)[200][64], const double (&icf)[200][2080],
                  const double (&x)[1000][64], double& __restrict log_posterior,
                  double (&__restrict d_alphas)[200], double (&__restrict d_means)[200][64],
                  double (&__restrict d_icf)[200][2080], std::byte* arena) {
  auto& exp = fl::at<double[200][64]>(arena, 5441600);
  auto& sum = fl::at<double[200]>(arena, 5654400);
  auto& cat = fl::at<double[200][2081]>(arena, 0);
  auto& triangles_times_own = fl::at<double[200][64]>(arena, 5544000);
  auto& permute = fl::at<double[64][1000]>(arena, 4929600);
  auto& sub = fl::at<double[200][1000]>(arena, 3329600);
  gmm_gradient_part_2(weights.gmm_gradient_part_2, icf, means, x, alphas, exp, sum, cat,
                      triangles_times_own, permute, sub, arena + 5656000);
  const double largest = fl::largest<double>(200, [&](int i) { return alphas[i]; });
  const double where = fl::abs(largest) == INFINITY ? 0.0 : largest;
  const double sum_3 = fl::sum<double>(200, [&](int i) { return fl::exp(alphas[i] - where); });
  const double reshape = fl::log(sum_3) + where;
  auto& reshape_2 = fl::at<double[1000]>(arena, 5646400);
  gmm_gradient_part(sub, reshape_2, arena + 5656000);
  const double sum_2 =
      fl::sum<double, 200, 64>([&](int i, int j) { return exp[i][j] * exp[i][j]; });
  const double mul = 0.0 * fl::sum<double>(200, [&](int i) { return sum[i]; });
  const double sum_4 =
      fl::sum<double, 200, 2016>([&](int i, int j) { return icf[i][j + 64] * icf[i][j + 64]; });
  const double sub_2 = 0.5 * (sum_2 + sum_4) - mul;
  const double sum_5 = fl::sum<double>(1000, [&](int i) { return reshape_2[i]; });
  log_posterior = sum_5 - 1000.0 * reshape + sub_2 + 882533.5145654328;
  for (int i = 0; i < 200; ++i)
    gmm_gradient_body(alphas[i], means[i], icf[i], exp[i], cat[i], triangles_times_own[i], sub[i],
                      x, fl::as<const int64_t[4096]>(weights.constant), permute, reshape, reshape_2,
                      d_means[i], d_alphas[i], d_icf[i], arena + 5656000);
}

}  // namespace gmm_gradient

extern "C" const char* gmm_gradient_entry([[maybe_unused]] const void* const* arguments,
                                          [[maybe_unused]] const void* const* weights,
                                          [[maybe_unused]] void* const* results,
                                          [[maybe_unused]] void* arena,
                                          [[maybe_unused]] void* generator) {
  gmm_gradient::Weights bound;
  std::memcpy(&bound, weights, sizeof bound);
  try {
    gmm_gradient::gmm_gradient(
        bound, *static_cast<std::add_pointer_t<const double[200]>>(arguments[0]),
        *static_cast<std::add_pointer_t<const double[200][64]>>(arguments[1]),
        *static_cast<std::add_pointer_t<const double[200][2080]>>(arguments[2]),
        *static_cast<std::add_pointer_t<const double[1000][64]>>(arguments[3]),
        *static_cast<std::add_pointer_t<double>>(results[0]),
        *static_cast<std::add_pointer_t<double[200]>>(results[1]),
        *static_cast<std::add_pointer_t<double[200][64]>>(results[2]),
        *static_cast<std::add_pointer_t<double[200][2080]>>(results[3]),
        static_cast<std::byte*>(arena));
  } catch (const std::exception& error) {
    return fl::keep_message(error.what());
  }
  return nullptr;
}
