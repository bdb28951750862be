#include <spdlog/fmt/fmt.h>

#include <cmath>
#include <numbers>

#include "composit/ad/chain_rule.h"
#include "examples/fits/fits.h"
#include "examples/objectives/gmm.h"

namespace fits {
namespace {

constexpr int64_t kClusters = 3, kPoints = 300, kDimensions = 2;
constexpr int kSteps = 300;
constexpr double kCentres[kClusters][2] = {{-2, 0}, {1.5, 2}, {2, -1.5}};
// Per cluster, how normal numbers become points: [[a, 0], [b, c]].
constexpr double kShapes[kClusters][3] = {{0.4, 0.3, 0.9}, {0.8, -0.2, 0.3}, {0.5, 0, 0.5}};

std::vector<double> points() {
  std::vector<double> x = normal(kPoints * kDimensions, 3);
  for (size_t i = 0; i < kPoints; ++i) {
    const auto& centre = kCentres[i % kClusters];
    const auto& [a, b, c] = kShapes[i % kClusters];
    const double u = x[2 * i], v = x[2 * i + 1];
    x[2 * i] = centre[0] + a * u;
    x[2 * i + 1] = centre[1] + b * u + c * v;
  }
  return x;
}

std::vector<double> coordinate(const std::vector<double>& x, size_t which) {
  std::vector<double> result;
  for (size_t i = which; i < x.size(); i += kDimensions) result.push_back(x[i]);
  return result;
}

// The points of a Gaussian one standard deviation away from its mean.
void add_ellipse(examples::Plot& plot, const std::string& name, const double* mean,
                 const double* icf) {
  std::vector<double> x, y;
  for (const double angle : linspace(0, 2 * std::numbers::pi, 73)) {
    const double u = std::cos(angle) / std::exp(icf[0]);
    x.push_back(mean[0] + u);
    y.push_back(mean[1] + (std::sin(angle) - icf[2] * u) / std::exp(icf[1]));
  }
  plot.line(name, x, y);
}

objectives::Problem problem() {
  objectives::Inputs inputs;
  const objectives::GmmParameters parameters = {
      inputs.add("alphas", array({kClusters}, {0, 0, 0})),
      inputs.add("means", array({kClusters, kDimensions}, {-0.5, 0, 0.5, 0.5, 0.5, -0.5})),
      inputs.add("icf", array({kClusters, 3}, std::vector<double>(3 * kClusters, 0.0)))};
  const auto x = inputs.add("x", array({kPoints, kDimensions}, points()));
  const auto value = objectives::gmm(parameters, x, {});
  const auto gradients =
      composit::grad(value, {parameters.alphas, parameters.means, parameters.icf});
  return inputs.problem("mixture", {value}, {value, gradients[0], gradients[1], gradients[2]});
}

}  // namespace

Outcome mixture() {
  Adam ascent(problem(), -0.05);
  std::vector<std::vector<double>> path_x(kClusters), path_y(kClusters);
  double value = 0;
  for (int step = 0; step < kSteps; ++step) {
    const std::vector<double> means = ascent.input(1);
    for (size_t k = 0; k < kClusters; ++k) {
      path_x[k].push_back(means[2 * k]);
      path_y[k].push_back(means[2 * k + 1]);
    }
    value = ascent.step();
  }
  double worst = 0;  // the distance of a centre to the mean that is nearest
  for (const auto& centre : kCentres) {
    double nearest = INFINITY;
    for (size_t k = 0; k < kClusters; ++k)
      nearest =
          std::min(nearest, std::hypot(path_x[k].back() - centre[0], path_y[k].back() - centre[1]));
    worst = std::max(worst, nearest);
  }
  Outcome outcome = {
      "mixture",
      fmt::format("mixture: log posterior {:.2f}, means off by up to {:.3f}", value, worst),
      worst < 0.2, examples::Plot("three Gaussians found by gradient ascent", "x")};
  outcome.plot.keep_aspect();
  outcome.plot.points("data", coordinate(points(), 0), coordinate(points(), 1));
  const std::vector<double> means = ascent.input(1), icf = ascent.input(2);
  for (size_t k = 0; k < kClusters; ++k)
    add_ellipse(outcome.plot, k == 0 ? "one standard deviation" : "", &means[2 * k], &icf[3 * k]);
  for (size_t k = 0; k < kClusters; ++k)
    outcome.plot.line(k == 0 ? "the ways of the means" : "", path_x[k], path_y[k]);
  return outcome;
}

}  // namespace fits
