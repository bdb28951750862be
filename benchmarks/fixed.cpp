// Products of small matrices whose sizes are types, beside intrinsics written by hand.
//
//   ./dev bench fixed
#include "flashlight/fixed/fixed.h"

#include <cmath>
#include <cstdio>
#include <random>
#include <string>

#include "benchmarks/fixed_by_hand.h"
#include "benchmarks/report.h"

#if defined(__AVX2__) && defined(__FMA__)
namespace {

using benchmarks::Report;
using flashlight::fixed::Tensor;

constexpr int kRounds = 200, kCalls = 20'000;

template <class F>
double seconds_of_calls(const F& f) {
  return benchmarks::seconds([&] {
    for (int i = 0; i < kCalls; ++i) {
      f();
      asm volatile("" ::: "memory");  // each call reads and writes memory
    }
  });
}

template <int kSide, class ByHand>
void measure(Report& report, const ByHand& by_hand) {
  using Matrix = Tensor<float, kSide, kSide>;
  std::mt19937 generator(1);
  std::uniform_real_distribution<float> number(-1, 1);
  Matrix a, b, c, d;
  for (Matrix* one : {&a, &b})
    for (float& element : *one) element = number(generator);
  std::vector<double> ours, theirs;
  for (int round = 0; round < kRounds; ++round) {
    theirs.push_back(seconds_of_calls([&] { by_hand(a.data(), b.data(), c.data()); }));
    ours.push_back(seconds_of_calls([&] { d = matmul(a, b); }));
  }
  double difference = 0;
  for (int i = 0; i < kSide * kSide; ++i)
    difference = std::max(difference, std::abs(double(c.data()[i]) - double(d.data()[i])));
  const std::string name = std::to_string(kSide) + "x" + std::to_string(kSide);
  report.raw(name, "by hand", theirs);
  report.raw(name, "fixed", ours);
  std::printf("%s: %.2f ns by hand, %.2f ns ours, largest difference %.1e\n", name.c_str(),
              benchmarks::minimum(theirs) / kCalls * 1e9, benchmarks::minimum(ours) / kCalls * 1e9,
              difference);
  report.target(name + ": ours / by hand, least", "<=", 1.2,
                benchmarks::minimum(ours) / benchmarks::minimum(theirs));
  report.target(name + ": ours / by hand, median", "<=", 1.2,
                benchmarks::median_ratio(ours, theirs));
  report.target(name + ": largest difference", "<=", kSide * 1e-6, difference);
}

}  // namespace

int main() {
  Report report("fixed");
  measure<4>(report, benchmarks::product_4_by_hand);
  measure<8>(report, benchmarks::product_8_by_hand);
  measure<16>(report, benchmarks::product_16_by_hand);
  measure<32>(report, benchmarks::product_32_by_hand);
  return report.finish();
}
#else
int main() {
  std::puts("bench_fixed: the intrinsics it compares with are those of AVX2 and AVX-512");
  return 2;
}
#endif
