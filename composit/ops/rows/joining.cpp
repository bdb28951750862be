// Tensors put together, and taken apart.
#include <algorithm>

#include "composit/op/promotion.h"
#include "composit/ops/functions.h"

namespace composit {

static Loops concatenated(const std::vector<In>& all, int64_t dim) {
  if (all.empty()) throw UserError("expected a tensor at least, received none");
  Promotion promotion;
  for (const In& x : all) promotion.add(x.type());
  std::vector<In> parts;  // torch leaves out empty vectors
  for (const In& x : all)
    if (x.sizes() != Ints{0}) parts.push_back(x);
  if (parts.empty()) parts.push_back(all[0]);
  const auto axis = static_cast<size_t>(wrap_axis(dim, parts[0].rank()));
  Ints sizes = parts[0].sizes();
  if (sizes.empty()) throw UserError("zero-dimensional tensors do not concatenate");
  sizes[axis] = 0;
  for (const In& x : parts) {
    Ints expected = sizes, own = x.sizes();
    if (own.size() == sizes.size()) expected[axis] = own[axis];
    if (expected != own)
      throw UserError("expected sizes that agree but for axis " + std::to_string(axis) +
                      ", received " + str(parts[0].sizes()) + " and " + str(own));
    sizes[axis] += own[axis];
  }
  std::vector<Nest> nests;
  int64_t begin = 0;
  for (const In& x : parts) {
    Nest nest;
    const Index from = nest.parallel(x.sizes());
    Index at = from;
    at[axis] = at[axis] + begin;
    begin += x.sizes()[axis];
    const Expr value = cast(x(from), promotion.result());
    nests.empty() ? nest.store(sizes, at, value) : nest.store_into(0, at, value);
    nests.push_back(std::move(nest));
  }
  return sequence(nests);
}

// Each part gets its slice.
static Gradients taken_apart(const Vjp& v, const LazyTensors& parts, int64_t dim) {
  Gradients gradients;
  int64_t begin = 0;
  for (const LazyTensor& part : parts) {
    gradients.emplace_back();
    if (part.sizes() == Ints{0}) continue;
    const int64_t end = begin + part.size(dim);
    if (v.wanted[gradients.size() - 1])
      gradients.back() = to(slice(v.cotangents[0], dim, begin, end), part.dtype());
    begin = end;
  }
  return gradients;
}

static LazyTensors stacked(const LazyTensors& parts, int64_t dim) {
  if (parts.empty()) throw UserError("expected a tensor at least, received none");
  LazyTensors all;
  for (const LazyTensor& part : parts) {
    if (part.sizes() != parts[0].sizes())
      throw UserError("expected tensors of equal sizes, received " + str(parts[0].sizes()) +
                      " and " + str(part.sizes()));
    all.push_back(unsqueeze(part, dim));
  }
  return {cat(all, dim)};
}

// Each tensor with `rank` axes at least: new ones go first, the last of three goes last (numpy's
// atleast_3d).
static LazyTensors with_rank(LazyTensors parts, int64_t rank) {
  for (LazyTensor& part : parts) {
    if (part.rank() == 0) part = reshape(part, {1});
    if (part.rank() == 1 && rank > 1) part = unsqueeze(part, 0);
    if (part.rank() == 2 && rank > 2) part = unsqueeze(part, -1);
  }
  return parts;
}

// Vectors are rows.
static LazyTensor block_diagonal(LazyTensors parts) {
  int64_t columns = 0, before = 0;
  for (LazyTensor& part : parts) {
    if (part.rank() > 2)
      throw UserError("expected tensors of at most 2 axes, received sizes " + str(part.sizes()));
    while (part.rank() < 2) part = unsqueeze(part, 0);
    columns += part.size(1);
  }
  for (LazyTensor& part : parts) {
    const int64_t width = part.size(1);
    part = apply_one("aten::constant_pad_nd", {part, Ints{before, columns - before - width}});
    before += width;
  }
  return cat(parts, 0);
}

static void add_joins(OperationTable& rows) {
  rows.add({.schema = "aten::cat(Tensor[] tensors, int dim=0) -> Tensor",
            .kind = OpKind::movement,
            .loops = [](std::vector<In> all, int64_t dim) { return concatenated(all, dim); },
            .vjp = [](Vjp v, LazyTensors parts, int64_t dim) { return taken_apart(v, parts, dim); },
            .samples = "[f32[2,3],f32[1,3]] | [f32[2,3],f32[2,2],f32[2,1]] 1 | [f32[2],i64[3]] | "
                       "[f32[0],f32[2,3]] 1 | [f32[2,3],f32[2,0]] -1",
            .bad = "[f32[2,3],f32[2,2]]: agree but",
            .also = {"aten::concat", "aten::concatenate"}});
  rows.add({.schema = "aten::block_diag(Tensor[] tensors) -> Tensor",
            .decompose = [](LazyTensors parts) { return LazyTensors{block_diagonal(parts)}; },
            .samples = "[f32[2,3],f32[1,2]] | [f32[],f32[3]] | [f32[2,2],i64[1,1]]",
            .bad = "[f32[1,2,3]]: at most 2 axes"});
  rows.add({.schema = "aten::stack(Tensor[] tensors, int dim=0) -> Tensor",
            .kind = OpKind::movement,
            .decompose = [](LazyTensors parts, int64_t dim) { return stacked(parts, dim); },
            .samples = "[f32[2,3],f32[2,3]] | [f32[2],f32[2],f32[2]] -1 | [f32[],f32[]] | "
                       "[f32[2],i64[2]]",
            .bad = "[f32[2],f32[3]]: of equal sizes"});
  rows.add({.schema = "aten::hstack(Tensor[] tensors) -> Tensor",
            .decompose =
                [](LazyTensors parts) {
                  parts = with_rank(parts, 1);
                  return LazyTensors{cat(parts, !parts.empty() && parts[0].rank() == 1 ? 0 : 1)};
                },
            .samples = "[f32[2],f32[3]] | [f32[2,1],f32[2,2]] | [f32[],f32[]]",
            .bad = "[f32[2,1],f32[3,1]]: agree but"});
  rows.add({.schema = "aten::vstack(Tensor[] tensors) -> Tensor",
            .decompose = [](LazyTensors parts) { return LazyTensors{cat(with_rank(parts, 2), 0)}; },
            .samples = "[f32[2],f32[2]] | [f32[2,3],f32[1,3]]"});
  rows.add({.schema = "aten::dstack(Tensor[] tensors) -> Tensor",
            .decompose = [](LazyTensors parts) { return LazyTensors{cat(with_rank(parts, 3), 2)}; },
            .samples = "[f32[2],f32[2]] | [f32[2,3],f32[2,3]]"});
}

static Loops split(const In& x, const Ints& sizes, int64_t dim) {
  const auto axis = static_cast<size_t>(wrap_axis(dim, x.rank()));
  int64_t total = 0;
  for (int64_t size : sizes) {
    if (size < 0) throw UserError("expected sizes of at least 0, received " + str(sizes));
    total += size;
  }
  if (x.rank() == 0 || total != x.sizes()[axis])
    throw UserError("expected sizes that add up to axis " + std::to_string(axis) + " of " +
                    str(x.sizes()) + ", received " + str(sizes));
  std::vector<Nest> nests;
  int64_t begin = 0;
  for (int64_t size : sizes) {
    Ints own = x.sizes();
    own[axis] = size;
    Nest nest;
    Index at = nest.parallel(own);
    at[axis] = at[axis] + begin;
    nests.push_back(nest.store(x(at)));
    begin += size;
  }
  return sequence(nests);
}

// Parts of equal size; the last one takes the rest.
static Ints equal_parts(int64_t length, int64_t size) {
  Ints sizes;
  for (int64_t begin = 0; begin < length; begin += size)
    sizes.push_back(std::min(size, length - begin));
  if (sizes.empty()) sizes.push_back(0);
  return sizes;
}

static LazyTensors split_at(const LazyTensor& x, const Ints& ends, int64_t dim) {
  LazyTensors parts;
  const int64_t size = x.size(dim);
  int64_t begin = 0;
  for (int64_t end : ends) {  // as slices: any order, any range
    parts.push_back(slice(x, dim, begin, end));
    begin = end;
  }
  parts.push_back(slice(x, dim, begin, size));
  return parts;
}

// The gradient of parts that follow each other; those of unused parts are zeros.
static Gradients joined(const Vjp& v, int64_t dim) {
  LazyTensors parts;
  for (size_t i = 0; i < v.results.size(); ++i)
    parts.push_back(v.cotangents[i].defined() ? v.cotangents[i] : zeros_like(v.results[i]));
  return {cat(parts, dim)};
}

// Each tensor varies along an axis of its own; `swapped`: the first two change places.
static LazyTensors grid(const LazyTensors& tensors, bool swapped) {
  Ints sizes;
  for (const LazyTensor& x : tensors) {
    if (x.rank() > 1)
      throw UserError("expected tensors of at most 1 axis, received sizes " + str(x.sizes()));
    if (x.dtype() != tensors[0].dtype())
      throw UserError("expected one dtype, received " + std::string(name(tensors[0].dtype())) +
                      " and " + std::string(name(x.dtype())));
    sizes.push_back(x.numel());
  }
  if (swapped && sizes.size() > 1) std::swap(sizes[0], sizes[1]);
  LazyTensors results;
  for (size_t i = 0; i < tensors.size(); ++i) {
    const size_t axis = swapped && sizes.size() > 1 && i < 2 ? 1 - i : i;
    Ints own(sizes.size(), 1);
    own[axis] = tensors[i].numel();
    results.push_back(expand(reshape(tensors[i], own), sizes));
  }
  return results;
}

static void add_splits(OperationTable& rows) {
  rows.add({.schema =
                "aten::split_with_sizes(Tensor(a -> *) self, SymInt[] split_sizes, int dim=0) "
                "-> Tensor(a)[]",
            .kind = OpKind::movement,
            .loops = [](In x, Ints sizes, int64_t dim) { return split(x, sizes, dim); },
            .vjp = [](Vjp v, LazyTensor, Ints, int64_t dim) { return joined(v, dim); },
            .samples = "f32[5,3] [2,3] | f32[2,6] [1,2,3] 1 | f32[3] [0,3]",
            .bad = "f32[5] [2,2]: add up",
            .also = {"aten::split_with_sizes_copy", "aten::unsafe_split_with_sizes"}});
  rows.add({.schema = "aten::split.Tensor(Tensor(a -> *) self, SymInt split_size, int dim=0) -> "
                      "Tensor(a)[]",
            .kind = OpKind::movement,
            .loops =
                [](In x, int64_t size, int64_t dim) {
                  const int64_t length = x.size(dim);
                  if (size < 0 || (size == 0 && length > 0))
                    throw UserError("expected a split size above 0, received " +
                                    std::to_string(size));
                  return split(x, equal_parts(length, size), dim);
                },
            .vjp = [](Vjp v, LazyTensor, int64_t, int64_t dim) { return joined(v, dim); },
            .samples = "f32[5,3] 2 | f32[2,6] 3 1 | f32[4] 10",
            .bad = "f32[5] 0: above 0",
            .also = {"aten::split_copy.Tensor", "aten::unsafe_split.Tensor"}});
  rows.add({.schema = "aten::unbind.int(Tensor(a -> *) self, int dim=0) -> Tensor(a)[]",
            .kind = OpKind::movement,
            .decompose =
                [](LazyTensor x, int64_t dim) {
                  LazyTensors parts;
                  for (int64_t i = 0; i < x.size(dim); ++i) parts.push_back(select_at(x, dim, i));
                  return parts;
                },
            .samples = "f32[3,2] | f32[2,3] 1",
            .also = {"aten::unbind_copy.int"}});
  rows.add({.schema = "aten::split.sizes(Tensor(a -> *) self, SymInt[] split_size, int dim=0) -> "
                      "Tensor(a)[]",
            .kind = OpKind::movement,
            .decompose =
                [](LazyTensor x, Ints sizes, int64_t dim) {
                  return apply("aten::split_with_sizes", {x, sizes, dim});
                },
            .samples = "f32[5,3] [2,3] | f32[2,6] [1,2,3] 1"});
  rows.add({.schema = "aten::chunk(Tensor(a -> *) self, int chunks, int dim=0) -> Tensor(a)[]",
            .kind = OpKind::movement,
            .decompose =
                [](LazyTensor x, int64_t chunks, int64_t dim) {
                  if (chunks < 1)
                    throw UserError("expected chunks above 0, received " + std::to_string(chunks));
                  const int64_t length = x.size(dim), size = (length + chunks - 1) / chunks;
                  const auto count = static_cast<size_t>(chunks);
                  return apply("aten::split_with_sizes",
                               {x, size == 0 ? Ints(count, 0) : equal_parts(length, size), dim});
                },
            .samples = "f32[5,3] 2 | f32[2,6] 3 1 | f32[5] 4 | f32[2] 5 | f32[0] 3",
            .bad = "f32[4] 0: above 0"});
  rows.add({.schema = "aten::tensor_split.sections(Tensor(a -> *) self, SymInt sections, int "
                      "dim=0) -> Tensor(a)[]",
            .decompose =
                [](LazyTensor x, int64_t sections, int64_t dim) {
                  if (sections < 1)
                    throw UserError("expected sections above 0, received " +
                                    std::to_string(sections));
                  Ints sizes(static_cast<size_t>(sections), x.size(dim) / sections);
                  for (int64_t i = 0; i < x.size(dim) % sections; ++i)
                    ++sizes[static_cast<size_t>(i)];
                  return apply("aten::split_with_sizes", {x, sizes, dim});
                },
            .samples = "f32[5,3] 2 | f32[2,7] 3 1 | f32[2] 4",
            .bad = "f32[4] 0: above 0"});
  rows.add(
      {.schema = "aten::tensor_split.indices(Tensor(a -> *) self, SymInt[] indices, int "
                 "dim=0) -> Tensor(a)[]",
       .decompose = [](LazyTensor x, Ints ends, int64_t dim) { return split_at(x, ends, dim); },
       .samples = "f32[5,3] [2,3] | f32[2,6] [1,4] 1 | f32[4] [2,9] | f32[4] [-1]"});
  rows.add({.schema = "aten::meshgrid(Tensor[] tensors) -> Tensor[]",
            .decompose = [](LazyTensors axes) { return grid(axes, false); },
            .samples = "[f32[2],f32[3]] | [f32[2],f32[],f32[2]]",
            .bad = "[f32[2,2]]: at most 1 | [f32[2],i64[2]]: one dtype"});
  rows.add({.schema = "aten::meshgrid.indexing(Tensor[] tensors, *, str indexing) -> Tensor[]",
            .decompose =
                [](LazyTensors axes, std::string indexing) {
                  if (indexing != "ij" && indexing != "xy")
                    throw UserError("expected indexing 'ij' or 'xy', received '" + indexing + "'");
                  return grid(axes, indexing == "xy");
                },
            .samples = "[f32[2],f32[3]] 'ij' | [f32[2],f32[3],f32[2]] 'xy'",
            .bad = "[f32[2]] 'yx': 'ij' or 'xy'"});
}

void add_joining_rows(OperationTable& rows) {
  add_joins(rows);
  add_splits(rows);
}

}  // namespace composit
