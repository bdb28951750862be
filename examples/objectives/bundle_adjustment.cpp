#include "examples/objectives/bundle_adjustment.h"

#include "composit/ad/chain_rule.h"
#include "composit/numpy/numpy.h"
#include "examples/objectives/rotation.h"
#include "examples/objectives/uniform.h"

namespace objectives {
namespace {

namespace cnp = composit::numpy;

// Per observation: what it sees, and by which camera.
struct Observed {
  cnp::NdArray camera;  // [p, 11]
  cnp::NdArray point;   // [p, 3]
  cnp::NdArray weight;  // [p, 1]
};

cnp::NdArray columns(const cnp::NdArray& x, int64_t begin, int64_t end) {
  return x[{cnp::slice(), cnp::slice(begin, end)}];
}

cnp::NdArray distorted(const cnp::NdArray& x, const cnp::NdArray& k) {
  const cnp::NdArray r = cnp::sum(x * x, 1, {.keepdims = true});
  return x * (1.0 + columns(k, 0, 1) * r + columns(k, 1, 2) * r * r);
}

cnp::NdArray projected(const cnp::NdArray& camera, const cnp::NdArray& point) {
  const cnp::NdArray seen = rotated(columns(camera, 0, 3), point - columns(camera, 3, 6));
  const cnp::NdArray plane = columns(seen, 0, 2) / columns(seen, 2, 3);
  return distorted(plane, columns(camera, 9, 11)) * columns(camera, 6, 7) + columns(camera, 7, 9);
}

// By camera, point and weight, [p, 15]. No observation depends on what another one sees, so the
// derivative of a sum over all of them has the derivatives of each.
cnp::NdArray derivatives(const cnp::NdArray& errors, const Observed& seen) {
  const auto blocks = composit::grad(cnp::sum(errors), {seen.camera, seen.point, seen.weight});
  return cnp::concatenate({blocks[0], blocks[1], blocks[2]}, 1);
}

}  // namespace

BundleAdjustment bundle_adjustment(const BundleParameters& parameters,
                                   const Observations& observations) {
  const Observed seen = {cnp::take(parameters.cameras, observations.cameras, 0),
                         cnp::take(parameters.points, observations.points, 0),
                         cnp::expand_dims(parameters.weights, 1)};
  const cnp::NdArray errors =
      seen.weight * (projected(seen.camera, seen.point) - observations.features);
  const cnp::NdArray weight_error = 1.0 - parameters.weights * parameters.weights;
  const cnp::NdArray jacobian = cnp::stack(
      {derivatives(columns(errors, 0, 1), seen), derivatives(columns(errors, 1, 2), seen)}, 1);
  return {errors, weight_error, jacobian,
          composit::grad(cnp::sum(weight_error), {parameters.weights})[0]};
}

Problem bundle_adjustment_problem(const BundleSizes& sizes, composit::DType dtype) {
  const auto [n, m, p] = sizes;
  Inputs inputs;
  const BundleParameters parameters = {
      inputs.add("cameras", uniform({.sizes = {n, 11}, .seed = 21, .high = 0.25}, dtype)),
      inputs.add("points", uniform({.sizes = {m, 3}, .seed = 22, .low = 2, .high = 3}, dtype)),
      inputs.add("weights", uniform({.sizes = {p}, .seed = 23}, dtype))};
  const Observations observations = {
      inputs.add("observed_cameras", integers({p}, 24, n)),
      inputs.add("observed_points", integers({p}, 25, m)),
      inputs.add("features", uniform({.sizes = {p, 2}, .seed = 26, .low = -1}, dtype))};

  const BundleAdjustment results = bundle_adjustment(parameters, observations);
  return inputs.problem("bundle_adjustment_n" + std::to_string(n) + "_m" + std::to_string(m) +
                            "_p" + std::to_string(p),
                        {results.reprojection, results.weight_error},
                        {results.reprojection, results.weight_error, results.reprojection_jacobian,
                         results.weight_jacobian});
}

}  // namespace objectives
