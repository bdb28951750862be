// A rotation by three numbers and its adjoint; their direction is the axis, their length the angle.
//
//   const Rotation<double> rotation({0.1, 0.2, 0.3});
//   Vector3<double> y = rotation.turn(x), by_x = rotation.back(by_y);
#pragma once

#include <array>
#include <cmath>

namespace handwritten {

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

}  // namespace handwritten
