#include "composit/nn/convolution.h"

#include "composit/nn/channels.h"

namespace composit::nn {

static Tensor conv(std::string_view name, int64_t axes, const Tensor& x, const Tensor& weight,
                   const ConvOptions& o) {
  return with_channels_first(x, axes, o.channels_last, [&](const Tensor& y) {
    return apply_one(name, {y, weight, o.bias, o.stride, o.padding, o.dilation, o.groups});
  });
}
Tensor conv1d(const Tensor& x, const Tensor& weight, const ConvOptions& options) {
  return conv("aten::conv1d", 1, x, weight, options);
}
Tensor conv2d(const Tensor& x, const Tensor& weight, const ConvOptions& options) {
  return conv("aten::conv2d", 2, x, weight, options);
}
Tensor conv3d(const Tensor& x, const Tensor& weight, const ConvOptions& options) {
  return conv("aten::conv3d", 3, x, weight, options);
}

static Tensor conv_transpose(std::string_view name, int64_t axes, const Tensor& x,
                             const Tensor& weight, const ConvTransposeOptions& o) {
  return with_channels_first(x, axes, o.channels_last, [&](const Tensor& y) {
    return apply_one(
        name, {y, weight, o.bias, o.stride, o.padding, o.output_padding, o.groups, o.dilation});
  });
}
Tensor conv_transpose1d(const Tensor& x, const Tensor& weight,
                        const ConvTransposeOptions& options) {
  return conv_transpose("aten::conv_transpose1d", 1, x, weight, options);
}
Tensor conv_transpose2d(const Tensor& x, const Tensor& weight,
                        const ConvTransposeOptions& options) {
  return conv_transpose("aten::conv_transpose2d.input", 2, x, weight, options);
}
Tensor conv_transpose3d(const Tensor& x, const Tensor& weight,
                        const ConvTransposeOptions& options) {
  return conv_transpose("aten::conv_transpose3d.input", 3, x, weight, options);
}

}  // namespace composit::nn
