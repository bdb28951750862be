// The inverse of pools of the maximum: each element back to where it stood.
#include "composit/ops/functions.h"

namespace composit {
namespace {

// `indices` count the places of the last axes, row by row.
LazyTensor unpooled(const LazyTensor& x, const LazyTensor& indices, const Ints& output,
                    size_t axes) {
  const Ints sizes = x.sizes();
  if (sizes != indices.sizes() || output.size() != axes ||
      (sizes.size() != axes + 1 && sizes.size() != axes + 2))
    throw UserError("expected an index per element and " + std::to_string(axes) +
                    " sizes for the output, received sizes " + str(sizes) + ", " +
                    str(indices.sizes()) + " and " + str(output));
  const Ints lead(sizes.begin(), sizes.end() - static_cast<int64_t>(axes));
  int64_t outer = 1, inner = 1, places = 1;
  for (int64_t size : lead) outer *= size;
  for (size_t i = 0; i < axes; ++i) {
    inner *= sizes[lead.size() + i];
    places *= output[i];
  }
  const LazyTensor flat = apply_one(
      "aten::scatter.src", {zeros({outer, places}, x.dtype()), 1, reshape(indices, {outer, inner}),
                            reshape(x, {outer, inner})});
  Ints result = lead;
  result.insert(result.end(), output.begin(), output.end());
  return reshape(flat, result);
}

Gradients unpooled_back(const Vjp& v, const LazyTensor& indices, size_t axes) {
  const LazyTensor& g = v.cotangents[0];
  const int64_t last = -static_cast<int64_t>(axes);
  const auto flat = [&](const LazyTensor& t) {
    Ints sizes = t.sizes();
    int64_t places = 1;
    for (int64_t i = last; i < 0; ++i) places *= t.size(i);
    sizes.resize(sizes.size() - axes);
    sizes.push_back(places);
    return reshape(t, sizes);
  };
  return {reshape(apply_one("aten::gather", {flat(g), -1, flat(indices)}), indices.sizes())};
}

}  // namespace

void add_unpooling_rows(OperationTable& rows) {
  rows.add(
      {.schema = "aten::max_unpool2d(Tensor self, Tensor indices, SymInt[2] output_size) -> "
                 "Tensor",
       .decompose = [](LazyTensor x, LazyTensor indices,
                       Ints output) { return LazyTensors{unpooled(x, indices, output, 2)}; },
       .vjp = [](Vjp v, LazyTensor, LazyTensor indices) { return unpooled_back(v, indices, 2); },
       .samples =
           "f32[2,1,3] i64[2,1,3]=distinct<9 [3,3] | f32[1,1,2,2] i64[1,1,2,2]=[0,3,5,8] [3,3]",
       .bad = "f32[1,2,2] i64[1,2,3]<9 [3,3]: 2 sizes"});
  rows.add(
      {.schema = "aten::max_unpool3d(Tensor self, Tensor indices, SymInt[3] output_size, "
                 "int[3] stride, int[3] padding) -> Tensor",
       .decompose = [](LazyTensor x, LazyTensor indices,
                       Ints output) { return LazyTensors{unpooled(x, indices, output, 3)}; },
       .vjp = [](Vjp v, LazyTensor, LazyTensor indices) { return unpooled_back(v, indices, 3); },
       .samples = "f32[2,1,1,3] i64[2,1,1,3]=distinct<8 [2,2,2] [1,1,1] [0,0,0]"});
}

}  // namespace composit
