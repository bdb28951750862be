// Observation by observation, as ADBench states it: what is projected is shared by both rows of the
// Jacobian, and each row is one walk back.
#include "benchmarks/cpp/handwritten.h"
#include "benchmarks/cpp/handwritten_rotation.h"

namespace handwritten {
namespace {

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
