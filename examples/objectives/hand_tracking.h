// The distance of a model of a hand from measured points: ADBench's fourth objective
// (https://github.com/microsoft/ADBench, src/cpp/shared/hand_light_matrix.h; the simple one, where
// each point belongs to a vertex). Here a number, half the sum of the squares of its errors.
//
//   cnp::NdArray cost = hand_tracking(pose, model, vertices, points);
//
// A pose is [rotation (3), translation (3), per finger: bend, spread, bend, bend (20)]. Bones turn
// about the ends of their parents and move the vertices by weights (linear blend skinning).
#pragma once

#include "composit/numpy/ndarray.h"
#include "examples/objectives/problem.h"

namespace objectives {

// Bone 0 is the wrist, then four per finger, from the palm on; the last is the forearm.
constexpr int64_t kBones = 22, kPoseParameters = 26;
// -1 for the wrist.
int64_t parent_of_bone(int64_t bone);
// Which number of the pose is an angle of a bone; -1 if none.
struct BoneAngles {
  int64_t bend, spread;
};
BoneAngles angles_of_bone(int64_t bone);

// Offsets, [kBones, 3]: from where a bone's parent begins to where the bone does, when nothing is
// bent. Joints, [kBones, 3]: where bones begin.
std::vector<double> joints_of_bones(const std::vector<double>& offsets);
struct BoneMatrices {
  composit::Array relatives, inverses;  // as in HandModel
};
BoneMatrices matrices_of_bones(const std::vector<double>& offsets,
                               composit::DType dtype = composit::DType::float64);

struct HandModel {
  composit::numpy::NdArray relatives;  // [kBones, 4, 4]: from bone to parent, when nothing is bent
  composit::numpy::NdArray inverses;   // [kBones, 4, 4]: from the world to bone
  composit::numpy::NdArray vertices;   // [v, 3]
  composit::numpy::NdArray weights;    // [v, kBones]
};

// Zero-dimensional. correspondences: int64 [n], the vertex of each point; points: [n, 3].
composit::numpy::NdArray hand_tracking(const composit::numpy::NdArray& pose, const HandModel& model,
                                       const composit::numpy::NdArray& correspondences,
                                       const composit::numpy::NdArray& points);

struct HandSizes {
  int64_t vertices, points;
};
// Inputs: pose, relatives, inverses, vertices, weights, correspondences, points. Objective: the
// cost; gradient: the cost and its derivative by the pose.
Problem hand_tracking_problem(const HandSizes& sizes,
                              composit::DType dtype = composit::DType::float64);

}  // namespace objectives
