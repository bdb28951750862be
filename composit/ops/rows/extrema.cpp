// The largest and the smallest element over axes, and where it is.
#include "composit/ops/axes.h"
#include "composit/ops/places.h"

namespace composit {

// The best element over one axis, or over all, and its place: along the axis, or among all.
template <bool kLargest>
static std::vector<Expr> extremum(Nest& nest, const In& x, std::optional<int64_t> dim,
                                  bool keepdim) {
  const Ints axes = dim ? Ints{*dim} : Ints{};
  expect_elements(x, axes);
  const Index at = nest.reduce_over(x, axes, keepdim);
  const bool along = dim && x.rank() > 0;
  const Expr place =
      along ? at[static_cast<size_t>(wrap_axis(*dim, x.rank()))] : flattened(at, x.sizes());
  return nest.fold({0, -1}, {x(at), place}, kLargest ? first_largest : first_smallest);
}

template <bool kLargest>
static Loops with_index(const In& x, int64_t dim, bool keepdim) {
  Nest nest;
  const auto best = extremum<kLargest>(nest, x, dim, keepdim);
  return nest.store(best[0]).store(best[1]).loops();
}

template <bool kLargest>
static Loops index_only(const In& x, std::optional<int64_t> dim, bool keepdim) {
  Nest nest;
  return nest.store(extremum<kLargest>(nest, x, dim, keepdim)[1]).loops();
}

static void add_with_index(OperationTable& rows) {
  rows.add(
      {.schema = "aten::max.dim(Tensor self, int dim, bool keepdim=False) -> (Tensor values, "
                 "Tensor indices)",
       .kind = OpKind::reduction,
       .loops = [](In x, int64_t dim, bool keepdim) { return with_index<true>(x, dim, keepdim); },
       .vjp = [](Vjp v, LazyTensor x, int64_t dim,
                 bool keepdim) { return to_chosen(v, x, dim, keepdim); },
       .samples = "f32[2,3,4] 1 | f32[2,5] -1 True | i64[3,4]<3 0 | f32[5]=nan 0 | f32[] 0",
       .bad = "f32[2,0] 1: expected an element | f32[2] 3: expected an axis"});
  rows.add(
      {.schema = "aten::min.dim(Tensor self, int dim, bool keepdim=False) -> (Tensor values, "
                 "Tensor indices)",
       .kind = OpKind::reduction,
       .loops = [](In x, int64_t dim, bool keepdim) { return with_index<false>(x, dim, keepdim); },
       .vjp = [](Vjp v, LazyTensor x, int64_t dim,
                 bool keepdim) { return to_chosen(v, x, dim, keepdim); },
       .samples = "f32[2,3,4] 1 | f32[2,5] -1 True | i64[3,4]<3 0"});
  rows.add({.schema = "aten::argmax(Tensor self, int? dim=None, bool keepdim=False) -> Tensor",
            .kind = OpKind::reduction,
            .loops = [](In x, std::optional<int64_t> dim,
                        bool keepdim) { return index_only<true>(x, dim, keepdim); },
            .samples = "f32[2,3] | f32[2,3,4] 1 | i64[3,4]<3 0 True | f32[5]=nan | f32[2,3] None "
                       "True | f32[] 0",
            .bad = "f32[0]: expected an element | f32[2] 1: expected an axis"});
  rows.add({.schema = "aten::argmin(Tensor self, int? dim=None, bool keepdim=False) -> Tensor",
            .kind = OpKind::reduction,
            .loops = [](In x, std::optional<int64_t> dim,
                        bool keepdim) { return index_only<false>(x, dim, keepdim); },
            .samples = "f32[2,3] | f32[2,3,4] 1 | i64[3,4]<3 0 True | f32[5]=nan",
            .bad = "f32[0]: expected an element"});
}

// ---- values alone -------------------------------------------------------------------------------

template <bool kLargest>
static Loops value_only(const In& x, const Ints& dim, bool keepdim) {
  expect_elements(x, dim);
  Nest nest;
  const Index at = nest.reduce_over(x, dim, keepdim);
  const Expr worst = kLargest ? least(x.dtype()) : greatest(x.dtype());
  return nest.store(nest.fold(worst, x(at), kLargest ? max : min)).loops();
}

// Equal elements share the cotangent evenly.
static Gradients shared(const Vjp& v, const LazyTensor& x, const Ints& dim, bool keepdim) {
  const LazyTensor best = with_axes(v.results[0], x, dim, keepdim);
  const LazyTensor chosen = to(eq(x, best), x.dtype());
  const LazyTensor g = with_axes(v.cotangents[0], x, dim, keepdim);
  return {chosen * (g / sum(chosen, dim, true))};
}

// The same over all elements, where NaN is an extremum like others.
static Gradients shared_by_all(const Vjp& v, const LazyTensor& x) {
  const LazyTensor &g = v.cotangents[0], &best = v.results[0];
  const LazyTensor both_nan = logical_and(isnan(x), isnan(best));
  const LazyTensor chosen = to(logical_or(eq(x, best), both_nan), x.dtype());
  return {chosen * (g / sum(chosen))};
}

static LazyTensor amin(const LazyTensor& x, const Ints& axes, bool keepdim = false) {
  return apply_one("aten::amin", {x, axes, keepdim});
}

static void add_values(OperationTable& rows) {
  rows.add({.schema = "aten::amax(Tensor self, int[1] dim=[], bool keepdim=False) -> Tensor",
            .kind = OpKind::reduction,
            .loops = [](In x, Ints dim, bool keepdim) { return value_only<true>(x, dim, keepdim); },
            .vjp = [](Vjp v, LazyTensor x, Ints dim,
                      bool keepdim) { return shared(v, x, dim, keepdim); },
            .samples = "f32[2,3,4] [0,2] | f32[2,3] [] | f32[2,3] [-1] True | i64[2,3] [1] | "
                       "f32[4]=[1,3,3,2] | bool[2,3] [1]",
            .bad = "f32[2,0] [1]: expected an element"});
  rows.add(
      {.schema = "aten::amin(Tensor self, int[1] dim=[], bool keepdim=False) -> Tensor",
       .kind = OpKind::reduction,
       .loops = [](In x, Ints dim, bool keepdim) { return value_only<false>(x, dim, keepdim); },
       .vjp = [](Vjp v, LazyTensor x, Ints dim,
                 bool keepdim) { return shared(v, x, dim, keepdim); },
       .samples = "f32[2,3,4] [0,2] | f32[2,3] [] | i64[2,3] [1] | u8[4] | i32[3]"});
  rows.add({.schema = "aten::max(Tensor self) -> Tensor",
            .kind = OpKind::reduction,
            .decompose = [](LazyTensor x) { return LazyTensors{amax(x)}; },
            .vjp = [](Vjp v, LazyTensor x) { return shared_by_all(v, x); },
            .samples = "f32[2,3] | i64[3,4]<3 | f32[5]=nan | f32[]",
            .bad = "f32[0]: expected an element"});
  rows.add({.schema = "aten::min(Tensor self) -> Tensor",
            .kind = OpKind::reduction,
            .decompose = [](LazyTensor x) { return LazyTensors{amin(x, {})}; },
            .vjp = [](Vjp v, LazyTensor x) { return shared_by_all(v, x); },
            .samples = "f32[2,3] | i64[3,4]<3 | f32[5]=nan | f32[]",
            .bad = "f32[0]: expected an element"});
  rows.add({.schema = "aten::aminmax(Tensor self, *, int? dim=None, bool keepdim=False) -> (Tensor "
                      "min, Tensor max)",
            .decompose =
                [](LazyTensor x, std::optional<int64_t> dim, bool keepdim) {
                  const Ints axes = dim ? Ints{*dim} : Ints{};
                  return LazyTensors{amin(x, axes, keepdim), amax(x, axes, keepdim)};
                },
            .samples = "f32[2,3] | f32[2,3] 1 True | i64[4] 0",
            .bad = "f32[0]: expected an element"});
}

void add_extrema_rows(OperationTable& rows) {
  add_with_index(rows);
  add_values(rows);
}

}  // namespace composit
