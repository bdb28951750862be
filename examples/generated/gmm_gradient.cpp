#include "flashlight.hpp"

namespace gmm_gradient {

struct GmmGradientPartWeights {
  const int64_t* constant;
};

struct GmmGradientPart2Weights {
  const int64_t* constant;
  GmmGradientPartWeights gmm_gradient_part;
};

struct Weights {
  const int64_t* constant;
  GmmGradientPart2Weights gmm_gradient_part_2;
};

void gmm_gradient_part(const GmmGradientPartWeights& weights, const double (&x)[1000][64],
                       const double (&cat)[200][2081], const double (&reshape)[200][64],
                       const double (&add)[200], double (&reshape_2)[1000],
                       double (&mul)[1000][200], double (&mul_2)[1000][200][64], std::byte* arena) {
  auto& mm = fl::at<double[1000][12800]>(arena, 0);
  fl::product<double>(
      1000, 12800, 64, [&](int i, int k) { return x[i][k]; },
      [&](int k, int j) { return cat[j / 64][weights.constant[j % 64 * 64 + k]]; },
      [&](int i, int j, double sum) { mm[i][j] = sum; });
  for (int i = 0; i < 1000; ++i) {
    double sub[200];
    for (int j = 0; j < 200; ++j) {
      const double sum = fl::sum<double>(64, [&](int k) {
        const double difference = mm[i][j * 64 + k] - reshape[j][k];
        return difference * difference;
      });
      sub[j] = add[j] - 0.5 * sum;
    }
    const double largest = fl::largest<double>(200, [&](int j) { return sub[j]; });
    const double where = fl::abs(largest) == INFINITY ? 0.0 : largest;
    const double sum = fl::sum<double>(200, [&](int j) { return fl::exp(sub[j] - where); });
    reshape_2[i] = fl::log(sum) + where;
    for (int j = 0; j < 200; ++j) {
      mul[i][j] = fl::exp(sub[j] - reshape_2[i]);
      const double reshape_3 = -mul[i][j] * 0.5;
      for (int k = 0; k < 64; ++k) {
        const double difference = mm[i][j * 64 + k] - reshape[j][k];
        mul_2[i][j][k] = reshape_3 * (difference + difference);
      }
    }
  }
}

void gmm_gradient_part_2(const GmmGradientPart2Weights& weights, const double (&icf)[200][2080],
                         const double (&means)[200][64], const double (&alphas)[200],
                         const double (&x)[1000][64], double (&exp)[200][64],
                         double (&cat)[200][2081], double& reshape_2, double& log_posterior,
                         double (&mul_3)[1000][200], double (&mul_4)[1000][200][64],
                         std::byte* arena) {
  auto& reshape = fl::at<double[200][64]>(arena, 0);
  for (int i = 0; i < 200; ++i) {
    for (int j = 0; j < 64; ++j) {
      exp[i][j] = fl::exp(icf[i][j]);
      cat[i][j] = exp[i][j];
    }
    for (int j = 0; j < 2016; ++j) cat[i][j + 64] = icf[i][j + 64];
    cat[i][2080] = 0.0;
    for (int j = 0; j < 64; ++j)
      reshape[i][j] = fl::sum<double>(
          64, [&](int k) { return cat[i][weights.constant[j * 64 + k]] * means[i][k]; });
  }
  auto& sum = fl::at<double[200]>(arena, 110400);
  auto& add = fl::at<double[200]>(arena, 112000);
  for (int i = 0; i < 200; ++i) {
    sum[i] = fl::sum<double>(64, [&](int j) { return icf[i][j]; });
    add[i] = alphas[i] + sum[i];
  }
  auto& reshape_3 = fl::at<double[1000]>(arena, 102400);
  gmm_gradient_part(weights.gmm_gradient_part, x, cat, reshape, add, reshape_3, mul_3, mul_4,
                    arena + 113600);
  const double largest = fl::largest<double>(200, [&](int i) { return alphas[i]; });
  const double where = fl::abs(largest) == INFINITY ? 0.0 : largest;
  const double sum_3 = fl::sum<double>(200, [&](int i) { return fl::exp(alphas[i] - where); });
  reshape_2 = fl::log(sum_3) + where;
  const double mul = 1000.0 * reshape_2;
  double sum_4 = 0.0;
  for (int i = 0; i < 200; ++i)
    for (int j = 0; j < 64; ++j) sum_4 += exp[i][j] * exp[i][j];
  const double sum_2 = sum_4;
  const double mul_2 = 0.0 * fl::sum<double>(200, [&](int i) { return sum[i]; });
  double sum_5 = 0.0;
  for (int i = 0; i < 200; ++i)
    for (int j = 0; j < 2016; ++j) sum_5 += icf[i][j + 64] * icf[i][j + 64];
  const double sub = 0.5 * (sum_2 + sum_5) - mul_2;
  const double sum_6 = fl::sum<double>(1000, [&](int i) { return reshape_3[i]; });
  log_posterior = sum_6 - mul + sub + 882533.5145654328;
}

void gmm_gradient(const Weights& weights, const double (&alphas)[200],
                  const double (&means)[200][64], const double (&icf)[200][2080],
                  const double (&x)[1000][64], double& log_posterior, double (&d_alphas)[200],
                  double (&d_means)[200][64], double (&d_icf)[200][2080], std::byte* arena) {
  auto& exp = fl::at<double[200][64]>(arena, 112283200);
  auto& cat = fl::at<double[200][2081]>(arena, 108953600);
  double reshape;
  auto& mul = fl::at<double[1000][200]>(arena, 102400000);
  auto& mul_2 = fl::at<double[1000][200][64]>(arena, 0);
  gmm_gradient_part_2(weights.gmm_gradient_part_2, icf, means, alphas, x, exp, cat, reshape,
                      log_posterior, mul, mul_2, arena + 112437184);
  auto& reshape_2 = fl::at<double[200]>(arena, 112435584);
  for (int j = 0; j < 200; ++j) reshape_2[j] = 0.0;
  for (int i = 0; i < 1000; ++i)
    for (int j = 0; j < 200; ++j) reshape_2[j] += mul[i][j];
  auto& permute = fl::at<double[12800][64]>(arena, 102400000);
  fl::product<double>(
      64, 12800, 1000, [&](int i, int k) { return x[k][i]; },
      [&](int k, int j) { return mul_2[k][j / 64][j % 64]; },
      [&](int i, int j, double sum) { permute[j][i] = sum; });
  for (int i = 0; i < 200; ++i)
    d_alphas[i] = (-1000.0) * fl::exp(alphas[i] - reshape) + reshape_2[i];
  auto& index_put = fl::at<double[2081]>(arena, 112385600);
  auto& slice_backward = fl::at<double[2080]>(arena, 112402304);
  auto& slice_backward_2 = fl::at<double[2080]>(arena, 112418944);
  for (int i = 0; i < 200; ++i) {
    double reshape_3[64];
    for (int k = 0; k < 64; ++k) reshape_3[k] = 0.0;
    for (int j = 0; j < 1000; ++j)
      for (int k = 0; k < 64; ++k) reshape_3[k] += -mul_2[j][i][k];
    for (int j = 0; j < 64; ++j)
      d_means[i][j] = fl::sum<double>(
          64, [&](int k) { return cat[i][weights.constant[j + k * 64]] * reshape_3[k]; });
    for (int j = 0; j < 2081; ++j) {
      index_put[j] = 0.0;
      index_put[j] = 0.0;
    }
    for (int j = 0; j < 64; ++j)
      for (int k = 0; k < 64; ++k) {
        double sum = 0.0;
        sum += reshape_3[j] * means[i][k];
        index_put[weights.constant[j * 64 + k]] += sum + permute[i * 64 + j][k];
      }
    for (int j = 0; j < 2080; ++j) slice_backward[j] = 0.0;
    for (int j = 0; j < 2016; ++j)
      slice_backward[j + 64] = 0.5 * (icf[i][j + 64] + icf[i][j + 64]) + index_put[j + 64];
    const double reshape_4 = (-0.0) + reshape_2[i];
    for (int j = 0; j < 2080; ++j) slice_backward_2[j] = 0.0;
    for (int j = 0; j < 64; ++j)
      slice_backward_2[j] = (0.5 * (exp[i][j] + exp[i][j]) + index_put[j]) * exp[i][j] + reshape_4;
    for (int j = 0; j < 2080; ++j) d_icf[i][j] = slice_backward[j] + slice_backward_2[j];
  }
}

}  // namespace gmm_gradient

extern "C" const char* gmm_gradient_entry([[maybe_unused]] const void* const* arguments,
                                          [[maybe_unused]] const void* const* weights,
                                          [[maybe_unused]] void* const* results,
                                          [[maybe_unused]] void* arena,
                                          [[maybe_unused]] uint64_t seed) {
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
