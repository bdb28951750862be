#include "tests/ops/differences.h"

#include <algorithm>
#include <cmath>

#include "composit/ops/native.h"

namespace composit {

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
    const size_t stride = std::max<size_t>(1, x.size() / 12);
    for (size_t k = 0; k < x.size(); k += stride) {
      const double h = 1e-5 * std::max(1.0, std::abs(x[k]));
      const auto moved = [&](double step) {
        std::vector<double> other = x;
        other[k] += step;
        Values there = here;
        there.set(wanted[i], array_of(at_input.type(), other));
        return elements<double>(evaluate({value}, there)[0])[0];
      };
      // Fourth order: the error is of the order of h^4.
      const double difference =
          (8 * (moved(h) - moved(-h)) - (moved(2 * h) - moved(-2 * h))) / (12 * h);
      if (std::abs(difference - gradient[k]) > tolerance * scale)
        return "input " + std::to_string(i) + " elem " + std::to_string(k) +
               ": finite difference " + std::to_string(difference) + ", vjp " +
               std::to_string(gradient[k]);
    }
  }
  return "";
}

}  // namespace composit
