#include "examples/objectives/hand_tracking.h"

#include <spdlog/fmt/fmt.h>

#include <array>
#include <cmath>

#include "composit/ad/chain_rule.h"
#include "composit/ops/native.h"
#include "examples/fits/fits.h"

namespace fits {
namespace {

using objectives::kBones;
using objectives::kPoseParameters;
constexpr int64_t kPerBone = 6, kVertices = kBones * kPerBone;
constexpr int kSteps = 400;
using Vector = std::array<double, 3>;

// From the parent's joint to the bone's; fingers point along y, the thumb is the first.
Vector offset_of_bone(int64_t bone) {
  if (bone == 0) return {0, 0, 0};
  if (bone == kBones - 1) return {0, -1.2, 0};
  const int64_t finger = (bone - 1) / 4, joint = (bone - 1) % 4;
  const double side = 0.3 * static_cast<double>(finger) - 0.6;
  const double length = finger == 0 ? 0.7 : 1.0 - 0.1 * std::abs(static_cast<double>(finger) - 2);
  if (joint == 0) return {side, finger == 0 ? 0.1 : 0.3, 0};
  constexpr double kLengths[] = {0, 0.5, 0.45, 0.3};
  return {joint == 1 ? 0.4 * side : 0, kLengths[joint] * length, 0};
}

std::vector<double> offsets() {
  std::vector<double> all;
  for (int64_t bone = 0; bone < kBones; ++bone)
    for (const double x : offset_of_bone(bone)) all.push_back(x);
  return all;
}

// Along each bone, from its joint on.
std::vector<double> vertices() {
  const std::vector<double> joints = objectives::joints_of_bones(offsets());
  std::vector<double> all;
  for (size_t joint = 0; joint < joints.size(); joint += 3)
    for (const double along : linspace(0, 0.25, kPerBone))
      all.insert(all.end(), {joints[joint], joints[joint + 1] + along, joints[joint + 2]});
  return all;
}

composit::Array pose(bool bent) {
  std::vector<double> all(kPoseParameters, 0.0);
  if (bent) {
    all[0] = 0.3;  // the wrist turns
    all[3] = 0.4;  // and moves
    for (size_t finger = 0; finger < 5; ++finger)
      for (const size_t angle : {0, 2, 3})
        all[6 + 4 * finger + angle] = 0.25 + 0.1 * static_cast<double>(finger);
    all[7] = 0.4;  // the thumb is spread
  }
  return array({kPoseParameters}, all);
}

// Gradient: the cost, its derivatives by the pose and by the points.
objectives::Problem problem(composit::Array start, const std::vector<double>& points) {
  objectives::Inputs inputs;
  const auto angles = inputs.add("pose", std::move(start));
  const auto matrices = objectives::matrices_of_bones(offsets());
  const auto relatives = inputs.add("relatives", matrices.relatives),
             inverses = inputs.add("inverses", matrices.inverses),
             skin = inputs.add("vertices", array({kVertices, 3}, vertices()));
  std::vector<double> one_bone(kVertices * kBones, 0.0);
  std::vector<int64_t> numbers;
  for (int64_t i = 0; i < kVertices; ++i) {
    one_bone[static_cast<size_t>(i * kBones + i / kPerBone)] = 1;
    numbers.push_back(i);
  }
  const auto weights = inputs.add("weights", array({kVertices, kBones}, one_bone));
  const auto type = composit::tensor_type(composit::DType::int64, {kVertices});
  const auto correspondences = inputs.add("correspondences", composit::array_of(type, numbers));
  const auto measured = inputs.add("points", array({kVertices, 3}, points));
  const auto cost = objectives::hand_tracking(angles, {relatives, inverses, skin, weights},
                                              correspondences, measured);
  return inputs.problem("hand_tracking", composit::grad(cost, {measured}),
                        {cost, composit::grad(cost, {angles})[0]});
}

// The positions of the vertices: the derivative of half the squared distance from the origin,
// negated.
std::vector<double> moved(const composit::Array& at) {
  const auto none = problem(at, std::vector<double>(3 * kVertices, 0.0));
  const auto compiled = flashlight::cpp::compile(none.objective, {.name = "moved_vertices"});
  std::vector<double> result = fits::numbers(compiled(none.inputs)[0]);
  for (double& x : result) x = -x;
  return result;
}

void draw(examples::Plot& plot, const std::string& name, const std::vector<double>& points) {
  std::vector<double> x, y;
  for (size_t i = 0; i < points.size(); i += 3) {  // seen from the side
    x.push_back(points[i] + 0.35 * points[i + 2]);
    y.push_back(points[i + 1] + 0.25 * points[i + 2]);
  }
  plot.points(name, x, y);
}

}  // namespace

Outcome hand_tracking() {
  const std::vector<double> measured = moved(pose(true));
  Adam descent(problem(pose(false), measured), 0.03);
  const double first = descent.step();
  double last = 0;
  for (int step = 1; step < kSteps; ++step) last = descent.step();
  Outcome outcome = {"hand_tracking",
                     fmt::format("hand tracking: cost {:.3g} -> {:.3g}", first, last),
                     last < 1e-3 * first, examples::Plot("the pose of a hand, found", "x")};
  outcome.plot.keep_aspect();
  draw(outcome.plot, "measured", measured);
  draw(outcome.plot, "at first", moved(pose(false)));
  draw(outcome.plot, "found", moved(array({kPoseParameters}, descent.input(0))));
  return outcome;
}

}  // namespace fits
