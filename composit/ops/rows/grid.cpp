// Images and volumes sampled at places that are data.
#include <algorithm>

#include "composit/ops/functions.h"
#include "composit/ops/places.h"

namespace composit {
namespace {

enum Interpolation : int64_t { kBilinear, kNearest, kBicubic };
enum Padding : int64_t { kZeros, kBorder, kReflection };

// x between `low` and `high`, mirrored there as often as needed.
Expr mirrored(const Expr& x, double low, double high) {
  if (high <= low) return 0.0 * x;
  const double span = high - low;
  const Expr distance = abs(x - low), turns = floor(distance / span);
  const Expr rest = distance - turns * span;
  return select(eq(remainder(turns, 2.0), 0.0), rest + low, span - rest + low);
}

// From -1 … 1 to places among `size` elements, where -1 and 1 are the middles of the first and the
// last, or the outer edges.
Expr unbounded_place(const Expr& x, int64_t size, bool align_corners) {
  const double length = static_cast<double>(size);
  return align_corners ? (x + 1.0) * ((length - 1) / 2) : ((x + 1.0) * length - 1.0) * 0.5;
}

// The place among `size` elements that stands for `at`, which may lie outside.
Expr bounded(const Expr& at, int64_t size, Padding padding, bool align_corners) {
  const double length = static_cast<double>(size);
  if (padding == kZeros) return at;
  Expr inside = at;
  if (padding == kReflection)
    inside = align_corners ? mirrored(at, 0, length - 1) : mirrored(at, -0.5, length - 0.5);
  return min(select(inside > 0.0, inside, 0.0), length - 1);  // NaN becomes 0, as in torch
}

Expr place(const Expr& x, int64_t size, Padding padding, bool align_corners) {
  return bounded(unbounded_place(x, size, align_corners), size, padding, align_corners);
}

// The element at a point, zero outside of the image. `place`: an index per axis after the channels.
Expr element(const In& x, const Expr& n, const Expr& c, const Index& place) {
  Index at{n, c};
  Expr inside = true;
  for (const Expr& floating : place) {
    const Expr i = cast(floating, DType::int64);
    inside = inside && i >= 0 && i < x.size(static_cast<int64_t>(at.size()));
    at.push_back(i);
  }
  return select(inside, x(at), Expr::literal(int64_t{0}, x.dtype()));
}

// Weights of the four elements around a point at distance `t` after the second: Keys' cubic
// convolution with torch's coefficient.
std::vector<Expr> cubic_weights(const Expr& t) {
  constexpr double a = -0.75;
  const auto near = [](const Expr& d) { return ((a + 2) * d - (a + 3)) * d * d + 1; };
  const auto far = [](const Expr& d) { return ((a * d - 5 * a) * d + 8 * a) * d - 4 * a; };
  return {far(t + 1), near(t), near(1 - t), far(2 - t)};
}

// Interpolates between sixteen elements. Each of them is tested on its own for being inside of the
// image.
Expr bicubic(const In& x, const In& grid, const Index& at, Padding padding, bool align_corners) {
  const Expr &n = at[0], &c = at[1], &i = at[2], &j = at[3];
  const Expr column = unbounded_place(grid(n, i, j, 0), x.size(3), align_corners);
  const Expr row = unbounded_place(grid(n, i, j, 1), x.size(2), align_corners);
  const Expr top = floor(row), left = floor(column);
  const auto down = cubic_weights(row - top), right = cubic_weights(column - left);
  Expr total;
  for (size_t k = 0; k < 16; ++k) {
    const double below = static_cast<double>(k / 4) - 1, beside = static_cast<double>(k % 4) - 1;
    const Expr part = down[k / 4] * right[k % 4] *
                      element(x, n, c,
                              {bounded(top + below, x.size(2), padding, align_corners),
                               bounded(left + beside, x.size(3), padding, align_corners)});
    total = total.defined() ? total + part : part;
  }
  return total;
}

// Interpolates between the elements at the corners around a point; each axis has two of them.
Expr multilinear(const In& x, const Expr& n, const Expr& c, const Index& place) {
  Expr total;
  for (size_t corner = 0; corner < size_t{1} << place.size(); ++corner) {
    Expr weight;
    Index at;
    for (size_t axis = 0; axis < place.size(); ++axis) {
      const bool behind = (corner >> (place.size() - 1 - axis) & 1) != 0;
      const Expr low = floor(place[axis]), rest = place[axis] - low;
      const Expr part = behind ? rest : 1 - rest;
      at.push_back(behind ? low + 1 : low);
      weight = weight.defined() ? weight * part : part;
    }
    const Expr share = weight * element(x, n, c, at);
    total = total.defined() ? total + share : share;
  }
  return total;
}

// `axes`: 2 for images, 3 for volumes.
void expect_sampled(const In& x, const In& grid, int64_t interpolation, int64_t axes) {
  if (x.rank() != axes + 2 || grid.rank() != axes + 2 || grid.size(-1) != axes ||
      x.size(0) != grid.size(0))
    throw UserError("expected " +
                    std::string(axes == 2
                                    ? "images [n, c, h, w] and a grid [n, h', w', 2]"
                                    : "volumes [n, c, d, h, w] and a grid [n, d', h', w', 3]") +
                    ", received sizes " + str(x.sizes()) + " and " + str(grid.sizes()));
  if (x.dtype() != grid.dtype())
    throw UserError("expected a grid of " + std::string(name(x.dtype())) + ", received " +
                    std::string(name(grid.dtype())));
  if (interpolation < kBilinear || interpolation > (axes == 2 ? kBicubic : kNearest))
    throw UserError(
        "expected interpolation 0 (bilinear), 1 (nearest) or for images 2 (bicubic), "
        "received " +
        std::to_string(interpolation));
}

Loops sampled(const In& x, const In& grid, int64_t interpolation, int64_t padding,
              bool align_corners, int64_t axes) {
  expect_sampled(x, grid, interpolation, axes);
  Nest nest;
  const Expr n = nest.parallel(x.size(0), "n"), c = nest.parallel(x.size(1), "c");
  Ints sizes = grid.sizes();
  const Index points = nest.parallel(Ints(sizes.begin() + 1, sizes.end() - 1));
  const auto mode = static_cast<Padding>(padding);
  if (interpolation == kBicubic)
    return nest.store(bicubic(x, grid, joined({n, c}, points), mode, align_corners)).loops();
  Index where;
  for (int64_t axis = 0; axis < axes; ++axis) {  // the grid has the last axis first
    const Expr coordinate = grid(joined(joined({n}, points), {Expr(axes - 1 - axis)}));
    where.push_back(place(coordinate, x.size(axis + 2), mode, align_corners));
  }
  if (interpolation == kBilinear) return nest.store(multilinear(x, n, c, where)).loops();
  for (Expr& at : where) at = round(at);
  return nest.store(element(x, n, c, where)).loops();
}

// Coordinates -1 … 1 of the middles of `size` elements, or with the first and last at the ends.
LazyTensor coordinates(int64_t size, bool align_corners, DType dtype) {
  const double half =
      align_corners ? 1 : (static_cast<double>(size) - 1) / static_cast<double>(size);
  if (size == 1) return zeros({1}, dtype);
  return apply_one("aten::linspace", {Scalar(-half), Scalar(half), size, dtype});
}

// Of images, and of volumes with an axis more.
LazyTensor affine_grid(const LazyTensor& theta, const Ints& size, bool align_corners) {
  const auto axes = static_cast<int64_t>(size.size()) - 2;
  if ((axes != 2 && axes != 3) || theta.sizes() != Ints{size[0], axes, axes + 1})
    throw UserError(
        "expected theta of sizes [n, 2, 3] for images [n, c, h, w], or [n, 3, 4] for volumes [n, "
        "c, d, h, w], received " +
        str(theta.sizes()) + " for " + str(size));
  const Ints inner(size.begin() + 2, size.end());
  LazyTensors places;  // x, y and z: of the last axis first
  for (int64_t axis = axes; axis-- > 0;) {
    Ints along(inner.size(), 1);
    along[static_cast<size_t>(axis)] = inner[static_cast<size_t>(axis)];
    const LazyTensor line =
        coordinates(size[static_cast<size_t>(axis) + 2], align_corners, theta.dtype());
    places.push_back(expand(reshape(line, along), inner));
  }
  places.push_back(full(inner, 1, theta.dtype()));
  const LazyTensor base = apply_one("aten::stack", {places, -1});
  int64_t count = 1;
  for (const int64_t length : inner) count *= length;
  const LazyTensor points = expand(reshape(base, {1, count, axes + 1}), {size[0], count, axes + 1});
  Ints result{size[0]};
  result.insert(result.end(), inner.begin(), inner.end());
  result.push_back(axes);
  return reshape(bmm(points, transpose(theta, 1, 2)), result);
}

}  // namespace

void add_grid_rows(OperationTable& rows) {
  constexpr std::string_view kImages =
      "f32[2,2,3,4] f32[2,2,3,2]=-1.2..1.2 0 0 False | f32[1,2,3,4] f32[1,2,2,2]=-1..1 0 0 True | "
      "f32[1,1,3,4] f32[1,2,2,2]=-1.5..1.5 0 1 False | f32[1,1,3,4] f32[1,2,2,2]=-2.1..2.1 0 2 "
      "False | f32[1,1,3,4] f32[1,2,2,2]=-1.2..1.2 1 0 False | f32[1,2,5,4] f32[1,2,3,2]=-0.9..0.9 "
      "2 0 False | f32[1,1,5,4] f32[1,2,3,2]=-1.2..1.2 2 1 True | f32[1,1,5,4] "
      "f32[1,2,3,2]=-1.2..1.2 2 2 False";
  constexpr std::string_view kVolumes =
      "f32[1,2,2,3,4] f32[1,2,2,2,3]=-1.2..1.2 0 0 False | f32[1,1,2,3,4] f32[1,1,2,3,3]=-1.5..1.5 "
      "0 1 True | f32[2,1,2,3,3] f32[2,1,2,1,3]=-2.1..2.1 0 2 False | f32[1,1,2,3,4] "
      "f32[1,2,1,2,3]=-1.2..1.2 1 0 False";
  rows.add(
      {.schema = "aten::grid_sampler_2d(Tensor input, Tensor grid, int interpolation_mode, "
                 "int padding_mode, bool align_corners) -> Tensor",
       .loops = [](In x, In grid, int64_t interpolation, int64_t padding,
                   bool corners) { return sampled(x, grid, interpolation, padding, corners, 2); },
       .samples = kImages,
       .bad = "f32[1,1,2,2] f32[1,2,2] 0 0 False: a grid | f32[1,1,2,2] f32[1,2,2,2] 3 0 "
              "False: expected interpolation"});
  rows.add(
      {.schema = "aten::grid_sampler_3d(Tensor input, Tensor grid, int interpolation_mode, "
                 "int padding_mode, bool align_corners) -> Tensor",
       .loops = [](In x, In grid, int64_t interpolation, int64_t padding,
                   bool corners) { return sampled(x, grid, interpolation, padding, corners, 3); },
       .samples = kVolumes,
       .bad = "f32[1,1,2,2] f32[1,2,2,2] 0 0 False: expected volumes | f32[1,1,2,2,2] "
              "f32[1,2,2,2,3] 2 0 False: expected interpolation"});
  rows.add(
      {.schema = "aten::grid_sampler(Tensor input, Tensor grid, int interpolation_mode, int "
                 "padding_mode, bool align_corners) -> Tensor",
       .decompose =
           [](LazyTensor x, LazyTensor grid, int64_t interpolation, int64_t padding, bool corners) {
             return apply(x.rank() == 5 ? "aten::grid_sampler_3d" : "aten::grid_sampler_2d",
                          {x, grid, interpolation, padding, corners});
           },
       .samples = "f32[1,1,3,4] f32[1,2,2,2]=-1..1 0 0 True | f32[1,1,2,3,4] "
                  "f32[1,2,1,2,3]=-1.2..1.2 0 0 False"});
  rows.add(
      {.schema = "aten::affine_grid_generator(Tensor theta, SymInt[] size, bool "
                 "align_corners) -> Tensor",
       .decompose = [](LazyTensor theta, Ints size,
                       bool corners) { return LazyTensors{affine_grid(theta, size, corners)}; },
       .samples = "f32[2,2,3] [2,1,3,4] False | f32[1,2,3] [1,2,2,2] True | f32[2,3,4] "
                  "[2,1,3,4,2] False | f32[1,3,4] [1,2,2,3,1] True",
       .bad = "f32[1,2,2] [1,1,2,2] False: theta of sizes"});
}

}  // namespace composit
