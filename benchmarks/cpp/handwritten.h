// The objectives of examples/objectives and their adjoints, written by hand: what generated code is
// measured against. Plain C++ for one thread, compiled with the flags of generated code.
//
//   double value = handwritten::gmm(sizes, {alphas, means, icf}, x, wishart);
//
// Arrays are row-major, their shapes those of examples/objectives. Every function is instantiated
// for float and double. exp, tanh, erf, sin and cos are the standard library's, one number at a
// time; all else is laid out for vector instructions. Results do not overlap arguments.
#pragma once

#include <cstdint>

#include "examples/objectives/bundle_adjustment.h"
#include "examples/objectives/gmm.h"
#include "examples/objectives/hand_tracking.h"
#include "examples/objectives/lstm.h"
#include "examples/objectives/sqrl.h"

namespace handwritten {

using objectives::BundleSizes;
using objectives::GmmSizes;
using objectives::LstmSizes;
using objectives::SqrlSizes;
using objectives::Wishart;

template <class T>
struct GmmParameters {
  T *alphas, *means, *icf;
};
template <class T>
T gmm(const GmmSizes& sizes, const GmmParameters<const T>& parameters, const T* x,
      const Wishart& wishart);
// The value as well.
template <class T>
T gmm_gradient(const GmmSizes& sizes, const GmmParameters<const T>& parameters, const T* x,
               const Wishart& wishart, const GmmParameters<T>& gradient);

template <class T>
struct LstmParameters {
  T *layers, *ends;
};
template <class T>
T lstm(const LstmSizes& sizes, const LstmParameters<const T>& parameters, const T* state,
       const T* sequence);
// The loss as well.
template <class T>
T lstm_gradient(const LstmSizes& sizes, const LstmParameters<const T>& parameters, const T* state,
                const T* sequence, const LstmParameters<T>& gradient);

template <class T>
struct Bundle {
  const T *cameras, *points, *weights;
  const int64_t *observed_cameras, *observed_points;
  const T* features;
};
template <class T>
struct BundleErrors {
  T *reprojection, *weight;
};
template <class T>
void bundle_adjustment(int64_t observations, const Bundle<T>& bundle,
                       const BundleErrors<T>& errors);
// The errors as well; reprojection: [p, 2, 15].
template <class T>
void bundle_adjustment_jacobian(int64_t observations, const Bundle<T>& bundle,
                                const BundleErrors<T>& errors, const BundleErrors<T>& jacobian);

template <class T>
struct Hand {
  const T *relatives, *inverses;  // their last rows are taken to be 0 0 0 1
  const T *vertices, *weights;
  const int64_t* correspondences;
  const T* points;
};
template <class T>
T hand_tracking(int64_t points, const T* pose, const Hand<T>& hand);
// The cost as well.
template <class T>
T hand_tracking_gradient(int64_t points, const T* pose, const Hand<T>& hand, T* by_pose);

template <class T>
void sqrl(const SqrlSizes& sizes, const T* x, T* y);
template <class T>
void sqrl_vjp(const SqrlSizes& sizes, const T* x, const T* dy, T* dx);

template <class T>
void relu3(int64_t n, const T* x, T* y);
template <class T>
void relu3_vjp(int64_t n, const T* x, const T* dy, T* dx);
template <class T>
void gelu(int64_t n, const T* x, T* y);
template <class T>
void gelu_vjp(int64_t n, const T* x, const T* dy, T* dx);
// With exp and erf of benchmarks/cpp/vector_math.h.
void gelu_in_vectors(int64_t n, const float* x, float* y);
void gelu_vjp_in_vectors(int64_t n, const float* x, const float* dy, float* dx);

}  // namespace handwritten
