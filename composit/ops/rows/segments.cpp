// Parts of an axis: reductions of segments, pieces at places that a tensor holds, padded chunks.
#include <algorithm>
#include <cmath>
#include <limits>

#include "composit/op/compute_type.h"
#include "composit/ops/functions.h"
#include "composit/ops/native.h"

namespace composit {
namespace {

double number(const Scalar& scalar) {
  return std::visit([](auto value) { return convert<double>(value); }, scalar.value);
}

// ---- segments -----------------------------------------------------------------------------------

// First and last + 1 place of each segment: lead axes as x has before `axis`, and one of segments.
struct Segments {
  LazyTensor begin, end;
};

Segments segments_of(const std::optional<LazyTensor>& lengths,
                     const std::optional<LazyTensor>& offsets) {
  if (offsets) {
    const int64_t count = offsets->size(-1) - 1;
    return {slice(*offsets, -1, 0, count), slice(*offsets, -1, 1, count + 1)};
  }
  if (!lengths) throw UserError("expected lengths or offsets of segments");
  const LazyTensor end = cumsum(*lengths, -1);
  return {end - *lengths, end};
}

double start_of(const std::string& reduce) {
  constexpr double kInfinity = std::numeric_limits<double>::infinity();
  if (reduce == "sum" || reduce == "mean") return 0;
  if (reduce == "prod") return 1;
  if (reduce == "max") return -kInfinity;
  if (reduce == "min") return kInfinity;
  throw UserError("expected reduce 'sum', 'mean', 'prod', 'max' or 'min', received '" + reduce +
                  "'");
}

LazyTensor with_initial(const LazyTensor& x, const std::string& reduce, double initial) {
  if (reduce == "prod") return x * initial;
  if (reduce == "max") return apply_one("aten::clamp", {x, Scalar(initial)});
  if (reduce == "min") return apply_one("aten::clamp", {x, Attribute(), Scalar(initial)});
  return x + initial;
}

LazyTensor segment_reduce(const LazyTensor& x, const std::string& reduce, const Segments& segments,
                          int64_t axis, std::optional<double> initial) {
  const double start = start_of(reduce);
  axis = wrap_axis(axis, x.rank());
  const LazyTensor place = arange(x.size(axis));
  LazyTensor inside =
      logical_and(place >= unsqueeze(segments.begin, -1), place < unsqueeze(segments.end, -1));
  while (inside.rank() < x.rank() + 1) inside = unsqueeze(inside, -1);
  const LazyTensor parts = where(inside, unsqueeze(x, axis), start);
  LazyTensor result;
  if (reduce == "prod")
    result = apply_one("aten::prod.dim_int", {parts, axis + 1});
  else if (reduce == "max" || reduce == "min")
    result = apply_one("aten::a" + reduce, {parts, Ints{axis + 1}});
  else
    result = sum(parts, {axis + 1});
  if (initial) result = with_initial(result, reduce, *initial);
  if (reduce != "mean") return result;
  LazyTensor count = segments.end - segments.begin;
  while (count.rank() < result.rank()) count = unsqueeze(count, -1);
  const LazyTensor mean = result / maximum(count, Number(1));
  return where(count > 0, mean, initial.value_or(NAN));
}

// ---- pieces -------------------------------------------------------------------------------------

// x from `begin` to `end` along an axis.
Array piece(const Array& x, size_t axis, int64_t begin, int64_t end) {
  Type type = x.type();
  const int64_t size = type.sizes[axis];
  const auto clamped = [&](int64_t i) {
    return std::min(std::max<int64_t>(i < 0 ? i + size : i, 0), size);
  };
  begin = clamped(begin);
  end = std::max(begin, clamped(end));
  type.sizes[axis] = end - begin;
  const auto offset = static_cast<size_t>(begin * type.strides[axis]) * item_size(type.dtype);
  return Array(std::move(type), x.owner(), x.data() + offset).contiguous();
}

// Between places, or as many of about the same size.
std::vector<Array> pieces(const Array& x, const Array& places, int64_t dim) {
  const auto axis = static_cast<size_t>(wrap_axis(dim, static_cast<int64_t>(x.type().rank())));
  const int64_t size = x.type().sizes[axis];
  std::vector<int64_t> ends = elements<int64_t>(places);
  if (places.type().rank() == 0) {
    const int64_t count = ends.at(0);
    ends.clear();
    for (int64_t i = 1, end = 0; i < count; ++i)
      ends.push_back(end += size / count + (i <= size % count ? 1 : 0));
  }
  std::vector<Array> found;
  int64_t begin = 0;
  for (const int64_t end : ends) {
    found.push_back(piece(x, axis, begin, end));
    begin = end;
  }
  found.push_back(piece(x, axis, begin, size));
  return found;
}

LazyTensors chunk_cat(const LazyTensors& tensors, int64_t dim, int64_t chunks) {
  if (chunks < 1) throw UserError("expected chunks above 0, received " + std::to_string(chunks));
  LazyTensors flat;
  for (const LazyTensor& x : tensors) {
    dim = wrap_axis(dim, x.rank());
    const int64_t missing = (chunks - x.size(dim) % chunks) % chunks;
    Ints pads(static_cast<size_t>(2 * (x.rank() - dim)), 0);
    pads.back() = missing;
    const LazyTensor whole = apply_one("aten::constant_pad_nd", {x, pads});
    const Ints sizes = whole.sizes();
    Ints lead(sizes.begin(), sizes.begin() + dim);
    int64_t rest = 1;
    for (size_t i = static_cast<size_t>(dim); i < sizes.size(); ++i) rest *= sizes[i];
    lead.insert(lead.end(), {chunks, rest / chunks});
    flat.push_back(reshape(whole, lead));
  }
  return {cat(flat, -1)};
}

}  // namespace

void add_segments_rows(OperationTable& rows) {
  rows.add({.schema = "aten::segment_reduce(Tensor data, str reduce, *, Tensor? lengths=None, "
                      "Tensor? indices=None, Tensor? offsets=None, int axis=0, bool unsafe=False, "
                      "Scalar? initial=None) -> Tensor",
            .decompose =
                [](LazyTensor x, std::string reduce, std::optional<LazyTensor> lengths,
                   std::optional<LazyTensor>, std::optional<LazyTensor> offsets, int64_t axis, bool,
                   std::optional<Scalar> initial) {
                  std::optional<double> first;
                  if (initial) first = number(*initial);
                  return LazyTensors{
                      segment_reduce(x, reduce, segments_of(lengths, offsets), axis, first)};
                },
            .samples = "f32[5,2] 'sum' i64[3]=[2,0,3] | f32[5] 'mean' i64[2]=[2,3] | f32[5] 'max' "
                       "i64[2]=[2,3] | f32[4,2] 'min' None None i64[3]=[0,1,4] | f32[5] 'prod' "
                       "i64[2]=[2,3] None None 0 False 2.0",
            .bad = "f32[5] 'sum': expected lengths | f32[5] 'all' i64[2]=[2,3]: expected reduce"});
  rows.add({.schema = "aten::tensor_split.tensor_indices_or_sections(Tensor(a -> *) self, Tensor "
                      "tensor_indices_or_sections, int dim=0) -> Tensor(a)[]",
            .infer = [](LazyTensor, LazyTensor) -> std::vector<Type> {
              throw SizesDependOnValues(
                  "gives sizes that depend on values, which composit does not have");
            },
            .native = [](Array x, Array places, int64_t dim) { return pieces(x, places, dim); },
            .vjp =
                [](Vjp v, LazyTensor, LazyTensor, int64_t dim) {
                  LazyTensors parts;
                  for (size_t i = 0; i < v.results.size(); ++i)
                    parts.push_back(v.cotangents[i].defined() ? v.cotangents[i]
                                                              : zeros_like(v.results[i]));
                  return Gradients{cat(parts, dim), {}};
                },
            .bad = "f32[4] i64[]<3: depend on values"});
  rows.add({.schema = "aten::_chunk_cat(Tensor[] tensors, int dim, int num_chunks) -> Tensor",
            .decompose = [](LazyTensors tensors, int64_t dim,
                            int64_t chunks) { return chunk_cat(tensors, dim, chunks); },
            .samples = "[f32[3,2],f32[2,2]] 0 2 | [f32[2,5],f32[2,3]] 1 2 | [f32[4]] 0 3",
            .bad = "[f32[2]] 0 0: above 0"});
}

}  // namespace composit
