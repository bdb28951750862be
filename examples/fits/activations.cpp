#include <spdlog/fmt/fmt.h>

#include <cmath>
#include <numbers>

#include "composit/ad/functional.h"
#include "composit/ops/functions.h"
#include "composit/ops/vmap.h"
#include "examples/fits/fits.h"
#include "examples/objectives/sqrl.h"

namespace fits {

using composit::DType;
using composit::Graph;
using composit::LazyTensor;
using composit::LazyTensors;

Outcome gelu() {
  const auto one = [](const LazyTensors& x) {
    return LazyTensors{0.5 * x[0] * (1.0 + erf(x[0] * std::numbers::sqrt2 / 2.0))};
  };
  const std::vector<double> x = linspace(-4, 4, 401);
  const auto count = static_cast<int64_t>(x.size());
  const LazyTensor input = composit::input("x", composit::tensor_type(DType::float64, {count}));
  const auto [y, back] = composit::vjp(composit::vmap(one), {input});
  const LazyTensor slope = back({ones_like(y[0])})[0];
  const auto compiled = flashlight::cpp::compile(
      Graph({.inputs = {input}, .outputs = {y[0], slope}}), {.name = "gelu"});
  const auto results = compiled({array({count}, x)});

  // The derivative is the distribution function of the standard normal plus x times its density.
  double worst = 0;
  const std::vector<double> slopes = numbers(results[1]);
  for (size_t i = 0; i < x.size(); ++i) {
    const double density = std::exp(-x[i] * x[i] / 2) / std::sqrt(2 * std::numbers::pi);
    const double expected = 0.5 * std::erfc(-x[i] / std::numbers::sqrt2) + x[i] * density;
    worst = std::max(worst, std::abs(slopes[i] - expected));
  }
  Outcome outcome = {"gelu",
                     fmt::format("gelu: the derivative differs by {:.1e} from the formula", worst),
                     worst < 1e-14, examples::Plot("gelu, mapped over a vector", "x")};
  outcome.plot.line("gelu(x)", x, numbers(results[0]));
  outcome.plot.line("its derivative", x, slopes);
  return outcome;
}

// Along s times a matrix: its sum has the sign of s.
Outcome sqrl() {
  constexpr size_t kSide = 4;
  const auto pattern = [](size_t i) { return 1 + 0.5 * std::sin(static_cast<double>(i)); };
  const std::vector<double> scales = linspace(-3, 3, 301);
  std::vector<double> matrices;
  for (const double s : scales)
    for (size_t i = 0; i < kSide * kSide; ++i) matrices.push_back(s * pattern(i));
  const auto count = static_cast<int64_t>(scales.size());
  const auto problem =
      objectives::sqrl_problem({.batch = count, .rows = kSide, .columns = kSide}, DType::float64);
  const auto value = flashlight::cpp::compile(problem.objective, {.name = "sqrl"});
  const auto gradient = flashlight::cpp::compile(problem.gradient, {.name = "sqrl_gradient"});
  const std::vector<composit::Array> inputs = {array({count, kSide, kSide}, matrices),
                                               array({count}, std::vector(scales.size(), 1.0))};
  const std::vector<double> y = numbers(value(inputs)[0]), slopes = numbers(gradient(inputs)[0]);

  // Along s: the gradient times the matrix that s scales.
  std::vector<double> along(scales.size());
  for (size_t i = 0; i < scales.size(); ++i)
    for (size_t j = 0; j < kSide * kSide; ++j)
      along[i] += slopes[i * kSide * kSide + j] * pattern(j);
  // Central differences of fourth order; at 0 there is no derivative.
  double worst = 0;
  const double h = scales[1] - scales[0];
  for (size_t i = 2; i + 2 < scales.size(); ++i) {
    if (std::abs(scales[i]) < 3 * h) continue;
    const double difference = (8 * (y[i + 1] - y[i - 1]) - (y[i + 2] - y[i - 2])) / (12 * h);
    worst = std::max(worst, std::abs(difference - along[i]));
  }
  Outcome outcome = {
      "sqrl", fmt::format("sqrl: the derivative differs by {:.1e} from differences", worst),
      worst < 1e-3, examples::Plot("sqrl of s times a matrix: two ways to compute it", "s")};
  outcome.plot.line("sqrl", scales, y);
  outcome.plot.line("its derivative along s", scales, along);
  return outcome;
}

}  // namespace fits
