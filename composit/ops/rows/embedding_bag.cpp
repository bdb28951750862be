// Rows of a table summed, averaged or maximised by bags of indices.
#include <cmath>

#include "composit/op/promotion.h"
#include "composit/ops/functions.h"

namespace composit {
namespace {

enum Mode : int64_t { kSum, kMean, kMax };

// The arguments that say which rows are in which bag. A bag starts at its offset.
struct Bags {
  LazyTensor indices, offsets;
  int64_t mode = kSum;
  int64_t padding = -1;  // indices that do not count; below 0: all count
  int64_t count = 0;

  DType index_dtype() const { return promote(indices.dtype(), offsets.dtype()); }
  // Per index, whether it counts.
  LazyTensor counted() const { return ne(indices, padding); }
};

void expect_indices(const LazyTensor& indices, const LazyTensor& offsets) {
  if (indices.rank() != 1 || offsets.rank() != 1)
    throw UserError("expected indices and offsets of one axis, received sizes " +
                    str(indices.sizes()) + " and " + str(offsets.sizes()));
}

Bags bags_of(const LazyTensor& indices, const LazyTensor& offsets, int64_t mode, bool include_last,
             int64_t padding) {
  expect_indices(indices, offsets);
  if (mode < kSum || mode > kMax)
    throw UserError("expected mode 0 (sum), 1 (mean) or 2 (max), received " + std::to_string(mode));
  const int64_t count = offsets.size(0) - (include_last ? 1 : 0);
  if (count < 0) throw UserError("expected an offset at least with include_last_offset");
  return {indices, offsets, mode, padding, count};
}

// Per index, its bag. Of bags with the same offset, all but the last are empty.
LazyTensor bag_of_each(const Bags& bags) {
  const LazyTensor starts = to(slice(bags.offsets, 0, 0, bags.count), DType::int64);
  const LazyTensor started =
      apply_one("aten::searchsorted.Tensor",
                {starts, arange(bags.indices.size(0)), /*out_int32=*/false, /*right=*/true});
  return to(started - 1, bags.index_dtype());
}

LazyTensor bag_sizes(const Bags& bags, const LazyTensor& bag) {
  const DType dtype = bags.index_dtype();
  return apply_one("aten::index_add",
                   {zeros({bags.count}, dtype), 0, bag, to(bags.counted(), dtype)});
}

LazyTensor divisors(const LazyTensor& bag_size, DType dtype) {
  return unsqueeze(to(apply_one("aten::clamp_min", {bag_size, Scalar(int64_t{1})}), dtype), -1);
}

// The largest element of each bag and column, and its index; 0 and 0 for an empty bag.
std::pair<LazyTensor, LazyTensor> largest(const Bags& bags, const LazyTensor& rows,
                                          const LazyTensor& bag, const LazyTensor& bag_size) {
  const Ints sizes{bags.count, rows.size(1)};
  const DType dtype = bags.index_dtype();
  if (bags.indices.size(0) == 0) return {zeros(sizes, rows.dtype()), zeros(sizes, dtype)};
  const LazyTensor here = eq(unsqueeze(bag, 0), unsqueeze(arange(bags.count), 1));
  const LazyTensor member = unsqueeze(logical_and(here, bags.counted()), -1);
  const LazyTensors best =
      apply("aten::max.dim", {where(member, unsqueeze(rows, 0), -INFINITY), 1});
  const LazyTensor index = apply_one(
      "aten::index_select", {bags.indices, 0, reshape(best[1], {bags.count * rows.size(1)})});
  const LazyTensor empty = unsqueeze(eq(bag_size, 0), -1);
  return {where(empty, 0, best[0]), where(empty, 0, to(reshape(index, sizes), dtype))};
}

// torch sums floats by another kernel where all indices count; it does not say which bag is whose.
bool knows_bag_of_each(const Bags& bags, DType dtype) {
  return bags.mode != kSum || dtype == DType::float64 || bags.padding >= 0;
}

// The bags, the bag of each index, the size of each bag and where each element of the maximum is
// from. torch counts bags only where it divides by their sizes, and knows the places of no sums.
LazyTensors embedding_bag(const LazyTensor& weight, const Bags& bags, bool by_frequency,
                          const std::optional<LazyTensor>& per_sample) {
  expect_floating(weight.dtype());
  if (weight.rank() != 2)
    throw UserError("expected a weight of 2 axes, received sizes " + str(weight.sizes()));
  if (per_sample && (bags.mode != kSum || per_sample->sizes() != bags.indices.sizes()))
    throw UserError("expected per_sample_weights in mode 0 (sum) alone, one per index");
  LazyTensor rows =
      apply_one("aten::embedding", {weight, bags.indices, bags.padding, by_frequency});
  if (per_sample) rows = rows * unsqueeze(*per_sample, -1);
  if (bags.padding >= 0) rows = where(unsqueeze(bags.counted(), -1), rows, 0);
  const LazyTensor bag = bag_of_each(bags);
  const LazyTensor size =
      bags.mode == kSum ? zeros({bags.count}, bags.index_dtype()) : bag_sizes(bags, bag);
  const LazyTensor known =
      knows_bag_of_each(bags, weight.dtype()) ? bag : zeros({0}, bags.index_dtype());
  if (bags.mode == kMax) {
    const auto [values, places] = largest(bags, rows, bag, size);
    return {values, known, size, places};
  }
  const LazyTensor none = zeros({bags.count, weight.size(1)}, weight.dtype());
  const LazyTensor total = apply_one("aten::index_add", {none, 0, bag, rows});
  return {bags.mode == kMean ? total / divisors(size, weight.dtype()) : total, known, size, size};
}

void add_forward(OperationTable& rows) {
  constexpr std::string_view kSamples =
      "f32[5,3] i64[6]<5 i64[1]<1 | f32[5,3] i64[6]<5 i64[3]=[0,2,2] False 1 | f32[6,3] "
      "i64[6]=distinct<6 i64[1]<1 False 2 | f32[5,3] i64[4]=[1,4,0,2] i64[3]=[0,1,4] False 2 | "
      "f32[5,3] i64[4]<5 i64[1]<1 False 0 False f32[4] | f32[5,3] i64[4]<5 i64[2]=[0,4] False 1 "
      "False None True | f32[5,3] i64[0] i64[2]=[0,0] False 1";
  rows.add({.schema = "aten::_embedding_bag(Tensor weight, Tensor indices, Tensor offsets, bool "
                      "scale_grad_by_freq=False, int mode=0, bool sparse=False, Tensor? "
                      "per_sample_weights=None, bool include_last_offset=False, int "
                      "padding_idx=-1) -> (Tensor, Tensor, Tensor, Tensor)",
            .decompose =
                [](LazyTensor weight, LazyTensor indices, LazyTensor offsets, bool by_frequency,
                   int64_t mode, bool, std::optional<LazyTensor> per_sample, bool include_last,
                   int64_t padding) {
                  return embedding_bag(weight,
                                       bags_of(indices, offsets, mode, include_last, padding),
                                       by_frequency, per_sample);
                },
            .samples = kSamples,
            .bad = "f32[5,3] i64[2,2]<5 i64[1]<1: of one axis | f32[5] i64[2]<5 i64[1]<1: of 2 "
                   "axes | f32[5,3] i64[2]<5 i64[1]<1 False 3: expected mode | f32[5,3] i64[2]<5 "
                   "i64[1]<1 False 1 False f32[2]: mode 0",
            .also = {"aten::_embedding_bag_forward_only"}});
  rows.add({.schema = "aten::embedding_bag(Tensor weight, Tensor indices, Tensor offsets, bool "
                      "scale_grad_by_freq=False, int mode=0, bool sparse=False, Tensor? "
                      "per_sample_weights=None, bool include_last_offset=False) -> (Tensor, "
                      "Tensor, Tensor, Tensor)",
            .decompose =
                [](LazyTensor weight, LazyTensor indices, LazyTensor offsets, bool by_frequency,
                   int64_t mode, bool, std::optional<LazyTensor> per_sample, bool include_last) {
                  return apply("aten::_embedding_bag", {weight, indices, offsets, by_frequency,
                                                        mode, false, per_sample, include_last});
                },
            .samples = kSamples});
  rows.add({.schema = "aten::embedding_bag.padding_idx(Tensor weight, Tensor indices, Tensor "
                      "offsets, bool scale_grad_by_freq, int mode, bool sparse, Tensor? "
                      "per_sample_weights, bool include_last_offset, int? padding_idx) -> (Tensor, "
                      "Tensor, Tensor, Tensor)",
            .decompose =
                [](LazyTensor weight, LazyTensor indices, LazyTensor offsets, bool by_frequency,
                   int64_t mode, bool, std::optional<LazyTensor> per_sample, bool include_last,
                   std::optional<int64_t> padding) {
                  if (padding && *padding < 0) *padding += weight.size(0);
                  return apply("aten::_embedding_bag",
                               {weight, indices, offsets, by_frequency, mode, false, per_sample,
                                include_last, padding.value_or(-1)});
                },
            .samples = "f32[5,3] i64[6]<5 i64[1]<1 False 0 False None False 2 | f32[5,3] i64[6]<5 "
                       "i64[1]<1 False 1 False None False -2 | f32[5,3] i64[6]<5 i64[1]<1 False 1 "
                       "False None False None | f32[5,3] i64[4]=[1,4,0,4] i64[3]=[0,1,1] False 2 "
                       "False None False 4"});
}

// ---- gradients ----------------------------------------------------------------------------------

LazyTensor weight_gradient(const LazyTensor& g, const Bags& bags, const LazyTensor& bag,
                           const LazyTensor& bag_size, const LazyTensor& places, int64_t rows,
                           bool by_frequency, const std::optional<LazyTensor>& per_sample) {
  if (bags.mode == kMax) {
    const LazyTensor flowing = where(unsqueeze(ne(bag_size, 0), -1), g, 0);
    return apply_one("aten::scatter_add",
                     {zeros({rows, g.size(1)}, g.dtype()), 0, to(places, DType::int64), flowing});
  }
  const LazyTensor share = bags.mode == kMean ? g / divisors(bag_size, g.dtype()) : g;
  LazyTensor each = apply_one("aten::index_select", {share, 0, bag});
  if (per_sample) each = each * unsqueeze(*per_sample, -1);
  return apply_one("aten::embedding_dense_backward",
                   {each, bags.indices, rows, bags.padding, by_frequency});
}

void add_backward(OperationTable& rows) {
  rows.add(
      {.schema = "aten::_embedding_bag_dense_backward(Tensor grad, Tensor indices, Tensor "
                 "offset2bag, Tensor bag_size, Tensor maximum_indices, SymInt num_weights, bool "
                 "scale_grad_by_freq, int mode, Tensor? per_sample_weights, int padding_idx=-1) -> "
                 "Tensor",
       .decompose =
           [](LazyTensor g, LazyTensor indices, LazyTensor bag, LazyTensor bag_size,
              LazyTensor places, int64_t count, bool by_frequency, int64_t mode,
              std::optional<LazyTensor> per_sample, int64_t padding) {
             const Bags bags = bags_of(indices, bag_size, mode, false, padding);
             return LazyTensors{
                 weight_gradient(g, bags, bag, bag_size, places, count, by_frequency, per_sample)};
           },
       .samples = "f32[2,3] i64[4]<5 i64[4]=[0,0,0,1] i64[2]=[3,1] i64[2] 5 False 0 f32[4] | "
                  "f32[2,3] i64[4]=[0,4,2,2] i64[4]=[0,0,0,1] i64[2]=[2,1] i64[2] 5 False 1 None "
                  "4 | f32[2,3] i64[4]=[0,1,2,3] i64[4]=[0,0,0,0] i64[2]=[4,0] "
                  "i64[2,3]=[1,0,1,0,0,0] 5 False 2 None"});
  rows.add(
      {.schema = "aten::_embedding_bag_backward(Tensor grad, Tensor indices, Tensor offsets, "
                 "Tensor offset2bag, Tensor bag_size, Tensor maximum_indices, SymInt num_weights, "
                 "bool scale_grad_by_freq, int mode, bool sparse, Tensor? per_sample_weights, int "
                 "padding_idx=-1) -> Tensor",
       .decompose =
           [](LazyTensor g, LazyTensor indices, LazyTensor offsets, LazyTensor, LazyTensor bag_size,
              LazyTensor places, int64_t count, bool by_frequency, int64_t mode, bool sparse,
              std::optional<LazyTensor> per_sample, int64_t padding) {
             if (sparse) throw UserError("expected sparse=False: composit has no sparse tensors");
             Bags bags = bags_of(indices, offsets, mode, false, padding);
             bags.count = g.size(0);
             return LazyTensors{weight_gradient(g, bags, bag_of_each(bags), bag_size, places, count,
                                                by_frequency, per_sample)};
           },
       .samples = "f32[2,3] i64[4]<5 i64[2]=[0,3] i64[4]=[0,0,0,1] i64[2]=[3,1] i64[2] 5 False 1 "
                  "False None",
       .bad = "f32[1,3] i64[2]<5 i64[1] i64[2] i64[1] i64[1] 5 False 0 True None: sparse=False"});
  rows.add(
      {.schema = "aten::_embedding_bag_per_sample_weights_backward(Tensor grad, Tensor weight, "
                 "Tensor indices, Tensor offsets, Tensor offset2bag, int mode, int padding_idx=-1) "
                 "-> Tensor",
       .decompose =
           [](LazyTensor g, LazyTensor weight, LazyTensor indices, LazyTensor offsets, LazyTensor,
              int64_t mode, int64_t padding) {
             Bags bags = bags_of(indices, offsets, mode, false, padding);
             bags.count = g.size(0);
             const LazyTensor rows_of = apply_one("aten::embedding", {weight, indices});
             const LazyTensor each =
                 apply_one("aten::index_select", {g, 0, bag_of_each(bags)}) * rows_of;
             return LazyTensors{where(bags.counted(), sum(each, {-1}), 0)};
           },
       .samples = "f32[2,3] f32[5,3] i64[4]<5 i64[2]=[0,3] i64[4]=[0,0,0,1] 0 | f32[1,3] f32[5,3] "
                  "i64[4]<5 i64[1]<1 i64[4]<1 0 2"});
}

// Rows that `indices` name, shortened to a p-norm of `most`.
LazyTensor with_norms_up_to(const LazyTensor& weight, const LazyTensor& indices, double most,
                            double p) {
  const LazyTensor norm =
      apply_one("aten::linalg_vector_norm", {weight, Scalar(p), Ints{1}, /*keepdim=*/true});
  const LazyTensor named =
      apply_one("aten::isin.Tensor_Tensor", {arange(weight.size(0)), reshape(indices, {-1})});
  const LazyTensor too_long = logical_and(unsqueeze(named, 1), norm > most);
  return where(too_long, weight * (Number(most) / (norm + 1e-7)), weight);
}

}  // namespace

void add_embedding_bag_rows(OperationTable& rows) {
  rows.add({.schema = "aten::embedding_renorm(Tensor self, Tensor indices, float max_norm, float "
                      "norm_type) -> Tensor",
            .decompose =
                [](LazyTensor weight, LazyTensor indices, double most, double p) {
                  return LazyTensors{with_norms_up_to(weight, indices, most, p)};
                },
            .samples = "f32[4,3]=2..5 i64[3]=[0,2,2] 1.0 2.0 | f64[3,2] i64[2,2]<3 0.5 1.0"});
  add_forward(rows);
  add_backward(rows);
}

}  // namespace composit
