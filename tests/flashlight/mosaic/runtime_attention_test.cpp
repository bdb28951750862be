// Blockwise attention of the header of the mosaic backend, and its functions of vectors, against
// loops in double.
#include <type_traits>

#include "flashlight/runtime/attention.hpp"
#include "tests/flashlight/mosaic/runtime_cases.h"

namespace flashlight::mosaic::test {
namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity();

template <class T>
void expect_powers(double most_ulps) {
  constexpr int kLanes = fl::detail::Vectors<T>::kLanes;
  const double lowest = sizeof(T) == 4 ? -125 : -1021, ulp = std::numeric_limits<T>::epsilon();
  T x[kLanes], y[kLanes];
  for (double from = lowest; from <= 0; from += 0.0371) {
    for (int i = 0; i < kLanes; ++i) x[i] = static_cast<T>(std::min(from + i * 0.0013, 0.0));
    fl::detail::store<T>(fl::detail::exp2_of_negative<T>(fl::detail::load(x)), y);
    for (int i = 0; i < kLanes; ++i) {
      const long double exact = std::exp2(static_cast<long double>(x[i]));
      ASSERT_NEAR(static_cast<double>(y[i] / exact), 1, most_ulps * ulp) << x[i];
    }
  }
  const double special[] = {0, lowest - 1, -kInfinity, NAN};
  const double expected[] = {1, 0, 0, NAN};
  for (int i = 0; i < 4; ++i) {
    std::fill(x, x + kLanes, static_cast<T>(special[i]));
    fl::detail::store<T>(fl::detail::exp2_of_negative<T>(fl::detail::load(x)), y);
    EXPECT_TRUE(i == 3 ? std::isnan(y[1]) : y[1] == expected[i]) << special[i] << " -> " << y[1];
  }
}

TEST(RuntimeLanes, HavePowersOfTwo) {
  expect_powers<float>(1.0);
  expect_powers<double>(1.0);
}

template <class T>
void expect_transposed(int64_t rows, int64_t columns) {
  const auto x = whole_numbers<T>(rows * (columns + 2), 1);
  Guarded<T> y(columns, rows);
  fl::detail::transpose(x.data(), columns + 2, rows, columns, y.data(), y.pitch());
  const auto expected = [&](int64_t i, int64_t j) {
    return static_cast<double>(x[static_cast<size_t>(j * (columns + 2) + i)]);
  };
  EXPECT_EQ(y.differences(expected), "") << rows << " x " << columns;
}

TEST(RuntimeLanes, TransposeEverySize) {
  for (const int64_t rows : {1, 3, 4, 7, 8, 15, 16, 17, 32, 50})
    for (const int64_t columns : {1, 2, 4, 8, 9, 16, 31, 40}) {
      expect_transposed<float>(rows, columns);
      expect_transposed<double>(rows, columns);
    }
}

template <class Bias>
double bias_of(const Bias& bias, int64_t query, int64_t key) {
  if constexpr (std::is_same_v<Bias, fl::NoBias>)
    return 0;
  else if constexpr (std::is_same_v<Bias, fl::Causal>)
    return key <= query ? 0 : -kInfinity;
  else
    return static_cast<double>(bias(query, key));
}

// Several heads side by side, queries from first to last, all arrays with rows of their own length.
template <class T, class Element = T, class Operand = Element>
struct Case {
  fl::Attention<T> of;
  int64_t heads;
  std::vector<Element> q, k, v;

  Case(int64_t heads, int64_t queries, int64_t keys, int64_t width, int64_t value_width,
       double scale)
      : of{queries,
           keys,
           width,
           value_width,
           heads * width + (sizeof(Element) == 2 ? 4 : 1),
           heads * width + 2,
           heads * value_width + 3,
           heads * value_width + 3,
           static_cast<T>(scale)},
        heads(heads),
        q(normal_numbers<Element>(queries * of.query_stride, 1)),
        k(normal_numbers<Element>(keys * of.key_stride, 2)),
        v(normal_numbers<Element>(keys * of.value_stride, 3)) {}

  template <class Bias>
  std::vector<double> expected(int64_t query, int64_t head, const Bias& bias) const {
    std::vector<double> scores, result(static_cast<size_t>(of.value_width), 0.0);
    double largest = -kInfinity, sum = 0;
    for (int64_t key = 0; key < of.keys; ++key) {
      double score = 0;
      for (int64_t i = 0; i < of.width; ++i)
        score +=
            static_cast<double>(
                q[static_cast<size_t>(query * of.query_stride + head * of.width + i)]) *
            static_cast<double>(k[static_cast<size_t>(key * of.key_stride + head * of.width + i)]);
      scores.push_back(score * static_cast<double>(of.scale) + bias_of(bias, query, key));
      largest = std::max(largest, scores.back());
    }
    for (int64_t key = 0; key < of.keys; ++key) {
      const double weight = std::exp(scores[static_cast<size_t>(key)] - largest);
      sum += weight;
      for (int64_t i = 0; weight != 0 && i < of.value_width; ++i)
        result[static_cast<size_t>(i)] +=
            weight * static_cast<double>(
                         v[static_cast<size_t>(key * of.value_stride + head * of.value_width + i)]);
    }
    for (double& x : result) x = of.gives_zeros && largest == -kInfinity ? 0 : x / sum;
    return result;
  }

  template <class Bias>
  void expect_right(const Bias& bias, int threads, double times = 4) const {
    Guarded<Element> y(of.queries, heads * of.value_width);
    fl::run_team(threads, [&](const fl::Team& team) {
      fl::attend_all<T, Element, Operand>(
          team, of, heads,
          [&](int64_t head) -> fl::Heads<Element> {
            return {q.data() + head * of.width, k.data() + head * of.width,
                    v.data() + head * of.value_width, y.data() + head * of.value_width};
          },
          [&](int64_t) { return bias; });
    });
    std::vector<std::vector<double>> all;
    for (int64_t query = 0; query < of.queries; ++query)
      for (int64_t head = 0; head < heads; ++head) all.push_back(expected(query, head, bias));
    const auto element = [&](int64_t query, int64_t i) {
      return all[static_cast<size_t>(query * heads + i / of.value_width)]
                [static_cast<size_t>(i % of.value_width)];
    };
    EXPECT_EQ(y.differences(element, times, sizeof(Operand)), "")
        << of.queries << " x " << of.keys << " x " << of.width << " -> " << of.value_width;
  }
};

TEST(RuntimeAttention, HasEverySize) {
  const auto bias = [](int64_t query, int64_t key) {
    return (query + key) % 5 == 1 ? -kInfinity : 0.1 * static_cast<double>((query * 3 + key) % 7);
  };
  const int64_t widths[][2] = {{64, 64}, {40, 8}, {3, 5}, {1, 1}, {17, 33}};
  for (const int64_t queries : {1, 4, 5, 7, 8, 16, 17, 33, 70})
    for (const int64_t keys : {1, 3, 77, 141, 300})
      for (const auto& [width, value_width] : widths) {
        const int threads = keys == 77 ? 3 : 1;
        const Case<float> one(2, queries, keys, width, value_width, 0.3);
        one.expect_right(fl::NoBias(), threads);
        one.expect_right(fl::Causal(), threads);
        if (keys > 1)
          one.expect_right([&](int64_t i, int64_t j) { return static_cast<float>(bias(i, j)); },
                           threads);
        if (keys == 141) {
          const Case<double> wide(1, queries, keys, width, value_width, 0.3);
          wide.expect_right(fl::NoBias(), threads);
          wide.expect_right(fl::Causal(), threads);
          wide.expect_right(bias, threads);
        }
      }
}

// The same of 16-bit floats, whose weights may be rounded as well.
template <class Half, class Operand = Half>
void expect_every_size_of() {
  const int64_t widths[][2] = {{64, 64}, {40, 8}, {4, 5}, {2, 1}, {18, 33}};
  const auto bias = [](int64_t query, int64_t key) {
    return (query + key) % 5 == 1 ? -kInfinity : 0.1 * static_cast<double>((query * 3 + key) % 7);
  };
  for (const int64_t queries : {1, 4, 5, 7, 8, 16, 17, 33, 70})
    for (const int64_t keys : {1, 2, 77, 141, 300})
      for (const auto& [width, value_width] : widths) {
        const Case<float, Half, Operand> one(2, queries, keys, width, value_width, 0.3);
        one.expect_right(fl::NoBias(), keys == 77 ? 3 : 1, 1);
        one.expect_right(fl::Causal(), 1, 1);
        if (keys > 2) one.expect_right(bias, 1, 1);
      }
}
TEST(RuntimeAttention, HasEverySizeOf16Bits) {
  expect_every_size_of<fl::bfloat16>();
  expect_every_size_of<fl::float16>();
}
TEST(RuntimeAttention, RoundsNumbers) { expect_every_size_of<float, fl::bfloat16>(); }
TEST(RuntimeAttention, CarriesNaNOf16Bits) {
  Case<float, fl::bfloat16> one(1, 40, 201, 8, 20, 0.5);
  one.q[static_cast<size_t>(7 * one.of.query_stride + 3)] = NAN;
  one.expect_right(fl::NoBias(), 1, 1);
  Case<float, fl::bfloat16> other(1, 40, 201, 8, 20, 0.5);
  other.v[static_cast<size_t>(200 * other.of.value_stride + 3)] = INFINITY;
  other.expect_right(fl::NoBias(), 1, 1);
  const auto none = [](int64_t query, int64_t) { return query % 2 == 0 ? -kInfinity : 0.0; };
  Case<float, fl::bfloat16>(1, 40, 9, 8, 20, 0.5).expect_right(none, 1, 1);
}

// Nothing of the other queries is touched.
TEST(RuntimeAttention, HasSomeOfTheQueries) {
  const Case<float> one(1, 60, 30, 8, 9, 0.5);
  Guarded<float> y(60, 9);
  fl::attend(one.of, one.q.data(), one.k.data(), one.v.data(), y.data(), 20, 55, fl::Causal());
  const auto element = [&](int64_t query, int64_t i) {
    return query < 20 || query >= 55 ? NAN
                                     : one.expected(query, 0, fl::Causal())[static_cast<size_t>(i)];
  };
  EXPECT_EQ(y.differences(element, 4), "");
}

TEST(RuntimeAttention, WithoutAnyKeyIsNaN) {
  const auto bias = [](int64_t query, int64_t) { return query % 2 == 0 ? -kInfinity : 0.0; };
  Case<float>(2, 35, 160, 8, 20, 0.5).expect_right(bias, 1);
  Case<float>(2, 35, 0, 8, 20, 0.5).expect_right(fl::NoBias(), 1);
}

TEST(RuntimeAttention, WithoutAnyKeyGivesZerosWhereAsked) {
  const auto bias = [](int64_t query, int64_t key) {
    return query % 2 == 0 || key % 3 == 0 ? -kInfinity : 0.0;
  };
  for (const int64_t keys : {0, 5, 160}) {
    Case<float> one(2, 35, keys, 8, 20, 0.5);
    one.of.gives_zeros = true;
    one.expect_right(bias, 1);
  }
}

// A block of keys that do not count comes before others.
TEST(RuntimeAttention, HasBlocksWithoutAnyKey) {
  const auto bias = [](int64_t query, int64_t key) { return key < query * 10 ? -kInfinity : 0.0; };
  Case<float>(1, 40, 400, 8, 20, 0.5).expect_right(bias, 1);
  const auto reversed = [](int64_t query, int64_t key) {
    return key > query * 10 ? -kInfinity : 0.0;
  };
  Case<float>(1, 40, 400, 8, 20, 0.5).expect_right(reversed, 1);
}

TEST(RuntimeAttention, CarriesNaN) {
  Case<float> one(1, 40, 200, 8, 20, 0.5);
  one.q[static_cast<size_t>(7 * one.of.query_stride + 3)] = NAN;
  one.expect_right(fl::NoBias(), 1);
}

TEST(RuntimeAttention, HasLargeScores) {
  Case<float>(1, 40, 200, 8, 20, 1000).expect_right(fl::NoBias(), 1, 400);  // scores have errors
  for (const double scale : {0.0, 1e-20})
    Case<float>(1, 40, 200, 8, 20, scale).expect_right(fl::NoBias(), 1);
}

TEST(RuntimeAttention, IsAccurateForManyKeys) {
  Case<float>(1, 8, 6000, 16, 16, 0.25).expect_right(fl::NoBias(), 1, 1);
}

}  // namespace
}  // namespace flashlight::mosaic::test
