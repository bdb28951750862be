#include "composit/nn/pooling.h"

#include "composit/nn/channels.h"

namespace composit::nn {

static LazyTensor max_pool(std::string_view name, int64_t axes, const LazyTensor& x,
                           const Ints& kernel, const MaxPoolOptions& o) {
  return with_channels_first(x, axes, o.channels_last, [&](const LazyTensor& y) {
    return apply_one(name, {y, kernel, o.stride, o.padding, o.dilation, o.ceil_mode});
  });
}
LazyTensor max_pool1d(const LazyTensor& x, const Ints& kernel_size, const MaxPoolOptions& options) {
  return max_pool("aten::max_pool1d", 1, x, kernel_size, options);
}
LazyTensor max_pool2d(const LazyTensor& x, const Ints& kernel_size, const MaxPoolOptions& options) {
  return max_pool("aten::max_pool2d", 2, x, kernel_size, options);
}
LazyTensor max_pool3d(const LazyTensor& x, const Ints& kernel_size, const MaxPoolOptions& options) {
  return max_pool("aten::max_pool3d", 3, x, kernel_size, options);
}

static LazyTensor avg_pool(std::string_view name, int64_t axes, const LazyTensor& x,
                           const Ints& kernel, const AvgPoolOptions& o) {
  return with_channels_first(x, axes, o.channels_last, [&](const LazyTensor& y) {
    return apply_one(name, {y, kernel, o.stride, o.padding, o.ceil_mode, o.count_include_pad});
  });
}
LazyTensor avg_pool1d(const LazyTensor& x, const Ints& kernel_size, const AvgPoolOptions& options) {
  return avg_pool("aten::avg_pool1d", 1, x, kernel_size, options);
}
LazyTensor avg_pool2d(const LazyTensor& x, const Ints& kernel_size, const AvgPoolOptions& options) {
  return avg_pool("aten::avg_pool2d", 2, x, kernel_size, options);
}
LazyTensor avg_pool3d(const LazyTensor& x, const Ints& kernel_size, const AvgPoolOptions& options) {
  return avg_pool("aten::avg_pool3d", 3, x, kernel_size, options);
}

// The first result: pools of the maximum also give its places.
static LazyTensor adaptive(std::string_view name, int64_t axes, const LazyTensor& x,
                           const Ints& output, bool channels_last) {
  return with_channels_first(x, axes, channels_last, [&](const LazyTensor& y) {
    return apply(name, {y, output})[0];
  });
}
LazyTensor adaptive_avg_pool1d(const LazyTensor& x, const Ints& output_size, bool channels_last) {
  return adaptive("aten::adaptive_avg_pool1d", 1, x, output_size, channels_last);
}
LazyTensor adaptive_avg_pool2d(const LazyTensor& x, const Ints& output_size, bool channels_last) {
  return adaptive("aten::adaptive_avg_pool2d", 2, x, output_size, channels_last);
}
LazyTensor adaptive_avg_pool3d(const LazyTensor& x, const Ints& output_size, bool channels_last) {
  return adaptive("aten::adaptive_avg_pool3d", 3, x, output_size, channels_last);
}
LazyTensor adaptive_max_pool1d(const LazyTensor& x, const Ints& output_size, bool channels_last) {
  return adaptive("aten::adaptive_max_pool1d", 1, x, output_size, channels_last);
}
LazyTensor adaptive_max_pool2d(const LazyTensor& x, const Ints& output_size, bool channels_last) {
  return adaptive("aten::adaptive_max_pool2d", 2, x, output_size, channels_last);
}

}  // namespace composit::nn
