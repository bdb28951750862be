// Elements repeated, rolled, turned, and moved between channels and images.
#include <algorithm>

#include "composit/ops/functions.h"
#include "composit/ops/places.h"

namespace composit {
namespace {

// ---- repetition ---------------------------------------------------------------------------------

LazyTensor repeated(const LazyTensor& x, Ints times) {
  if (static_cast<int64_t>(times.size()) < x.rank())
    throw UserError("expected a number of times per axis of " + str(x.sizes()) + ", received " +
                    str(times));
  Ints own = x.sizes(), apart, expanded, sizes;
  own.insert(own.begin(), times.size() - own.size(), 1);
  for (size_t axis = 0; axis < times.size(); ++axis) {
    if (times[axis] < 0) throw UserError("expected repeats of at least 0, received " + str(times));
    apart.insert(apart.end(), {1, own[axis]});
    expanded.insert(expanded.end(), {times[axis], own[axis]});
    sizes.push_back(times[axis] * own[axis]);
  }
  return reshape(expand(reshape(x, apart), expanded), sizes);
}

void add_repetition(OperationTable& rows) {
  rows.add({.schema = "aten::repeat(Tensor self, SymInt[] repeats) -> Tensor",
            .kind = OpKind::movement,
            .decompose = [](LazyTensor x, Ints times) { return LazyTensors{repeated(x, times)}; },
            .samples = "f32[2,3] [2,1] | f32[3] [2,2] | f32[2] [0] | f32[] [3] | f32[2] [1]",
            .bad = "f32[2,3] [2]: per axis | f32[2] [-1]: at least 0"});
  rows.add({.schema = "aten::tile(Tensor self, SymInt[] dims) -> Tensor",
            .kind = OpKind::movement,
            .decompose =
                [](LazyTensor x, Ints times) {
                  while (static_cast<int64_t>(times.size()) < x.rank())
                    times.insert(times.begin(), 1);
                  return LazyTensors{repeated(x, times)};
                },
            .samples = "f32[2,3] [2] | f32[3] [2,2] | f32[2,3] [1,2]"});
  rows.add({.schema = "aten::repeat_interleave.self_int(Tensor self, SymInt repeats, int? "
                      "dim=None, *, SymInt? output_size=None) -> Tensor",
            .kind = OpKind::movement,
            .decompose =
                [](LazyTensor x, int64_t times, std::optional<int64_t> dim) {
                  if (times < 0)
                    throw UserError("expected repeats of at least 0, received " +
                                    std::to_string(times));
                  if (!dim || x.rank() == 0) x = reshape(x, {-1});
                  const int64_t axis = wrap_axis(dim.value_or(0), x.rank());
                  Ints sizes = x.sizes(), apart = sizes;
                  apart.insert(apart.begin() + axis + 1, times);
                  sizes[static_cast<size_t>(axis)] *= times;
                  return LazyTensors{reshape(expand(unsqueeze(x, axis + 1), apart), sizes)};
                },
            .samples = "f32[2,3] 2 1 | f32[2,3] 3 | f32[2,3] 2 -2 | f32[] 2",
            .bad = "f32[2] -1: at least 0 | f32[2] 2 1: expected an axis"});
}

// ---- turning ------------------------------------------------------------------------------------

LazyTensor rolled(const LazyTensor& x, int64_t shift, int64_t dim) {
  const int64_t size = x.size(dim);
  if (size == 0 || x.rank() == 0) return x;
  const int64_t begin = ((-shift) % size + size) % size;
  if (begin == 0) return x;
  return cat({slice(x, dim, begin, size), slice(x, dim, 0, begin)}, dim);
}

void add_turns(OperationTable& rows) {
  rows.add({.schema = "aten::roll(Tensor self, SymInt[1] shifts, int[1] dims=[]) -> Tensor",
            .kind = OpKind::movement,
            .decompose =
                [](LazyTensor x, Ints shifts, Ints dims) {
                  if (dims.empty() && shifts.size() == 1)
                    return LazyTensors{reshape(rolled(reshape(x, {-1}), shifts[0], 0), x.sizes())};
                  if (dims.size() != shifts.size())
                    throw UserError("expected a shift per axis, received " + str(shifts) + " and " +
                                    str(dims));
                  for (size_t i = 0; i < dims.size(); ++i) x = rolled(x, shifts[i], dims[i]);
                  return LazyTensors{x};
                },
            .samples = "f32[5] 2 [0] | f32[2,3] 1 | f32[4,3] [1,-1] [0,1] | f32[3] -7 0",
            .bad = "f32[3] [1,2] [0]: a shift per axis"});
  rows.add({.schema = "aten::rot90(Tensor self, int k=1, int[] dims=[0, 1]) -> Tensor",
            .decompose =
                [](LazyTensor x, int64_t times, Ints dims) {
                  if (dims.size() != 2 || x.rank() < 2)
                    throw UserError("expected two axes to turn, received " + str(dims) +
                                    " for sizes " + str(x.sizes()));
                  wrap_axes(dims, x.rank());
                  switch ((times % 4 + 4) % 4) {
                    case 1:
                      return LazyTensors{transpose(flip(x, {dims[1]}), dims[0], dims[1])};
                    case 2:
                      return LazyTensors{flip(x, dims)};
                    case 3:
                      return LazyTensors{transpose(flip(x, {dims[0]}), dims[0], dims[1])};
                    default:
                      return LazyTensors{x};
                  }
                },
            .samples = "f32[2,3] | f32[2,3] 2 | f32[2,3,4] 3 [0,2] | f32[2,3] -1 | f32[2,2] 0",
            .bad = "f32[3]: two axes | f32[2,2] 1 [0,0]: given twice"});
  rows.add({.schema = "aten::fliplr(Tensor self) -> Tensor",
            .decompose = [](LazyTensor x) { return LazyTensors{flip(x, {1})}; },
            .samples = "f32[2,3]",
            .bad = "f32[3]: expected an axis"});
  rows.add({.schema = "aten::flipud(Tensor self) -> Tensor",
            .decompose = [](LazyTensor x) { return LazyTensors{flip(x, {0})}; },
            .samples = "f32[2,3] | f32[4]"});
}

// ---- channels and images ------------------------------------------------------------------------

// The leading axes of an image of channels, height and width.
Ints leading(const LazyTensor& x) {
  if (x.rank() < 3)
    throw UserError("expected channels, height and width, received sizes " + str(x.sizes()));
  const Ints sizes = x.sizes();
  return {sizes.begin(), sizes.end() - 3};
}

// The last axes in the order `last`, which counts from the first of them.
LazyTensor permute_last(const LazyTensor& x, const Ints& last) {
  Ints order;
  const int64_t first = x.rank() - static_cast<int64_t>(last.size());
  for (int64_t axis = 0; axis < first; ++axis) order.push_back(axis);
  for (int64_t axis : last) order.push_back(first + axis);
  return permute(x, order);
}

void expect_divisible(int64_t size, int64_t by, const char* what) {
  if (by < 1 || size % by != 0)
    throw UserError("expected " + std::string(what) + " that divide by " + std::to_string(by) +
                    ", received " + std::to_string(size));
}

void add_shuffles(OperationTable& rows) {
  rows.add(
      {.schema = "aten::pixel_shuffle(Tensor self, int upscale_factor) -> Tensor",
       .kind = OpKind::movement,
       .decompose =
           [](LazyTensor x, int64_t factor) {
             const Ints lead = leading(x);
             const int64_t c = x.size(-3), h = x.size(-2), w = x.size(-1);
             expect_divisible(c, factor > 0 ? factor * factor : factor, "channels");
             const int64_t channels = c / (factor * factor);
             const LazyTensor apart = reshape(x, joined(lead, {channels, factor, factor, h, w}));
             return LazyTensors{reshape(permute_last(apart, {0, 3, 1, 4, 2}),
                                        joined(lead, {channels, h * factor, w * factor}))};
           },
       .samples = "f32[1,8,2,3] 2 | f32[9,2,2] 3",
       .bad = "f32[1,3,2,2] 2: divide by 4 | f32[4,2] 2: height and width"});
  rows.add({.schema = "aten::pixel_unshuffle(Tensor self, int downscale_factor) -> Tensor",
            .decompose =
                [](LazyTensor x, int64_t factor) {
                  const Ints lead = leading(x);
                  expect_divisible(x.size(-2), factor, "rows");
                  expect_divisible(x.size(-1), factor, "columns");
                  const int64_t c = x.size(-3), h = x.size(-2) / factor, w = x.size(-1) / factor;
                  const LazyTensor apart = reshape(x, joined(lead, {c, h, factor, w, factor}));
                  return LazyTensors{reshape(permute_last(apart, {0, 2, 4, 1, 3}),
                                             joined(lead, {c * factor * factor, h, w}))};
                },
            .samples = "f32[1,2,4,6] 2 | f32[1,3,3] 3",
            .bad = "f32[1,3,2] 2: divide by 2"});
  rows.add({.schema = "aten::channel_shuffle(Tensor self, SymInt groups) -> Tensor",
            .decompose =
                [](LazyTensor x, int64_t groups) {
                  if (x.rank() < 3)
                    throw UserError("expected 3 axes at least, received sizes " + str(x.sizes()));
                  expect_divisible(x.size(1), groups, "channels");
                  const LazyTensor apart =
                      reshape(x, {x.size(0), groups, x.size(1) / groups,
                                  x.numel() / std::max<int64_t>(1, x.size(0) * x.size(1))});
                  return LazyTensors{reshape(transpose(apart, 1, 2), x.sizes())};
                },
            .samples = "f32[1,6,2,2] 2 | f32[2,4,3] 4",
            .bad = "f32[1,3,2] 2: divide by 2"});
}

// ---- patches ------------------------------------------------------------------------------------

// A kernel that visits the places of an image; its elements and visits go along one axis each.
struct Patches {
  Ints image, kernel, dilation, padding, stride, visits;

  Patches(Ints size, Ints k, Ints d, Ints p, Ints s)
      : image(std::move(size)),
        kernel(std::move(k)),
        dilation(std::move(d)),
        padding(std::move(p)),
        stride(std::move(s)) {
    for (const Ints* values : {&image, &kernel, &dilation, &padding, &stride})
      if (values->size() != 2)
        throw UserError("expected two values each, received " + str(*values));
    for (size_t i = 0; i < 2; ++i) {
      if (kernel[i] < 1 || dilation[i] < 1 || stride[i] < 1 || padding[i] < 0)
        throw UserError("expected a kernel, stride and dilation above 0 and padding of at least 0");
      const int64_t free = image[i] + 2 * padding[i] - dilation[i] * (kernel[i] - 1) - 1;
      if (free < 0)
        throw UserError("the kernel " + str(kernel) + " is larger than the padded image " +
                        str(image));
      visits.push_back(free / stride[i] + 1);
    }
  }
  int64_t elements() const { return kernel[0] * kernel[1]; }
  int64_t columns() const { return visits[0] * visits[1]; }
};

// Parallel axes for every element of every patch: where it is in [n, c, h, w] and in
// [n, c * elements, columns].
std::pair<Index, Index> patch_places(Nest& nest, const Patches& p, int64_t batch,
                                     int64_t channels) {
  const Expr n = nest.parallel(batch), c = nest.parallel(channels);
  const Index k = nest.parallel(p.kernel), y = nest.parallel(p.visits);
  Index image{n, c};
  for (size_t i = 0; i < 2; ++i) {
    image.push_back(y[i] * p.stride[i] + k[i] * p.dilation[i] - p.padding[i]);
    if (p.padding[i] > 0) nest.where(image.back() >= 0 && image.back() < p.image[i]);
  }
  return {image, {n, (c * p.kernel[0] + k[0]) * p.kernel[1] + k[1], y[0] * p.visits[1] + y[1]}};
}

// Images and columns may come without the batch axis.
Index without_batch(Index at, bool batched) {
  if (!batched) at.erase(at.begin());
  return at;
}

void add_patches(OperationTable& rows) {
  rows.add({.schema = "aten::im2col(Tensor self, int[2] kernel_size, int[2] dilation, int[2] "
                      "padding, int[2] stride) -> Tensor",
            .kind = OpKind::movement,
            .loops =
                [](In x, Ints kernel, Ints dilation, Ints padding, Ints stride) {
                  if (x.rank() != 3 && x.rank() != 4)
                    throw UserError("expected an input of 3 or 4 axes, received sizes " +
                                    str(x.sizes()));
                  const bool batched = x.rank() == 4;
                  const Patches p({x.size(-2), x.size(-1)}, kernel, dilation, padding, stride);
                  const int64_t batch = batched ? x.size(0) : 1, channels = x.size(-3);
                  Nest nest;
                  const auto [image, column] = patch_places(nest, p, batch, channels);
                  Ints sizes{channels * p.elements(), p.columns()};
                  if (batched) sizes.insert(sizes.begin(), batch);
                  return nest
                      .store(sizes, without_batch(column, batched),
                             x(without_batch(image, batched)))
                      .loops();
                },
            .vjp =
                [](Vjp v, LazyTensor x, Ints kernel, Ints dilation, Ints padding, Ints stride) {
                  return Gradients{
                      apply_one("aten::col2im", {v.cotangents[0], Ints{x.size(-2), x.size(-1)},
                                                 kernel, dilation, padding, stride})};
                },
            .samples = "f32[1,2,4,5] [2,3] 1 0 1 | f32[2,3,3] 2 1 1 2 | f32[1,1,5,5] 2 2 0 1",
            .bad = "f32[2,2] 2 1 0 1: 3 or 4 axes | f32[1,2,2] 3 1 0 1: larger than"});
  rows.add({.schema = "aten::col2im(Tensor self, SymInt[2] output_size, int[2] kernel_size, int[2] "
                      "dilation, int[2] padding, int[2] stride) -> Tensor",
            .loops =
                [](In x, Ints output, Ints kernel, Ints dilation, Ints padding, Ints stride) {
                  const Patches p(output, kernel, dilation, padding, stride);
                  if ((x.rank() != 2 && x.rank() != 3) || x.size(-2) % p.elements() != 0 ||
                      x.size(-1) != p.columns())
                    throw UserError("expected " + std::to_string(p.columns()) + " columns of " +
                                    std::to_string(p.elements()) +
                                    " elements per channel, received sizes " + str(x.sizes()));
                  const bool batched = x.rank() == 3;
                  const int64_t batch = batched ? x.size(0) : 1;
                  const int64_t channels = x.size(-2) / p.elements();
                  Nest nest;
                  const auto [image, column] = patch_places(nest, p, batch, channels);
                  Ints sizes{channels, output[0], output[1]};
                  if (batched) sizes.insert(sizes.begin(), batch);
                  return nest
                      .store(sizes, without_batch(image, batched),
                             x(without_batch(column, batched)), true)
                      .loops();
                },
            .vjp =
                [](Vjp v, LazyTensor, Ints, Ints kernel, Ints dilation, Ints padding, Ints stride) {
                  return Gradients{apply_one("aten::im2col",
                                             {v.cotangents[0], kernel, dilation, padding, stride})};
                },
            .samples = "f32[1,12,9] [4,5] [2,3] 1 0 1 | f32[8,4] [3,3] 2 1 1 2",
            .bad = "f32[1,12,8] [4,5] [2,3] 1 0 1: 9 columns"});
}

}  // namespace

void add_repetition_rows(OperationTable& rows) {
  add_repetition(rows);
  add_turns(rows);
  add_shuffles(rows);
  add_patches(rows);
}

}  // namespace composit
