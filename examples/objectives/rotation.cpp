#include "examples/objectives/rotation.h"

#include "composit/numpy/numpy.h"

namespace objectives {
namespace {

namespace cnp = composit::numpy;

cnp::NdArray row_sums(const cnp::NdArray& x) { return cnp::sum(x, -1, {.keepdims = true}); }

}  // namespace

// The angle that is not used must not divide by zero.
cnp::NdArray rotated(const cnp::NdArray& rotation, const cnp::NdArray& x) {
  const cnp::NdArray square = row_sums(rotation * rotation);
  const cnp::NdArray turns = square != 0.0;
  const cnp::NdArray angle = cnp::sqrt(cnp::where(turns, square, 1.0));
  const cnp::NdArray axis = rotation / angle, cosine = cnp::cos(angle);
  const cnp::NdArray turned = x * cosine + cnp::cross(axis, x) * cnp::sin(angle) +
                              axis * (row_sums(axis * x) * (1.0 - cosine));
  return cnp::where(turns, turned, x + cnp::cross(rotation, x));
}

}  // namespace objectives
