#include "examples/fits/fits.h"

#include <cmath>
#include <numbers>

#include "composit/ops/native.h"
#include "examples/objectives/uniform.h"

namespace fits {

composit::Array array(std::vector<int64_t> sizes, const std::vector<double>& elements) {
  return composit::array_of<double>(
      composit::tensor_type(composit::DType::float64, {sizes.begin(), sizes.end()}), elements);
}

std::vector<double> numbers(const composit::Array& array) {
  return composit::elements<double>(array);
}

std::vector<double> linspace(double low, double high, int count) {
  std::vector<double> x;
  for (int i = 0; i < count; ++i) x.push_back(low + (high - low) * i / (count - 1));
  return x;
}

std::vector<double> normal(int64_t count, uint64_t seed) {
  const auto uniform = numbers(objectives::uniform({.sizes = {count, 2}, .seed = seed}));
  std::vector<double> result;
  for (size_t i = 0; i < static_cast<size_t>(count); ++i)
    result.push_back(std::sqrt(-2 * std::log1p(-uniform[2 * i])) *
                     std::cos(2 * std::numbers::pi * uniform[2 * i + 1]));
  return result;
}

Adam::Adam(objectives::Problem problem, double rate)
    : problem_(std::move(problem)),
      gradient_(flashlight::cpp::compile(problem_.gradient, {.name = problem_.name})),
      rate_(rate),
      moments_(problem_.gradient.outputs().size() - 1) {}

double Adam::step() {
  constexpr double kFirst = 0.9, kSecond = 0.999, kEpsilon = 1e-8;
  const std::vector<composit::Array> results = gradient_(problem_.inputs);
  ++steps_;
  const double first_bias = 1 - std::pow(kFirst, steps_),
               second_bias = 1 - std::pow(kSecond, steps_);
  for (size_t parameter = 0; parameter < moments_.size(); ++parameter) {
    composit::Array& input = problem_.inputs[parameter];
    std::vector<double> x = numbers(input);
    const std::vector<double> gradient = numbers(results[1 + parameter]);
    auto& [first, second] = moments_[parameter];
    first.resize(x.size());
    second.resize(x.size());
    for (size_t i = 0; i < x.size(); ++i) {
      first[i] += (1 - kFirst) * (gradient[i] - first[i]);
      second[i] += (1 - kSecond) * (gradient[i] * gradient[i] - second[i]);
      x[i] -= rate_ * (first[i] / first_bias) / (std::sqrt(second[i] / second_bias) + kEpsilon);
    }
    input = composit::array_of<double>(input.type(), x);
  }
  return numbers(results[0])[0];
}

}  // namespace fits
