#include "composit/interchange/onnx/rows.h"

namespace composit::onnx {
namespace {

LazyTensor or_filled(const LazyTensor& x, double value, DType dtype, const Dims& sizes) {
  return x ? x : filled(value, dtype, sizes);
}

// Outside of training, where the running values are what counts.
LazyTensors batch_norm(const Call& call, const std::vector<Type>& results) {
  const LazyTensor& x = tensor_of(call, "input");
  if (bool_of(call, "training") || x.rank() < 2 || !tensor_of(call, "running_mean")) return {};
  if (!fits_attribute(real_of(call, "eps"), x)) return {};
  const Dims channels = {x.sizes()[1]};
  const LazyTensor y = onnx::call("BatchNormalization",
                                  {x, or_filled(tensor_of(call, "weight"), 1, x.dtype(), channels),
                                   or_filled(tensor_of(call, "bias"), 0, x.dtype(), channels),
                                   tensor_of(call, "running_mean"), tensor_of(call, "running_var")},
                                  {attribute("epsilon", real_of(call, "eps"))}, results[0]);
  if (results.size() == 1) return {y};
  // The saved values are empty then.
  return {y, filled(0, results[1].dtype, results[1].sizes),
          filled(0, results[2].dtype, results[2].sizes)};
}

LazyTensors native_batch_norm(const Call& call, const std::vector<Type>& results) {
  const bool empty = results.size() == 3 && results[1].numel() == 0 && results[2].numel() == 0;
  return empty ? batch_norm(call, results) : LazyTensors();
}

LazyTensors layer_norm(const Call& call, const std::vector<Type>& results) {
  const LazyTensor& x = tensor_of(call, "input");
  const std::vector<int64_t> shape = ints_of(call, "normalized_shape");
  if (!fits_attribute(real_of(call, "eps"), x)) return {};
  LazyTensors operands = {x, or_filled(tensor_of(call, "weight"), 1, x.dtype(), shape)};
  if (const LazyTensor& bias = tensor_of(call, "bias")) operands.push_back(bias);
  return {onnx::call("LayerNormalization", operands,
                     {attribute("axis", x.rank() - static_cast<int64_t>(shape.size())),
                      attribute("epsilon", real_of(call, "eps"))},
                     results[0])};
}

LazyTensors group_norm(const Call& call, const std::vector<Type>& results) {
  const LazyTensor& x = tensor_of(call, "input");
  const int64_t groups = int_of(call, "num_groups"), channels = x.sizes().at(1);
  if (x.numel() == 0 || !fits_attribute(real_of(call, "eps"), x)) return {};
  const Dims grouped = {x.sizes()[0], groups, x.numel() / x.sizes()[0] / groups};
  const LazyTensor normal = onnx::call(
      "InstanceNormalization",
      {reshaped(x, grouped), filled(1, x.dtype(), {groups}), filled(0, x.dtype(), {groups})},
      {attribute("epsilon", real_of(call, "eps"))}, tensor_type(x.dtype(), grouped));
  LazyTensor y = reshaped(normal, x.sizes());
  Dims per_channel(x.sizes().size() - 1, 1);
  per_channel[0] = channels;
  if (const LazyTensor& weight = tensor_of(call, "weight"))
    y = binary("Mul", y, reshaped(weight, per_channel));
  if (const LazyTensor& bias = tensor_of(call, "bias"))
    y = binary("Add", y, reshaped(bias, per_channel));
  return results.size() == 1 ? LazyTensors{y} : LazyTensors();
}

}  // namespace

void add_normalization_rows(std::vector<Row>& rows) {
  rows.insert(rows.end(), {{"aten::batch_norm", batch_norm},
                           {"aten::native_batch_norm", native_batch_norm},
                           {"aten::layer_norm", layer_norm},
                           {"aten::group_norm", group_norm}});
}

}  // namespace composit::onnx
