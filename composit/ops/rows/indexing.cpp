// Elements chosen by indices that are data.
#include <algorithm>

#include "composit/ops/functions.h"
#include "composit/ops/places.h"

namespace composit {

// An index that counts from the end where it is negative.
static Expr wrapped_index(const Expr& index, int64_t size) {
  const Expr wide = cast(index, DType::int64);
  return select(wide < 0, wide + size, wide);
}

// ---- one index per axis: index.Tensor -----------------------------------------------------------

// The axes of `self[indices]`. The broadcast axes of the indices replace the indexed axes; they
// come first if the indexed axes are not adjacent.
struct Indexing {
  std::vector<bool> indexed;  // per axis of self
  Ints index_sizes;
  size_t place = 0;  // of the index axes among the axes that stay
};

static Indexing indexing(const In& self, const std::vector<std::optional<In>>& indices) {
  if (static_cast<int64_t>(indices.size()) > self.rank())
    throw UserError("expected at most " + std::to_string(self.rank()) + " indices for sizes " +
                    str(self.sizes()) + ", received " + std::to_string(indices.size()));
  Indexing result{.indexed = std::vector<bool>(static_cast<size_t>(self.rank())),
                  .index_sizes = {}};
  std::vector<Ints> sizes;
  size_t first = 0, last = 0;
  for (size_t axis = 0; axis < indices.size(); ++axis) {
    if (!indices[axis]) continue;
    if (indices[axis]->dtype() == DType::bool_ || indices[axis]->dtype() == DType::uint8)
      throw SizesDependOnValues(
          "an index of bool gives sizes that depend on values, which composit does not have; use "
          "where or masked_fill");
    expect_index(*indices[axis]);
    if (sizes.empty()) first = axis;
    last = axis;
    result.indexed[axis] = true;
    sizes.push_back(indices[axis]->sizes());
  }
  if (sizes.empty()) throw UserError("expected an index at least, received none");
  result.index_sizes = broadcast_sizes(sizes);
  if (last - first + 1 == sizes.size()) result.place = first;
  return result;
}

// Parallel axes for all elements of `self[indices]`: where they are in it, and in self.
static std::pair<Index, Index> indexed_places(Nest& nest, const In& self,
                                              const std::vector<std::optional<In>>& indices) {
  const Indexing how = indexing(self, indices);
  Index at, from(how.indexed.size()), chosen;
  bool added = false;
  const auto add_index_axes = [&] {
    chosen = nest.parallel(how.index_sizes);
    at.insert(at.end(), chosen.begin(), chosen.end());
    added = true;
  };
  for (size_t axis = 0; axis < how.indexed.size(); ++axis) {
    if (how.indexed[axis]) continue;
    if (at.size() == how.place && !added) add_index_axes();
    from[axis] = nest.parallel(self.sizes()[axis]);
    at.push_back(from[axis]);
  }
  if (!added) add_index_axes();
  for (size_t axis = 0; axis < how.indexed.size(); ++axis)
    if (how.indexed[axis])
      from[axis] = wrapped_index(indices[axis]->broadcast(chosen), self.sizes()[axis]);
  return {at, from};
}

// ---- one mask: index_put ------------------------------------------------------------------------

// The first of the axes that a mask of bool stands for, which is the only index; nothing where it
// is not.
template <class T>
static std::optional<size_t> masked_axis(const T& self,
                                         const std::vector<std::optional<T>>& indices) {
  std::optional<size_t> found;
  for (size_t axis = 0; axis < indices.size(); ++axis) {
    if (!indices[axis]) continue;
    if (found || indices[axis]->dtype() != DType::bool_ || indices[axis]->rank() == 0)
      return std::nullopt;
    found = axis;
  }
  if (!found) return std::nullopt;
  const Ints mask = indices[*found]->sizes(), sizes = self.sizes();
  if (*found + mask.size() > sizes.size() ||
      !std::equal(mask.begin(), mask.end(), sizes.begin() + static_cast<int64_t>(*found)))
    throw UserError("expected a mask for the axes from " + std::to_string(*found) + " of sizes " +
                    str(sizes) + ", received sizes " + str(mask));
  return found;
}

// The places that a mask chooses are one axis of values, before the last `behind` ones: these must
// not differ there, since how many places there are depends on elements.
static void expect_one_value(const Ints& sizes, int64_t behind) {
  const int64_t axis = static_cast<int64_t>(sizes.size()) - behind - 1;
  if (axis >= 0 && sizes[static_cast<size_t>(axis)] != 1)
    throw UserError("values of sizes " + str(sizes) +
                    " are one for each place where the mask is true; how many there are depends on "
                    "values");
}

static Loops put_by_mask(const In& self, const In& mask, size_t axis, const In& values,
                         bool accumulate) {
  const auto axes = static_cast<size_t>(mask.rank());
  Nest nest;
  const Index at = nest.parallel(self.sizes());
  const auto begin = at.begin() + static_cast<int64_t>(axis),
             end = begin + static_cast<int64_t>(axes);
  Index of_values(at.begin(), begin);
  of_values.push_back(Expr(int64_t{0}));
  of_values.insert(of_values.end(), end, at.end());
  expect_one_value(values.sizes(), self.rank() - static_cast<int64_t>(axis + axes));
  const Expr value = values.broadcast(of_values), old = self(at);
  return nest.store(select(mask(Index(begin, end)), accumulate ? old + value : value, old)).loops();
}

// Gradient of `values` when one value is broadcast to all places of the mask; `g` is the cotangent
// of the result.
static LazyTensor gradient_of_masked(const LazyTensor& g, const LazyTensor& mask, size_t axis,
                                     const Ints& sizes) {
  const auto first = static_cast<int64_t>(axis), end = first + mask.rank();
  expect_one_value(sizes, g.rank() - end);
  Ints of_mask, summed, kept;
  for (int64_t i = 0; i < g.rank(); ++i) {
    const bool masked = first <= i && i < end;
    of_mask.push_back(masked ? g.size(i) : 1);
    if (masked) summed.push_back(i);
    if (!masked || i == first) kept.push_back(masked ? 1 : g.size(i));
  }
  const LazyTensor chosen = where(reshape(mask, of_mask), g, 0);
  return sum_to_size(reshape(sum(chosen, summed), kept), sizes);
}

static LazyTensors present(const std::vector<std::optional<LazyTensor>>& indices) {
  LazyTensors list;
  for (const auto& index : indices) list.push_back(index.value_or(LazyTensor()));
  return list;
}

static void add_advanced_indexing(OperationTable& rows) {
  rows.add(
      {.schema = "aten::index.Tensor(Tensor self, Tensor?[] indices) -> Tensor",
       .kind = OpKind::movement,
       .loops =
           [](In self, std::vector<std::optional<In>> indices) {
             Nest nest;
             const auto [at, from] = indexed_places(nest, self, indices);
             return nest.store(self(from)).loops();
           },
       .vjp =
           [](Vjp v, LazyTensor self, std::vector<std::optional<LazyTensor>> indices) {
             Gradients gradients(1 + indices.size());
             gradients[0] = apply_one("aten::index_put",
                                      {zeros_like(self), present(indices), v.cotangents[0], true});
             return gradients;
           },
       .samples = "f32[4,5] [i64[3]<4] | f32[4,5] [i64[3]<4,i64[3]<5] | f32[4,5,2] "
                  "[None,i64[2,3]<5] | f32[3,4,5] [i64[2]<3,None,i64[2]<5] | f32[4] [i64[2]=-4..3]",
       .bad = "f32[4] [bool[4]]: depend on values | f32[4] [i64[2]<4,i64[2]<4]: at most 1"});
  rows.add(
      {.schema = "aten::index_put(Tensor self, Tensor?[] indices, Tensor values, bool "
                 "accumulate=False) -> Tensor",
       .kind = OpKind::movement,
       .loops =
           [](In self, std::vector<std::optional<In>> indices, In values, bool accumulate) {
             if (self.dtype() != values.dtype())
               throw UserError("expected values of " + std::string(name(self.dtype())) +
                               ", received " + std::string(name(values.dtype())));
             if (const auto axis = masked_axis(self, indices))
               return put_by_mask(self, *indices[*axis], *axis, values, accumulate);
             Nest nest;
             const auto [at, to] = indexed_places(nest, self, indices);
             if (values.rank() > static_cast<int64_t>(at.size()))
               throw UserError("values of sizes " + str(values.sizes()) +
                               " do not broadcast to the places");
             nest.store_into(0, to, values.broadcast(at), accumulate);
             return sequence({copy_of(self), nest});
           },
       .vjp =
           [](Vjp v, LazyTensor self, std::vector<std::optional<LazyTensor>> indices,
              LazyTensor values, bool accumulate) {
             const LazyTensor& g = v.cotangents[0];
             Gradients gradients(2 + indices.size());
             const LazyTensors list = present(indices);
             gradients[0] =
                 accumulate ? g
                            : apply_one("aten::index_put", {g, list, zeros({}, g.dtype()), false});
             const auto axis = masked_axis(self, indices);
             gradients.back() =
                 axis ? gradient_of_masked(g, *indices[*axis], *axis, values.sizes())
                      : sum_to_size(apply_one("aten::index.Tensor", {g, list}), values.sizes());
             return gradients;
           },
       .samples = "f32[4,5] [i64[3]=distinct<4] f32[3,5] | f32[4,5] [i64[3]<4] f32[5] True | "
                  "f32[4,5] [None,i64[2]=distinct<5] f32[4,2] | f32[4] [i64[2]=distinct<4] f32[] | "
                  "f32[4,5] [bool[4,5]] f32[] | f32[4,5,2] [bool[4]] f32[5,1] | "
                  "f32[4,5,2] [None,bool[5]] f32[4,1,2] True",
       .bad = "f32[4] [i64[2]<4] f64[2]: expected values of | "
              "f32[4] [bool[4]] f32[2]: how many there are depends on values | "
              "f32[4] [bool[3]] f32[]: expected a mask for the axes from 0"});
}

// Places where `mask` is false are not looked at, wherever their indices lead.
static LazyTensors inside(const LazyTensor& x,
                          const std::vector<std::optional<LazyTensor>>& indices) {
  LazyTensors list;
  for (size_t axis = 0; axis < indices.size(); ++axis) {
    const auto& index = indices[axis];
    const int64_t size = x.size(static_cast<int64_t>(axis));
    list.push_back(index ? apply_one("aten::clamp", {*index, Scalar(-size), Scalar(size - 1)})
                         : LazyTensor());
  }
  return list;
}

static void add_masked_indexing(OperationTable& rows) {
  rows.add({.schema = "aten::_unsafe_masked_index(Tensor self, Tensor mask, Tensor?[] indices, "
                      "Scalar fill) -> Tensor",
            .decompose =
                [](LazyTensor x, LazyTensor mask, std::vector<std::optional<LazyTensor>> indices,
                   Scalar fill) {
                  const LazyTensor found = apply_one("aten::index.Tensor", {x, inside(x, indices)});
                  return LazyTensors{
                      apply_one("aten::masked_fill.Scalar", {found, logical_not(mask), fill})};
                },
            .samples = "f32[4,5] bool[3,1] [i64[3]=-9..9] 2.5 | f32[4] bool[3] [i64[3]<4] 0"});
  rows.add(
      {.schema = "aten::_unsafe_masked_index_put_accumulate(Tensor self, Tensor mask, "
                 "Tensor?[] indices, Tensor values) -> Tensor",
       .decompose =
           [](LazyTensor x, LazyTensor mask, std::vector<std::optional<LazyTensor>> indices,
              LazyTensor values) {
             const LazyTensor kept =
                 apply_one("aten::masked_fill.Scalar", {values, logical_not(mask), 0});
             return LazyTensors{apply_one("aten::index_put", {x, inside(x, indices), kept, true})};
           },
       .samples = "f32[4] bool[3] [i64[3]=-9..9] f32[3] | f32[4] bool[3] [i64[3]<4] f32[3]"});
}

// ---- one index for one axis ---------------------------------------------------------------------

static void expect_same_rank(const In& x, const In& index) {
  expect_index(index);
  if (std::max<int64_t>(x.rank(), 1) != std::max<int64_t>(index.rank(), 1))
    throw UserError("expected an index of as many axes as " + str(x.sizes()) + ", received sizes " +
                    str(index.sizes()));
}

// The places of x that index names along `axis`, one for each of its elements.
static Index places(const In& x, int64_t dim, const In& index, const Index& at) {
  const auto axis = static_cast<size_t>(wrap_axis(dim, x.rank()));
  Index place = at;
  const Expr chosen = cast(index(at), DType::int64);
  place.resize(static_cast<size_t>(x.rank()), Expr(0));
  if (x.rank() > 0) place[axis] = chosen;
  return place;
}

static Loops scattered(const In& x, int64_t dim, const In& index, const In& source, bool add) {
  expect_same_rank(x, index);
  if (x.dtype() != source.dtype())
    throw UserError("expected values of " + std::string(name(x.dtype())) + ", received " +
                    std::string(name(source.dtype())));
  Nest nest;
  const Index at = nest.parallel(index.sizes());
  nest.store_into(0, places(x, dim, index, at), source(at), add);
  return sequence({copy_of(x), nest});
}

static void add_gather(OperationTable& rows) {
  rows.add(
      {.schema = "aten::gather(Tensor self, int dim, Tensor index, *, bool sparse_grad=False) -> "
                 "Tensor",
       .kind = OpKind::movement,
       .loops =
           [](In x, int64_t dim, In index) {
             Nest nest;
             const Index at = nest.parallel(index.sizes());
             if (index.numel() == 0)  // of any axes, as in torch
               return nest.store(Expr::literal(int64_t{0}, x.dtype())).loops();
             expect_same_rank(x, index);
             return nest.store(x(places(x, dim, index, at))).loops();
           },
       .vjp =
           [](Vjp v, LazyTensor x, int64_t dim, LazyTensor index) {
             if (index.numel() == 0) return Gradients{zeros_like(x)};
             return Gradients{
                 apply_one("aten::scatter_add", {zeros_like(x), dim, index, v.cotangents[0]}),
                 LazyTensor()};
           },
       .samples =
           "f32[3,4] 1 i64[3,2]<4 | f32[3,4] 0 i64[2,4]<3 | f32[5] -1 i64[3]<5 | f32[5] 0 i64[2,0]",
       .bad = "f32[3,4] 1 i64[3]<4: as many axes | f32[3] 0 f32[3]: an index of"});
}

static void add_scatter(OperationTable& rows) {
  rows.add({.schema = "aten::scatter_add(Tensor self, int dim, Tensor index, Tensor src) -> Tensor",
            .kind = OpKind::movement,
            .loops = [](In x, int64_t dim, In index,
                        In source) { return scattered(x, dim, index, source, true); },
            .vjp =
                [](Vjp v, LazyTensor, int64_t dim, LazyTensor index) {
                  const LazyTensor& g = v.cotangents[0];
                  return Gradients{g, LazyTensor(), apply_one("aten::gather", {g, dim, index})};
                },
            .samples = "f32[3,4] 1 i64[3,2]<4 f32[3,2] | f32[3,4] 0 i64[2,4]<3 f32[2,4] | f32[5] 0 "
                       "i64[3]<5 f32[3]",
            .bad = "f32[3,4] 1 i64[3,2]<4 f64[3,2]: expected values"});
  rows.add(
      {.schema = "aten::scatter.src(Tensor self, int dim, Tensor index, Tensor src) -> Tensor",
       .kind = OpKind::movement,
       .loops = [](In x, int64_t dim, In index,
                   In source) { return scattered(x, dim, index, source, false); },
       .vjp =
           [](Vjp v, LazyTensor, int64_t dim, LazyTensor index) {
             const LazyTensor& g = v.cotangents[0];
             return Gradients{apply_one("aten::scatter.value", {g, dim, index, 0}), LazyTensor(),
                              apply_one("aten::gather", {g, dim, index})};
           },
       .samples = "f32[3,4] 1 i64[3,4]=distinct<4 f32[3,4] | f32[5] 0 i64[3]=distinct<5 f32[3]"});
  rows.add(
      {.schema = "aten::scatter.value(Tensor self, int dim, Tensor index, Scalar value) -> Tensor",
       .kind = OpKind::movement,
       .loops =
           [](In x, int64_t dim, In index, Scalar value) {
             expect_same_rank(x, index);
             Nest nest;
             const Index at = nest.parallel(index.sizes());
             nest.store_into(0, places(x, dim, index, at), cast(Expr(value), x.dtype()));
             return sequence({copy_of(x), nest});
           },
       .vjp =
           [](Vjp v, LazyTensor, int64_t dim, LazyTensor index) {
             return Gradients{apply_one("aten::scatter.value", {v.cotangents[0], dim, index, 0}),
                              LazyTensor()};
           },
       .samples = "f32[3,4] 1 i64[3,2]<4 0.5"});
}

static void add_index_select(OperationTable& rows) {
  rows.add({.schema = "aten::index_select(Tensor self, int dim, Tensor index) -> Tensor",
            .kind = OpKind::movement,
            .loops =
                [](In x, int64_t dim, In index) {
                  expect_index(index);
                  if (index.rank() > 1)
                    throw UserError("expected an index of one axis, received sizes " +
                                    str(index.sizes()));
                  const auto axis = static_cast<size_t>(wrap_axis(dim, x.rank()));
                  if (x.rank() == 0) return copy_of(x).loops();
                  Ints sizes = x.sizes();
                  sizes[axis] = index.numel();
                  Nest nest;
                  Index at = nest.parallel(sizes);
                  at[axis] =
                      cast(index.rank() == 0 ? index(Index{}) : index(at[axis]), DType::int64);
                  return nest.store(x(at)).loops();
                },
            .vjp =
                [](Vjp v, LazyTensor x, int64_t dim, LazyTensor index) {
                  return Gradients{
                      apply_one("aten::index_add", {zeros_like(x), dim, index, v.cotangents[0]})};
                },
            .samples = "f32[3,4] 1 i64[5]<4 | f32[3,4] 0 i64[2]<3",
            .bad = "f32[3,4] 0 i64[2,2]<3: of one axis"});
}

static void add_embedding(OperationTable& rows) {
  rows.add(
      {.schema = "aten::embedding(Tensor weight, Tensor indices, SymInt padding_idx=-1, bool "
                 "scale_grad_by_freq=False, bool sparse=False) -> Tensor",
       .kind = OpKind::movement,
       .loops =
           [](In weight, In indices) {
             expect_index(indices);
             if (weight.rank() != 2)
               throw UserError("expected a weight of 2 axes, received sizes " +
                               str(weight.sizes()));
             Nest nest;
             const Expr row = indices(nest.parallel(indices.sizes()));
             return nest.store(weight(cast(row, DType::int64), nest.parallel(weight.size(1))))
                 .loops();
           },
       .vjp =
           [](Vjp v, LazyTensor weight, LazyTensor indices, int64_t padding, bool by_frequency) {
             return Gradients{
                 apply_one("aten::embedding_dense_backward",
                           {v.cotangents[0], indices, weight.size(0), padding, by_frequency}),
                 LazyTensor()};
           },
       .samples = "f32[5,3] i64[2,4]<5 | f32[5,3] i32[4]<5 | f32[5,3] i64[]<5",
       .bad = "f32[5] i64[2]<5: of 2 axes | f32[5,3] f32[2]: an index of"});
  rows.add(
      {.schema = "aten::embedding_dense_backward(Tensor grad_output, Tensor indices, SymInt "
                 "num_weights, SymInt padding_idx, bool scale_grad_by_freq) -> Tensor",
       .loops =
           [](In gradient, In indices, int64_t count, int64_t padding, bool by_frequency) {
             if (by_frequency)
               throw UserError("scale_grad_by_freq is not differentiated by composit");
             Nest nest;
             const Index at = nest.parallel(gradient.sizes());
             const Expr row = cast(indices(Index(at.begin(), at.end() - 1)), DType::int64);
             if (padding >= 0) nest.where(ne(row, padding));
             return nest.store({count, gradient.size(-1)}, {row, at.back()}, gradient(at), true)
                 .loops();
           },
       .vjp =
           [](Vjp v, LazyTensor, LazyTensor indices, int64_t, int64_t padding) {
             const LazyTensor rows_of = apply_one("aten::embedding", {v.cotangents[0], indices});
             if (padding < 0) return Gradients{rows_of};
             return Gradients{where(unsqueeze(eq(indices, padding), -1), 0, rows_of)};
           },
       .samples = "f32[2,4,3] i64[2,4]<5 5 -1 False | f32[4,3] i64[4]<5 5 2 False"});
}

void add_indexing_rows(OperationTable& rows) {
  add_advanced_indexing(rows);
  add_masked_indexing(rows);
  add_gather(rows);
  add_scatter(rows);
  add_index_select(rows);
  add_embedding(rows);
}

}  // namespace composit
