// Pools over one to three axes: of the maximum, of the mean, and adaptive ones.
#include <algorithm>

#include "composit/op/promotion.h"
#include "composit/ops/functions.h"
#include "composit/ops/places.h"

namespace composit {
namespace {

Ints per_axis(const Ints& values, size_t axes, const char* what) {
  if (values.size() == axes) return values;
  if (values.size() == 1) return Ints(axes, values[0]);
  throw UserError("expected 1 or " + std::to_string(axes) + " values of " + std::string(what) +
                  ", received " + str(values));
}

// A window that moves over the last axes.
struct Window {
  Ints lead, in,
      out;  // sizes of the other axes; of the last ones, and how many places it stands at
  Ints kernel, stride, padding, dilation;
  Ints reach;  // elements of the kernel up to the last one that is ever inside of the input

  size_t axes() const { return kernel.size(); }
  Ints result() const { return joined(lead, out); }
  Ints input() const { return joined(lead, in); }
};

Window window(const Ints& sizes, size_t axes, const Ints& kernel, const Ints& stride,
              const Ints& padding, const Ints& dilation, bool ceil_mode) {
  expect_axes(sizes, axes);
  const auto split = sizes.end() - static_cast<int64_t>(axes);
  Window w{.lead = {sizes.begin(), split},
           .in = {split, sizes.end()},
           .out = {},
           .kernel = per_axis(kernel, axes, "kernel_size"),
           .stride = per_axis(stride.empty() ? kernel : stride, axes, "stride"),
           .padding = per_axis(padding, axes, "padding"),
           .dilation = per_axis(dilation, axes, "dilation"),
           .reach = {}};
  for (size_t i = 0; i < axes; ++i) {
    if (w.kernel[i] < 1 || w.stride[i] < 1 || w.dilation[i] < 1 || w.padding[i] < 0)
      throw UserError("expected a kernel, stride and dilation above 0 and padding of at least 0");
    if (2 * w.padding[i] > w.kernel[i])
      throw UserError("expected padding of at most half the kernel " + str(w.kernel) +
                      ", received " + str(w.padding));
    const int64_t free = w.in[i] + 2 * w.padding[i] - w.dilation[i] * (w.kernel[i] - 1) - 1;
    const int64_t room = free + (ceil_mode ? w.stride[i] - 1 : 0);
    int64_t out = room / w.stride[i] + 1;
    if (ceil_mode && (out - 1) * w.stride[i] >= w.in[i] + w.padding[i]) --out;
    if (room < 0 || out < 1)
      throw UserError("the kernel " + str(w.kernel) + " is larger than the padded input " +
                      str(sizes));
    w.out.push_back(out);
    const int64_t behind = w.in[i] + w.padding[i];  // of the first place of the kernel
    w.reach.push_back(std::min(w.kernel[i], (behind + w.dilation[i] - 1) / w.dilation[i]));
  }
  return w;
}

// The index of element `k` of the window at `y`; only places inside of the input count.
Index places(Nest& nest, const Window& w, const Index& y, const Index& k) {
  Index x;
  for (size_t i = 0; i < w.axes(); ++i) {
    x.push_back(y[i] * w.stride[i] + k[i] * w.dilation[i] - w.padding[i]);
    nest.where(x[i] >= 0 && x[i] < w.in[i]);
  }
  return x;
}

Index reductions(Nest& nest, const Ints& extents) {
  Index axes;
  for (int64_t extent : extents)
    axes.push_back(nest.reduction(extent, "k" + std::to_string(axes.size())));
  return axes;
}

// ---- maximum ------------------------------------------------------------------------------------

Loops max_pool(const In& x, const Window& w) {
  Nest nest;
  const Index lead = nest.parallel(w.lead), y = nest.parallel(w.out);
  const Index at = places(nest, w, y, reductions(nest, w.reach));
  const auto best = nest.fold({0, -1}, {x(joined(lead, at)), flattened(at, w.in)}, first_largest);
  return nest.store(best[0]).store(best[1]).loops();
}

template <size_t kAxes>
void add_max_pool(OperationTable& rows, std::string_view schema, std::string_view backward,
                  std::string_view samples, std::string_view backward_samples,
                  std::string_view bad) {
  static const std::string backward_name(backward.substr(0, backward.find('(')));
  rows.add({.schema = schema,
            .kind = OpKind::reduction,
            .loops =
                [](In x, Ints kernel, Ints stride, Ints padding, Ints dilation, bool ceil_mode) {
                  return max_pool(
                      x, window(x.sizes(), kAxes, kernel, stride, padding, dilation, ceil_mode));
                },
            .vjp =
                [](Vjp v, LazyTensor x, Ints kernel, Ints stride, Ints padding, Ints dilation,
                   bool ceil_mode) {
                  return Gradients{apply_one(
                      backward_name, {v.cotangents[0], x, kernel, stride.empty() ? kernel : stride,
                                      padding, dilation, ceil_mode, v.results[1]})};
                },
            .samples = samples,
            .bad = bad});
  rows.add({.schema = backward,
            .kind = OpKind::reduction,
            .loops = [](In gradient, In x, Ints, Ints, Ints, Ints, bool,
                        In indices) { return at_maxima(gradient, indices, x, kAxes); },
            .samples = backward_samples});
}

// The pool without its places.
template <size_t kAxes>
void add_max_pool_values(OperationTable& rows, std::string_view schema, std::string_view samples) {
  rows.add(
      {.schema = schema,
       .kind = OpKind::reduction,
       .decompose =
           [](LazyTensor x, Ints kernel, Ints stride, Ints padding, Ints dilation, bool ceil_mode) {
             static const std::string both =
                 "aten::max_pool" + std::to_string(kAxes) + "d_with_indices";
             return LazyTensors{apply(both, {x, kernel, stride, padding, dilation, ceil_mode})[0]};
           },
       .samples = samples});
}

void add_max_pools(OperationTable& rows) {
  add_max_pool<2>(
      rows,
      "aten::max_pool2d_with_indices(Tensor self, int[2] kernel_size, int[2] stride=[], int[2] "
      "padding=0, int[2] dilation=1, bool ceil_mode=False) -> (Tensor, Tensor)",
      "aten::max_pool2d_with_indices_backward(Tensor grad_output, Tensor self, int[2] kernel_size, "
      "int[2] stride, int[2] padding, int[2] dilation, bool ceil_mode, Tensor indices) -> Tensor",
      "f32[2,3,6,5] [2,2] | f32[3,7,7] [3,3] [2,2] [1,1] | f32[1,2,8,8] [2,2] [2,1] 0 2 | "
      "f32[1,1,5,5] 2 2 0 1 True | f32[1,1,4,4]=nan 2 | "
      "f32[1,1,3,4] 5 5 1 1 True",
      "f32[1,2,2,2] f32[1,2,4,4] 2 2 0 1 False i64[1,2,2,2]<16",
      "f32[2,2] 2: 3 or 4 axes | f32[1,1,2,2] 4: larger than | f32[1,1,5,5] 2 1 2: half");
  add_max_pool<3>(
      rows,
      "aten::max_pool3d_with_indices(Tensor self, int[3] kernel_size, int[3] stride=[], int[3] "
      "padding=0, int[3] dilation=1, bool ceil_mode=False) -> (Tensor, Tensor)",
      "aten::max_pool3d_with_indices_backward(Tensor grad_output, Tensor self, int[3] kernel_size, "
      "int[3] stride, int[3] padding, int[3] dilation, bool ceil_mode, Tensor indices) -> Tensor",
      "f32[1,2,4,4,5] 2 | f32[2,3,3,3] [2,3,2] 1 1 | f32[1,1,3,5,4] 2 2 0 1 True",
      "f32[1,2,2,2,2] f32[1,2,4,4,4] 2 2 0 1 False i64[1,2,2,2,2]<64", "f32[2,2,2] 2: 4 or 5 axes");
  add_max_pool_values<2>(
      rows,
      "aten::max_pool2d(Tensor self, int[2] kernel_size, int[2] stride=[], int[2] padding=0, "
      "int[2] dilation=1, bool ceil_mode=False) -> Tensor",
      "f32[2,3,6,5] [2,2] | f32[3,7,7] 3 2 1");
  add_max_pool_values<3>(
      rows,
      "aten::max_pool3d(Tensor self, int[3] kernel_size, int[3] stride=[], int[3] padding=0, "
      "int[3] dilation=1, bool ceil_mode=False) -> Tensor",
      "f32[1,2,4,4,5] 2");
}

// Along one axis: as torch does, an image of height 1.
void add_max_pool1d(OperationTable& rows) {
  rows.add(
      {.schema = "aten::max_pool1d_with_indices(Tensor self, int[1] kernel_size, int[1] stride=[], "
                 "int[1] padding=[0], int[1] dilation=[1], bool ceil_mode=False) -> (Tensor, "
                 "Tensor)",
       .decompose =
           [](LazyTensor x, Ints kernel, Ints stride, Ints padding, Ints dilation, bool ceil_mode) {
             expect_axes(x.sizes(), 1);
             const Window w = window(x.sizes(), 1, kernel, stride, padding, dilation, ceil_mode);
             const LazyTensors both =
                 apply("aten::max_pool2d_with_indices",
                       {unsqueeze(x, -2), Ints{1, w.kernel[0]}, Ints{1, w.stride[0]},
                        Ints{0, w.padding[0]}, Ints{1, w.dilation[0]}, ceil_mode});
             return LazyTensors{squeeze(both[0], {-2}), squeeze(both[1], {-2})};
           },
       .samples = "f32[2,3,6] 2 | f32[3,7] 3 2 1 | f32[1,1,8] 2 2 0 2 True",
       .bad = "f32[2] 2: 2 or 3 axes"});
  add_max_pool_values<1>(
      rows,
      "aten::max_pool1d(Tensor self, int[1] kernel_size, int[1] stride=[], int[1] padding=[0], "
      "int[1] dilation=[1], bool ceil_mode=False) -> Tensor",
      "f32[2,3,6] 2 | f32[3,7] 3 2 1");
}

// ---- mean ---------------------------------------------------------------------------------------

// Elements that the window at `y` divides by: those of the input, or of the padded input.
Expr counted(const Window& w, const Index& y, bool include_pad, std::optional<int64_t> divisor) {
  if (divisor) return *divisor;
  Expr count = 1;
  for (size_t i = 0; i < w.axes(); ++i) {
    const Expr begin = y[i] * w.stride[i] - w.padding[i];
    const Expr end = min(begin + w.kernel[i], w.in[i] + w.padding[i]);
    count = count * (include_pad ? end - begin : min(end, w.in[i]) - max(begin, 0));
  }
  return count;
}

Loops average_pool(const In& x, const Window& w, bool include_pad, std::optional<int64_t> divisor) {
  Nest nest;
  const Index lead = nest.parallel(w.lead), y = nest.parallel(w.out);
  const Index at = places(nest, w, y, reductions(nest, w.reach));
  const DType wide = opmath_dtype(x.dtype());
  const Expr total = nest.sum(cast(x(joined(lead, at)), wide));
  const Expr count = cast(counted(w, y, include_pad, divisor), wide);
  const bool integers = category(x.dtype()) == DTypeCategory::integer;
  const Expr mean = integers ? trunc_divide(total, count) : total / count;
  return nest.store(cast(mean, x.dtype())).loops();
}

Loops average_pool_back(const In& g, const Window& w, bool include_pad,
                        std::optional<int64_t> divisor) {
  if (g.sizes() != w.result())
    throw UserError("expected a gradient of sizes " + str(w.result()) + ", received " +
                    str(g.sizes()));
  Nest nest;
  const Index lead = nest.parallel(w.lead), y = nest.parallel(w.out);
  const Index at = places(nest, w, y, nest.parallel(w.reach));
  const DType wide = opmath_dtype(g.dtype());
  const Expr share =
      cast(g(joined(lead, y)), wide) / cast(counted(w, y, include_pad, divisor), wide);
  return nest.store(w.input(), joined(lead, at), cast(share, g.dtype()), true).loops();
}

template <size_t kAxes>
void add_average_pool(OperationTable& rows, std::string_view schema, std::string_view backward,
                      std::string_view samples, std::string_view backward_samples,
                      std::string_view bad) {
  static const std::string backward_name(backward.substr(0, backward.find('(')));
  rows.add({.schema = schema,
            .kind = OpKind::reduction,
            .loops =
                [](In x, Ints kernel, Ints stride, Ints padding, bool ceil_mode, bool include_pad,
                   std::optional<int64_t> divisor) {
                  const Window w =
                      window(x.sizes(), kAxes, kernel, stride, padding, {1}, ceil_mode);
                  return average_pool(x, w, include_pad, divisor);
                },
            .vjp =
                [](Vjp v, LazyTensor x, Ints kernel, Ints stride, Ints padding, bool ceil_mode,
                   bool include_pad, std::optional<int64_t> divisor) {
                  return Gradients{apply_one(
                      backward_name, {v.cotangents[0], x, kernel, stride.empty() ? kernel : stride,
                                      padding, ceil_mode, include_pad,
                                      divisor ? ArgumentValue(*divisor) : ArgumentValue()})};
                },
            .samples = samples,
            .bad = bad});
  rows.add({.schema = backward,
            .kind = OpKind::reduction,
            .loops =
                [](In g, In x, Ints kernel, Ints stride, Ints padding, bool ceil_mode,
                   bool include_pad, std::optional<int64_t> divisor) {
                  const Window w =
                      window(x.sizes(), kAxes, kernel, stride, padding, {1}, ceil_mode);
                  return average_pool_back(g, w, include_pad, divisor);
                },
            .samples = backward_samples});
}

void add_average_pools(OperationTable& rows) {
  rows.add({.schema = "aten::avg_pool1d(Tensor self, int[1] kernel_size, int[1] stride=[], int[1] "
                      "padding=[0], bool ceil_mode=False, bool count_include_pad=True) -> Tensor",
            .kind = OpKind::reduction,
            .loops =
                [](In x, Ints kernel, Ints stride, Ints padding, bool ceil_mode, bool include_pad) {
                  const Window w = window(x.sizes(), 1, kernel, stride, padding, {1}, ceil_mode);
                  return average_pool(x, w, include_pad, std::nullopt);
                },
            .samples = "f32[2,3,6] 2 | f32[3,7] 3 2 1 | f32[1,1,5] 3 2 1 True False | i64[1,2,6] 2",
            .bad = "f32[2] 2: 2 or 3 axes"});
  add_average_pool<2>(
      rows,
      "aten::avg_pool2d(Tensor self, int[2] kernel_size, int[2] stride=[], int[2] padding=0, bool "
      "ceil_mode=False, bool count_include_pad=True, int? divisor_override=None) -> Tensor",
      "aten::avg_pool2d_backward(Tensor grad_output, Tensor self, int[2] kernel_size, int[2] "
      "stride, int[2] padding, bool ceil_mode, bool count_include_pad, int? divisor_override) -> "
      "Tensor",
      "f32[2,3,6,5] [2,2] | f32[3,7,7] 3 2 1 | f32[1,1,5,5] 3 2 1 True False | f32[1,1,5,5] 2 2 0 "
      "False True 3 | f32[1,2,3,4] 9 [] 0 True | f32[1,2,3,4] 6 6 2 True False",
      "f32[1,2,3,2] f32[1,2,6,5] 2 2 0 False True None | f32[3,4,4] f32[3,7,7] 3 2 1 False False "
      "None | f32[1,2,1,1] f32[1,2,3,4] 9 9 0 True True None",
      "f32[2,2] 2: 3 or 4 axes");
  add_average_pool<3>(
      rows,
      "aten::avg_pool3d(Tensor self, int[3] kernel_size, int[3] stride=[], int[3] padding=0, bool "
      "ceil_mode=False, bool count_include_pad=True, int? divisor_override=None) -> Tensor",
      "aten::avg_pool3d_backward(Tensor grad_output, Tensor self, int[3] kernel_size, int[3] "
      "stride, int[3] padding, bool ceil_mode, bool count_include_pad, int? divisor_override) -> "
      "Tensor",
      "f32[1,2,4,4,5] 2 | f32[2,3,3,3] [2,3,2] 1 1 True False",
      "f32[1,2,2,2,2] f32[1,2,4,4,5] 2 2 0 False True None", "f32[2,2,2] 2: 4 or 5 axes");
}

}  // namespace

void add_pooling_rows(OperationTable& rows) {
  add_max_pools(rows);
  add_max_pool1d(rows);
  add_average_pools(rows);
}

}  // namespace composit
