#include "composit/interchange/onnx_read/windows.h"

#include <algorithm>

#include "composit/ir/error.h"

namespace composit::onnx_read {
namespace {

constexpr int64_t kLargestWindow = int64_t{1} << 31;  // of a size, a stride, a padding

// Padding so that there is a window per `stride` elements; the odd one at the end, or the start.
void pad_to_same(Windows& windows, const LazyTensor& x, bool odd_one_behind) {
  for (size_t i = 0; i < windows.axes(); ++i) {
    const int64_t size = x.sizes()[i + 2], stride = windows.strides[i];
    const int64_t window = (windows.kernel[i] - 1) * windows.dilations[i] + 1;
    const int64_t count = (size + stride - 1) / stride;
    const int64_t all = std::max<int64_t>(0, (count - 1) * stride + window - size);
    windows.before[i] = odd_one_behind ? all / 2 : all - all / 2;
    windows.behind[i] = all - windows.before[i];
  }
}

}  // namespace

Ints per_axis(const OperatorCall& call, std::string_view attribute, size_t axes,
              int64_t otherwise) {
  Ints values = call.has(attribute) ? call.ints(attribute) : Ints(axes, otherwise);
  if (values.size() != axes)
    throw UserError("attribute '" + std::string(attribute) + "': expected " + std::to_string(axes) +
                    " numbers, received " + std::to_string(values.size()));
  for (const int64_t value : values)
    if (value < 0 || value > kLargestWindow)
      throw UserError("attribute '" + std::string(attribute) + "': " + std::to_string(value) +
                      " is out of range");
  return values;
}

Windows windows_of(const OperatorCall& call, const LazyTensor& x, const Ints& kernel) {
  const size_t axes = kernel.size();
  if (axes == 0 || x.rank() != static_cast<int64_t>(axes) + 2)
    throw UserError("expected a batch, channels and " + std::to_string(axes) + " axes of windows");
  Windows windows{kernel, per_axis(call, "strides", axes, 1), per_axis(call, "dilations", axes, 1),
                  Ints(axes, 0), Ints(axes, 0)};
  windows.ceil = call.flag("ceil_mode");
  for (size_t i = 0; i < axes; ++i)
    if (windows.kernel[i] < 1 || windows.kernel[i] > kLargestWindow || windows.strides[i] < 1 ||
        windows.dilations[i] < 1 || x.sizes()[i + 2] > kLargestWindow)
      throw UserError("a size, a stride or a dilation is out of range");
  call.pass_over({"pads"});  // which automatic padding takes the place of
  const std::string automatic = call.text("auto_pad", "NOTSET");
  expect_one_of("auto_pad", automatic, {"NOTSET", "VALID", "SAME_UPPER", "SAME_LOWER"});
  if (automatic.starts_with("SAME")) {
    pad_to_same(windows, x, automatic == "SAME_UPPER");
  } else if (automatic == "NOTSET") {
    const Ints pads = per_axis(call, "pads", 2 * axes, 0);
    std::copy_n(pads.begin(), axes, windows.before.begin());
    std::copy_n(pads.begin() + static_cast<std::ptrdiff_t>(axes), axes, windows.behind.begin());
  }
  for (size_t i = 0; i < axes; ++i) {
    const int64_t all = x.sizes()[i + 2] + windows.before[i] + windows.behind[i];
    const int64_t room = all - ((windows.kernel[i] - 1) * windows.dilations[i] + 1);
    if (room < 0) throw UserError("a window is larger than what it is laid over");
    const int64_t stride = windows.strides[i];
    int64_t count = (windows.ceil ? room + stride - 1 : room) / stride + 1;
    // A window that begins behind the operand and the padding before it is none.
    if (windows.ceil && (count - 1) * stride >= x.sizes()[i + 2] + windows.before[i]) --count;
    windows.outputs.push_back(count);
  }
  return windows;
}

Ints Windows::beyond(const LazyTensor& x) const {
  Ints result;
  for (size_t i = 0; i < axes(); ++i) {
    const int64_t end = (outputs[i] - 1) * strides[i] + (kernel[i] - 1) * dilations[i] + 1;
    result.push_back(std::max<int64_t>(0, end - x.sizes()[i + 2] - before[i] - behind[i]));
  }
  return result;
}

bool Windows::is_plain() const {
  bool plain = before == behind;
  for (size_t i = 0; i < axes(); ++i) plain = plain && before[i] <= kernel[i] / 2;
  return plain;
}

LazyTensor padded(const LazyTensor& x, const Windows& windows, const Scalar& value) {
  const Ints beyond = windows.beyond(x);
  Ints list;
  for (size_t i = windows.axes(); i-- > 0;) {
    list.push_back(windows.before[i]);
    list.push_back(windows.behind[i] + beyond[i]);
  }
  if (std::all_of(list.begin(), list.end(), [](int64_t pad) { return pad == 0; })) return x;
  return op("aten::constant_pad_nd", {x, list, value});
}

LazyTensor window_sums(const LazyTensor& x, const Windows& windows) {
  const int64_t channels = x.size(1);
  Ints sizes = {channels, 1};
  sizes.insert(sizes.end(), windows.kernel.begin(), windows.kernel.end());
  const Ints none(windows.axes(), 0);
  return op("aten::convolution", {x, full(sizes, 1.0, x.dtype()), LazyTensor(), windows.strides,
                                  none, windows.dilations, false, none, channels});
}

}  // namespace composit::onnx_read
