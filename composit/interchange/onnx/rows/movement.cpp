#include <algorithm>
#include <numeric>

#include "composit/interchange/onnx/rows.h"

namespace composit::onnx {
namespace {

LazyTensors same(const Call& call, const std::vector<Type>&) { return {call.tensors().at(0)}; }

LazyTensors same_elements(const Call& call, const std::vector<Type>& results) {
  return {reshaped(call.tensors().at(0), results[0].sizes)};
}

LazyTensors expand(const Call& call, const std::vector<Type>& results) {
  return {expanded(call.tensors().at(0), results[0].sizes)};
}

LazyTensors permute(const Call& call, const std::vector<Type>&) {
  const LazyTensor& x = tensor_of(call, "self");
  std::vector<int64_t> order = ints_of(call, "dims");
  for (int64_t& axis : order) axis = wrap_axis(axis, x.rank());
  return {transposed(x, order)};
}

LazyTensors swapped(const LazyTensor& x, int64_t a, int64_t b) {
  std::vector<int64_t> order(static_cast<size_t>(x.rank()));
  std::iota(order.begin(), order.end(), 0);
  if (!order.empty()) std::swap(order[static_cast<size_t>(a)], order[static_cast<size_t>(b)]);
  return {transposed(x, order)};
}

LazyTensors transpose(const Call& call, const std::vector<Type>&) {
  const LazyTensor& x = tensor_of(call, "self");
  return swapped(x, axis_of(call, "dim0", x), axis_of(call, "dim1", x));
}

LazyTensors t(const Call& call, const std::vector<Type>&) {
  const LazyTensor& x = tensor_of(call, "self");
  return x.rank() < 2 ? LazyTensors{x} : swapped(x, 0, 1);
}

LazyTensors slice(const Call& call, const std::vector<Type>& results) {
  const LazyTensor& x = tensor_of(call, "self");
  const int64_t axis = axis_of(call, "dim", x), size = x.size(axis);
  const auto place = [&](std::string_view name, int64_t otherwise) {
    if (call[name].is_none()) return otherwise;
    const int64_t at = int_of(call, name);
    return std::clamp<int64_t>(at < 0 ? at + size : at, 0, size);
  };
  const int64_t begin = place("start", 0), step = int_of(call, "step");
  const int64_t end = begin + results[0].sizes[static_cast<size_t>(axis)] * step;
  return {sliced(x, axis, begin, std::min(end, size), step)};
}

LazyTensors select(const Call& call, const std::vector<Type>& results) {
  const LazyTensor& x = tensor_of(call, "self");
  const int64_t axis = axis_of(call, "dim", x);
  int64_t index = int_of(call, "index");
  if (index < 0) index += x.size(axis);
  return {reshaped(sliced(x, axis, index, index + 1), results[0].sizes)};
}

LazyTensors pieces(const Call& call, const std::vector<Type>& results) {
  const LazyTensor& x = tensor_of(call, "self");
  const int64_t axis = axis_of(call, "dim", x);
  if (results.size() == 1) return {x};
  std::vector<int64_t> sizes;
  for (const Type& type : results) sizes.push_back(type.sizes[static_cast<size_t>(axis)]);
  return calls("Split", {x, integers(sizes)}, {attribute("axis", axis)}, results);
}

LazyTensors cat(const Call& call, const std::vector<Type>& results) {
  LazyTensors parts;
  for (const LazyTensor& tensor : call["tensors"].tensors()) {
    if (tensor.rank() != static_cast<int64_t>(results[0].rank())) continue;  // torch's empty ones
    parts.push_back(cast_to(tensor, results[0].dtype));
  }
  if (parts.size() == 1) return parts;
  const int64_t axis = wrap_axis(int_of(call, "dim"), static_cast<int64_t>(results[0].rank()));
  return {onnx::call("Concat", parts, {attribute("axis", axis)}, results[0])};
}

LazyTensors pad(const Call& call, const std::vector<Type>& results) {
  const LazyTensor& x = tensor_of(call, "self");
  const std::vector<int64_t> pad = ints_of(call, "pad");
  const auto rank = static_cast<size_t>(x.rank());
  std::vector<int64_t> pads(2 * rank, 0);  // before each axis, then behind; torch: last axis first
  for (size_t i = 0; i < pad.size() / 2; ++i) {
    pads[rank - 1 - i] = pad[2 * i];
    pads[2 * rank - 1 - i] = pad[2 * i + 1];
  }
  const DType dtype = x.dtype() == DType::bool_ ? DType::int32 : x.dtype();
  const LazyTensor padded =
      onnx::call("Pad", {cast_to(x, dtype), integers(pads), number(real_of(call, "value"), dtype)},
                 {attribute("mode", "constant")}, tensor_type(dtype, results[0].sizes));
  return {cast_to(padded, x.dtype())};
}

LazyTensors flip(const Call& call, const std::vector<Type>&) {
  LazyTensor x = tensor_of(call, "self");
  for (const int64_t axis : axes_of(call, "dims", x)) {
    const Type type = tensor_type(x.dtype(), x.sizes());
    constexpr int64_t kFirst = -(int64_t{1} << 62);  // before the first element
    x = onnx::call("Slice",
                   {x, integers({-1}), integers({kFirst}), integers({axis}), integers({-1})}, {},
                   type);
  }
  return {x};
}

}  // namespace

void add_movement_rows(std::vector<Row>& rows) {
  for (const char* op : {"aten::clone", "aten::contiguous", "aten::detach", "aten::alias"})
    rows.push_back({op, same});
  for (const char* op : {"aten::view", "aten::reshape", "aten::_unsafe_view",
                         "aten::flatten.using_ints", "aten::unsqueeze", "aten::squeeze",
                         "aten::squeeze.dim", "aten::squeeze.dims", "aten::unflatten.int"})
    rows.push_back({op, same_elements});
  rows.insert(rows.end(), {{"aten::expand", expand},
                           {"aten::permute", permute},
                           {"aten::transpose.int", transpose},
                           {"aten::t", t},
                           {"aten::slice.Tensor", slice},
                           {"aten::select.int", select},
                           {"aten::split.Tensor", pieces},
                           {"aten::split_with_sizes", pieces},
                           {"aten::chunk", pieces},
                           {"aten::cat", cat},
                           {"aten::constant_pad_nd", pad},
                           {"aten::flip", flip}});
}

}  // namespace composit::onnx
