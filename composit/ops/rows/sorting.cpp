// Order: native code, for which no loops are written.
#include "composit/op/promotion.h"
#include "composit/ops/axes.h"
#include "composit/ops/native.h"
#include "composit/ops/runtime_options.h"

namespace composit {
namespace {

Ints shortened(const Type& type, int64_t dim, int64_t k) {
  Ints sizes = type.sizes;
  const int64_t rank = static_cast<int64_t>(type.rank());
  const auto axis = static_cast<size_t>(wrap_axis(dim, rank));
  const int64_t length = rank == 0 ? 1 : sizes[axis];
  if (k < 0 || k > length)
    throw UserError("expected k from 0 to " + std::to_string(length) + ", received " +
                    std::to_string(k));
  if (rank > 0) sizes[axis] = k;
  return sizes;
}

// The first k of each line in order, and where they stood. Equal elements keep their order.
std::vector<Array> first_of_lines(const Array& x, int64_t k, int64_t dim, bool largest) {
  const Type& type = x.type();
  const Ints sizes = shortened(type, dim, k);
  const Type values = tensor_type(type.dtype, sizes);
  const Type indices = tensor_type(DType::int64, values.sizes);
  const auto sorted = [&]<class T>(const std::vector<T>& in) {
    std::vector<T> best(static_cast<size_t>(values.numel()));
    std::vector<int64_t> places(best.size());
    fl::topk(in.data(), lines_of(type, dim), k, largest, best.data(), places.data());
    return std::vector<Array>{array_of(values, best), array_of(indices, places)};
  };
  return category(type.dtype) == DTypeCategory::floating ? sorted(elements<double>(x))
                                                         : sorted(elements<int64_t>(x));
}

void expect_real(const LazyTensor& x) {
  if (category(x.dtype()) == DTypeCategory::complex)
    throw UserError("expected real numbers, received " + std::string(name(x.dtype())));
}

std::vector<Type> first_types(const LazyTensor& x, int64_t k, int64_t dim) {
  expect_real(x);
  const Ints sizes = shortened(x.type(), dim, k);
  return {tensor_type(x.dtype(), sizes), tensor_type(DType::int64, sizes)};
}

int64_t length_of(const LazyTensor& x, int64_t dim) { return x.rank() == 0 ? 1 : x.size(dim); }

LazyTensors sorted(const LazyTensor& x, int64_t dim, bool descending) {
  return apply("aten::sort", {x, dim, descending});
}

void add_sort_spellings(OperationTable& rows) {
  rows.add({.schema = "aten::sort.stable(Tensor self, *, bool? stable, int dim=-1, bool "
                      "descending=False) -> (Tensor values, Tensor indices)",
            .kind = OpKind::reduction,
            .decompose = [](LazyTensor x, std::optional<bool>, int64_t dim,
                            bool descending) { return sorted(x, dim, descending); },
            .samples = "f32[2,5] True | i64[6]<3 True 0 True | f32[3,4] False 0"});
  rows.add({.schema = "aten::argsort(Tensor self, int dim=-1, bool descending=False) -> Tensor",
            .kind = OpKind::reduction,
            .decompose = [](LazyTensor x, int64_t dim,
                            bool descending) { return LazyTensors{sorted(x, dim, descending)[1]}; },
            .samples = "f32[2,5] | f32[3,4] 0 True"});
  rows.add({.schema = "aten::argsort.stable(Tensor self, *, bool stable, int dim=-1, bool "
                      "descending=False) -> Tensor",
            .kind = OpKind::reduction,
            .decompose = [](LazyTensor x, bool, int64_t dim,
                            bool descending) { return LazyTensors{sorted(x, dim, descending)[1]}; },
            .samples = "i64[6]<3 True | f32[3,4] True 0 True"});
  rows.add({.schema = "aten::msort(Tensor self) -> Tensor",
            .decompose = [](LazyTensor x) { return LazyTensors{sorted(x, 0, false)[0]}; },
            .samples = "f32[4,2] | i64[5]"});
}

// ---- one element of the order -------------------------------------------------------------------

// The element `k` of each line in ascending order, and where it stood.
LazyTensors element_of_order(const LazyTensor& x, int64_t k, int64_t dim, bool keepdim) {
  LazyTensors found;
  for (const LazyTensor& all : sorted(x, dim, false)) {
    if (x.rank() == 0)
      found.push_back(all);
    else
      found.push_back(keepdim ? slice(all, dim, k, k + 1) : select_at(all, dim, k));
  }
  return found;
}

int64_t expect_line(const LazyTensor& x, int64_t dim) {
  const int64_t length = length_of(x, dim);
  if (length == 0)
    throw UserError("expected an element at least along the axis, received sizes " +
                    str(x.sizes()));
  return length;
}

// The lower of the two in the middle; NaN, which sorts last, where there is one.
LazyTensors median_of(const LazyTensor& x, int64_t dim, bool keepdim) {
  const int64_t length = expect_line(x, dim);
  const LazyTensors middle = element_of_order(x, (length - 1) / 2, dim, keepdim);
  if (category(x.dtype()) != DTypeCategory::floating) return middle;
  const LazyTensors first = apply("aten::max.dim", {x, dim, keepdim});  // NaN before everything
  const LazyTensor is_nan = isnan(first[0]);
  return {where(is_nan, first[0], middle[0]), where(is_nan, first[1], middle[1])};
}

// The same of the elements that are numbers: NaN sorts last. NaN where there is no number.
LazyTensors nanmedian_of(const LazyTensor& x, int64_t dim, bool keepdim) {
  if (category(x.dtype()) != DTypeCategory::floating) return median_of(x, dim, keepdim);
  expect_line(x, dim);
  const LazyTensors all = sorted(x, dim, false);
  if (x.rank() == 0) return all;
  const LazyTensor count = sum(logical_not(isnan(x)), {dim}, true);
  const LazyTensor middle = apply_one("aten::clamp_min", {count - 1, 0});
  const LazyTensor place = apply_one("aten::floor_divide", {middle, full({}, 2, DType::int64)});
  LazyTensors found;
  for (const LazyTensor& one : all) {
    const LazyTensor chosen = apply_one("aten::gather", {one, dim, place});
    found.push_back(keepdim ? chosen : squeeze(chosen, {dim}));
  }
  return found;
}

// The most frequent element, the least of several, and where it stands last.
LazyTensors mode_of(const LazyTensor& x, int64_t dim, bool keepdim) {
  if (x.rank() == 0) return {x, zeros({}, DType::int64)};
  const int64_t length = expect_line(x, dim);
  const LazyTensors order = sorted(x, dim, false);
  const LazyTensor a = transpose(order[0], dim, -1);
  const LazyTensor same = eq(unsqueeze(a, -1), unsqueeze(a, -2));
  const LazyTensor count = sum(same, {-1});
  const LazyTensor place = apply_one("aten::argmax", {count, -1, true});  // the first, so the least
  const LazyTensor value = transpose(apply_one("aten::gather", {a, -1, place}), dim, -1);
  Ints along(static_cast<size_t>(x.rank()), 1);
  along[static_cast<size_t>(wrap_axis(dim, x.rank()))] = length;
  const LazyTensor where_equal = where(eq(x, value), reshape(arange(length), along), -1);
  const LazyTensor last = amax(where_equal, {dim}, true);
  if (keepdim) return {value, last};
  return {squeeze(value, {dim}), squeeze(last, {dim})};
}

void add_modes(OperationTable& rows) {
  rows.add({.schema = "aten::nanmedian.dim(Tensor self, int dim, bool keepdim=False) -> (Tensor "
                      "values, Tensor indices)",
            .decompose = [](LazyTensor x, int64_t dim,
                            bool keepdim) { return nanmedian_of(x, dim, keepdim); },
            .samples = "f32[2,5] 1 | f32[4,3] 0 True | i64[5]=distinct<9 0 | f32[5]=nan 0",
            .bad = "f32[2,0] 1: an element at least"});
  rows.add(
      {.schema = "aten::nanmedian(Tensor self) -> Tensor",
       .decompose =
           [](LazyTensor x) { return LazyTensors{nanmedian_of(reshape(x, {-1}), 0, false)[0]}; },
       .samples = "f32[2,5] | i64[5]=distinct<9 | f32[5]=nan | f32[2]=[nan,nan]"});
  rows.add({.schema = "aten::mode(Tensor self, int dim=-1, bool keepdim=False) -> (Tensor values, "
                      "Tensor indices)",
            .decompose = [](LazyTensor x, int64_t dim,
                            bool keepdim) { return mode_of(x, dim, keepdim); },
            .vjp = [](Vjp v, LazyTensor x, int64_t dim,
                      bool keepdim) { return to_chosen(v, x, dim, keepdim); },
            .samples = "i64[7]<3 | f32[6]=[2,1,2,1,3,1] | i64[4,3]<2 0 True | f32[]",
            .bad = "f32[2,0] 1: an element at least"});
}

void add_order_statistics(OperationTable& rows) {
  rows.add({.schema = "aten::kthvalue(Tensor self, SymInt k, int dim=-1, bool keepdim=False) -> "
                      "(Tensor values, Tensor indices)",
            .decompose =
                [](LazyTensor x, int64_t k, int64_t dim, bool keepdim) {
                  const int64_t length = expect_line(x, dim);
                  if (k < 1 || k > length)
                    throw UserError("expected k from 1 to " + std::to_string(length) +
                                    ", received " + std::to_string(k));
                  return element_of_order(x, k - 1, dim, keepdim);
                },
            .samples = "f32[2,5] 2 | f32[3,4] 3 0 True | i64[5]=distinct<9 1",
            .bad = "f32[3] 4: k from 1 to 3 | f32[3] 0: k from 1 to 3"});
  rows.add({.schema = "aten::median.dim(Tensor self, int dim, bool keepdim=False) -> (Tensor "
                      "values, Tensor indices)",
            .decompose = [](LazyTensor x, int64_t dim,
                            bool keepdim) { return median_of(x, dim, keepdim); },
            .samples = "f32[2,5] 1 | f32[4,3] 0 True | i64[5]=distinct<9 0 | f32[5]=nan 0",
            .bad = "f32[2,0] 1: an element at least"});
  rows.add({.schema = "aten::median(Tensor self) -> Tensor",
            .decompose =
                [](LazyTensor x) { return LazyTensors{median_of(reshape(x, {-1}), 0, false)[0]}; },
            .samples = "f32[2,5] | f32[2,3] | i64[5]=distinct<9 | f32[5]=nan"});
}

}  // namespace

void add_sorting_rows(OperationTable& rows) {
  rows.add(
      {.schema =
           "aten::topk(Tensor self, SymInt k, int dim=-1, bool largest=True, bool sorted=True) "
           "-> (Tensor values, Tensor indices)",
       .kind = OpKind::reduction,
       .infer = [](LazyTensor x, int64_t k, int64_t dim) { return first_types(x, k, dim); },
       .native = [](Array x, int64_t k, int64_t dim,
                    bool largest) { return first_of_lines(x, k, dim, largest); },
       .runtime = "order::topk",
       .runtime_options =
           [](LazyTensor x, int64_t k, int64_t dim, bool largest) {
             return Attributes{lines(x.type(), dim), option("k", k), option("largest", largest)};
           },
       .vjp = [](Vjp v, LazyTensor x, int64_t, int64_t dim) { return to_chosen(v, x, dim, true); },
       .samples = "f32[2,5] 2 | f32[3,4] 3 0 False | i64[5]=distinct<9 2 | f32[2,3,4] 2 1",
       .bad = "f32[2,3] 4: k from 0 to 3"});
  rows.add(
      {.schema = "aten::sort(Tensor self, int dim=-1, bool descending=False) -> (Tensor values, "
                 "Tensor indices)",
       .kind = OpKind::reduction,
       .infer = [](LazyTensor x, int64_t dim) { return first_types(x, length_of(x, dim), dim); },
       .native =
           [](Array x, int64_t dim, bool descending) {
             return first_of_lines(x, lines_of(x.type(), dim).length, dim, descending);
           },
       .runtime = "order::sort",
       .runtime_options =
           [](LazyTensor x, int64_t dim, bool descending) {
             return Attributes{lines(x.type(), dim), option("descending", descending)};
           },
       .vjp = [](Vjp v, LazyTensor x, int64_t dim) { return to_chosen(v, x, dim, true); },
       .samples = "f32[2,5] | f32[3,4] 0 True | i64[5]=distinct<9"});
  add_sort_spellings(rows);
  add_order_statistics(rows);
  add_modes(rows);
}

}  // namespace composit
