// Elements that change place: views, slices, concatenation.
#include <algorithm>
#include <numeric>

#include "composit/op/promotion.h"
#include "composit/ops/functions.h"

namespace composit {

// `sizes` with the one -1 worked out.
static Ints sizes_of_view(const In& x, Ints sizes) {
  int64_t known = 1, *open = nullptr;
  for (int64_t& size : sizes) {
    if (size < -1 || (size == -1 && open != nullptr))
      throw UserError("expected sizes with at most one -1, received " + str(sizes));
    size == -1 ? void(open = &size) : void(known *= size);
  }
  if (open != nullptr && known > 0) *open = x.numel() / known;
  int64_t numel = 1;
  for (int64_t size : sizes) numel *= size;
  if (numel != x.numel() || (open != nullptr && known == 0))
    throw UserError("sizes " + str(sizes) + " do not hold the elements of " + str(x.sizes()));
  return sizes;
}

// The index into `from` of the element that is at `at` in `to`, sizes of equal numel. Axes are
// matched group by group, so that those both have stay as they are.
static Index reindex(const Ints& from, const Ints& to, const Index& at) {
  Index index(from.size(), Expr(0));
  size_t i = 0, j = 0;
  while (i < from.size() || j < to.size()) {
    const size_t i0 = i, j0 = j;
    int64_t a = i < from.size() ? from[i++] : 1, b = j < to.size() ? to[j++] : 1;
    while (a != b) a < b ? a *= from.at(i++) : b *= to.at(j++);
    Expr flat = 0;
    for (size_t k = j0; k < j; ++k) flat = to[k] == 1 ? flat : flat * to[k] + at[k];
    for (size_t k = i; k-- > i0;) {
      if (from[k] == 1) continue;
      int64_t before = 1;
      for (size_t l = i0; l < k; ++l) before *= from[l];
      index[k] = before == 1 ? flat : remainder(flat, from[k]);
      flat = before == 1 ? Expr(0) : floor_divide(flat, from[k]);
    }
  }
  return index;
}

static Loops view(const In& x, const Ints& sizes) {
  const Ints to = sizes_of_view(x, sizes);
  Nest nest;
  const Index at = nest.parallel(to);
  if (x.numel() == 0) return nest.store(Expr::literal(int64_t{0}, x.dtype())).loops();
  return nest.store(x(reindex(x.sizes(), to, at))).loops();
}

static Gradients view_back(const Vjp& v, const Tensor& x) {
  return {reshape(v.cotangents[0], x.sizes())};
}

static void add_views(OperationTable& rows) {
  rows.add({.schema = "aten::reshape(Tensor(a) self, SymInt[] shape) -> Tensor(a)",
            .loops = [](In x, Ints shape) { return view(x, shape); },
            .vjp = [](Vjp v, Tensor x) { return view_back(v, x); },
            .samples =
                "f32[2,6] [2,3,2] | f32[2,3] [-1] | f32[2,3,4] [3,8] | f32[] [1,1] | f32[0,3] "
                "[3,0]",
            .bad = "f32[2,3] [4]: do not hold | f32[2,3] [-1,-1]: at most one"});
  rows.add({.schema = "aten::view(Tensor(a) self, SymInt[] size) -> Tensor(a)",
            .loops = [](In x, Ints size) { return view(x, size); },
            .vjp = [](Vjp v, Tensor x) { return view_back(v, x); },
            .samples = "f32[2,6] [2,3,2] | f32[2,3] [-1]",
            .bad = "f32[2,3] [4]: do not hold",
            .also = {"aten::_unsafe_view"}});
  rows.add({.schema =
                "aten::flatten.using_ints(Tensor(a) self, int start_dim=0, int end_dim=-1) -> "
                "Tensor(a)",
            .decompose =
                [](Tensor x, int64_t begin, int64_t end) {
                  begin = wrap_axis(begin, x.rank());
                  end = wrap_axis(end, x.rank());
                  Ints sizes = x.sizes();
                  if (sizes.empty()) return Tensors{reshape(x, {1})};
                  if (begin > end) throw UserError("expected start_dim before end_dim");
                  int64_t size = 1;
                  for (int64_t axis = begin; axis <= end; ++axis) size *= x.size(axis);
                  sizes.erase(sizes.begin() + begin, sizes.begin() + end + 1);
                  sizes.insert(sizes.begin() + begin, size);
                  return Tensors{reshape(x, sizes)};
                },
            .samples = "f32[2,3,4] 1 | f32[2,3,4] | f32[2,3,4] 0 1 | f32[]"});
  rows.add({.schema = "aten::unsqueeze(Tensor(a) self, int dim) -> Tensor(a)",
            .loops =
                [](In x, int64_t dim) {
                  Ints sizes = x.sizes();
                  sizes.insert(sizes.begin() + wrap_axis(dim, x.rank() + 1), 1);
                  return view(x, sizes);
                },
            .vjp = [](Vjp v, Tensor x) { return view_back(v, x); },
            .samples = "f32[2,3] 0 | f32[2,3] -1 | f32[] 0",
            .bad = "f32[2] 3: expected an axis"});
  rows.add({.schema = "aten::squeeze.dims(Tensor(a) self, int[] dim) -> Tensor(a)",
            .loops =
                [](In x, Ints dim) {
                  std::vector<bool> gone(static_cast<size_t>(x.rank()));
                  if (!dim.empty()) gone = wrap_axes(dim, x.rank());
                  Ints sizes;
                  for (size_t i = 0; i < gone.size(); ++i)
                    if (!gone[i] || x.sizes()[i] != 1) sizes.push_back(x.sizes()[i]);
                  return view(x, sizes);
                },
            .vjp = [](Vjp v, Tensor x) { return view_back(v, x); },
            .samples = "f32[1,3,1] [0,2] | f32[1,3,1] [0] | f32[2,3] [1]"});
  rows.add({.schema = "aten::squeeze.dim(Tensor(a) self, int dim) -> Tensor(a)",
            .decompose = [](Tensor x, int64_t dim) { return Tensors{squeeze(x, {dim})}; },
            .samples = "f32[1,3,1] 0 | f32[2,3] 1 | f32[] 0"});
  rows.add(
      {.schema = "aten::expand(Tensor(a) self, SymInt[] size, *, bool implicit=False) -> "
                 "Tensor(a)",
       .loops =
           [](In x, Ints size) {
             const size_t extra = size.size() - std::min(size.size(), x.sizes().size());
             for (size_t i = extra; i < size.size(); ++i)
               if (size[i] == -1) size[i] = x.sizes()[i - extra];
             if (broadcast_sizes({x.sizes(), size}) != size)
               throw UserError("sizes " + str(x.sizes()) + " do not expand to " + str(size));
             Nest nest;
             return nest.store(x.broadcast(nest.parallel(size))).loops();
           },
       .vjp = [](Vjp v, Tensor x) { return Gradients{sum_to_size(v.cotangents[0], x.sizes())}; },
       .samples = "f32[3,1] [2,3,4] | f32[1,3] [-1,3] | f32[] [2]",
       .bad = "f32[3] [2]: do not"});
}

static Loops permuted(const In& x, const std::vector<size_t>& order) {
  Nest nest;
  Index from(order.size());
  for (size_t axis = 0; axis < order.size(); ++axis)
    from[order[axis]] = nest.parallel(x.sizes()[order[axis]]);
  return nest.store(x(from)).loops();
}

static void add_permutations(OperationTable& rows) {
  rows.add({.schema = "aten::permute(Tensor(a) self, int[] dims) -> Tensor(a)",
            .loops =
                [](In x, Ints dims) {
                  if (static_cast<int64_t>(dims.size()) != x.rank())
                    throw UserError("expected " + std::to_string(x.rank()) + " axes, received " +
                                    str(dims));
                  if (!dims.empty()) wrap_axes(dims, x.rank());
                  std::vector<size_t> order;
                  for (int64_t axis : dims)
                    order.push_back(static_cast<size_t>(wrap_axis(axis, x.rank())));
                  return permuted(x, order);
                },
            .vjp =
                [](Vjp v, Tensor x, Ints dims) {
                  Ints back(dims.size());
                  for (size_t i = 0; i < dims.size(); ++i)
                    back[static_cast<size_t>(wrap_axis(dims[i], x.rank()))] =
                        static_cast<int64_t>(i);
                  return Gradients{permute(v.cotangents[0], back)};
                },
            .samples = "f32[2,3,4] [2,0,1] | f32[2,3] [-1,0]",
            .bad = "f32[2,3] [0]: expected 2 axes | f32[2,3] [0,0]: given twice"});
  rows.add({.schema = "aten::transpose.int(Tensor(a) self, int dim0, int dim1) -> Tensor(a)",
            .loops =
                [](In x, int64_t a, int64_t b) {
                  std::vector<size_t> order(static_cast<size_t>(x.rank()));
                  std::iota(order.begin(), order.end(), size_t{0});
                  const auto i = static_cast<size_t>(wrap_axis(a, x.rank()));
                  const auto j = static_cast<size_t>(wrap_axis(b, x.rank()));
                  if (!order.empty()) std::swap(order[i], order[j]);
                  return permuted(x, order);
                },
            .vjp = [](Vjp v, Tensor, int64_t a,
                      int64_t b) { return Gradients{transpose(v.cotangents[0], a, b)}; },
            .samples = "f32[2,3,4] 0 2 | f32[2,3] -1 -2 | f32[] 0 0",
            .bad = "f32[2,3] 0 2: expected an axis"});
  rows.add({.schema = "aten::t(Tensor(a) self) -> Tensor(a)",
            .decompose =
                [](Tensor x) {
                  if (x.rank() > 2)
                    throw UserError("expected at most 2 axes, received sizes " + str(x.sizes()));
                  return Tensors{x.rank() < 2 ? reshape(x, x.sizes()) : transpose(x, 0, 1)};
                },
            .samples = "f32[2,3] | f32[3]",
            .bad = "f32[2,3,4]: at most 2"});
  rows.add({.schema = "aten::flip(Tensor self, int[] dims) -> Tensor",
            .loops =
                [](In x, Ints dims) {
                  std::vector<bool> flipped(static_cast<size_t>(x.rank()));
                  if (!dims.empty()) flipped = wrap_axes(dims, x.rank());
                  Nest nest;
                  Index at = nest.parallel(x.sizes());
                  for (size_t i = 0; i < at.size(); ++i)
                    if (flipped[i]) at[i] = x.sizes()[i] - 1 - at[i];
                  return nest.store(x(at)).loops();
                },
            .samples = "f32[2,3] [0] | f32[2,3] [0,-1] | i64[3] [0] | f32[2] []"});
}

// torch clamps both ends to the axis.
static std::pair<int64_t, int64_t> slice_of(int64_t size, std::optional<int64_t> begin,
                                            std::optional<int64_t> end, int64_t step) {
  if (step <= 0) throw UserError("expected a positive step, received " + std::to_string(step));
  const auto clamp = [&](int64_t place) {
    return std::clamp<int64_t>(place < 0 ? place + size : place, 0, size);
  };
  const int64_t first = clamp(begin.value_or(0)), last = clamp(end.value_or(size));
  return {first, std::max<int64_t>(0, (last - first + step - 1) / step)};
}

static void add_slices(OperationTable& rows) {
  rows.add({.schema = "aten::slice.Tensor(Tensor(a) self, int dim=0, SymInt? start=None, SymInt? "
                      "end=None, SymInt step=1) -> Tensor(a)",
            .loops =
                [](In x, int64_t dim, std::optional<int64_t> begin, std::optional<int64_t> end,
                   int64_t step) {
                  const auto axis = static_cast<size_t>(wrap_axis(dim, x.rank()));
                  Ints sizes = x.sizes();
                  if (sizes.empty())
                    throw UserError("expected an axis to slice, received a number");
                  int64_t first = 0;
                  std::tie(first, sizes[axis]) = slice_of(sizes[axis], begin, end, step);
                  Nest nest;
                  Index at = nest.parallel(sizes);
                  at[axis] = at[axis] * step + first;
                  return nest.store(x(at)).loops();
                },
            .samples = "f32[5,3] 0 1 4 | f32[5,3] 0 None -1 2 | f32[5,3] 1 2 100 | f32[4] 0 3 1",
            .bad = "f32[5] 0 0 5 0: positive step | f32[] 0: an axis"});
  rows.add({.schema = "aten::select.int(Tensor(a) self, int dim, SymInt index) -> Tensor(a)",
            .loops =
                [](In x, int64_t dim, int64_t index) {
                  const auto axis = static_cast<size_t>(wrap_axis(dim, x.rank()));
                  Ints sizes = x.sizes();
                  if (sizes.empty()) throw UserError("expected an axis, received a number");
                  if (index < -sizes[axis] || index >= sizes[axis])
                    throw UserError("index " + std::to_string(index) +
                                    " is out of range for axis " + std::to_string(axis) +
                                    " of size " + std::to_string(sizes[axis]));
                  const int64_t place = index < 0 ? index + sizes[axis] : index;
                  sizes.erase(sizes.begin() + static_cast<int64_t>(axis));
                  Nest nest;
                  Index at = nest.parallel(sizes);
                  at.insert(at.begin() + static_cast<int64_t>(axis), Expr(place));
                  return nest.store(x(at)).loops();
                },
            .samples = "f32[2,3] 0 1 | f32[2,3,4] -1 -2 | f32[3] 0 0",
            .bad = "f32[2,3] 0 2: out of range"});
  rows.add({.schema = "aten::cat(Tensor[] tensors, int dim=0) -> Tensor",
            .loops =
                [](std::vector<In> all, int64_t dim) {
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
                      throw UserError("expected sizes that agree but for axis " +
                                      std::to_string(axis) + ", received " + str(parts[0].sizes()) +
                                      " and " + str(own));
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
                },
            .samples = "[f32[2,3],f32[1,3]] | [f32[2,3],f32[2,2],f32[2,1]] 1 | [f32[2],i64[3]] | "
                       "[f32[0],f32[2,3]] 1",
            .bad = "[f32[2,3],f32[2,2]]: agree but"});
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

static void add_splits(OperationTable& rows) {
  rows.add({.schema =
                "aten::split_with_sizes(Tensor(a -> *) self, SymInt[] split_sizes, int dim=0) "
                "-> Tensor(a)[]",
            .loops = [](In x, Ints sizes, int64_t dim) { return split(x, sizes, dim); },
            .samples = "f32[5,3] [2,3] | f32[2,6] [1,2,3] 1 | f32[3] [0,3]",
            .bad = "f32[5] [2,2]: add up"});
  rows.add({.schema = "aten::split.Tensor(Tensor(a -> *) self, SymInt split_size, int dim=0) -> "
                      "Tensor(a)[]",
            .loops =
                [](In x, int64_t size, int64_t dim) {
                  const int64_t length = x.size(dim);
                  if (size < 0 || (size == 0 && length > 0))
                    throw UserError("expected a split size above 0, received " +
                                    std::to_string(size));
                  Ints sizes;
                  for (int64_t begin = 0; begin < length; begin += size)
                    sizes.push_back(std::min(size, length - begin));
                  if (sizes.empty()) sizes.push_back(0);
                  return split(x, sizes, dim);
                },
            .samples = "f32[5,3] 2 | f32[2,6] 3 1 | f32[4] 10",
            .bad = "f32[5] 0: above 0"});
  rows.add({.schema = "aten::unbind.int(Tensor(a -> *) self, int dim=0) -> Tensor(a)[]",
            .decompose =
                [](Tensor x, int64_t dim) {
                  Tensors parts;
                  for (int64_t i = 0; i < x.size(dim); ++i) parts.push_back(select_at(x, dim, i));
                  return parts;
                },
            .samples = "f32[3,2] | f32[2,3] 1"});
}

void add_movement_rows(OperationTable& rows) {
  add_views(rows);
  add_permutations(rows);
  add_slices(rows);
  add_splits(rows);
}

}  // namespace composit
