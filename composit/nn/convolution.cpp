#include "composit/nn/convolution.h"

#include "composit/nn/channels.h"

namespace composit::nn {

static LazyTensor conv(std::string_view name, int64_t axes, const LazyTensor& x,
                       const LazyTensor& weight, const ConvOptions& o) {
  return with_channels_first(x, axes, o.channels_last, [&](const LazyTensor& y) {
    return apply_one(name, {y, weight, o.bias, o.stride, o.padding, o.dilation, o.groups});
  });
}
LazyTensor conv1d(const LazyTensor& x, const LazyTensor& weight, const ConvOptions& options) {
  return conv("aten::conv1d", 1, x, weight, options);
}
LazyTensor conv2d(const LazyTensor& x, const LazyTensor& weight, const ConvOptions& options) {
  return conv("aten::conv2d", 2, x, weight, options);
}
LazyTensor conv3d(const LazyTensor& x, const LazyTensor& weight, const ConvOptions& options) {
  return conv("aten::conv3d", 3, x, weight, options);
}

static LazyTensor conv_transpose(std::string_view name, int64_t axes, const LazyTensor& x,
                                 const LazyTensor& weight, const ConvTransposeOptions& o) {
  return with_channels_first(x, axes, o.channels_last, [&](const LazyTensor& y) {
    return apply_one(
        name, {y, weight, o.bias, o.stride, o.padding, o.output_padding, o.groups, o.dilation});
  });
}
LazyTensor conv_transpose1d(const LazyTensor& x, const LazyTensor& weight,
                            const ConvTransposeOptions& options) {
  return conv_transpose("aten::conv_transpose1d", 1, x, weight, options);
}
LazyTensor conv_transpose2d(const LazyTensor& x, const LazyTensor& weight,
                            const ConvTransposeOptions& options) {
  return conv_transpose("aten::conv_transpose2d.input", 2, x, weight, options);
}
LazyTensor conv_transpose3d(const LazyTensor& x, const LazyTensor& weight,
                            const ConvTransposeOptions& options) {
  return conv_transpose("aten::conv_transpose3d.input", 3, x, weight, options);
}

}  // namespace composit::nn
