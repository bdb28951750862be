// Random numbers as the generator of LibTorch 2.13 for the CPU draws them, to the bit.
//
//   fl::Generator generator(42);               // torch.manual_seed(42)
//   fl::draw_normal(generator, 0.0, 1.0, x);   // torch.randn, of as many elements as the array x
//
// M. Matsumoto and T. Nishimura, "Mersenne Twister: a 623-dimensionally equidistributed uniform
// pseudo-random number generator" (1998); G. Box and M. Muller, "A Note on the Generation of Random
// Normal Deviates" (1958). The last bits of 16 normal numbers of float and more are those that
// LibTorch has on processors with AVX2.
#pragma once

#include <algorithm>
#include <vector>

#include "flashlight/runtime/flashlight.hpp"

namespace fl {

namespace detail {

constexpr double kPi = 3.14159265358979323846;

// The type that real numbers of type T are drawn in.
template <class T>
using Drawn = std::conditional_t<std::is_same_v<T, double>, double, float>;

// Binary digits of a real number.
template <class T>
constexpr int kDigits = std::numeric_limits<T>::digits;
template <>
inline constexpr int kDigits<float16> = 11;
template <>
inline constexpr int kDigits<bfloat16> = 8;

// A whole number as T.
template <class T, class From>
T from_whole(From x) {
  return static_cast<T>(static_cast<Computed<T>>(x));
}

}  // namespace detail

// The generator that torch.manual_seed sets. A copy continues where the original is.
class Generator {
 public:
  // All there is to know of it: LibTorch's generator, handed over, goes on here.
  struct State {
    static constexpr int kWords = 624;
    uint32_t words[kWords];
    int next = kWords;  // the word for the next draw; all are used: new ones are made
    double second_normal = 0;
    bool has_second_normal = false;
  };

  explicit Generator(uint64_t seed) {
    state_.words[0] = static_cast<uint32_t>(seed);
    for (int i = 1; i < State::kWords; ++i) {
      const uint32_t before = state_.words[i - 1];
      state_.words[i] = 1812433253u * (before ^ (before >> 30)) + static_cast<uint32_t>(i);
    }
  }
  explicit Generator(const State& state) : state_(state) {}
  const State& state() const { return state_; }

  uint32_t random() {
    if (state_.next == State::kWords) make_words();
    return tempered(state_.words[state_.next++]);
  }
  // The results of this number of calls of random().
  void random(uint32_t* to, int count) {
    while (count > 0) {
      if (state_.next == State::kWords) make_words();
      const int some = std::min(count, State::kWords - state_.next);
      for (int i = 0; i < some; ++i) to[i] = tempered(state_.words[state_.next + i]);
      state_.next += some;
      to += some;
      count -= some;
    }
  }
  uint64_t random64() {
    const uint64_t high = random();
    return high << 32 | random();
  }
  // In [0, 1): 53 bits for double, 24 for others.
  template <class T>
  T uniform() {
    if constexpr (std::is_same_v<T, double>)
      return static_cast<double>(random64() & ((uint64_t{1} << 53) - 1)) * 0x1p-53;
    else
      return static_cast<float>(random() & ((uint32_t{1} << 24) - 1)) * 0x1p-24f;
  }
  // A normal number of mean 0 and variance 1. They come in pairs, of which the second one is kept.
  double normal() {
    if (state_.has_second_normal) {
      state_.has_second_normal = false;
      return state_.second_normal;
    }
    const double turn = 2 * detail::kPi * uniform<double>();
    const double radius = std::sqrt(-2 * std::log1p(-uniform<double>()));
    state_.second_normal = radius * std::sin(turn);
    state_.has_second_normal = true;
    return radius * std::cos(turn);
  }

 private:
  static uint32_t tempered(uint32_t bits) {
    bits ^= bits >> 11;
    bits ^= (bits << 7) & 0x9d2c5680u;
    bits ^= (bits << 15) & 0xefc60000u;
    return bits ^ (bits >> 18);
  }
  static uint32_t twisted(uint32_t word, uint32_t next, uint32_t far) {
    const uint32_t bits = (word & 0x80000000u) | (next & 0x7fffffffu);
    return far ^ (bits >> 1) ^ ((0u - (bits & 1)) & 0x9908b0dfu);
  }
  // Without a remainder in the index, so that compilers make vectors of it.
  void make_words() {
    constexpr int kWords = State::kWords, kApart = 397, kBack = kWords - kApart;
    uint32_t* const words = state_.words;
    for (int i = 0; i < kBack; ++i) words[i] = twisted(words[i], words[i + 1], words[i + kApart]);
    for (int i = kBack; i < kWords - 1; ++i)
      words[i] = twisted(words[i], words[i + 1], words[i - kBack]);
    words[kWords - 1] = twisted(words[kWords - 1], words[0], words[kApart - 1]);
    state_.next = 0;
  }

  State state_;
};

// The generator starts anew, as by torch.manual_seed within a program.
inline void seed(Generator& generator, uint64_t seed) { generator = Generator(seed); }

// ---- real numbers -------------------------------------------------------------------------------

template <class T, std::size_t kCount>
void draw_uniform(Generator& generator, double from, double to, T (&x)[kCount]) {
  using Drawn = detail::Drawn<T>;
  const auto low = static_cast<Drawn>(from), high = static_cast<Drawn>(to);
  for (T& one : x) {
    const auto value = static_cast<T>(std::fma(generator.uniform<Drawn>(), high - low, low));
    one = value == static_cast<T>(high) ? static_cast<T>(low) : value;
  }
}

namespace detail {

// The logarithm, sine and cosine that LibTorch takes for float, with its roundings: S. Moshier's
// Cephes library, logf.c and sinf.c, for x in (0, 1] and in [0, 2 pi].
inline float cephes_log(float x) {
  int exponent = 0;
  float fraction = std::frexp(x, &exponent);
  if (fraction < 0.70710678118654752f) {
    fraction += fraction;
    --exponent;
  }
  const float r = fraction - 1, square = r * r, e = static_cast<float>(exponent);
  float y = 7.0376836292e-2f;
  for (const float c : {-1.1514610310e-1f, 1.1676998740e-1f, -1.2420140846e-1f, 1.4249322787e-1f,
                        -1.6668057665e-1f, 2.0000714765e-1f, -2.4999993993e-1f, 3.3333331174e-1f})
    y = std::fma(y, r, c);
  y = std::fma(y * r, square, e * -2.12194440e-4f);
  y = std::fma(square, -0.5f, y);
  return std::fma(e, 0.693359375f, r + y);
}

struct SineCosine {
  float sine, cosine;
};
inline SineCosine cephes_sine_cosine(float x) {
  const int octant = (static_cast<int>(x * 1.27323954473516f) + 1) & ~1;
  const auto turns = static_cast<float>(octant);
  float r = std::fma(turns, -0.78515625f, x);
  r = std::fma(turns, -2.4187564849853515625e-4f, r);
  r = std::fma(turns, -3.77489497744594108e-8f, r);
  const float z = r * r;
  float even = std::fma(2.443315711809948e-5f, z, -1.388731625493765e-3f);
  even = std::fma(even, z, 4.166664568298827e-2f);
  even = std::fma(even * z, z, z * -0.5f) + 1;
  float odd = std::fma(-1.9515295891e-4f, z, 8.3321608736e-3f);
  odd = std::fma(odd, z, -1.6666654611e-1f);
  odd = std::fma(odd * z, r, r);
  const bool swapped = (octant & 2) != 0;
  const float sine = swapped ? even : odd, cosine = swapped ? odd : even;
  return {(octant & 4) != 0 ? -sine : sine, ((octant + 2) & 4) != 0 ? -cosine : cosine};
}

inline void box_muller(float first, float second, float& x, float& y) {
  const float radius = std::sqrt(-2 * cephes_log(1 - first));
  const SineCosine at = cephes_sine_cosine(static_cast<float>(2 * kPi) * second);
  x = radius * at.cosine;
  y = radius * at.sine;
}
inline void box_muller(double first, double second, double& x, double& y) {
  const double radius = std::sqrt(-2 * std::log(1 - first)), turn = 2 * kPi * second;
  x = radius * std::cos(turn);
  y = radius * std::sin(turn);
}

// 16 normal numbers of 16 uniform ones.
template <class T, class To>
void draw_sixteen(Generator& generator, T mean, T deviation, To* to) {
  T uniform[16];
  for (T& one : uniform) one = generator.uniform<T>();
  for (int i = 0; i < 8; ++i) {
    T x, y;
    box_muller(uniform[i], uniform[i + 8], x, y);
    to[i] = static_cast<To>(std::fma(x, deviation, mean));
    to[i + 8] = static_cast<To>(std::fma(y, deviation, mean));
  }
}

}  // namespace detail

// One by one, as LibTorch draws into memory that is not row-major.
template <class T, std::size_t kCount>
void draw_normal_singly(Generator& generator, double mean, double deviation, T (&x)[kCount]) {
  for (T& one : x)
    one = static_cast<T>(
        static_cast<detail::Drawn<T>>(std::fma(generator.normal(), deviation, mean)));
}

// 16 elements or more are drawn in blocks of 16; a remainder redraws the last 16, as LibTorch does.
template <class T, std::size_t kCount>
void draw_normal(Generator& generator, double mean, double deviation, T (&x)[kCount]) {
  using Drawn = detail::Drawn<T>;
  if constexpr (kCount < 16) {
    draw_normal_singly(generator, mean, deviation, x);
  } else {
    const auto average = static_cast<Drawn>(mean), scale = static_cast<Drawn>(deviation);
    for (std::size_t i = 0; i + 16 <= kCount; i += 16)
      detail::draw_sixteen(generator, average, scale, x + i);
    constexpr std::size_t kLeft = kCount % 16;
    if constexpr (kLeft > 0) {
      for (std::size_t i = 0; sizeof(T) > 2 && i < kLeft; ++i) generator.uniform<Drawn>();
      detail::draw_sixteen(generator, average, scale, x + (kCount - 16));
    }
  }
}

template <class T, std::size_t kCount>
void draw_exponential(Generator& generator, double rate, T (&x)[kCount]) {
  for (T& one : x)
    one = static_cast<T>(
        static_cast<detail::Drawn<T>>(-1 / rate * std::log1p(-generator.uniform<double>())));
}

template <class T, std::size_t kCount>
void draw_cauchy(Generator& generator, double median, double scale, T (&x)[kCount]) {
  for (T& one : x) {
    const double slope = std::tan(detail::kPi * (generator.uniform<double>() - 0.5));
    one = static_cast<T>(static_cast<detail::Drawn<T>>(std::fma(scale, slope, median)));
  }
}

// Numbers whose logarithms have this mean and this deviation.
template <class T, std::size_t kCount>
void draw_log_normal(Generator& generator, double mean, double deviation, T (&x)[kCount]) {
  for (T& one : x)
    one = static_cast<T>(
        static_cast<detail::Drawn<T>>(std::exp(std::fma(generator.normal(), deviation, mean))));
}

// ---- whole numbers ------------------------------------------------------------------------------

// 1 with probability `p`, and 0.
template <class T, std::size_t kCount>
void draw_bernoulli(Generator& generator, double p, T (&x)[kCount]) {
  // uniform<double>() < p, in whole numbers: 53 bits are below p * 2^53.
  const uint64_t limit = p >= 0 ? static_cast<uint64_t>(std::ceil(std::fmin(p, 1) * 0x1p53)) : 0;
  constexpr std::size_t kBlock = 256;
  uint32_t words[2 * kBlock];
  for (std::size_t first = 0; first < kCount; first += kBlock) {
    const std::size_t count = std::min(kBlock, kCount - first);
    generator.random(words, static_cast<int>(2 * count));
    for (std::size_t i = 0; i < count; ++i) {
      const uint64_t bits = uint64_t{words[2 * i] & 0x1fffffu} << 32 | words[2 * i + 1];
      x[first + i] = detail::from_whole<T>(bits < limit);
    }
  }
}
// One probability per element.
template <class P, class T, std::size_t kCount>
void draw_bernoulli(Generator& generator, const P (&p)[kCount], T (&x)[kCount]) {
  using Drawn = detail::Drawn<P>;
  for (std::size_t i = 0; i < kCount; ++i) {
    const auto chance = static_cast<Drawn>(p[i]);
    if (!(chance >= 0 && chance <= 1)) throw std::domain_error("a probability is not in [0, 1]");
    x[i] = detail::from_whole<T>(generator.uniform<Drawn>() < chance);
  }
}

// The number of trials until one of probability `p` succeeds.
template <class T, std::size_t kCount>
void draw_geometric(Generator& generator, double p, T (&x)[kCount]) {
  for (T& one : x) {
    const double chance = generator.uniform<double>();
    one = detail::from_whole<T>(std::ceil(std::log(chance) / std::log1p(-p)));
  }
}

// In [from, to).
template <class T, std::size_t kCount>
void draw_integers(Generator& generator, int64_t from, int64_t to, T (&x)[kCount]) {
  const uint64_t range = static_cast<uint64_t>(to) - static_cast<uint64_t>(from);
  for (T& one : x) {
    const uint64_t bits = range >= uint64_t{1} << 28 ? generator.random64() : generator.random();
    one = detail::from_whole<T>(static_cast<int64_t>(bits % range + static_cast<uint64_t>(from)));
  }
}

// As torch.Tensor.random_() without bounds: below 2^63 for int64, no more than T can count to.
template <class T, std::size_t kCount>
void draw_integers(Generator& generator, T (&x)[kCount]) {
  constexpr bool kLong = std::is_same_v<T, double> || std::is_same_v<T, int64_t>;
  uint64_t count;
  if constexpr (std::is_integral_v<T>)
    count = static_cast<uint64_t>(std::numeric_limits<T>::max()) + 1;
  else
    count = (uint64_t{1} << detail::kDigits<T>)+1;
  for (T& one : x) {
    const uint64_t bits = kLong ? generator.random64() : generator.random();
    one = detail::from_whole<T>(bits % count);
  }
}

// With return: per row of weights `p`, `count` places, each by its share of the sum.
template <class P, std::size_t kWeights, std::size_t kDrawn>
void draw_multinomial(Generator& generator, const P (&p)[kWeights], int64_t rows, int64_t count,
                      int64_t (&x)[kDrawn]) {
  const int64_t places = static_cast<int64_t>(kWeights) / rows;
  std::vector<P> shares(static_cast<std::size_t>(places));  // of all up to here
  for (int64_t row = 0; row < rows; ++row) {
    P sum = 0;
    for (int64_t i = 0; i < places; ++i) {
      const P weight = p[row * places + i];
      if (!(weight >= 0) || std::isinf(weight))
        throw std::domain_error("a weight is negative, infinite or NaN");
      shares[static_cast<std::size_t>(i)] = sum += weight;
    }
    if (!(sum > 0)) throw std::domain_error("all weights are 0");
    for (P& share : shares) share /= sum;
    shares.back() = 1;
    for (int64_t i = 0; i < count; ++i)
      x[row * count + i] =
          std::lower_bound(shares.begin(), shares.end(), generator.uniform<double>()) -
          shares.begin();
  }
}

// The numbers below kCount in an order of chance.
template <class T, std::size_t kCount>
void draw_permutation(Generator& generator, T (&x)[kCount]) {
  for (std::size_t i = 0; i < kCount; ++i) x[i] = detail::from_whole<T>(i);
  for (std::size_t i = 0; i + 1 < kCount; ++i)
    std::swap(x[i], x[i + generator.random() % (kCount - i)]);
}

}  // namespace fl
