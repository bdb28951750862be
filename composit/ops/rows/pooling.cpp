// Pools, and changes of resolution.
#include <algorithm>
#include <limits>

#include "composit/op/promotion.h"
#include "composit/ops/functions.h"

namespace composit {
namespace {

Ints two(const Ints& values, const char* what) {
  if (values.size() == 1) return {values[0], values[0]};
  if (values.size() == 2) return values;
  throw UserError("expected 1 or 2 values of " + std::string(what) + ", received " + str(values));
}

// A window that moves over the last two axes.
struct Window {
  Ints kernel, stride, padding, dilation, in, out;

  Expr place(size_t axis, const Expr& output, const Expr& k) const {
    return output * stride[axis] + k * dilation[axis] - padding[axis];
  }
};

Window window(const In& x, const Ints& kernel, const Ints& stride, const Ints& padding,
              const Ints& dilation, bool ceil_mode) {
  if (x.rank() != 3 && x.rank() != 4)
    throw UserError("expected an input of 3 or 4 axes, received sizes " + str(x.sizes()));
  Window w{.kernel = two(kernel, "kernel_size"),
           .stride = stride.empty() ? two(kernel, "kernel_size") : two(stride, "stride"),
           .padding = two(padding, "padding"),
           .dilation = two(dilation, "dilation"),
           .in = {x.size(-2), x.size(-1)},
           .out = {}};
  for (size_t i = 0; i < 2; ++i) {
    if (w.kernel[i] < 1 || w.stride[i] < 1 || w.dilation[i] < 1 || w.padding[i] < 0)
      throw UserError("expected a kernel, stride and dilation above 0 and padding of at least 0");
    if (2 * w.padding[i] > w.kernel[i])
      throw UserError("expected padding of at most half the kernel " + str(w.kernel) +
                      ", received " + str(w.padding));
    const int64_t free = w.in[i] + 2 * w.padding[i] - w.dilation[i] * (w.kernel[i] - 1) - 1;
    int64_t out = (free + (ceil_mode ? w.stride[i] - 1 : 0)) / w.stride[i] + 1;
    if (ceil_mode && (out - 1) * w.stride[i] >= w.in[i] + w.padding[i]) --out;
    if (free < 0 || out < 1)
      throw UserError("the kernel " + str(w.kernel) + " is larger than the padded input " +
                      str(x.sizes()));
    w.out.push_back(out);
  }
  return w;
}

Ints leading(const In& x) {
  const Ints sizes = x.sizes();
  return {sizes.begin(), sizes.end() - 2};
}

Index with(Index index, const Expr& a, const Expr& b) {
  index.push_back(a);
  index.push_back(b);
  return index;
}

Expr inside(const Expr& place, int64_t size) { return place >= 0 && place < size; }

std::vector<Expr> later_maximum(const std::vector<Expr>& l, const std::vector<Expr>& r) {
  const Expr beats = r[0] > l[0] || isnan(r[0]);
  const Expr earlier = eq(r[0], l[0]) && r[1] < l[1];
  const Expr take = r[1] >= 0 && (l[1] < 0 || (!isnan(l[0]) && (beats || earlier)));
  return {select(take, r[0], l[0]), select(take, r[1], l[1])};
}

Loops max_pool(const In& x, const Window& w) {
  Nest nest;
  const Index lead = nest.parallel(leading(x));
  const Expr y0 = nest.parallel(w.out[0]), y1 = nest.parallel(w.out[1]);
  const Expr k0 = nest.reduction(w.kernel[0], "k0"), k1 = nest.reduction(w.kernel[1], "k1");
  const Expr x0 = w.place(0, y0, k0), x1 = w.place(1, y1, k1);
  nest.where(inside(x0, w.in[0]) && inside(x1, w.in[1]));
  const auto best = nest.fold({0, -1}, {x(with(lead, x0, x1)), x0 * w.in[1] + x1}, later_maximum);
  return nest.store(best[0]).store(best[1]).loops();
}

void add_max_pool(OperationTable& rows) {
  rows.add(
      {.schema = "aten::max_pool2d_with_indices(Tensor self, int[2] kernel_size, int[2] stride=[], "
                 "int[2] padding=0, int[2] dilation=1, bool ceil_mode=False) -> (Tensor, Tensor)",
       .loops =
           [](In x, Ints kernel, Ints stride, Ints padding, Ints dilation, bool ceil_mode) {
             return max_pool(x, window(x, kernel, stride, padding, dilation, ceil_mode));
           },
       .vjp =
           [](Vjp v, Tensor x, Ints kernel, Ints stride, Ints padding, Ints dilation,
              bool ceil_mode) {
             return Gradients{apply_one(
                 "aten::max_pool2d_with_indices_backward",
                 {v.cotangents[0], x, kernel, stride, padding, dilation, ceil_mode, v.results[1]})};
           },
       .samples =
           "f32[2,3,6,5] [2,2] | f32[3,7,7] [3,3] [2,2] [1,1] | f32[1,2,8,8] [2,2] [2,1] 0 2 "
           "| f32[1,1,5,5] 2 2 0 1 True | f32[1,1,4,4]=nan 2",
       .bad = "f32[2,2] 2: 3 or 4 axes | f32[1,1,2,2] 4: larger than | f32[1,1,5,5] 2 1 2: half"});
  rows.add(
      {.schema = "aten::max_pool2d_with_indices_backward(Tensor grad_output, Tensor self, int[2] "
                 "kernel_size, int[2] stride, int[2] padding, int[2] dilation, bool ceil_mode, "
                 "Tensor indices) -> Tensor",
       .loops =
           [](In gradient, In x, Ints, Ints, Ints, Ints, bool, In indices) {
             Nest nest;
             const Index at = nest.parallel(gradient.sizes());
             const Expr flat = indices(at);
             const Index lead(at.begin(), at.end() - 2);
             const int64_t width = x.size(-1);
             return nest
                 .store(x.sizes(), with(lead, floor_divide(flat, width), remainder(flat, width)),
                        gradient(at), true)
                 .loops();
           },
       .samples = "f32[1,2,2,2] f32[1,2,4,4] 2 2 0 1 False i64[1,2,2,2]<16"});
  rows.add(
      {.schema = "aten::max_pool2d(Tensor self, int[2] kernel_size, int[2] stride=[], int[2] "
                 "padding=0, int[2] dilation=1, bool ceil_mode=False) -> Tensor",
       .decompose =
           [](Tensor x, Ints kernel, Ints stride, Ints padding, Ints dilation, bool ceil_mode) {
             return Tensors{apply("aten::max_pool2d_with_indices",
                                  {x, kernel, stride, padding, dilation, ceil_mode})[0]};
           },
       .samples = "f32[2,3,6,5] [2,2] | f32[3,7,7] 3 2 1"});
}

// Elements of the window that count along one axis: those of the input, or of the padded input.
Expr counted(const Window& w, size_t axis, const Expr& output, bool include_pad) {
  const int64_t padding = w.padding[axis];
  const Expr begin = output * w.stride[axis] - padding;
  const Expr end = min(begin + w.kernel[axis], w.in[axis] + padding);
  return include_pad ? end - begin : min(end, w.in[axis]) - max(begin, 0);
}

void add_average_pool(OperationTable& rows) {
  rows.add(
      {.schema =
           "aten::avg_pool2d(Tensor self, int[2] kernel_size, int[2] stride=[], int[2] padding=0, "
           "bool ceil_mode=False, bool count_include_pad=True, int? divisor_override=None) -> "
           "Tensor",
       .loops =
           [](In x, Ints kernel, Ints stride, Ints padding, bool ceil_mode, bool include_pad,
              std::optional<int64_t> divisor) {
             const Window w = window(x, kernel, stride, padding, {1}, ceil_mode);
             Nest nest;
             const Index lead = nest.parallel(leading(x));
             const Expr y0 = nest.parallel(w.out[0]), y1 = nest.parallel(w.out[1]);
             const Expr k0 = nest.reduction(w.kernel[0], "k0"),
                        k1 = nest.reduction(w.kernel[1], "k1");
             const Expr x0 = w.place(0, y0, k0), x1 = w.place(1, y1, k1);
             nest.where(inside(x0, w.in[0]) && inside(x1, w.in[1]));
             const Expr total = nest.sum(x(with(lead, x0, x1)));
             const Expr count =
                 divisor ? Expr(*divisor)
                         : counted(w, 0, y0, include_pad) * counted(w, 1, y1, include_pad);
             return nest.store(total / cast(count, x.dtype())).loops();
           },
       .samples =
           "f32[2,3,6,5] [2,2] | f32[3,7,7] 3 2 1 | f32[1,1,5,5] 3 2 1 True False | f32[1,1,5,5] 2 "
           "2 0 False True 3",
       .bad = "f32[2,2] 2: 3 or 4 axes"});
  rows.add({.schema = "aten::_adaptive_avg_pool2d(Tensor self, SymInt[2] output_size) -> Tensor",
            .loops =
                [](In x, Ints output) {
                  if (x.rank() != 3 && x.rank() != 4)
                    throw UserError("expected an input of 3 or 4 axes, received sizes " +
                                    str(x.sizes()));
                  const Ints out = two(output, "output_size"), in{x.size(-2), x.size(-1)};
                  Nest nest;
                  const Index lead = nest.parallel(leading(x));
                  Expr count = 1;
                  Index place;
                  for (size_t i = 0; i < 2;
                       ++i) {  // from floor(y * in / out) to ceil((y + 1) * in / out)
                    const Expr y = nest.parallel(out[i]);
                    const Expr begin = floor_divide(y * in[i], out[i]);
                    const Expr end = floor_divide((y + 1) * in[i] + (out[i] - 1), out[i]);
                    const bool even = in[i] % out[i] == 0;
                    const Expr k = nest.reduction(even ? in[i] / out[i] : in[i] / out[i] + 2);
                    if (even) {
                      place.push_back(y * (in[i] / out[i]) + k);
                      count = count * (in[i] / out[i]);
                    } else {
                      place.push_back(begin + k);
                      nest.where(place[i] < end);
                      count = count * (end - begin);
                    }
                  }
                  const Expr total = nest.sum(x(with(lead, place[0], place[1])));
                  return nest.store(total / cast(count, x.dtype())).loops();
                },
            .samples =
                "f32[2,3,4,6] [2,3] | f32[2,5,7] [3,2] | f32[1,2,3,3] [1,1] | f32[1,1,2,3] [4,4]"});
  rows.add({.schema = "aten::adaptive_avg_pool2d(Tensor self, SymInt[2] output_size) -> Tensor",
            .decompose =
                [](Tensor x, Ints output) {
                  if (two(output, "output_size") == Ints{1, 1})
                    return Tensors{mean(x, {-2, -1}, true)};
                  return Tensors{apply_one("aten::_adaptive_avg_pool2d", {x, output})};
                },
            .samples = "f32[2,3,4,6] [2,3] | f32[1,2,3,3] [1,1]"});
}

// ---- resolution ---------------------------------------------------------------------------------

void expect_image(const In& x, const Ints& output) {
  if (x.rank() != 4 || output.size() != 2 || output[0] < 1 || output[1] < 1)
    throw UserError("expected an input of 4 axes and two output sizes above 0, received sizes " +
                    str(x.sizes()) + " and " + str(output));
}

// torch works out source places in the input's own precision (float32 for the half ones).
DType place_dtype(DType dtype) { return dtype == DType::float64 ? dtype : DType::float32; }

Expr scale_of(int64_t in, int64_t out, std::optional<double> factor, DType dtype) {
  const double scale = factor && *factor > 0 ? 1 / *factor : double(in) / double(out);
  return Expr::literal(scale, dtype);
}

Expr nearest(const Expr& y, int64_t in, int64_t out, std::optional<double> factor) {
  if (out % in == 0 && (!factor || *factor == double(out) / double(in)))
    return out == in ? y : floor_divide(y, out / in);
  const Expr place = floor(cast(y, DType::float32) * scale_of(in, out, factor, DType::float32));
  return min(cast(place, DType::int64), in - 1);
}

// Two neighbours and the weight of the second.
struct Neighbours {
  Expr low, high, weight;
};

Neighbours neighbours(const Expr& y, int64_t in, int64_t out, bool align_corners,
                      std::optional<double> factor, DType dtype) {
  const DType work = place_dtype(dtype);
  const Expr at = cast(y, work);
  Expr place;
  if (align_corners)
    place = at * Expr::literal(out > 1 ? double(in - 1) / double(out - 1) : 0.0, work);
  else
    place = max((at + 0.5) * scale_of(in, out, factor, work) - 0.5, 0.0);
  const Expr low = min(cast(place, DType::int64), in - 1);
  return {low, min(low + 1, in - 1), cast(min(max(place - cast(low, work), 0.0), 1.0), dtype)};
}

void add_resolution(OperationTable& rows) {
  rows.add({.schema = "aten::upsample_nearest2d(Tensor self, SymInt[2] output_size, float? "
                      "scales_h=None, float? scales_w=None) -> Tensor",
            .loops =
                [](In x, Ints output, std::optional<double> height, std::optional<double> width) {
                  expect_image(x, output);
                  Nest nest;
                  const Index lead = nest.parallel(leading(x));
                  const Expr y0 = nest.parallel(output[0]), y1 = nest.parallel(output[1]);
                  return nest
                      .store(x(with(lead, nearest(y0, x.size(2), output[0], height),
                                    nearest(y1, x.size(3), output[1], width))))
                      .loops();
                },
            .samples = "f32[1,2,2,3] [4,6] | f32[1,1,3,5] [5,4] | f32[1,2,2,2] [4,4] 2.0 2.0",
            .bad = "f32[2,2,2] [4,4]: 4 axes"});
  rows.add(
      {.schema = "aten::upsample_bilinear2d(Tensor self, SymInt[2] output_size, bool "
                 "align_corners, float? scales_h=None, float? scales_w=None) -> Tensor",
       .loops =
           [](In x, Ints output, bool align_corners, std::optional<double> height,
              std::optional<double> width) {
             expect_image(x, output);
             Nest nest;
             const Index lead = nest.parallel(leading(x));
             const Neighbours r = neighbours(nest.parallel(output[0]), x.size(2), output[0],
                                             align_corners, height, x.dtype());
             const Neighbours c = neighbours(nest.parallel(output[1]), x.size(3), output[1],
                                             align_corners, width, x.dtype());
             const auto row = [&](const Expr& at) {
               return (1 - c.weight) * x(with(lead, at, c.low)) +
                      c.weight * x(with(lead, at, c.high));
             };
             return nest.store((1 - r.weight) * row(r.low) + r.weight * row(r.high)).loops();
           },
       .samples = "f32[1,2,2,3] [4,6] False | f32[1,1,3,5] [5,4] True | f32[1,1,4,4] [2,2] False",
       .bad = "f32[2,2,2] [4,4] False: 4 axes"});
}

}  // namespace

void add_pooling_rows(OperationTable& rows) {
  add_max_pool(rows);
  add_average_pool(rows);
  add_resolution(rows);
}

}  // namespace composit
