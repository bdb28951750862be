// Convolutions in one to three dimensions, transposed ones included, and their gradients.
#include "composit/ops/functions.h"

namespace composit {
namespace {

// The numbers of one convolution. `x` is what the plain convolution reads and the transposed one
// writes, `y` the other side; k, stride, padding and dilation have an entry per spatial axis.
struct Geometry {
  int64_t batch, groups;
  int64_t x_channels, y_channels;  // per group
  Ints x, y, k, stride, padding, dilation;

  size_t axes() const { return k.size(); }
};

Ints spatial(const Ints& sizes) { return {sizes.begin() + 2, sizes.end()}; }

Ints per_axis(const Ints& values, size_t axes, const char* what) {
  if (values.size() == axes) return values;
  if (values.size() == 1) return Ints(axes, values[0]);
  throw UserError("expected " + std::to_string(axes) + " values of " + what + ", received " +
                  str(values));
}

Geometry geometry(const Ints& input, const Ints& weight, const Ints& stride, const Ints& padding,
                  const Ints& dilation, bool transposed, const Ints& output_padding,
                  int64_t groups) {
  if (weight.size() < 3 || weight.size() > 5 || input.size() != weight.size())
    throw UserError("expected input and weight of 3 to 5 axes, as many each, received sizes " +
                    str(input) + " and " + str(weight));
  const size_t axes = weight.size() - 2;
  Geometry g{.batch = input[0],
             .groups = groups,
             .x_channels = 0,
             .y_channels = 0,
             .x = {},
             .y = {},
             .k = spatial(weight),
             .stride = per_axis(stride, axes, "stride"),
             .padding = per_axis(padding, axes, "padding"),
             .dilation = per_axis(dilation, axes, "dilation")};
  const Ints extra =
      per_axis(output_padding.empty() ? Ints{0} : output_padding, axes, "output_padding");
  const int64_t channels = transposed ? weight[0] : weight[1] * groups;
  if (groups < 1 || weight[0] % groups != 0 || input[1] != channels)
    throw UserError("weight " + str(weight) + " in " + std::to_string(groups) +
                    " groups expects an input of " + std::to_string(channels) +
                    " channels, received sizes " + str(input));
  g.x_channels = weight[1];
  g.y_channels = weight[0] / groups;
  (transposed ? g.y : g.x) = spatial(input);
  for (size_t i = 0; i < axes; ++i) {
    if (g.stride[i] < 1 || g.dilation[i] < 1 || g.padding[i] < 0)
      throw UserError("expected stride and dilation above 0 and padding of at least 0, received " +
                      str(stride) + ", " + str(dilation) + " and " + str(padding));
    const int64_t reach = g.dilation[i] * (g.k[i] - 1) + 1;
    const int64_t out = transposed
                            ? (input[i + 2] - 1) * g.stride[i] - 2 * g.padding[i] + reach + extra[i]
                            : (input[i + 2] + 2 * g.padding[i] - reach) / g.stride[i] + 1;
    if (out < 1 || (!transposed && input[i + 2] + 2 * g.padding[i] < reach))
      throw UserError("the kernel " + str(g.k) + " is larger than the padded input " + str(input));
    (transposed ? g.x : g.y).push_back(out);
  }
  return g;
}

// Axes of a nest by their role; groups of one have no axis, so that loops read well.
struct Axes {
  Expr n, group, x_channel, y_channel;
  Index k;

  Expr channel(const Expr& within, int64_t channels) const {
    return group.defined() ? group * channels + within : within;
  }
};

Expr group_axis(Nest& nest, const Geometry& g) {
  return g.groups > 1 ? nest.parallel(g.groups, "g") : Expr();
}

Index with(const Expr& a, const Expr& b, const Index& rest) {
  Index index{a, b};
  index.insert(index.end(), rest.begin(), rest.end());
  return index;
}

// The index at which the plain convolution reads x for output `y` and kernel element `k`.
Index x_of(Nest& nest, const Geometry& g, const Index& y, const Index& k) {
  Index x;
  for (size_t i = 0; i < g.axes(); ++i) {
    x.push_back(y[i] * g.stride[i] + k[i] * g.dilation[i] - g.padding[i]);
    if (g.padding[i] > 0) nest.where(x[i] >= 0 && x[i] < g.x[i]);
  }
  return x;
}

// The output that reads `x` with kernel element `k`, where there is one.
Index y_of(Nest& nest, const Geometry& g, const Index& x, const Index& k) {
  Index y;
  for (size_t i = 0; i < g.axes(); ++i) {
    const Expr reached = x[i] + g.padding[i] - k[i] * g.dilation[i];
    if (g.stride[i] > 1) nest.where(eq(remainder(reached, g.stride[i]), 0));
    y.push_back(floor_divide(reached, g.stride[i]));
    nest.where(reached >= 0 && y[i] < g.y[i]);
  }
  return y;
}

// y = x * weight. `input` holds x, weight is [groups * y_channels, x_channels, k…].
Expr forward(Nest& nest, const Geometry& g, const In& input, const In& weight, Index& at) {
  Axes axes{.n = nest.parallel(g.batch, "n"),
            .group = group_axis(nest, g),
            .x_channel = {},
            .y_channel = nest.parallel(g.y_channels, "c"),
            .k = {}};
  const Index y = nest.parallel(g.y);
  axes.x_channel = nest.reduction(g.x_channels, "ci");
  for (int64_t size : g.k)
    axes.k.push_back(nest.reduction(size, "k" + std::to_string(axes.k.size())));
  const Expr channel = axes.channel(axes.y_channel, g.y_channels);
  at = with(axes.n, channel, y);
  const Index x = x_of(nest, g, y, axes.k);
  return nest.sum(input(with(axes.n, axes.channel(axes.x_channel, g.x_channels), x)) *
                  weight(with(channel, axes.x_channel, axes.k)));
}

// x = y * weight the other way round: the transposed convolution, and the gradient of x.
Expr backward(Nest& nest, const Geometry& g, const In& input, const In& weight, Index& at) {
  Axes axes{.n = nest.parallel(g.batch, "n"),
            .group = group_axis(nest, g),
            .x_channel = nest.parallel(g.x_channels, "ci"),
            .y_channel = {},
            .k = {}};
  const Index x = nest.parallel(g.x);
  axes.y_channel = nest.reduction(g.y_channels, "c");
  for (int64_t size : g.k)
    axes.k.push_back(nest.reduction(size, "k" + std::to_string(axes.k.size())));
  const Expr channel = axes.channel(axes.y_channel, g.y_channels);
  at = with(axes.n, axes.channel(axes.x_channel, g.x_channels), x);
  const Index y = y_of(nest, g, x, axes.k);
  return nest.sum(input(with(axes.n, channel, y)) * weight(with(channel, axes.x_channel, axes.k)));
}

// The gradient of the weight from both sides.
Expr weight_gradient(Nest& nest, const Geometry& g, const In& x_side, const In& y_side, Index& at) {
  Axes axes{.n = {},
            .group = group_axis(nest, g),
            .x_channel = {},
            .y_channel = nest.parallel(g.y_channels, "c"),
            .k = {}};
  axes.x_channel = nest.parallel(g.x_channels, "ci");
  axes.k = nest.parallel(g.k);
  axes.n = nest.reduction(g.batch, "n");
  Index y;
  for (int64_t size : g.y) y.push_back(nest.reduction(size));
  const Expr channel = axes.channel(axes.y_channel, g.y_channels);
  at = with(channel, axes.x_channel, axes.k);
  const Index x = x_of(nest, g, y, axes.k);
  return nest.sum(x_side(with(axes.n, axes.channel(axes.x_channel, g.x_channels), x)) *
                  y_side(with(axes.n, channel, y)));
}

Ints output_sizes(const Geometry& g, bool transposed) {
  Ints sizes{g.batch, g.groups * (transposed ? g.x_channels : g.y_channels)};
  const Ints& rest = transposed ? g.x : g.y;
  sizes.insert(sizes.end(), rest.begin(), rest.end());
  return sizes;
}

void expect_bias(const In& bias, const Ints& output) {
  if (bias.sizes() != Ints{output[1]})
    throw UserError("expected a bias of sizes " + str({output[1]}) + ", received " +
                    str(bias.sizes()));
}

Expr bias_gradient(Nest& nest, const In& gradient) {
  Ints axes{0};
  for (int64_t axis = 2; axis < gradient.rank(); ++axis) axes.push_back(axis);
  const Index at = nest.reduce_over(gradient, axes, false);
  return nest.sum(gradient(at));
}

void add_convolution(OperationTable& rows) {
  rows.add(
      {.schema = "aten::convolution(Tensor input, Tensor weight, Tensor? bias, SymInt[] stride, "
                 "SymInt[] padding, SymInt[] dilation, bool transposed, SymInt[] output_padding, "
                 "SymInt groups) -> Tensor",
       .kind = OpKind::contraction,
       .loops =
           [](In input, In weight, std::optional<In> bias, Ints stride, Ints padding, Ints dilation,
              bool transposed, Ints output_padding, int64_t groups) {
             const Geometry g = geometry(input.sizes(), weight.sizes(), stride, padding, dilation,
                                         transposed, output_padding, groups);
             const Ints sizes = output_sizes(g, transposed);
             Nest nest;
             Index at;
             Expr value = (transposed ? backward : forward)(nest, g, input, weight, at);
             if (bias) {
               expect_bias(*bias, sizes);
               value = value + (*bias)(at[1]);
             }
             return nest.store(sizes, at, value).loops();
           },
       .vjp =
           [](Vjp v, LazyTensor input, LazyTensor weight, std::optional<LazyTensor> bias,
              Ints stride, Ints padding, Ints dilation, bool transposed, Ints output_padding,
              int64_t groups) {
             const ArgumentValue bias_sizes = bias ? ArgumentValue(bias->sizes()) : ArgumentValue();
             return apply("aten::convolution_backward",
                          {v.cotangents[0], input, weight, bias_sizes, stride, padding, dilation,
                           transposed, output_padding, groups, v.wanted});
           },
       .samples = "f32[2,3,5,6] f32[4,3,3,2] f32[4] [1,1] [0,0] [1,1] False [0,0] 1 | "
                  "f32[1,4,7,7] f32[6,2,3,3] None [2,2] [1,1] [1,1] False [0,0] 2 | "
                  "f32[2,2,9] f32[3,2,3] f32[3] [2] [2] [2] False [0] 1 | "
                  "f32[1,2,4,5,4] f32[2,2,2,2,2] None [1,1,1] [1,0,1] [1,1,1] False [0,0,0] 1 | "
                  "f32[2,4,3,3] f32[4,3,3,3] f32[3] [2,2] [1,1] [1,1] True [1,1] 1 | "
                  "f32[1,4,4] f32[4,1,3] f32[2] [1] [0] [2] True [0] 2",
       .bad =
           "f32[1,3,5,5] f32[4,2,3,3] None [1,1] [0,0] [1,1] False [0,0] 1: expects an input of | "
           "f32[1,2,2,2] f32[4,2,3,3] None [1,1] [0,0] [1,1] False [0,0] 1: larger than | "
           "f32[1,2,5] f32[4,2,3] f32[3] [1] [0] [1] False [0] 1: a bias of sizes"});
}

void add_convolution_backward(OperationTable& rows) {
  rows.add(
      {.schema = "aten::convolution_backward(Tensor grad_output, Tensor input, Tensor weight, "
                 "SymInt[]? bias_sizes, SymInt[] stride, SymInt[] padding, SymInt[] dilation, bool "
                 "transposed, SymInt[] output_padding, SymInt groups, bool[3] output_mask) -> "
                 "(Tensor, Tensor, Tensor)",
       .kind = OpKind::contraction,
       .loops =
           [](In gradient, In input, In weight, Ints, Ints stride, Ints padding, Ints dilation,
              bool transposed, Ints output_padding, int64_t groups, std::vector<bool> mask) {
             const Geometry g = geometry(input.sizes(), weight.sizes(), stride, padding, dilation,
                                         transposed, output_padding, groups);
             if (gradient.sizes() != output_sizes(g, transposed))
               throw UserError("expected a gradient of sizes " + str(output_sizes(g, transposed)) +
                               ", received " + str(gradient.sizes()));
             std::vector<Nest> nests(3);
             Index at;
             if (mask[0]) {
               const Expr dx = (transposed ? forward : backward)(nests[0], g, gradient, weight, at);
               nests[0].store(input.sizes(), at, dx);
             } else {
               nests[0].no_result();
             }
             if (mask[1]) {
               const In& x = transposed ? gradient : input;
               const In& y = transposed ? input : gradient;
               const Expr dw = weight_gradient(nests[1], g, x, y, at);
               nests[1].store(weight.sizes(), at, dw);
             } else {
               nests[1].no_result();
             }
             mask[2] ? nests[2].store(bias_gradient(nests[2], gradient)) : nests[2].no_result();
             return sequence(nests);
           },
       .samples =
           "f32[2,4,3,5] f32[2,3,5,6] f32[4,3,3,2] [4] [1,1] [0,0] [1,1] False [0,0] 1 "
           "[True,True,True] | f32[1,6,4,4] f32[1,4,7,7] f32[6,2,3,3] None [2,2] [1,1] [1,1] "
           "False [0,0] 2 [True,True,False] | f32[2,3,6,6] f32[2,4,3,3] f32[4,3,3,3] [3] "
           "[2,2] [1,1] [1,1] True [1,1] 1 [True,True,True]",
       .bad = "f32[1,4,3,3] f32[1,3,6,6] f32[4,3,3,3] None [1,1] [0,0] [1,1] False [0,0] 1 "
              "[True,True,True]: a gradient of sizes"});
}

// conv2d and its like: a batch axis may be missing, padding may be one number for all.
LazyTensor convolve(LazyTensor x, const LazyTensor& weight, const std::optional<LazyTensor>& bias,
                    const Ints& stride, const Ints& padding, const Ints& dilation, bool transposed,
                    const Ints& output_padding, int64_t groups) {
  const bool batched = x.rank() == weight.rank();
  if (!batched) x = unsqueeze(x, 0);
  const LazyTensor y = apply_one("aten::convolution", {x, weight, bias, stride, padding, dilation,
                                                       transposed, output_padding, groups});
  return batched ? y : squeeze(y, {0});
}

template <int kAxes>
void add_composites(OperationTable& rows, std::string_view plain, std::string_view transposed,
                    std::string_view samples, std::string_view transposed_samples) {
  rows.add({.schema = plain,
            .kind = OpKind::contraction,
            .decompose =
                [](LazyTensor x, LazyTensor weight, std::optional<LazyTensor> bias, Ints stride,
                   Ints padding, Ints dilation, int64_t groups) {
                  return LazyTensors{convolve(x, weight, bias, stride, padding, dilation, false,
                                              Ints(kAxes, 0), groups)};
                },
            .samples = samples});
  rows.add({.schema = transposed,
            .kind = OpKind::contraction,
            .decompose =
                [](LazyTensor x, LazyTensor weight, std::optional<LazyTensor> bias, Ints stride,
                   Ints padding, Ints output_padding, int64_t groups, Ints dilation) {
                  return LazyTensors{convolve(x, weight, bias, stride, padding, dilation, true,
                                              output_padding, groups)};
                },
            .samples = transposed_samples});
}

}  // namespace

void add_convolution_rows(OperationTable& rows) {
  add_convolution(rows);
  add_convolution_backward(rows);
  add_composites<1>(
      rows,
      "aten::conv1d(Tensor input, Tensor weight, Tensor? bias=None, SymInt[1] stride=1, SymInt[1] "
      "padding=0, SymInt[1] dilation=1, SymInt groups=1) -> Tensor",
      "aten::conv_transpose1d(Tensor input, Tensor weight, Tensor? bias=None, SymInt[1] stride=1, "
      "SymInt[1] padding=0, SymInt[1] output_padding=0, SymInt groups=1, SymInt[1] dilation=1) -> "
      "Tensor",
      "f32[2,2,7] f32[3,2,3] f32[3] | f32[2,7] f32[3,2,3] None 2 1",
      "f32[1,2,4] f32[2,3,3] f32[3] 2 1 1");
  add_composites<2>(
      rows,
      "aten::conv2d(Tensor input, Tensor weight, Tensor? bias=None, SymInt[2] stride=1, SymInt[2] "
      "padding=0, SymInt[2] dilation=1, SymInt groups=1) -> Tensor",
      "aten::conv_transpose2d.input(Tensor input, Tensor weight, Tensor? bias=None, SymInt[2] "
      "stride=1, SymInt[2] padding=0, SymInt[2] output_padding=0, SymInt groups=1, SymInt[2] "
      "dilation=1) -> Tensor",
      "f32[2,2,5,5] f32[3,2,3,3] f32[3] | f32[2,5,5] f32[2,1,3,3] None [2,1] 1 [1,2] 2",
      "f32[1,2,3,4] f32[2,3,3,3] f32[3] 2 1 1");
  add_composites<3>(
      rows,
      "aten::conv3d(Tensor input, Tensor weight, Tensor? bias=None, SymInt[3] stride=1, SymInt[3] "
      "padding=0, SymInt[3] dilation=1, SymInt groups=1) -> Tensor",
      "aten::conv_transpose3d.input(Tensor input, Tensor weight, Tensor? bias=None, SymInt[3] "
      "stride=1, SymInt[3] padding=0, SymInt[3] output_padding=0, SymInt groups=1, SymInt[3] "
      "dilation=1) -> Tensor",
      "f32[1,2,4,4,3] f32[2,2,2,2,2] f32[2]", "f32[1,2,2,3,2] f32[2,1,2,2,2] f32[1] 2");
}

}  // namespace composit
