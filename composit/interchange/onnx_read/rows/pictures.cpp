#include "composit/interchange/onnx_read/rows.h"
#include "composit/ir/error.h"

namespace composit::onnx_read {
namespace {

LazyTensors grid_sample(const OperatorCall& call) {
  const LazyTensor &x = call.operand(0), &grid = call.operand(1);
  std::string mode = call.text("mode", call.version() < 20 ? "bilinear" : "linear");
  expect_one_of("mode", mode, {"linear", "bilinear", "nearest", "cubic", "bicubic"});
  const std::string padding = call.text("padding_mode", "zeros");
  expect_one_of("padding_mode", padding, {"zeros", "border", "reflection"});
  const int64_t interpolation = mode == "nearest" ? 1 : mode.ends_with("cubic") ? 2 : 0;
  const int64_t outside = padding == "zeros" ? 0 : padding == "border" ? 1 : 2;
  return {op("aten::grid_sampler", {x, grid, interpolation, outside, call.flag("align_corners")})};
}

// Coordinates of the middles of cells along an axis, or of corners, from -1 to 1.
LazyTensor coordinates(int64_t size, bool corners) {
  const LazyTensor places = cast(arange(size), DType::float32);
  if (corners) return places * Number(2.0 / static_cast<double>(size - 1)) - 1;
  return (places * 2 + 1) / Number(static_cast<double>(size)) - 1;
}

// [n, 3, 4] times the homogeneous coordinates x, y, z, 1 of all places.
LazyTensor affine_grid_of_volume(const LazyTensor& theta, const Dims& sizes, bool corners) {
  const Ints volume = {sizes[2], sizes[3], sizes[4]};
  LazyTensors parts;
  for (size_t axis = 3; axis-- > 0;) {
    Ints own(3, 1);
    own[axis] = volume[axis];
    parts.push_back(expand(reshape(coordinates(volume[axis], corners), own), volume));
  }
  parts.push_back(full(volume, 1.0, DType::float32));
  for (LazyTensor& part : parts) part = reshape(part, {part.numel(), 1});
  const LazyTensor grid = matmul(cast(cat(parts, 1), theta.dtype()), transpose(theta, 1, 2));
  return reshape(grid, {sizes[0], sizes[2], sizes[3], sizes[4], 3});
}

LazyTensors affine_grid(const OperatorCall& call) {
  const Dims sizes = expect_sizes(call.known_ints(1));
  const LazyTensor& theta = call.operand(0);
  if (sizes.size() == 5 && theta.sizes() == Dims{sizes[0], 3, 4})
    return {affine_grid_of_volume(theta, sizes, call.flag("align_corners"))};
  return {op("aten::affine_grid_generator", {call.operand(0), sizes, call.flag("align_corners")})};
}

LazyTensors col2im(const OperatorCall& call) {
  const Ints picture = expect_sizes(call.known_ints(1)), block = call.known_ints(2);
  if (picture.size() != 2 || block.size() != 2) call.refuse("pictures of other than two axes");
  const auto list = [&](std::string_view name, int64_t otherwise) {
    return call.has(name) ? call.ints(name) : Ints(2, otherwise);
  };
  Ints pads = call.has("pads") ? call.ints("pads") : Ints(4, 0);
  if (pads.size() != 4 || pads[0] != pads[2] || pads[1] != pads[3])
    call.refuse("padding that differs between both sides");
  pads.resize(2);
  return {op("aten::col2im",
             {call.operand(0), picture, block, list("dilations", 1), pads, list("strides", 1)})};
}

}  // namespace

void add_picture_rows(std::vector<Row>& rows) {
  rows.insert(rows.end(),
              {{"AffineGrid", affine_grid}, {"Col2Im", col2im}, {"GridSample", grid_sample}});
}

}  // namespace composit::onnx_read
