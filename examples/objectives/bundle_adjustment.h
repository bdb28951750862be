// Bundle adjustment: ADBench's third objective (https://github.com/microsoft/ADBench,
// src/cpp/shared/ba.h), how far points lie from where cameras saw them.
//
//   cnp::NdArray errors = bundle_adjustment({cameras, points, weights}, observations).reprojection;
//
// A camera is [rotation (3), centre (3), focal length, principal point (2), radial distortion (2)];
// the rotation's direction is the axis, its length the angle (Rodrigues). An observation of point
// X:
//   p = R (X - centre), (u, v) = (p_0, p_1) / p_2, r = u^2 + v^2
//   weight ((u, v) (1 + k_0 r + k_1 r^2) focal length + principal point - feature)
#pragma once

#include "composit/numpy/ndarray.h"
#include "examples/objectives/problem.h"

namespace objectives {

struct BundleParameters {
  composit::numpy::NdArray cameras;  // [n, 11]
  composit::numpy::NdArray points;   // [m, 3]
  composit::numpy::NdArray weights;  // [p], one per observation
};
struct Observations {
  composit::numpy::NdArray cameras, points;  // [p] each, int64: which camera saw which point
  composit::numpy::NdArray features;         // [p, 2]: where
};

// The errors, and what is not zero in their derivatives.
struct BundleAdjustment {
  composit::numpy::NdArray reprojection;           // [p, 2]
  composit::numpy::NdArray weight_error;           // [p]: 1 - weight^2
  composit::numpy::NdArray reprojection_jacobian;  // [p, 2, 15]: by camera (11), point (3), weight
  composit::numpy::NdArray weight_jacobian;        // [p]
};
BundleAdjustment bundle_adjustment(const BundleParameters& parameters,
                                   const Observations& observations);

struct BundleSizes {
  int64_t cameras, points, observations;
};
// Inputs: cameras, points, weights, observed_cameras, observed_points, features. Objective: both
// errors; gradient: both errors and both Jacobians.
Problem bundle_adjustment_problem(const BundleSizes& sizes,
                                  composit::DType dtype = composit::DType::float64);

}  // namespace objectives
