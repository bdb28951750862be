#include "composit/interchange/scans.h"

#include <cmath>
#include <functional>
#include <map>
#include <string>

#include "composit/interchange/row.h"
#include "composit/interchange/values.h"
#include "composit/ops/functions.h"

namespace composit::interchange {
namespace {

using Types = std::vector<Type>;
using Combine = std::function<LazyTensors(const LazyTensors& before, const LazyTensors& here)>;

// Each element moved `by` places back along an axis; zeros before.
LazyTensor moved(const LazyTensor& x, int64_t axis, int64_t by) {
  std::vector<int64_t> pads(2 * x.sizes().size(), 0);  // of the last axis first
  const size_t at = 2 * (x.sizes().size() - 1 - static_cast<size_t>(axis));
  pads[at] = by;
  pads[at + 1] = -by;
  return apply_one("aten::constant_pad_nd", {x, pads});
}

// The index along an axis, of size 1 along the others.
LazyTensor places_along(const LazyTensor& x, int64_t axis) {
  Dims sizes(x.sizes().size(), 1);
  sizes[static_cast<size_t>(axis)] = x.size(axis);
  return apply_one("aten::view", {apply_one("aten::arange", {x.size(axis)}), sizes});
}

// `combine` is associative.
LazyTensors scanned(LazyTensors values, int64_t axis, const Combine& combine) {
  const LazyTensor place = places_along(values.at(0), axis);
  for (int64_t step = 1; step < values[0].size(axis); step *= 2) {
    LazyTensors before;
    for (const LazyTensor& value : values) before.push_back(moved(value, axis, step));
    const LazyTensors both = combine(before, values);
    const LazyTensor is_first = place < Number(step);
    for (size_t i = 0; i < values.size(); ++i) values[i] = where(is_first, values[i], both[i]);
  }
  return values;
}

LazyTensors cumulative(const Call& call, const Types& results, bool product) {
  const DType dtype = results[0].dtype;
  const LazyTensor& given = tensor_of(call, "self");
  const LazyTensor x = to(given, opmath_dtype(dtype));
  const LazyTensors all = scanned(
      {x}, axis_of(call, "dim", x), [&](const LazyTensors& before, const LazyTensors& here) {
        const LazyTensor both = product ? before[0] * here[0] : before[0] + here[0];
        return LazyTensors{both};
      });
  return {to(all[0], dtype)};
}

// The largest so far (or the least); of equal ones the last, and what is not a number stays.
LazyTensors extrema(const Call& call, bool largest) {
  const LazyTensor& x = tensor_of(call, "self");
  const int64_t axis = axis_of(call, "dim", x);
  const LazyTensor places = apply_one("aten::expand", {places_along(x, axis), x.sizes()});
  return scanned({x, places}, axis, [&](const LazyTensors& before, const LazyTensors& here) {
    LazyTensor reaches = largest ? here[0] >= before[0] : here[0] <= before[0];
    if (is_floating_point(x.dtype())) reaches = logical_or(reaches, isnan(here[0]));
    return LazyTensors{where(reaches, here[0], before[0]), where(reaches, here[1], before[1])};
  });
}

// log(exp(a) + exp(b)), also of infinite ones.
LazyTensors logcumsumexp(const Call& call) {
  const LazyTensor& x = tensor_of(call, "self");
  return scanned({x}, axis_of(call, "dim", x),
                 [](const LazyTensors& before, const LazyTensors& here) {
                   const LazyTensor &a = before[0], &b = here[0];
                   const LazyTensor large = maximum(a, b), small = minimum(a, b);
                   const LazyTensor sum = large + log1p(exp(small - large));
                   return LazyTensors{where(eq(a, b), large + Number(std::log(2.0)), sum)};
                 });
}

// h_i = factor_i h_{i-1} + term_i.
LazyTensors recurrence(const Call& call, const Types& results) {
  const auto whole = [&](std::string_view name) {
    return apply_one("aten::expand", {tensor_of(call, name), results[0].sizes});
  };
  const LazyTensor term = whole("term");
  return {scanned({whole("factor"), term}, axis_of(call, "dim", term),
                  [](const LazyTensors& before, const LazyTensors& here) {
                    return LazyTensors{before[0] * here[0], here[0] * before[1] + here[1]};
                  })[1]};
}

}  // namespace

std::optional<LazyTensors> scan_by_doubling(const Call& call, const Types& results) {
  using Form = LazyTensors (*)(const Call& call, const Types& results);
  static const std::map<std::string_view, Form> forms = {
      {"aten::cumsum", [](const Call& c, const Types& r) { return cumulative(c, r, false); }},
      {"aten::cumprod", [](const Call& c, const Types& r) { return cumulative(c, r, true); }},
      {"aten::cummax", [](const Call& c, const Types&) { return extrema(c, true); }},
      {"aten::cummin", [](const Call& c, const Types&) { return extrema(c, false); }},
      {"aten::logcumsumexp", [](const Call& c, const Types&) { return logcumsumexp(c); }},
      {"composit::recurrence", recurrence}};
  const auto form = forms.find(call.schema().name.str());
  if (form == forms.end()) return std::nullopt;
  if (results[0].sizes.empty()) {  // of one number, which is what it was
    LazyTensors same = {to(call.tensors().back(), results[0].dtype)};
    if (results.size() == 2) same.push_back(number(0, DType::int64));
    return same;
  }
  return form->second(call, results);
}

}  // namespace composit::interchange
