// Changes of resolution that average over all that an output covers: products with matrices that
// depend on sizes alone.
#include <algorithm>
#include <cmath>

#include "composit/ops/functions.h"
#include "composit/ops/native.h"

namespace composit {
namespace {

using Scale = std::optional<double>;

// Weight at a distance, and beyond which it is zero.
struct Filter {
  double (*weight)(double);
  double support;
};

double linear_weight(double x) { return std::max(0.0, 1 - std::abs(x)); }

// Keys' cubic convolution with a = -1/2.
double cubic_weight(double x) {
  x = std::abs(x);
  if (x < 1) return (1.5 * x - 2.5) * x * x + 1;
  return x < 2 ? ((-0.5 * x + 2.5) * x - 4) * x + 2 : 0;
}

// [out, in]: what of each input is in each output.
LazyTensor weights(const Filter& filter, int64_t in, int64_t out, bool align_corners,
                   const Scale& given, DType dtype) {
  const double step = align_corners         ? (out > 1 ? double(in - 1) / double(out - 1) : 0)
                      : given && *given > 0 ? 1 / *given
                                            : double(in) / double(out);
  const double width = std::max(step, 1.0), support = filter.support * width;
  std::vector<double> rows(static_cast<size_t>(in * out));
  for (int64_t y = 0; y < out; ++y) {
    const double center = step * (double(y) + 0.5);
    const int64_t begin = std::max<int64_t>(static_cast<int64_t>(center - support + 0.5), 0);
    const int64_t end = std::min(static_cast<int64_t>(center + support + 0.5), in);
    double total = 0;
    for (int64_t x = begin; x < end; ++x) {
      double& weight = rows[static_cast<size_t>(y * in + x)];
      weight = filter.weight((double(x) - center + 0.5) / width);
      total += weight;
    }
    for (int64_t x = begin; x < end && total != 0; ++x)
      rows[static_cast<size_t>(y * in + x)] /= total;
  }
  return constant(array_of(tensor_type(dtype, {out, in}), rows));
}

LazyTensor resized(const Filter& filter, const LazyTensor& x, const Ints& sizes, bool align_corners,
                   const Scale& scale_h, const Scale& scale_w) {
  expect_floating(x.dtype());
  if (x.rank() != 4 || sizes.size() != 2)
    throw UserError("expected images [N, C, H, W] and 2 sizes, received sizes " + str(x.sizes()));
  const LazyTensor left = weights(filter, x.size(2), sizes[0], align_corners, scale_h, x.dtype()),
                   right = weights(filter, x.size(3), sizes[1], align_corners, scale_w, x.dtype());
  return matmul(left, matmul(x, transpose(right, 0, 1)));
}

constexpr Filter kLinear = {&linear_weight, 1}, kCubic = {&cubic_weight, 2};

}  // namespace

void add_antialiasing_rows(OperationTable& rows) {
  rows.add({.schema = "aten::_upsample_bilinear2d_aa(Tensor self, SymInt[2] output_size, bool "
                      "align_corners, float? scales_h=None, float? scales_w=None) -> Tensor",
            .decompose =
                [](LazyTensor x, Ints sizes, bool align_corners, Scale h, Scale w) {
                  return LazyTensors{resized(kLinear, x, sizes, align_corners, h, w)};
                },
            .samples = "f32[1,2,5,7] [3,4] False | f32[1,1,3,3] [5,2] False | f32[1,1,6,6] [3,3] "
                       "True",
            .bad = "f32[3,3] [2,2] False: images"});
  rows.add({.schema = "aten::_upsample_bicubic2d_aa(Tensor self, SymInt[2] output_size, bool "
                      "align_corners, float? scales_h=None, float? scales_w=None) -> Tensor",
            .decompose =
                [](LazyTensor x, Ints sizes, bool align_corners, Scale h, Scale w) {
                  return LazyTensors{resized(kCubic, x, sizes, align_corners, h, w)};
                },
            .samples = "f32[1,2,9,8] [3,4] False | f32[1,1,3,3] [5,2] False",
            .bad = "f32[3,3] [2,2] False: images"});
}

}  // namespace composit
