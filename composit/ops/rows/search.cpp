// Places in sorted boundaries.
#include <algorithm>

#include "composit/ops/functions.h"

namespace composit {

// The side may be said in two ways.
static bool is_right(bool right, const std::optional<std::string>& side) {
  if (!side) return right;
  if (*side != "left" && *side != "right")
    throw UserError("expected side 'left' or 'right', received '" + *side + "'");
  if (right && *side == "left")
    throw UserError("expected one side, received 'left' and right=True");
  return *side == "right";
}

// The number of boundaries below x (right: not above), which is where x belongs; NaN goes last.
static Loops places(Nest& nest, const Expr& x, const Expr& boundary, bool right, bool narrow) {
  const Expr below = right ? !(boundary > x) : !(boundary >= x);
  return nest.store(nest.sum(cast(below, narrow ? DType::int32 : DType::int64))).loops();
}

static LazyTensor is_in(const LazyTensor& x, const LazyTensor& set, bool invert) {
  const LazyTensor found =
      apply_one("aten::any.dim", {eq(unsqueeze(x, -1), reshape(set, {-1})), -1});
  return invert ? logical_not(found) : found;
}

// Elements counted by the bin they are in, the last of which has its end; between `low` and `high`,
// or between the least and the largest element where these are equal.
static LazyTensor histogram(const LazyTensor& x, int64_t bins, const Scalar& low,
                            const Scalar& high) {
  if (bins < 1) throw UserError("expected a bin at least, received " + std::to_string(bins));
  const LazyTensor flat = reshape(x, {-1});
  LazyTensor first = full({}, Number(low), x.dtype()), last = full({}, Number(high), x.dtype());
  if (low.value == high.value && x.numel() > 0) {
    first = apply_one("aten::amin", {flat});
    last = amax(flat);
  }
  const LazyTensor one_value = eq(first, last);
  first = where(one_value, first - 1, first);
  last = where(one_value, last + 1, last);
  const LazyTensor place = floor((flat - first) * static_cast<double>(bins) / (last - first));
  const LazyTensor bin = where(eq(flat, last), static_cast<double>(bins - 1), place);
  const LazyTensor inside = logical_and(flat >= first, flat <= last);
  const LazyTensor hit = logical_and(eq(unsqueeze(bin, -1), arange(bins)), unsqueeze(inside, -1));
  return to(sum(hit, {0}), x.dtype());
}

static void add_membership(OperationTable& rows) {
  rows.add({.schema = "aten::isin.Tensor_Tensor(Tensor elements, Tensor test_elements, *, bool "
                      "assume_unique=False, bool invert=False) -> Tensor",
            .decompose = [](LazyTensor x, LazyTensor set, bool,
                            bool invert) { return LazyTensors{is_in(x, set, invert)}; },
            .samples = "i64[2,3]<5 i64[2]<5 | f32[3]=[1,2,3] f32[2,2]=[1,3,5,6] False True"});
  rows.add({.schema = "aten::isin.Tensor_Scalar(Tensor elements, Scalar test_element, *, bool "
                      "assume_unique=False, bool invert=False) -> Tensor",
            .decompose =
                [](LazyTensor x, Scalar set, bool, bool invert) {
                  return LazyTensors{invert ? ne(x, Number(set)) : eq(x, Number(set))};
                },
            .samples = "i64[2,3]<3 1 | f32[3]=[1,2,3] 2.0 False True"});
  rows.add({.schema = "aten::isin.Scalar_Tensor(Scalar element, Tensor test_elements, *, bool "
                      "assume_unique=False, bool invert=False) -> Tensor",
            .decompose =
                [](Scalar x, LazyTensor set, bool, bool invert) {
                  return LazyTensors{is_in(full({}, Number(x), Expr(x).dtype()), set, invert)};
                },
            .samples = "1 i64[2,3]<3 | 2.0 f32[3]=[1,2,3] False True"});
  rows.add(
      {.schema = "aten::histc(Tensor self, int bins=100, Scalar min=0, Scalar max=0) -> Tensor",
       .decompose = [](LazyTensor x, int64_t bins, Scalar low,
                       Scalar high) { return LazyTensors{histogram(x, bins, low, high)}; },
       .samples = "f32[7] 4 | f32[7] 4 -1 1 | f32[3]=[1,1,1] 3 | f32[4]=[0,1,2,2] 2 0 2",
       .bad = "f32[2] 0: a bin at least"});
}

// The places of the first `count` elements that are not zero, one row each; what is missing is
// `fill`.
static LazyTensor first_places(const LazyTensor& x, int64_t count, int64_t fill) {
  const Ints sizes{count, x.rank()};
  if (count < 0) throw UserError("expected a size of at least 0");
  if (x.numel() == 0 || x.rank() == 0) return full(sizes, fill, DType::int64);
  const LazyTensor here = to(ne(reshape(x, {x.numel()}), 0), DType::int64);
  const LazyTensor so_far = cumsum(here, 0), wanted = arange(count) + 1;
  LazyTensor flat = apply_one("aten::searchsorted.Tensor", {so_far, wanted});
  LazyTensors coordinates;  // the last axis first
  for (int64_t axis = x.rank() - 1; axis >= 0; --axis) {
    const Scalar size(x.size(axis));
    coordinates.push_back(apply_one("aten::remainder.Scalar", {flat, size}));
    flat = apply_one("aten::floor_divide", {flat, full({}, Number(size), DType::int64)});
  }
  std::reverse(coordinates.begin(), coordinates.end());
  const LazyTensor exists = unsqueeze(wanted <= select_at(so_far, 0, -1), -1);
  return where(exists, apply_one("aten::stack", {coordinates, -1}), fill);
}

static void add_places(OperationTable& rows) {
  rows.add({.schema = "aten::nonzero_static(Tensor self, *, SymInt size, int fill_value=-1) -> "
                      "Tensor",
            .decompose = [](LazyTensor x, int64_t count,
                            int64_t fill) { return LazyTensors{first_places(x, count, fill)}; },
            .samples = "f32[2,3]=[0,1,0,2,3,0] 5 | i64[2,3]=[0,1,0,2,3,0] 2 7 | bool[4] 3 | "
                       "f32[0,2] 2 | f32[] 3",
            .bad = "f32[2] -1: at least 0"});
}

void add_search_rows(OperationTable& rows) {
  rows.add({.schema = "aten::bucketize.Tensor(Tensor self, Tensor boundaries, *, bool "
                      "out_int32=False, bool right=False) -> Tensor",
            .loops =
                [](In x, In boundaries, bool narrow, bool right) {
                  if (boundaries.rank() != 1)
                    throw UserError("expected boundaries of one axis, received sizes " +
                                    str(boundaries.sizes()));
                  Nest nest;
                  const Expr value = x(nest.parallel(x.sizes()));
                  return places(nest, value, boundaries(nest.reduction(boundaries.size(0))), right,
                                narrow);
                },
            .samples = "f32[2,3] f32[3]=[-1,0,1] | i64[4]=[0,1,2,3] i64[3]=[1,2,2] False True | "
                       "f32[3]=[nan,0,1] f32[2]=[0,1] True | f32[2] f32[0]",
            .bad = "f32[2] f32[2,2]: of one axis"});
  rows.add({.schema = "aten::searchsorted.Tensor(Tensor sorted_sequence, Tensor self, *, bool "
                      "out_int32=False, bool right=False, str? side=None, Tensor? sorter=None) -> "
                      "Tensor",
            .loops =
                [](In sorted, In x, bool narrow, bool right, std::optional<std::string> side,
                   std::optional<In> sorter) {
                  Ints lead = sorted.sizes(), own = x.sizes();
                  if (!lead.empty()) lead.pop_back();
                  if (!own.empty()) own.pop_back();
                  if (sorted.rank() == 0 || (sorted.rank() > 1 && lead != own))
                    throw UserError("expected sequences for all of " + str(x.sizes()) +
                                    ", received sizes " + str(sorted.sizes()));
                  Nest nest;
                  Index at = nest.parallel(x.sizes());
                  const Expr value = x(at);
                  if (sorted.rank() == 1) at.assign(1, Expr());
                  at.back() = nest.reduction(sorted.size(-1));
                  if (sorter) at.back() = cast((*sorter)(at), DType::int64);
                  return places(nest, value, sorted(at), is_right(right, side), narrow);
                },
            .samples = "f32[3]=[-1,0,1] f32[2,3] | f32[2,3]=[-1,0,1,0,1,2] f32[2,4] | "
                       "i64[3]=[1,2,2] i64[4]=[0,1,2,3] False True | f32[3]=[1,-1,0] f32[2] False "
                       "False 'right' i64[3]=[1,2,0]",
            .bad = "f32[3,2] f32[2,2]: sequences for | f32[2] f32[2] False False 'up': expected "
                   "side"});
  add_membership(rows);
  add_places(rows);
}

}  // namespace composit
