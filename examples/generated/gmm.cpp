#include "flashlight.hpp"

namespace gmm {

struct Weights {
  const int64_t* constant;
};

void gmm(const Weights& weights, const double (&alphas)[200], const double (&means)[200][64],
         const double (&icf)[200][2080], const double (&x)[1000][64], double& log_posterior,
         std::byte* arena) {
  auto& exp = fl::at<double[200][64]>(arena, 105729600);
  auto& cat = fl::at<double[200][2081]>(arena, 102400000);
  auto& reshape = fl::at<double[200][64]>(arena, 105832000);
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
  auto& sum = fl::at<double[200]>(arena, 105934400);
  auto& add = fl::at<double[200]>(arena, 105936000);
  for (int i = 0; i < 200; ++i) {
    sum[i] = fl::sum<double>(64, [&](int j) { return icf[i][j]; });
    add[i] = alphas[i] + sum[i];
  }
  auto& mm = fl::at<double[1000][12800]>(arena, 0);
  fl::product<double>(
      1000, 12800, 64, [&](int i, int k) { return x[i][k]; },
      [&](int k, int j) { return cat[j / 64][weights.constant[j % 64 * 64 + k]]; },
      [&](int i, int j, double sum_4) { mm[i][j] = sum_4; });
  auto& reshape_2 = fl::at<double[1000]>(arena, 102400000);
  for (int i = 0; i < 1000; ++i) {
    double sub[200];
    for (int j = 0; j < 200; ++j) {
      const double sum_4 = fl::sum<double>(64, [&](int k) {
        const double difference = mm[i][j * 64 + k] - reshape[j][k];
        return difference * difference;
      });
      sub[j] = add[j] - 0.5 * sum_4;
    }
    const double largest = fl::largest<double>(200, [&](int j) { return sub[j]; });
    const double where_2 = fl::abs(largest) == INFINITY ? 0.0 : largest;
    const double sum_4 = fl::sum<double>(200, [&](int j) { return fl::exp(sub[j] - where_2); });
    reshape_2[i] = fl::log(sum_4) + where_2;
  }
  const double largest = fl::largest<double>(200, [&](int i) { return alphas[i]; });
  const double where = fl::abs(largest) == INFINITY ? 0.0 : largest;
  const double sum_2 = fl::sum<double>(1000, [&](int i) { return reshape_2[i]; });
  double sum_4 = 0.0;
  for (int i = 0; i < 200; ++i)
    for (int j = 0; j < 64; ++j) sum_4 += exp[i][j] * exp[i][j];
  const double sum_3 = sum_4;
  const double mul = 0.0 * fl::sum<double>(200, [&](int i) { return sum[i]; });
  double sum_5 = 0.0;
  for (int i = 0; i < 200; ++i)
    for (int j = 0; j < 2016; ++j) sum_5 += icf[i][j + 64] * icf[i][j + 64];
  const double sub_2 = 0.5 * (sum_3 + sum_5) - mul;
  const double sum_6 = fl::sum<double>(200, [&](int i) { return fl::exp(alphas[i] - where); });
  log_posterior = sum_2 - 1000.0 * (fl::log(sum_6) + where) + sub_2 + 882533.5145654328;
}

}  // namespace gmm

extern "C" const char* gmm_entry([[maybe_unused]] const void* const* arguments,
                                 [[maybe_unused]] const void* const* weights,
                                 [[maybe_unused]] void* const* results,
                                 [[maybe_unused]] void* arena, [[maybe_unused]] uint64_t seed) {
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
