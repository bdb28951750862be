#include <algorithm>
#include <numeric>

#include "composit/interchange/stablehlo/rows.h"

namespace composit::stablehlo {
namespace {

// Of a transposed convolution, [in, out / groups, …]: the inputs of one group, all outputs.
LazyTensor grouped(const LazyTensor& weight, int64_t groups) {
  if (groups == 1) return weight;
  Dims apart = weight.sizes();
  apart[0] /= groups;
  apart.insert(apart.begin(), groups);
  std::vector<int64_t> order(apart.size());
  std::iota(order.begin(), order.end(), 0);
  std::swap(order[0], order[1]);
  Dims together = weight.sizes();
  together[0] /= groups;
  together[1] *= groups;
  return reshaped(transposed(reshaped(weight, apart), order), together);
}

// Padding behind an axis and the axis itself, so that the last window ends where they end: rows
// that no window reads confuse IREE's compiler where there is one window.
int64_t trimmed(LazyTensor& x, size_t axis, int64_t reach, int64_t low) {
  const int64_t high = reach - low - x.sizes()[axis];
  if (high < 0) x = sliced(x, static_cast<int64_t>(axis), 0, x.sizes()[axis] + high);
  return std::max<int64_t>(high, 0);
}

LazyTensors convolution(const Call& call, const std::vector<Type>& results) {
  LazyTensor x = tensor_of(call, "input");
  const LazyTensor& weight = tensor_of(call, "weight");
  if (x.rank() != weight.rank() || is_complex(x.dtype())) return {};  // without a batch
  const bool transposed = bool_of(call, "transposed");
  const size_t axes = x.sizes().size() - 2;
  const auto stride = ints_of(call, "stride", axes), padding = ints_of(call, "padding", axes);
  const auto dilation = ints_of(call, "dilation", axes);
  const auto extra = ints_of(call, "output_padding", axes);
  const int64_t groups = int_of(call, "groups");
  const std::vector<int64_t> ones(axes, 1), zeros(axes, 0);
  std::vector<int64_t> low = padding, high = padding;
  for (size_t i = 0; i < axes; ++i) {
    const int64_t room = dilation[i] * (weight.sizes()[i + 2] - 1);
    if (transposed) {
      low[i] = room - padding[i];
      high[i] = low[i] + extra[i];
    } else {
      const int64_t windows = results[0].sizes[i + 2];
      high[i] = trimmed(x, i + 2, (windows - 1) * stride[i] + room + 1, low[i]);
    }
  }
  LazyTensor y = stablehlo::call(
      "convolution", {x, transposed ? grouped(weight, groups) : weight},
      {attribute("kernel", transposed ? "io" : "oi"), list("stride", transposed ? ones : stride),
       list("low", low), list("high", high), list("lhs_dilate", transposed ? stride : ones),
       list("rhs_dilate", dilation), list("reverse", transposed ? ones : zeros),
       attribute("groups", groups)},
      tensor_type(x.dtype(), results[0].sizes));
  if (const LazyTensor& bias = tensor_of(call, "bias"))
    y = binary("add", y, broadcast_along(bias, y.sizes(), {1}));
  return {y};
}

}  // namespace

void add_convolution_rows(std::vector<Row>& rows) {
  rows.push_back({"aten::convolution", convolution});
}

}  // namespace composit::stablehlo
