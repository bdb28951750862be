// Observation by observation, as ADBench states it: what is projected is shared by both rows of the
// Jacobian, and each row is one walk back.
#include <array>
#include <cmath>

#include "benchmarks/cpp/handwritten.h"

namespace handwritten {
namespace {

template <class T>
using Vector3 = std::array<T, 3>;

template <class T>
T dot(const Vector3<T>& a, const Vector3<T>& b) {
  return a[0] * b[0] + a[1] * b[1] + a[2] * b[2];
}
template <class T>
Vector3<T> cross(const Vector3<T>& a, const Vector3<T>& b) {
  return {a[1] * b[2] - a[2] * b[1], a[2] * b[0] - a[0] * b[2], a[0] * b[1] - a[1] * b[0]};
}

template <class T>
struct Camera {
  explicit Camera(const T* numbers)
      : rotation{numbers[0], numbers[1], numbers[2]},
        centre{numbers[3], numbers[4], numbers[5]},
        focal(numbers[6]),
        principal{numbers[7], numbers[8]},
        distortion{numbers[9], numbers[10]} {}
  Vector3<T> rotation, centre;
  T focal, principal[2], distortion[2];
};

// Rodrigues' formula: x c + (axis x x) s + axis (axis . x) (1 - c).
template <class T>
class Rotation {
 public:
  explicit Rotation(const Vector3<T>& rotation)
      : angle_(std::sqrt(dot(rotation, rotation))), sine_(std::sin(angle_)) {
    cosine_ = std::cos(angle_);
    if (angle_ > 0)
      for (int i = 0; i < 3; ++i) axis_[i] = rotation[i] / angle_;
  }

  Vector3<T> turn(const Vector3<T>& x) const {
    const Vector3<T> side = cross(axis_, x);
    const T along = dot(axis_, x) * (1 - cosine_);
    Vector3<T> y;
    for (int i = 0; i < 3; ++i) y[i] = x[i] * cosine_ + side[i] * sine_ + axis_[i] * along;
    return y;
  }

  // The cotangent of x, from that of turn(x).
  Vector3<T> back(const Vector3<T>& g) const {
    const Vector3<T> side = cross(g, axis_);
    const T along = dot(g, axis_) * (1 - cosine_);
    Vector3<T> by_x;
    for (int i = 0; i < 3; ++i) by_x[i] = g[i] * cosine_ + side[i] * sine_ + axis_[i] * along;
    return by_x;
  }

  // The cotangent of the rotation.
  Vector3<T> by_rotation(const Vector3<T>& x, const Vector3<T>& g) const {
    const Vector3<T> moment = cross(x, g);
    if (!(angle_ > 0)) return moment;
    const T gw = dot(g, axis_), xw = dot(x, axis_);
    const T by_angle = cosine_ * dot(axis_, moment) + sine_ * (gw * xw - dot(g, x));
    Vector3<T> by_axis, result;
    for (int i = 0; i < 3; ++i)
      by_axis[i] = sine_ * moment[i] + (1 - cosine_) * (gw * x[i] + xw * g[i]);
    const T along = dot(axis_, by_axis);
    for (int i = 0; i < 3; ++i)
      result[i] = (by_axis[i] - axis_[i] * along) / angle_ + axis_[i] * by_angle;
    return result;
  }

 private:
  T angle_, sine_, cosine_;
  Vector3<T> axis_ = {};
};

template <class T>
struct Projection {
  Projection(const Camera<T>& camera, const Vector3<T>& point)
      : from_centre{point[0] - camera.centre[0], point[1] - camera.centre[1],
                    point[2] - camera.centre[2]},
        rotation(camera.rotation),
        seen(rotation.turn(from_centre)),
        plane{seen[0] / seen[2], seen[1] / seen[2]},
        radius(plane[0] * plane[0] + plane[1] * plane[1]),
        stretch(1 + radius * (camera.distortion[0] + radius * camera.distortion[1])) {}
  T pixel(const Camera<T>& camera, int row) const {
    return plane[row] * stretch * camera.focal + camera.principal[row];
  }

  Vector3<T> from_centre;
  Rotation<T> rotation;
  Vector3<T> seen;
  T plane[2], radius, stretch;
};

// Row `row` of the Jacobian: by camera (11), point (3) and weight.
template <class T>
void write_row(const Camera<T>& camera, const Projection<T>& projection, T weight, T miss, int row,
               T* block) {
  const T *plane = projection.plane, radius = projection.radius;
  const T scale = weight * camera.focal;
  const T by_stretch = scale * plane[row];
  const T by_radius = by_stretch * (camera.distortion[0] + 2 * camera.distortion[1] * radius);
  T by_plane[2] = {2 * by_radius * plane[0], 2 * by_radius * plane[1]};
  by_plane[row] += scale * projection.stretch;
  const T inverse = 1 / projection.seen[2];
  const Vector3<T> by_seen = {by_plane[0] * inverse, by_plane[1] * inverse,
                              -(by_plane[0] * plane[0] + by_plane[1] * plane[1]) * inverse};
  const Vector3<T> by_point = projection.rotation.back(by_seen);
  const Vector3<T> by_rotation = projection.rotation.by_rotation(projection.from_centre, by_seen);
  for (int i = 0; i < 3; ++i) {
    block[i] = by_rotation[i];
    block[3 + i] = -by_point[i];
    block[11 + i] = by_point[i];
  }
  block[6] = weight * plane[row] * projection.stretch;
  block[7] = row == 0 ? weight : 0;
  block[8] = row == 1 ? weight : 0;
  block[9] = by_stretch * radius;
  block[10] = by_stretch * radius * radius;
  block[14] = miss;
}

template <class T, bool kJacobian>
void observe(int64_t observations, const Bundle<T>& bundle, const BundleErrors<T>& errors,
             const BundleErrors<T>& jacobian) {
  for (int64_t i = 0; i < observations; ++i) {
    const Camera<T> camera(bundle.cameras + 11 * bundle.observed_cameras[i]);
    const T* point = bundle.points + 3 * bundle.observed_points[i];
    const T weight = bundle.weights[i];
    const Projection<T> projection(camera, {point[0], point[1], point[2]});
    for (int row = 0; row < 2; ++row) {
      const T miss = projection.pixel(camera, row) - bundle.features[2 * i + row];
      errors.reprojection[2 * i + row] = weight * miss;
      if constexpr (kJacobian)
        write_row(camera, projection, weight, miss, row,
                  jacobian.reprojection + 15 * (2 * i + row));
    }
    errors.weight[i] = 1 - weight * weight;
    if constexpr (kJacobian) jacobian.weight[i] = -2 * weight;
  }
}

}  // namespace

template <class T>
void bundle_adjustment(int64_t observations, const Bundle<T>& bundle,
                       const BundleErrors<T>& errors) {
  observe<T, false>(observations, bundle, errors, {});
}

template <class T>
void bundle_adjustment_jacobian(int64_t observations, const Bundle<T>& bundle,
                                const BundleErrors<T>& errors, const BundleErrors<T>& jacobian) {
  observe<T, true>(observations, bundle, errors, jacobian);
}

template void bundle_adjustment(int64_t, const Bundle<float>&, const BundleErrors<float>&);
template void bundle_adjustment(int64_t, const Bundle<double>&, const BundleErrors<double>&);
template void bundle_adjustment_jacobian(int64_t, const Bundle<float>&, const BundleErrors<float>&,
                                         const BundleErrors<float>&);
template void bundle_adjustment_jacobian(int64_t, const Bundle<double>&,
                                         const BundleErrors<double>&, const BundleErrors<double>&);

}  // namespace handwritten
