#include "examples/objectives/hand_tracking.h"

#include "composit/ad/chain_rule.h"
#include "composit/numpy/numpy.h"
#include "examples/objectives/rotation.h"
#include "examples/objectives/uniform.h"

namespace objectives {
namespace {

using composit::Array;
using composit::DType;
namespace cnp = composit::numpy;

constexpr int64_t kFingers = 5, kBonesPerFinger = 4;

// The angle of each bone, [kBones]; zero for those without.
cnp::NdArray bone_angles(const cnp::NdArray& pose, int64_t BoneAngles::*angle) {
  std::vector<int64_t> places;
  for (int64_t bone = 0; bone < kBones; ++bone) {
    const int64_t place = angles_of_bone(bone).*angle;
    places.push_back(place < 0 ? kPoseParameters : place);
  }
  return cnp::take(cnp::concatenate({pose, cnp::zeros({1}, pose.dtype())}), cnp::asarray(places),
                   0);
}

// Bent about x, then spread about z: [kBones, 4, 4].
cnp::NdArray turns(const cnp::NdArray& pose) {
  const cnp::NdArray bend = bone_angles(pose, &BoneAngles::bend);
  const cnp::NdArray spread = bone_angles(pose, &BoneAngles::spread);
  const cnp::NdArray cx = cnp::cos(bend), sx = cnp::sin(bend);
  const cnp::NdArray cz = cnp::cos(spread), sz = cnp::sin(spread);
  const cnp::NdArray zero = cnp::zeros_like(cx), one = cnp::ones_like(cx);
  return cnp::stack({cz, -sz * cx, sz * sx, zero,  //
                     sz, cz * cx, -cz * sx, zero,  //
                     zero, sx, cx, zero,           //
                     zero, zero, zero, one},
                    1)
      .reshape({kBones, 4, 4});
}

// The transformations of the bones, [kBones, 3, 4].
cnp::NdArray movements(const cnp::NdArray& pose, const HandModel& model) {
  const cnp::NdArray relatives = cnp::matmul(model.relatives, turns(pose));
  cnp::NdArrays absolutes;
  for (int64_t bone = 0; bone < kBones; ++bone) {
    const int64_t parent = parent_of_bone(bone);
    absolutes.push_back(parent < 0
                            ? relatives[bone]
                            : cnp::matmul(absolutes[static_cast<size_t>(parent)], relatives[bone]));
  }
  return cnp::matmul(cnp::stack(absolutes), model.inverses)[{cnp::slice(), cnp::slice(3)}];
}

// Each vertex moves by the weighted sum of the movements of the bones: [n, 3].
cnp::NdArray skinned(const cnp::NdArray& movements, const cnp::NdArray& vertices,
                     const cnp::NdArray& weights) {
  const int64_t n = vertices.size(0);
  const cnp::NdArray blend =
      cnp::matmul(weights, movements.reshape({kBones, 12})).reshape({n, 3, 4});
  const cnp::NdArray one = cnp::ones({n, 1}, vertices.dtype());
  return cnp::sum(blend * cnp::concatenate({vertices, one}, 1).reshape({n, 1, 4}), 2);
}

// [kBones, 4, 4] of translations alone.
Array translations(const std::vector<double>& offsets, double sign, DType dtype) {
  const auto fill = [&]<class T>(T) {
    std::vector<T> elements(static_cast<size_t>(kBones * 16));
    for (int64_t bone = 0; bone < kBones; ++bone)
      for (int64_t i = 0; i < 4; ++i) {
        T* row = &elements[static_cast<size_t>((bone * 4 + i) * 4)];
        row[i] = 1;
        if (i < 3) row[3] = static_cast<T>(sign * offsets[static_cast<size_t>(bone * 3 + i)]);
      }
    return Array::copy_of(composit::tensor_type(dtype, {kBones, 4, 4}), elements.data());
  };
  return dtype == DType::float32 ? fill(float()) : fill(double());
}

// Bones lie where they lie by chance.
BoneMatrices random_bones(DType dtype) {
  const Array random = uniform({.sizes = {kBones, 3}, .seed = 52, .low = -0.5, .high = 0.5});
  const auto* numbers = reinterpret_cast<const double*>(random.data());
  return matrices_of_bones({numbers, numbers + kBones * 3}, dtype);
}

}  // namespace

int64_t parent_of_bone(int64_t bone) {
  return bone % kBonesPerFinger == 1 ? 0 : bone - 1;  // the forearm, too
}

BoneAngles angles_of_bone(int64_t bone) {
  const int64_t finger = (bone - 1) / kBonesPerFinger, joint = (bone - 1) % kBonesPerFinger;
  if (bone == 0 || finger >= kFingers || joint == 0) return {-1, -1};
  const int64_t first = 6 + finger * kBonesPerFinger;
  return joint == 1 ? BoneAngles{first, first + 1} : BoneAngles{first + joint, -1};
}

std::vector<double> joints_of_bones(const std::vector<double>& offsets) {
  std::vector<double> joints = offsets;
  for (int64_t bone = 0; bone < kBones; ++bone)
    if (const int64_t parent = parent_of_bone(bone); parent >= 0)
      for (int64_t i = 0; i < 3; ++i)
        joints[static_cast<size_t>(bone * 3 + i)] += joints[static_cast<size_t>(parent * 3 + i)];
  return joints;
}

BoneMatrices matrices_of_bones(const std::vector<double>& offsets, DType dtype) {
  return {translations(offsets, 1, dtype), translations(joints_of_bones(offsets), -1, dtype)};
}

cnp::NdArray hand_tracking(const cnp::NdArray& pose, const HandModel& model,
                           const cnp::NdArray& correspondences, const cnp::NdArray& points) {
  const cnp::NdArray rotation = pose[cnp::slice(3)].reshape({1, 3});
  const cnp::NdArray vertices =
      skinned(movements(pose, model), cnp::take(model.vertices, correspondences, 0),
              cnp::take(model.weights, correspondences, 0));
  const cnp::NdArray moved = rotated(rotation, vertices) + pose[cnp::slice(3, 6)];
  return 0.5 * cnp::sum(cnp::square(points - moved));
}

Problem hand_tracking_problem(const HandSizes& sizes, DType dtype) {
  const auto [v, n] = sizes;
  Inputs inputs;
  const cnp::NdArray pose = inputs.add(
      "pose", uniform({.sizes = {kPoseParameters}, .seed = 51, .low = -0.5, .high = 0.5}, dtype));
  const auto [relatives, inverses] = random_bones(dtype);
  const HandModel model = {
      inputs.add("relatives", relatives), inputs.add("inverses", inverses),
      inputs.add("vertices", uniform({.sizes = {v, 3}, .seed = 53, .low = -1}, dtype)),
      inputs.add("weights", uniform({.sizes = {v, kBones}, .seed = 54, .high = 0.0625}, dtype))};
  const cnp::NdArray correspondences = inputs.add("correspondences", integers({n}, 55, v));
  const cnp::NdArray points =
      inputs.add("points", uniform({.sizes = {n, 3}, .seed = 56, .low = -1}, dtype));

  const cnp::NdArray cost = hand_tracking(pose, model, correspondences, points);
  return inputs.problem("hand_tracking_v" + std::to_string(v) + "_n" + std::to_string(n), {cost},
                        {cost, composit::grad(cost, {pose})[0]});
}

}  // namespace objectives
