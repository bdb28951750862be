#include "flashlight.hpp"

namespace gmm_gradient {

struct GmmGradientPart2Weights {
  const int64_t* constant;
};

struct GmmGradientPart4Weights {
  const int64_t* constant;
};

struct Weights {
  GmmGradientPart2Weights gmm_gradient_part_2;
  GmmGradientPart4Weights gmm_gradient_part_4;
};

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
                         double (&__restrict sub)[200][64][1000],
                         double (&__restrict sub_2)[200][1000], std::byte* arena) {
  auto& matmul = fl::at<double[200][64]>(arena, 512000);
  for (int i = 0; i < 200; ++i) {
    for (int j = 0; j < 64; ++j) {
      exp[i][j] = fl::exp(icf[i][j]);
      cat[i][j] = exp[i][j];
    }
    for (int j = 0; j < 2016; ++j) cat[i][j + 64] = icf[i][j + 64];
    cat[i][2080] = 0.0;
    for (int j = 0; j < 64; ++j)
      matmul[i][j] = fl::sum<double>(
          64, [&](int k) { return cat[i][weights.constant[j * 64 + k]] * means[i][k]; });
  }
  auto& permute = fl::at<double[64][1000]>(arena, 0);
  for (int i = 0; i < 64; ++i)
    for (int j = 0; j < 1000; ++j) permute[i][j] = x[j][i];
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
        [&](int j, int m, double sum_2) { sub[i][j][m] = sum_2 - matmul[i][j]; });
    const double reshape = alphas[i] + sum[i];
    {
      double sum_2[1000];
      for (int k = 0; k < 1000; ++k) sum_2[k] = 0.0;
      for (int j = 0; j < 64; ++j)
        for (int k = 0; k < 1000; ++k) sum_2[k] += sub[i][j][k] * sub[i][j][k];
      for (int k = 0; k < 1000; ++k) sub_2[i][k] = reshape - 0.5 * sum_2[k];
    }
  }
}

void gmm_gradient_part_3(const double (&exp)[200][64], const double (&sum)[200],
                         const double (&icf)[200][2080], double& __restrict sub) {
  double sum_3 = 0.0;
  for (int i = 0; i < 200; ++i)
    for (int j = 0; j < 64; ++j) sum_3 += exp[i][j] * exp[i][j];
  const double sum_2 = sum_3;
  const double mul = 0.0 * fl::sum<double>(200, [&](int i) { return sum[i]; });
  double sum_4 = 0.0;
  for (int i = 0; i < 200; ++i)
    for (int j = 0; j < 2016; ++j) sum_4 += icf[i][j + 64] * icf[i][j + 64];
  sub = 0.5 * (sum_2 + sum_4) - mul;
}

void gmm_gradient_part_4(const GmmGradientPart4Weights& weights, const double (&sub)[200][1000],
                         const double (&reshape)[1000], const double (&sub_2)[200][64][1000],
                         const double (&cat)[200][2081], const double (&x)[1000][64],
                         const double (&means)[200][64], const double (&alphas)[200],
                         const double& reshape_2, const double (&exp)[200][64],
                         const double (&icf)[200][2080], double (&__restrict d_means)[200][64],
                         double (&__restrict d_alphas)[200], double (&__restrict d_icf)[200][2080],
                         std::byte* arena) {
  auto& loops = fl::at<double[64][64]>(arena, 0);
  auto& index_put = fl::at<double[2081]>(arena, 32768);
  for (int i = 0; i < 200; ++i) {
    double mul[1000];
    double reshape_3[1000];
    for (int j = 0; j < 1000; ++j) {
      mul[j] = fl::exp(sub[i][j] - reshape[j]);
      reshape_3[j] = -mul[j] * 0.5;
    }
    double sum[64];
    for (int j = 0; j < 64; ++j)
      sum[j] = fl::sum<double>(
          1000, [&](int k) { return -(reshape_3[k] * (sub_2[i][j][k] + sub_2[i][j][k])); });
    for (int j = 0; j < 64; ++j)
      d_means[i][j] =
          fl::sum<double>(64, [&](int k) { return cat[i][weights.constant[j + k * 64]] * sum[k]; });
    const auto columns = fl::within(64, [&](int j) { return fl::Range{0, j + 1}; });
    fl::product<double>(
        64, columns, 1000,
        [&](int j, int k) { return reshape_3[k] * (sub_2[i][j][k] + sub_2[i][j][k]); },
        [&](int k, int m) -> auto& { return x[k][m]; },
        [&](int j, int m, double sum_2) { loops[j][m] = sum_2; });
    for (int j = 0; j < 2081; ++j) {
      index_put[j] = 0.0;
      index_put[j] = 0.0;
    }
    for (int j = 0; j < 64; ++j)
      for (int k = 0; k < 64; ++k) {
        double sum_2 = 0.0;
        sum_2 += sum[j] * means[i][k];
        index_put[weights.constant[j * 64 + k]] += sum_2 + loops[j][k];
      }
    const double reshape_4 = fl::sum<double>(1000, [&](int j) { return mul[j]; });
    d_alphas[i] = (-1000.0) * fl::exp(alphas[i] - reshape_2) + reshape_4;
    const double reshape_5 = (-0.0) + reshape_4;
    for (int j = 0; j < 64; ++j) {
      const double sum_2 = (0.5 * (exp[i][j] + exp[i][j]) + index_put[j]) * exp[i][j] + reshape_5;
      d_icf[i][j] = sum_2 + 0.0;
    }
    for (int j = 0; j < 2016; ++j)
      d_icf[i][j + 64] = 0.5 * (icf[i][j + 64] + icf[i][j + 64]) + index_put[j + 64] + 0.0;
  }
}

void gmm_gradient(const Weights& weights, const double (&alphas)[200],
                  const double (&means)[200][64], const double (&icf)[200][2080],
                  const double (&x)[1000][64], double& __restrict log_posterior,
                  double (&__restrict d_alphas)[200], double (&__restrict d_means)[200][64],
                  double (&__restrict d_icf)[200][2080], std::byte* arena) {
  auto& exp = fl::at<double[200][64]>(arena, 107329600);
  auto& sum = fl::at<double[200]>(arena, 107440000);
  auto& cat = fl::at<double[200][2081]>(arena, 102400000);
  auto& sub = fl::at<double[200][64][1000]>(arena, 0);
  auto& sub_2 = fl::at<double[200][1000]>(arena, 105729600);
  gmm_gradient_part_2(weights.gmm_gradient_part_2, icf, means, x, alphas, exp, sum, cat, sub, sub_2,
                      arena + 107441600);
  const double largest = fl::largest<double>(200, [&](int i) { return alphas[i]; });
  const double where = fl::abs(largest) == INFINITY ? 0.0 : largest;
  const double sum_2 = fl::sum<double>(200, [&](int i) { return fl::exp(alphas[i] - where); });
  const double reshape = fl::log(sum_2) + where;
  const double mul = 1000.0 * reshape;
  auto& reshape_2 = fl::at<double[1000]>(arena, 107432000);
  gmm_gradient_part(sub_2, reshape_2, arena + 107441600);
  double sub_3;
  gmm_gradient_part_3(exp, sum, icf, sub_3);
  const double sum_3 = fl::sum<double>(1000, [&](int i) { return reshape_2[i]; });
  log_posterior = sum_3 - mul + sub_3 + 882533.5145654328;
  gmm_gradient_part_4(weights.gmm_gradient_part_4, sub_2, reshape_2, sub, cat, x, means, alphas,
                      reshape, exp, icf, d_means, d_alphas, d_icf, arena + 107441600);
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
