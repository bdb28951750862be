#include "examples/objectives/bundle_adjustment.h"

#include <spdlog/fmt/fmt.h>

#include <array>
#include <cmath>

#include "composit/ops/native.h"
#include "examples/fits/fits.h"
#include "examples/objectives/uniform.h"

namespace fits {
namespace {

constexpr int64_t kCameras = 4, kPoints = 24, kSeen = kCameras * kPoints;
constexpr int kSteps = 7;
using Vector = std::array<double, 3>;

// x with a x = b for a symmetric a, by Cramer's rule.
Vector solve(const std::array<Vector, 3>& a, const Vector& b) {
  const auto determinant = [](const std::array<Vector, 3>& m) {
    return m[0][0] * (m[1][1] * m[2][2] - m[1][2] * m[2][1]) -
           m[0][1] * (m[1][0] * m[2][2] - m[1][2] * m[2][0]) +
           m[0][2] * (m[1][0] * m[2][1] - m[1][1] * m[2][0]);
  };
  Vector x;
  for (size_t i = 0; i < 3; ++i) {
    std::array<Vector, 3> replaced = a;
    replaced[i] = b;
    x[i] = determinant(replaced) / determinant(a);
  }
  return x;
}

// Every camera sees every point; features are where they are seen.
objectives::Problem problem(const std::vector<double>& features) {
  objectives::Inputs inputs;
  const objectives::BundleParameters parameters = {
      inputs.add("cameras", objectives::uniform({.sizes = {kCameras, 11}, .seed = 21, .low = 0.5})),
      inputs.add("points",
                 objectives::uniform({.sizes = {kPoints, 3}, .seed = 22, .low = 4, .high = 6})),
      inputs.add("weights", array({kSeen}, std::vector<double>(kSeen, 1.0)))};
  std::vector<int64_t> cameras, points;
  for (int64_t i = 0; i < kSeen; ++i) {
    cameras.push_back(i % kCameras);
    points.push_back(i / kCameras);
  }
  const auto type = composit::tensor_type(composit::DType::int64, {kSeen});
  const objectives::Observations observations = {
      inputs.add("observed_cameras", composit::array_of(type, cameras)),
      inputs.add("observed_points", composit::array_of(type, points)),
      inputs.add("features", array({kSeen, 2}, features))};
  const auto results = objectives::bundle_adjustment(parameters, observations);
  return inputs.problem("bundle_adjustment", {results.reprojection},
                        {results.reprojection, results.reprojection_jacobian});
}

// The step of Gauss and Newton for each point; the Jacobian's columns 11 to 13 are the point's.
void improve(std::vector<double>& points, const std::vector<double>& errors,
             const std::vector<double>& jacobian) {
  constexpr size_t kColumns = 15, kFirst = 11;
  for (size_t point = 0; point < kPoints; ++point) {
    std::array<Vector, 3> normal = {};
    Vector right = {};
    for (size_t row = 2 * kCameras * point; row < 2 * kCameras * (point + 1); ++row) {
      const double* derivative = &jacobian[row * kColumns + kFirst];
      for (size_t i = 0; i < 3; ++i) {
        right[i] -= derivative[i] * errors[row];
        for (size_t j = 0; j < 3; ++j) normal[i][j] += derivative[i] * derivative[j];
      }
    }
    const Vector step = solve(normal, right);
    for (size_t i = 0; i < 3; ++i) points[3 * point + i] += step[i];
  }
}

}  // namespace

Outcome bundle_adjustment() {
  const objectives::Problem unseen = problem(std::vector<double>(2 * kSeen, 0.0));
  const auto project = flashlight::cpp::compile(unseen.objective, {.name = "projection"});
  objectives::Problem seen = problem(numbers(project(unseen.inputs)[0]));
  const auto errors = flashlight::cpp::compile(seen.gradient, {.name = "errors_and_jacobian"});

  std::vector<double> points = numbers(seen.inputs[1]);
  const std::vector<double> noise = normal(3 * kPoints, 5);
  for (size_t i = 0; i < points.size(); ++i) points[i] += 0.2 * noise[i];
  std::vector<double> steps, logarithms;
  double rms = 0;
  for (int step = 0; step < kSteps; ++step) {
    seen.inputs[1] = array({kPoints, 3}, points);
    const auto results = errors(seen.inputs);
    const std::vector<double> residuals = numbers(results[0]);
    double squares = 0;
    for (const double residual : residuals) squares += residual * residual;
    rms = std::sqrt(squares / static_cast<double>(residuals.size()));
    steps.push_back(step);
    logarithms.push_back(std::log10(rms));
    improve(points, residuals, numbers(results[1]));
  }
  Outcome outcome = {"bundle_adjustment",
                     fmt::format("bundle adjustment: log10 of the error {:.1f} -> {:.1f}",
                                 logarithms.front(), logarithms.back()),
                     rms < 1e-12,
                     examples::Plot("points from four cameras, by Gauss and Newton", "step")};
  outcome.plot.line("log10 of the root mean square error", steps, logarithms);
  return outcome;
}

}  // namespace fits
