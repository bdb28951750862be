// Movements are kept as three rows of four; the adjoint adds up what all points ask of each bone,
// and then goes from the finger tips to the wrist.
#include <algorithm>

#include "benchmarks/cpp/handwritten.h"
#include "benchmarks/cpp/handwritten_rotation.h"

namespace handwritten {
namespace {

using objectives::kBones;
using objectives::kPoseParameters;

// x -> linear x + translation; [i][3] is the translation.
template <class T>
using Affine = std::array<std::array<T, 4>, 3>;

template <class T>
Affine<T> affine(const T* matrix) {
  Affine<T> result;
  for (int i = 0; i < 3; ++i) std::copy_n(matrix + 4 * i, 4, result[i].begin());
  return result;
}

// First b, then a.
template <class T>
Affine<T> product(const Affine<T>& a, const Affine<T>& b) {
  Affine<T> result;
  for (int i = 0; i < 3; ++i)
    for (int j = 0; j < 4; ++j)
      result[i][j] =
          a[i][0] * b[0][j] + a[i][1] * b[1][j] + a[i][2] * b[2][j] + (j == 3 ? a[i][3] : T(0));
  return result;
}

// Adds the cotangent of a, from g, that of product(a, b).
template <class T>
void add_by_first(const Affine<T>& g, const Affine<T>& b, Affine<T>& by_a) {
  for (int i = 0; i < 3; ++i) {
    for (int j = 0; j < 3; ++j)
      by_a[i][j] += g[i][0] * b[j][0] + g[i][1] * b[j][1] + g[i][2] * b[j][2] + g[i][3] * b[j][3];
    by_a[i][3] += g[i][3];
  }
}

// The cotangent of b.
template <class T>
Affine<T> by_second(const Affine<T>& g, const Affine<T>& a) {
  Affine<T> by_b;
  for (int i = 0; i < 3; ++i)
    for (int j = 0; j < 4; ++j)
      by_b[i][j] = a[0][i] * g[0][j] + a[1][i] * g[1][j] + a[2][i] * g[2][j];
  return by_b;
}

template <class T>
struct Joint {
  Joint(const T* pose, int64_t bone) {
    const auto [bend, spread] = objectives::angles_of_bone(bone);
    if (bend >= 0) cx = std::cos(pose[bend]), sx = std::sin(pose[bend]);
    if (spread >= 0) cz = std::cos(pose[spread]), sz = std::sin(pose[spread]);
  }
  Affine<T> turn() const {
    return {{{cz, -sz * cx, sz * sx, 0}, {sz, cz * cx, -cz * sx, 0}, {0, sx, cx, 0}}};
  }
  // The derivatives by both angles, from that by turn().
  T by_bend(const Affine<T>& g) const {
    return sx * (sz * g[0][1] - cz * g[1][1] - g[2][2]) +
           cx * (sz * g[0][2] - cz * g[1][2] + g[2][1]);
  }
  T by_spread(const Affine<T>& g) const {
    return cz * (g[1][0] - cx * g[0][1] + sx * g[0][2]) -
           sz * (g[0][0] + cx * g[1][1] - sx * g[1][2]);
  }

  T cx = 1, sx = 0, cz = 1, sz = 0;
};

template <class T>
class Tracking {
 public:
  Tracking(const T* pose, const Hand<T>& hand)
      : pose_(pose), hand_(hand), rotation_({pose[0], pose[1], pose[2]}) {
    for (int64_t bone = 0; bone < kBones; ++bone) {
      const auto b = static_cast<size_t>(bone);
      const int64_t parent = objectives::parent_of_bone(bone);
      relatives_[b] = product(affine(hand.relatives + 16 * bone), Joint<T>(pose, bone).turn());
      absolutes_[b] = parent < 0 ? relatives_[b]
                                 : product(absolutes_[static_cast<size_t>(parent)], relatives_[b]);
      movements_[b] = product(absolutes_[b], affine(hand.inverses + 16 * bone));
    }
  }

  T cost(int64_t points) const {
    T sum = 0;
    for (int64_t i = 0; i < points; ++i) {
      const Vector3<T> miss = miss_of(i, posed(i));
      sum += dot(miss, miss);
    }
    return sum / 2;
  }

  T gradient(int64_t points, T* by_pose) {
    std::fill_n(by_pose, kPoseParameters, T(0));
    T sum = 0;
    for (int64_t i = 0; i < points; ++i) {
      const Vector3<T> vertex = posed(i), miss = miss_of(i, vertex);
      sum += dot(miss, miss);
      const Vector3<T> by_rotation = rotation_.by_rotation(vertex, miss);
      for (int j = 0; j < 3; ++j) {
        by_pose[j] += by_rotation[j];
        by_pose[3 + j] += miss[j];
      }
      add_by_movements(i, rotation_.back(miss));
    }
    for (int64_t bone = kBones - 1; bone >= 0; --bone) add_by_angles(bone, by_pose);
    return sum / 2;
  }

 private:
  const T* vertex(int64_t i) const { return hand_.vertices + 3 * hand_.correspondences[i]; }
  const T* weights(int64_t i) const { return hand_.weights + kBones * hand_.correspondences[i]; }

  // The vertex of point i, moved by its bones.
  Vector3<T> posed(int64_t i) const {
    Affine<T> blend = {};
    for (size_t bone = 0; bone < kBones; ++bone)
      for (int row = 0; row < 3; ++row)
        for (int j = 0; j < 4; ++j) blend[row][j] += weights(i)[bone] * movements_[bone][row][j];
    const T* x = vertex(i);
    Vector3<T> y;
    for (int row = 0; row < 3; ++row)
      y[row] = blend[row][0] * x[0] + blend[row][1] * x[1] + blend[row][2] * x[2] + blend[row][3];
    return y;
  }

  // From point i to where its vertex goes.
  Vector3<T> miss_of(int64_t i, const Vector3<T>& posed) const {
    Vector3<T> miss = rotation_.turn(posed);
    for (int j = 0; j < 3; ++j) miss[j] += pose_[3 + j] - hand_.points[3 * i + j];
    return miss;
  }

  void add_by_movements(int64_t i, const Vector3<T>& by_posed) {
    const T* x = vertex(i);
    Affine<T> by_blend;
    for (int row = 0; row < 3; ++row)
      by_blend[row] = {by_posed[row] * x[0], by_posed[row] * x[1], by_posed[row] * x[2],
                       by_posed[row]};
    for (size_t bone = 0; bone < kBones; ++bone)
      for (int row = 0; row < 3; ++row)
        for (int j = 0; j < 4; ++j)
          by_movements_[bone][row][j] += weights(i)[bone] * by_blend[row][j];
  }

  // After those of all children.
  void add_by_angles(int64_t bone, T* by_pose) {
    const auto b = static_cast<size_t>(bone);
    Affine<T>& g = by_absolutes_[b];
    add_by_first(by_movements_[b], affine(hand_.inverses + 16 * bone), g);
    Affine<T> by_relative = g;
    if (const int64_t parent = objectives::parent_of_bone(bone); parent >= 0) {
      const auto p = static_cast<size_t>(parent);
      add_by_first(g, relatives_[b], by_absolutes_[p]);
      by_relative = by_second(g, absolutes_[p]);
    }
    const Affine<T> by_turn = by_second(by_relative, affine(hand_.relatives + 16 * bone));
    const Joint<T> joint(pose_, bone);
    const auto [bend, spread] = objectives::angles_of_bone(bone);
    if (bend >= 0) by_pose[bend] = joint.by_bend(by_turn);
    if (spread >= 0) by_pose[spread] = joint.by_spread(by_turn);
  }

  const T* pose_;
  Hand<T> hand_;
  Rotation<T> rotation_;
  using Bones = std::array<Affine<T>, kBones>;
  Bones relatives_, absolutes_, movements_;
  Bones by_absolutes_ = {}, by_movements_ = {};
};

}  // namespace

template <class T>
T hand_tracking(int64_t points, const T* pose, const Hand<T>& hand) {
  return Tracking<T>(pose, hand).cost(points);
}

template <class T>
T hand_tracking_gradient(int64_t points, const T* pose, const Hand<T>& hand, T* by_pose) {
  return Tracking<T>(pose, hand).gradient(points, by_pose);
}

template float hand_tracking(int64_t, const float*, const Hand<float>&);
template double hand_tracking(int64_t, const double*, const Hand<double>&);
template float hand_tracking_gradient(int64_t, const float*, const Hand<float>&, float*);
template double hand_tracking_gradient(int64_t, const double*, const Hand<double>&, double*);

}  // namespace handwritten
