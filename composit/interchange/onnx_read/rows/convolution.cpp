#include <algorithm>

#include "composit/interchange/onnx_read/windows.h"
#include "composit/ir/error.h"

namespace composit::onnx_read {
namespace {

Ints kernel_of(const OperatorCall& call, const LazyTensor& weight) {
  const Ints kernel = sizes_from(weight, 2);
  if (call.has("kernel_shape") && call.ints("kernel_shape") != kernel)
    call.refuse("kernel_shape is not that of the weights");
  return kernel;
}

LazyTensors conv(const OperatorCall& call) {
  LazyTensor x = call.operand(0);
  const LazyTensor& weight = call.operand(1);
  const Windows windows = windows_of(call, x, kernel_of(call, weight));
  const Ints none(windows.axes(), 0);
  Ints padding = windows.before;
  if (windows.before != windows.behind) {
    x = padded(x, windows, Scalar(0.0));
    padding = none;
  }
  return {op("aten::convolution", {x, weight, call.optional(2), windows.strides, padding,
                                   windows.dilations, false, none, call.integer("group", 1)})};
}

// The padding that gives the sizes that are asked for.
void pads_of_outputs(const OperatorCall& call, const Ints& outputs, const Ints& all, Ints& before,
                     Ints& behind, Ints& extra) {
  if (outputs.size() != all.size()) call.refuse("output_shape: expected a size per axis");
  for (size_t i = 0; i < all.size(); ++i) {
    const int64_t total = std::max<int64_t>(0, all[i] - outputs[i]);
    extra[i] += std::max<int64_t>(0, outputs[i] - all[i]);
    const bool upper = call.text("auto_pad", "NOTSET") == "SAME_UPPER";
    before[i] = upper ? total / 2 : total - total / 2;
    behind[i] = total - before[i];
  }
}

LazyTensors conv_transpose(const OperatorCall& call) {
  const LazyTensor &x = call.operand(0), &weight = call.operand(1);
  const Ints kernel = kernel_of(call, weight);
  const size_t axes = kernel.size();
  if (axes == 0 || x.rank() != weight.rank()) call.refuse("expected a batch, channels and axes");
  const Ints strides = per_axis(call, "strides", axes, 1);
  const Ints dilations = per_axis(call, "dilations", axes, 1);
  call.pass_over({"pads"});
  Ints extra = per_axis(call, "output_padding", axes, 0);
  const std::string automatic = call.text("auto_pad", "NOTSET");
  expect_one_of("auto_pad", automatic, {"NOTSET", "VALID", "SAME_UPPER", "SAME_LOWER"});
  Ints before(axes, 0), behind(axes, 0), all;
  for (size_t i = 0; i < axes; ++i) {
    if (strides[i] < 1 || dilations[i] < 1 || kernel[i] < 1)
      call.refuse("a stride is out of range");
    all.push_back(strides[i] * (x.sizes()[i + 2] - 1) + extra[i] + (kernel[i] - 1) * dilations[i] +
                  1);
  }
  if (call.has("output_shape")) {
    pads_of_outputs(call, call.ints("output_shape"), all, before, behind, extra);
  } else if (automatic.starts_with("SAME")) {
    Ints outputs;
    for (size_t i = 0; i < axes; ++i) outputs.push_back(x.sizes()[i + 2] * strides[i]);
    pads_of_outputs(call, outputs, all, before, behind, extra);
  } else if (automatic == "NOTSET") {
    const Ints pads = per_axis(call, "pads", 2 * axes, 0);
    std::copy_n(pads.begin(), axes, before.begin());
    std::copy_n(pads.begin() + static_cast<std::ptrdiff_t>(axes), axes, behind.begin());
  }
  const bool even = before == behind;
  LazyTensor y =
      op("aten::convolution", {x, weight, call.optional(2), strides, even ? before : Ints(axes, 0),
                               dilations, true, extra, call.integer("group", 1)});
  // Padding takes away what lies outside of it.
  for (size_t i = 0; i < axes && !even; ++i) {
    const auto axis = static_cast<int64_t>(i) + 2;
    if (all[i] < before[i] + behind[i]) call.refuse("its padding is larger than its result");
    y = slice(y, axis, before[i], all[i] - behind[i]);
  }
  return {y};
}

}  // namespace

void add_convolution_rows(std::vector<Row>& rows) {
  rows.insert(rows.end(), {{"Conv", conv}, {"ConvTranspose", conv_transpose}});
}

}  // namespace composit::onnx_read
