// Elements added, copied and reduced into places that are data; and taken from there.
#include <limits>

#include "composit/op/promotion.h"
#include "composit/ops/axes.h"
#include "composit/ops/places.h"

namespace composit {
namespace {

void expect_index_vector(const In& index) {
  expect_index(index);
  if (index.rank() > 1)
    throw UserError("expected an index of one axis, received sizes " + str(index.sizes()));
}

// ---- one index for slices along an axis ---------------------------------------------------------

// x, and in its slices along `dim` that `index` names those of a source: values of `value`, which
// gets the place in the source.
template <class Value>
Loops into_slices(const In& x, int64_t dim, const In& index, bool add, Value value) {
  expect_index_vector(index);
  Nest written;
  Ints sizes = x.sizes();
  const auto axis = static_cast<size_t>(wrap_axis(dim, x.rank()));
  if (!sizes.empty()) sizes[axis] = index.numel();
  const Index from = written.parallel(sizes);
  Index to = from;
  if (!to.empty())
    to[axis] = cast(index.rank() == 0 ? index(Index{}) : index(from[axis]), DType::int64);
  written.store_into(0, to, value(from), add);
  return sequence({copy_of(x), written});
}

void expect_source(const In& x, int64_t dim, const In& index, const In& source) {
  Ints sizes = x.sizes();
  if (!sizes.empty()) sizes[static_cast<size_t>(wrap_axis(dim, x.rank()))] = index.numel();
  if (source.sizes() != sizes || source.dtype() != x.dtype())
    throw UserError("expected a source of " + std::string(name(x.dtype())) + " and sizes " +
                    str(sizes) + ", received " + std::string(name(source.dtype())) + " and " +
                    str(source.sizes()));
}

LazyTensor index_select(const LazyTensor& x, int64_t dim, const LazyTensor& index) {
  return apply_one("aten::index_select", {x, dim, index});
}
LazyTensor without_slices(const LazyTensor& x, int64_t dim, const LazyTensor& index) {
  return apply_one("aten::index_fill.int_Scalar", {x, dim, index, 0});
}

void add_slices_by_index(OperationTable& rows) {
  rows.add({.schema = "aten::index_add(Tensor self, int dim, Tensor index, Tensor source, *, "
                      "Scalar alpha=1) -> Tensor",
            .kind = OpKind::movement,
            .loops =
                [](In x, int64_t dim, In index, In source, Scalar alpha) {
                  expect_source(x, dim, index, source);
                  return into_slices(x, dim, index, true, [&](const Index& at) {
                    const bool plain = is_literal(Expr(alpha), 1);
                    return plain ? source(at) : source(at) * cast(Expr(alpha), x.dtype());
                  });
                },
            .vjp =
                [](Vjp v, LazyTensor, int64_t dim, LazyTensor index, LazyTensor, Scalar alpha) {
                  const LazyTensor& g = v.cotangents[0];
                  const LazyTensor back = index_select(g, dim, index);
                  const bool plain = is_literal(Expr(alpha), 1);
                  return Gradients{g, LazyTensor(), plain ? back : back * Number(alpha)};
                },
            .samples = "f32[4,3] 0 i64[5]<4 f32[5,3] | f32[2,4] 1 i64[2]<4 f32[2,2] 0.5 | i64[3] 0 "
                       "i64[2]<3 i64[2]",
            .bad = "f32[4,3] 0 i64[5]<4 f32[4,3]: a source of | f32[4] 0 i64[2,2]<4 f32[4]: of "
                   "one axis"});
  rows.add({.schema = "aten::index_copy(Tensor self, int dim, Tensor index, Tensor source) -> "
                      "Tensor",
            .loops =
                [](In x, int64_t dim, In index, In source) {
                  expect_source(x, dim, index, source);
                  return into_slices(x, dim, index, false,
                                     [&](const Index& at) { return source(at); });
                },
            .vjp =
                [](Vjp v, LazyTensor, int64_t dim, LazyTensor index) {
                  const LazyTensor& g = v.cotangents[0];
                  return Gradients{without_slices(g, dim, index), LazyTensor(),
                                   index_select(g, dim, index)};
                },
            .samples = "f32[4,3] 0 i64[3]=distinct<4 f32[3,3] | f32[2,4] 1 i64[2]=distinct<4 "
                       "f32[2,2]",
            .bad = "f32[4,3] 0 i64[3]<4 f64[3,3]: a source of"});
  rows.add({.schema = "aten::index_fill.int_Scalar(Tensor self, int dim, Tensor index, Scalar "
                      "value) -> Tensor",
            .loops =
                [](In x, int64_t dim, In index, Scalar value) {
                  return into_slices(x, dim, index, false,
                                     [&](const Index&) { return cast(Expr(value), x.dtype()); });
                },
            .vjp =
                [](Vjp v, LazyTensor, int64_t dim, LazyTensor index) {
                  return Gradients{without_slices(v.cotangents[0], dim, index), LazyTensor()};
                },
            .samples = "f32[4,3] 0 i64[2]<4 1.5 | i64[2,4] -1 i64[2]<4 7",
            .bad = "f32[4] 0 f32[2] 1: an index of"});
  rows.add({.schema = "aten::index_fill.int_Tensor(Tensor self, int dim, Tensor index, Tensor "
                      "value) -> Tensor",
            .loops =
                [](In x, int64_t dim, In index, In value) {
                  if (value.rank() != 0)
                    throw UserError("expected a value without axes, received sizes " +
                                    str(value.sizes()));
                  return into_slices(x, dim, index, false,
                                     [&](const Index&) { return cast(value(Index{}), x.dtype()); });
                },
            .vjp =
                [](Vjp v, LazyTensor, int64_t dim, LazyTensor index) {
                  const LazyTensor& g = v.cotangents[0];
                  return Gradients{without_slices(g, dim, index), LazyTensor(),
                                   sum(index_select(g, dim, index))};
                },
            .samples = "f32[4,3] 0 i64[2]=distinct<4 f32[]",
            .bad = "f32[4] 0 i64[2]<4 f32[1]: without axes"});
}

// ---- reductions into places ---------------------------------------------------------------------

enum class Reduction { sum, product, mean, largest, smallest };

Reduction reduction_named(const std::string& name) {
  if (name == "sum" || name == "add") return Reduction::sum;
  if (name == "prod" || name == "multiply") return Reduction::product;
  if (name == "mean") return Reduction::mean;
  if (name == "amax") return Reduction::largest;
  if (name == "amin") return Reduction::smallest;
  throw UserError("expected a reduction 'sum', 'prod', 'mean', 'amax' or 'amin', received '" +
                  name + "'");
}

Expr times(Expr x, Expr y) { return x * y; }

// Per element of x, those of `source` that `index` sends there, reduced, x's own among them: by
// looking at all along the axis.
Loops scatter_fold(const In& x, int64_t dim, const In& index, const In& source,
                   const std::string& reduce) {
  if (x.rank() == 0 || x.rank() != index.rank() || x.rank() != source.rank() ||
      x.dtype() != source.dtype())
    throw UserError("expected tensor, index and source of as many axes, received sizes " +
                    str(x.sizes()) + ", " + str(index.sizes()) + " and " + str(source.sizes()));
  const auto axis = static_cast<size_t>(wrap_axis(dim, x.rank()));
  Nest nest;
  const Index at = nest.parallel(x.sizes());
  Index from = at;
  from[axis] = nest.reduction(index.sizes()[axis]);
  Expr inside = true;  // the index may be smaller than x
  for (size_t i = 0; i < at.size(); ++i)
    if (i != axis && index.sizes()[i] < x.sizes()[i]) inside = inside && at[i] < index.sizes()[i];
  const Expr here = select(inside, eq(cast(index(from), DType::int64), at[axis]), false);
  const Reduction how = reduction_named(reduce);
  const bool largest = how == Reduction::largest;
  if (how == Reduction::product)
    return nest.store(nest.fold(1, select(here, source(from), cast(1, x.dtype())), times) * x(at))
        .loops();
  const Expr none = largest ? least(x.dtype()) : greatest(x.dtype());
  const Expr best = nest.fold(none, select(here, source(from), none), largest ? max : min);
  return nest.store(largest ? max(best, x(at)) : min(best, x(at))).loops();
}

LazyTensor gather(const LazyTensor& x, int64_t dim, const LazyTensor& index) {
  return apply_one("aten::gather", {x, dim, index});
}
LazyTensor scatter_add(const LazyTensor& x, int64_t dim, const LazyTensor& index,
                       const LazyTensor& source) {
  return apply_one("aten::scatter_add", {x, dim, index, source});
}
LazyTensor scattered_number(const LazyTensor& x, int64_t dim, const LazyTensor& index,
                            double value) {
  return apply_one("aten::scatter.value", {x, dim, index, value});
}
LazyTensor reduced(const LazyTensor& x, int64_t dim, const LazyTensor& index,
                   const LazyTensor& source, const std::string& reduce) {
  return apply_one("composit::scatter_fold", {x, dim, index, source, reduce});
}

// Replaces the elements of x that do not count by the value from which the reduction starts.
LazyTensor without_own(const LazyTensor& x, int64_t dim, const LazyTensor& index, Reduction how) {
  Expr none = how == Reduction::product ? 1 : 0;
  if (how == Reduction::largest) none = least(x.dtype());
  if (how == Reduction::smallest) none = greatest(x.dtype());
  return apply_one("aten::scatter.value", {x, dim, index, Scalar(none.value())});
}

LazyTensor scatter_mean(const LazyTensor& x, int64_t dim, const LazyTensor& index,
                        const LazyTensor& source, bool include_own) {
  if (is_half(x.dtype()))
    return to(scatter_mean(widened(x), dim, index, widened(source), include_own), x.dtype());
  const LazyTensor ones = full(index.sizes(), 1, x.dtype());
  const LazyTensor begin =
      include_own ? ones_like(x) : scattered_number(ones_like(x), dim, index, 0);
  const LazyTensor total = scatter_add(x, dim, index, source);
  const LazyTensor count = scatter_add(begin, dim, index, ones);
  const bool floats = category(x.dtype()) >= DTypeCategory::floating;
  return floats ? total / count : apply_one("aten::floor_divide", {total, count});
}

LazyTensors scatter_reduce(LazyTensor x, int64_t dim, const LazyTensor& index,
                           const LazyTensor& source, const std::string& reduce, bool include_own) {
  if (x.rank() == 0)
    return {reshape(scatter_reduce(reshape(x, {1}), dim, reshape(index, {-1}),
                                   reshape(source, {-1}), reduce, include_own)[0],
                    {})};
  const Reduction how = reduction_named(reduce);
  if (!include_own) x = without_own(x, dim, index, how);
  if (how == Reduction::sum) return {scatter_add(x, dim, index, source)};
  if (how == Reduction::mean) return {scatter_mean(x, dim, index, source, include_own)};
  return {reduced(x, dim, index, source, reduce)};
}

// Extrema share the gradient evenly; a product's is the product over the element.
Gradients fold_back(const Vjp& v, const LazyTensor& x, int64_t dim, const LazyTensor& index,
                    const LazyTensor& source, const std::string& reduce) {
  const LazyTensor &g = v.cotangents[0], &y = v.results[0];
  if (reduction_named(reduce) == Reduction::product) {
    const LazyTensor others = reduced(ones_like(x), dim, index, source, reduce);
    return {g * others, LazyTensor(), gather(g * y, dim, index) / source};
  }
  const LazyTensor own = to(eq(x, y), x.dtype());
  const LazyTensor theirs = to(eq(source, gather(y, dim, index)), x.dtype());
  const LazyTensor share = g / scatter_add(own, dim, index, theirs);
  return {own * share, LazyTensor(), theirs * gather(share, dim, index)};
}

void add_reductions(OperationTable& rows) {
  rows.add({.schema = "composit::scatter_fold(Tensor self, int dim, Tensor index, Tensor src, str "
                      "reduce) -> Tensor",
            .loops = [](In x, int64_t dim, In index, In source,
                        std::string reduce) { return scatter_fold(x, dim, index, source, reduce); },
            .vjp = [](Vjp v, LazyTensor x, int64_t dim, LazyTensor index, LazyTensor source,
                      std::string reduce) { return fold_back(v, x, dim, index, source, reduce); },
            .samples = "f32[3,4] 1 i64[3,2]<4 f32[3,2] 'amax' | f32[5] 0 i64[4]<5 f32[4] 'prod'",
            .bad = "f32[3] 0 i64[2]<3 f32[2] 'median': expected a reduction"});
  rows.add({.schema = "aten::scatter_reduce.two(Tensor self, int dim, Tensor index, Tensor src, "
                      "str reduce, *, bool include_self=True) -> Tensor",
            .decompose =
                [](LazyTensor x, int64_t dim, LazyTensor index, LazyTensor source,
                   std::string reduce, bool include_own) {
                  return scatter_reduce(x, dim, index, source, reduce, include_own);
                },
            .samples =
                "f32[3,4] 1 i64[3,2]<4 f32[3,2] 'sum' | f32[3,4] 0 i64[2,4]<3 f32[2,4] 'mean' | "
                "f32[3,4] 0 i64[2,4]<3 f32[2,4] 'mean' False | f32[5] 0 i64[4]<5 f32[4] 'prod' | "
                "f32[5] 0 i64[4]<5 f32[4] 'amax' | f32[] 0 i64[]<1 f32[] 'amax' | f32[5] 0 "
                "i64[4]<5 f32[4] 'amin' False | f32[5] 0 "
                "i64[4]<5 f32[4] 'sum' False | f32[5] 0 i64[4]<5 f32[4] 'prod' False | i64[5] 0 "
                "i64[4]<5 i64[4] 'amax'",
            .bad = "f32[3] 0 i64[2]<3 f32[2] 'median': expected a reduction"});
  rows.add(
      {.schema = "aten::scatter.reduce(Tensor self, int dim, Tensor index, Tensor src, *, str "
                 "reduce) -> Tensor",
       .kind = OpKind::movement,
       .decompose =
           [](LazyTensor x, int64_t dim, LazyTensor index, LazyTensor source, std::string reduce) {
             return scatter_reduce(x, dim, index, source, reduce, true);
           },
       .samples = "i64[3,4] 1 i64[3,2]<4 i64[3,2] 'add' | i64[5] 0 i64[4]<5 i64[4] "
                  "'multiply'"});
  rows.add({.schema = "aten::scatter.value_reduce(Tensor self, int dim, Tensor index, Scalar "
                      "value, *, str reduce) -> Tensor",
            .kind = OpKind::movement,
            .decompose =
                [](LazyTensor x, int64_t dim, LazyTensor index, Scalar value, std::string reduce) {
                  const LazyTensor source = full(index.sizes(), Number(value), x.dtype());
                  return scatter_reduce(x, dim, index, source, reduce, true);
                },
            .samples = "i64[3,4] 1 i64[3,2]<4 3 'add' | i64[5] 0 i64[4]<5 2 'multiply'"});
}

void add_index_reduce(OperationTable& rows) {
  rows.add({.schema = "aten::index_reduce(Tensor self, int dim, Tensor index, Tensor source, str "
                      "reduce, *, bool include_self=True) -> Tensor",
            .decompose =
                [](LazyTensor x, int64_t dim, LazyTensor index, LazyTensor source,
                   std::string reduce, bool include_own) {
                  if (x.rank() > 0) {
                    Ints along(static_cast<size_t>(x.rank()), 1);
                    along[static_cast<size_t>(wrap_axis(dim, x.rank()))] = index.numel();
                    index = expand(reshape(index, along), source.sizes());
                  }
                  return scatter_reduce(x, dim, index, source, reduce, include_own);
                },
            .samples =
                "f32[3,4] 1 i64[2]<4 f32[3,2] 'prod' | f32[3,4] 0 i64[2]<3 f32[2,4] 'mean' "
                "False | f32[5] 0 i64[4]<5 f32[4] 'amax' | f32[5] 0 i64[4]<5 f32[4] 'amin'"});
}

// ---- taking -------------------------------------------------------------------------------------

void add_taking(OperationTable& rows) {
  rows.add({.schema = "aten::take(Tensor self, Tensor index) -> Tensor",
            .decompose =
                [](LazyTensor x, LazyTensor index) {
                  return LazyTensors{
                      apply_one("aten::index.Tensor", {reshape(x, {-1}), LazyTensors{index}})};
                },
            .samples = "f32[2,3] i64[4]<6 | f32[5] i64[2,2]=-5..4 | i64[3] i64[]<3",
            .bad = "f32[2] f32[1]: an index of"});
  rows.add({.schema = "aten::put(Tensor self, Tensor index, Tensor source, bool "
                      "accumulate=False) -> Tensor",
            .decompose =
                [](LazyTensor x, LazyTensor index, LazyTensor source, bool accumulate) {
                  const LazyTensor all = apply_one(
                      "aten::index_put", {reshape(x, {-1}), LazyTensors{reshape(index, {-1})},
                                          reshape(source, {-1}), accumulate});
                  return LazyTensors{reshape(all, x.sizes())};
                },
            .samples = "f32[2,3] i64[4]=distinct<6 f32[4] | f32[2,3] i64[2,2]<6 f32[4] True"});
  rows.add({.schema = "aten::take_along_dim(Tensor self, Tensor indices, int? dim=None) -> Tensor",
            .kind = OpKind::movement,
            .decompose =
                [](LazyTensor x, LazyTensor index, std::optional<int64_t> dim) {
                  if (!dim) return LazyTensors{gather(reshape(x, {-1}), 0, reshape(index, {-1}))};
                  if (x.rank() != index.rank())
                    throw UserError("expected indices of as many axes as " + str(x.sizes()) +
                                    ", received sizes " + str(index.sizes()));
                  const auto axis = static_cast<size_t>(wrap_axis(*dim, x.rank()));
                  Ints own = x.sizes(), chosen = index.sizes();
                  own[axis] = chosen[axis] = 1;
                  Ints whole = broadcast_sizes({own, chosen}), source = whole;
                  whole[axis] = index.size(*dim);
                  source[axis] = x.size(*dim);
                  const LazyTensor from_front = where(index < 0, index + x.size(*dim), index);
                  return LazyTensors{gather(expand(x, source), *dim, expand(from_front, whole))};
                },
            .samples = "f32[3,4] i64[3,2]<4 1 | f32[3,4] i64[3,2]=-4..3 1 | f32[3,4] i64[1,4]<3 0 "
                       "| f32[2,3] i64[4]<6 | "
                       "f32[1,4] i64[3,2]<4 1",
            .bad = "f32[3,4] i64[3]<4 1: as many axes"});
  rows.add({.schema = "aten::masked_scatter(Tensor self, Tensor mask, Tensor source) -> Tensor",
            .kind = OpKind::movement,
            .decompose =
                [](LazyTensor x, LazyTensor mask, LazyTensor source) {
                  if (mask.dtype() != DType::bool_)
                    throw UserError("expected a mask of bool, received " +
                                    std::string(name(mask.dtype())));
                  const Ints sizes = broadcast_sizes({x.sizes(), mask.sizes()});
                  mask = expand(mask, sizes);
                  const LazyTensor order =
                      cumsum(reshape(mask, {-1}), 0) - 1;  // of those that are true
                  const LazyTensor place = reshape(where(reshape(mask, {-1}), order, 0), sizes);
                  return LazyTensors{
                      where(mask, apply_one("aten::take", {source, place}), expand(x, sizes))};
                },
            .samples = "f32[2,3] bool[2,3] f32[6] | f32[2,3] bool[3] f32[2,4]",
            .bad = "f32[2] i64[2] f32[2]: a mask of bool"});
}

}  // namespace

void add_scatter_rows(OperationTable& rows) {
  add_slices_by_index(rows);
  add_reductions(rows);
  add_index_reduce(rows);
  add_taking(rows);
}

}  // namespace composit
