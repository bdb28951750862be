#include "composit/interchange/movement_rows.h"

#include <algorithm>
#include <numeric>

namespace composit::interchange {
namespace {

using Types = std::vector<Type>;
using Target = MovementOperators;
// A rule, given the target's operators.
using Rule = LazyTensors (*)(const Target& target, const Call& call, const Types& results);

LazyTensors same(const Target&, const Call& call, const Types&) { return {call.tensors().at(0)}; }

LazyTensors same_elements(const Target& target, const Call& call, const Types& results) {
  return {target.reshaped(call.tensors().at(0), results[0].sizes)};
}

LazyTensors expand(const Target& target, const Call& call, const Types& results) {
  return {target.expanded(call.tensors().at(0), results[0].sizes)};
}

LazyTensors permute(const Target& target, const Call& call, const Types&) {
  const LazyTensor& x = tensor_of(call, "self");
  std::vector<int64_t> order = ints_of(call, "dims");
  for (int64_t& axis : order) axis = wrap_axis(axis, x.rank());
  return {target.transposed(x, order)};
}

LazyTensors swapped(const Target& target, const LazyTensor& x, int64_t a, int64_t b) {
  std::vector<int64_t> order(static_cast<size_t>(x.rank()));
  std::iota(order.begin(), order.end(), 0);
  if (!order.empty()) std::swap(order[static_cast<size_t>(a)], order[static_cast<size_t>(b)]);
  return {target.transposed(x, order)};
}

LazyTensors transpose(const Target& target, const Call& call, const Types&) {
  const LazyTensor& x = tensor_of(call, "self");
  return swapped(target, x, axis_of(call, "dim0", x), axis_of(call, "dim1", x));
}

LazyTensors t(const Target& target, const Call& call, const Types&) {
  const LazyTensor& x = tensor_of(call, "self");
  return x.rank() < 2 ? LazyTensors{x} : swapped(target, x, 0, 1);
}

LazyTensors slice(const Target& target, const Call& call, const Types& results) {
  const LazyTensor& x = tensor_of(call, "self");
  const int64_t axis = axis_of(call, "dim", x), size = x.size(axis), step = int_of(call, "step");
  int64_t begin = call["start"].is_none() ? 0 : int_of(call, "start");
  begin = std::clamp<int64_t>(begin < 0 ? begin + size : begin, 0, size);
  const int64_t end = begin + results[0].sizes[static_cast<size_t>(axis)] * step;
  return {target.sliced(x, axis, begin, std::min(end, size), step)};
}

LazyTensors one_place(const Target& target, const Call& call, const Types& results) {
  const LazyTensor& x = tensor_of(call, "self");
  const int64_t axis = axis_of(call, "dim", x);
  int64_t index = int_of(call, "index");
  if (index < 0) index += x.size(axis);
  return {target.reshaped(target.sliced(x, axis, index, index + 1, 1), results[0].sizes)};
}

LazyTensors pieces(const Target& target, const Call& call, const Types& results) {
  const LazyTensor& x = tensor_of(call, "self");
  const int64_t axis = axis_of(call, "dim", x);
  if (results.size() == 1) return {x};
  std::vector<int64_t> sizes;
  for (const Type& type : results) sizes.push_back(type.sizes[static_cast<size_t>(axis)]);
  return target.split(x, axis, sizes);
}

LazyTensors cat(const Target& target, const Call& call, const Types& results) {
  const auto rank = static_cast<int64_t>(results[0].rank());
  LazyTensors parts;
  for (const LazyTensor& tensor : call["tensors"].tensors())
    if (tensor.rank() == rank)  // else one of torch's empty ones
      parts.push_back(target.cast_to(tensor, results[0].dtype));
  if (parts.size() < 2) return parts;
  return {target.concatenated(parts, wrap_axis(int_of(call, "dim"), rank))};
}

LazyTensors pad(const Target& target, const Call& call, const Types&) {
  const LazyTensor& x = tensor_of(call, "self");
  const std::vector<int64_t> pad = ints_of(call, "pad");  // of the last axis first
  const size_t rank = x.sizes().size();
  std::vector<int64_t> low(rank, 0), high(rank, 0);
  for (size_t i = 0; i < pad.size() / 2; ++i) {
    low[rank - 1 - i] = pad[2 * i];
    high[rank - 1 - i] = pad[2 * i + 1];
  }
  return {target.padded(x, real_of(call, "value"), low, high)};
}

LazyTensors flip(const Target& target, const Call& call, const Types&) {
  const LazyTensor& x = tensor_of(call, "self");
  if (ints_of(call, "dims").empty()) return {x};
  return {target.reversed(x, axes_of(call, "dims", x))};
}

constexpr std::pair<std::string_view, Rule> kRules[] = {{"aten::clone", same},
                                                        {"aten::contiguous", same},
                                                        {"aten::detach", same},
                                                        {"aten::alias", same},
                                                        {"aten::view", same_elements},
                                                        {"aten::reshape", same_elements},
                                                        {"aten::_unsafe_view", same_elements},
                                                        {"aten::flatten.using_ints", same_elements},
                                                        {"aten::unsqueeze", same_elements},
                                                        {"aten::squeeze", same_elements},
                                                        {"aten::squeeze.dim", same_elements},
                                                        {"aten::squeeze.dims", same_elements},
                                                        {"aten::unflatten.int", same_elements},
                                                        {"aten::expand", expand},
                                                        {"aten::permute", permute},
                                                        {"aten::transpose.int", transpose},
                                                        {"aten::t", t},
                                                        {"aten::slice.Tensor", slice},
                                                        {"aten::select.int", one_place},
                                                        {"aten::split.Tensor", pieces},
                                                        {"aten::split_with_sizes", pieces},
                                                        {"aten::chunk", pieces},
                                                        {"aten::cat", cat},
                                                        {"aten::constant_pad_nd", pad},
                                                        {"aten::flip", flip}};

}  // namespace

void add_movement_rows(std::vector<Row>& rows, const MovementOperators& target) {
  for (const auto& [op, rule] : kRules)
    rows.push_back({op, [target, rule = rule](const Call& call, const Types& results) {
                      return rule(target, call, results);
                    }});
}

}  // namespace composit::interchange
