#include "tests/ops/differences.h"

#include <algorithm>
#include <cmath>
#include <random>

#include "composit/ops/native.h"

namespace composit {

namespace {

struct Direction {
  std::string name;
  std::vector<double> steps;  // by element
};

// Each element of a few. Of more, some, and some ways that all elements go, each by 1 or -1: there
// a wrong gradient of any element shows.
std::vector<Direction> directions(size_t elements) {
  constexpr size_t kFew = 6, kElements = 3, kWays = 2;
  std::vector<Direction> all;
  const size_t stride = elements <= kFew ? 1 : elements / kElements;
  for (size_t k = 0; k < elements; k += stride) {
    all.push_back({"elem " + std::to_string(k), std::vector<double>(elements)});
    all.back().steps[k] = 1;
  }
  std::mt19937_64 random(7);
  for (size_t way = 0; way < kWays && elements > kFew; ++way) {
    all.push_back({"way " + std::to_string(way), {}});
    for (size_t k = 0; k < elements; ++k) all.back().steps.push_back(random() % 2 == 0 ? 1 : -1);
  }
  return all;
}

}  // namespace

std::string compare_with_differences(const LazyTensor& value, const LazyTensors& wanted,
                                     const LazyTensors& inputs, const std::vector<Array>& at,
                                     const LazyTensors& gradients, double tolerance) {
  Values here;
  for (size_t i = 0; i < inputs.size(); ++i) here.set(inputs[i], at[i]);
  const auto analytic = evaluate(gradients, here);
  for (size_t i = 0; i < wanted.size(); ++i) {
    const std::vector<double> gradient = elements<double>(analytic[i]);
    double scale = 1;
    for (double g : gradient) scale = std::max(scale, std::isfinite(g) ? std::abs(g) : 1);
    const Array at_input = here[wanted[i]];
    const std::vector<double> x = elements<double>(at_input);
    for (const Direction& direction : directions(x.size())) {
      double h = 1e-5, slope = 0;
      for (size_t k = 0; k < x.size(); ++k) {
        if (direction.steps[k] == 0) continue;
        h = std::max(h, 1e-5 * std::abs(x[k]));
        slope += gradient[k] * direction.steps[k];
      }
      const auto moved = [&](double step) {
        std::vector<double> other = x;
        for (size_t k = 0; k < x.size(); ++k) other[k] += step * direction.steps[k];
        Values there = here;
        there.set(wanted[i], array_of(at_input.type(), other));
        return elements<double>(evaluate({value}, there)[0])[0];
      };
      // Fourth order: the error is of the order of h^4.
      const double difference =
          (8 * (moved(h) - moved(-h)) - (moved(2 * h) - moved(-2 * h))) / (12 * h);
      if (std::abs(difference - slope) > tolerance * scale)
        return "input " + std::to_string(i) + " " + direction.name + ": finite difference " +
               std::to_string(difference) + ", vjp " + std::to_string(slope);
    }
  }
  return "";
}

}  // namespace composit
