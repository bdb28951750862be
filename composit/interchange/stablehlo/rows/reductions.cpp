#include "composit/interchange/stablehlo/rows.h"
#include "composit/ops/functions.h"

namespace composit::stablehlo {
namespace {

using Types = std::vector<Type>;

// torch's sums of bools and small integers are of int64; of float16 and bfloat16 they are gathered
// in float32 (opmath_dtype).
LazyTensors sum(const Call& call, const Types& results) {
  const LazyTensor& x = tensor_of(call, "self");
  const DType dtype = results[0].dtype;
  const LazyTensor wide = cast_to(x, opmath_dtype(dtype));
  return {cast_to(
      reduced("add", wide, like(0, wide), axes_of(call, "dim", x), bool_of(call, "keepdim")),
      dtype)};
}

LazyTensors prod(const Call& call, const Types& results) {
  const LazyTensor& x = tensor_of(call, "self");
  const DType dtype = results[0].dtype;
  const LazyTensor wide = cast_to(x, opmath_dtype(dtype));
  if (x.rank() == 0) return {cast_to(wide, dtype)};
  return {cast_to(
      reduced("multiply", wide, like(1, wide), {axis_of(call, "dim", x)}, bool_of(call, "keepdim")),
      dtype)};
}

LazyTensors amax(const Call& call, const Types&) {
  const LazyTensor& x = tensor_of(call, "self");
  return {
      reduced("maximum", x, lowest(x.dtype()), axes_of(call, "dim", x), bool_of(call, "keepdim"))};
}

LazyTensors amin(const Call& call, const Types&) {
  const LazyTensor& x = tensor_of(call, "self");
  return {
      reduced("minimum", x, highest(x.dtype()), axes_of(call, "dim", x), bool_of(call, "keepdim"))};
}

LazyTensors all(const Call& call, const Types& results) {
  const LazyTensor x = truth(tensor_of(call, "self"));
  return {cast_to(
      reduced("and", x, number(1, DType::bool_), axes_of(call, "dim", x), bool_of(call, "keepdim")),
      results[0].dtype)};
}

LazyTensors any(const Call& call, const Types& results) {
  const LazyTensor x = truth(tensor_of(call, "self"));
  return {cast_to(
      reduced("or", x, number(0, DType::bool_), axes_of(call, "dim", x), bool_of(call, "keepdim")),
      results[0].dtype)};
}

// ---- places -------------------------------------------------------------------------------------

// The largest (or least) element along an axis and its place.
LazyTensors extremum(const LazyTensor& x, int64_t axis, bool largest, bool keep) {
  const Region body = chooser(x.dtype(), largest);
  const LazyTensor places = iota(DType::int64, x.sizes(), axis);
  const Dims left = without(x.sizes(), {axis}, false), kept = without(x.sizes(), {axis}, keep);
  // The place of what nothing has met is behind all.
  const LazyTensors found = calls("reduce",
                                  {x, places, largest ? lowest(x.dtype()) : highest(x.dtype()),
                                   number(static_cast<double>(x.size(axis)), DType::int64)},
                                  {list("dimensions", {axis}), attribute("body", body),
                                   attribute("of_values", largest ? "maximum" : "minimum")},
                                  {tensor_type(x.dtype(), left), tensor_type(DType::int64, left)});
  return {reshaped(found[0], kept), reshaped(found[1], kept)};
}

template <bool largest>
LazyTensors with_places(const Call& call, const Types&) {
  const LazyTensor& x = tensor_of(call, "self");
  if (x.rank() == 0) return {x, number(0, DType::int64)};
  return extremum(x, axis_of(call, "dim", x), largest, bool_of(call, "keepdim"));
}

template <bool largest>
LazyTensors places(const Call& call, const Types& results) {
  const LazyTensor& x = tensor_of(call, "self");
  if (x.rank() == 0) return {number(0, DType::int64)};
  if (!call["dim"].is_none())
    return {extremum(x, axis_of(call, "dim", x), largest, bool_of(call, "keepdim"))[1]};
  const LazyTensor found = extremum(reshaped(x, {x.numel()}), 0, largest, false)[1];
  return {reshaped(found, results[0].sizes)};
}

}  // namespace

void add_reduction_rows(std::vector<Row>& rows) {
  rows.insert(rows.end(), {{"aten::sum.dim_IntList", sum},
                           {"aten::prod.dim_int", prod},
                           {"aten::amax", amax},
                           {"aten::amin", amin},
                           {"aten::all.dims", all},
                           {"aten::any.dims", any},
                           {"aten::max.dim", with_places<true>},
                           {"aten::min.dim", with_places<false>},
                           {"aten::argmax", places<true>},
                           {"aten::argmin", places<false>}});
}

}  // namespace composit::stablehlo
