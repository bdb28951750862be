#include "composit/interchange/movement_rows.h"
#include "composit/interchange/onnx/rows.h"

namespace composit::onnx {
namespace {

LazyTensors split(const LazyTensor& x, int64_t axis, const std::vector<int64_t>& sizes) {
  std::vector<Type> types;
  for (const int64_t size : sizes) {
    Dims part = x.sizes();
    part[static_cast<size_t>(axis)] = size;
    types.push_back(tensor_type(x.dtype(), part));
  }
  return calls("Split", {x, integers(sizes)}, {attribute("axis", axis)}, types);
}

LazyTensor concatenated(const LazyTensors& parts, int64_t axis) {
  Dims sizes = parts.at(0).sizes();
  sizes[static_cast<size_t>(axis)] = 0;
  for (const LazyTensor& part : parts) sizes[static_cast<size_t>(axis)] += part.size(axis);
  return call("Concat", parts, {attribute("axis", axis)}, tensor_type(parts[0].dtype(), sizes));
}

LazyTensor padded(const LazyTensor& x, double value, const std::vector<int64_t>& low,
                  const std::vector<int64_t>& high) {
  std::vector<int64_t> pads = low;
  pads.insert(pads.end(), high.begin(), high.end());
  Dims sizes = x.sizes();
  for (size_t i = 0; i < sizes.size(); ++i) sizes[i] += low[i] + high[i];
  // Runtimes have no Pad of bool.
  const DType dtype = x.dtype() == DType::bool_ ? DType::int32 : x.dtype();
  const LazyTensor wide = call("Pad", {cast_to(x, dtype), integers(pads), number(value, dtype)},
                               {attribute("mode", "constant")}, tensor_type(dtype, sizes));
  return cast_to(wide, x.dtype());
}

LazyTensor reversed(const LazyTensor& x, const std::vector<int64_t>& axes) {
  constexpr int64_t kFirst = -(int64_t{1} << 62);  // before the first element
  const std::vector<int64_t> back(axes.size(), -1), ends(axes.size(), kFirst);
  return call("Slice", {x, integers(back), integers(ends), integers(axes), integers(back)}, {},
              tensor_type(x.dtype(), x.sizes()));
}

}  // namespace

void add_movement_rows(std::vector<Row>& rows) {
  interchange::add_movement_rows(rows, {.cast_to = cast_to,
                                        .reshaped = reshaped,
                                        .transposed = transposed,
                                        .expanded = expanded,
                                        .sliced = sliced,
                                        .split = split,
                                        .concatenated = concatenated,
                                        .padded = padded,
                                        .reversed = reversed});
}

}  // namespace composit::onnx
