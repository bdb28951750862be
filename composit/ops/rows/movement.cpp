// Views with other sizes, and axes in another order.
#include <algorithm>
#include <numeric>

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

static Gradients view_back(const Vjp& v, const LazyTensor& x) {
  return {reshape(v.cotangents[0], x.sizes())};
}

static void add_views(OperationTable& rows) {
  rows.add({.schema = "aten::reshape(Tensor(a) self, SymInt[] shape) -> Tensor(a)",
            .kind = OpKind::movement,
            .loops = [](In x, Ints shape) { return view(x, shape); },
            .vjp = [](Vjp v, LazyTensor x) { return view_back(v, x); },
            .samples =
                "f32[2,6] [2,3,2] | f32[2,3] [-1] | f32[2,3,4] [3,8] | f32[] [1,1] | f32[0,3] "
                "[3,0]",
            .bad = "f32[2,3] [4]: do not hold | f32[2,3] [-1,-1]: at most one"});
  rows.add({.schema = "aten::view(Tensor(a) self, SymInt[] size) -> Tensor(a)",
            .kind = OpKind::movement,
            .loops = [](In x, Ints size) { return view(x, size); },
            .vjp = [](Vjp v, LazyTensor x) { return view_back(v, x); },
            .samples = "f32[2,6] [2,3,2] | f32[2,3] [-1]",
            .bad = "f32[2,3] [4]: do not hold",
            .also = {"aten::view_copy", "aten::_unsafe_view"}});
  rows.add({.schema =
                "aten::flatten.using_ints(Tensor(a) self, int start_dim=0, int end_dim=-1) -> "
                "Tensor(a)",
            .kind = OpKind::movement,
            .decompose =
                [](LazyTensor x, int64_t begin, int64_t end) {
                  begin = wrap_axis(begin, x.rank());
                  end = wrap_axis(end, x.rank());
                  Ints sizes = x.sizes();
                  if (sizes.empty()) return LazyTensors{reshape(x, {1})};
                  if (begin > end) throw UserError("expected start_dim before end_dim");
                  int64_t size = 1;
                  for (int64_t axis = begin; axis <= end; ++axis) size *= x.size(axis);
                  sizes.erase(sizes.begin() + begin, sizes.begin() + end + 1);
                  sizes.insert(sizes.begin() + begin, size);
                  return LazyTensors{reshape(x, sizes)};
                },
            .samples = "f32[2,3,4] 1 | f32[2,3,4] | f32[2,3,4] 0 1 | f32[]"});
  rows.add({.schema = "aten::unsqueeze(Tensor(a) self, int dim) -> Tensor(a)",
            .kind = OpKind::movement,
            .loops =
                [](In x, int64_t dim) {
                  Ints sizes = x.sizes();
                  sizes.insert(sizes.begin() + wrap_axis(dim, x.rank() + 1), 1);
                  return view(x, sizes);
                },
            .vjp = [](Vjp v, LazyTensor x) { return view_back(v, x); },
            .samples = "f32[2,3] 0 | f32[2,3] -1 | f32[] 0",
            .bad = "f32[2] 3: expected an axis",
            .also = {"aten::unsqueeze_copy"}});
  rows.add({.schema = "aten::squeeze.dims(Tensor(a) self, int[] dim) -> Tensor(a)",
            .kind = OpKind::movement,
            .loops =
                [](In x, Ints dim) {
                  std::vector<bool> gone(static_cast<size_t>(x.rank()));
                  if (!dim.empty()) gone = wrap_axes(dim, x.rank());
                  Ints sizes;
                  for (size_t i = 0; i < gone.size(); ++i)
                    if (!gone[i] || x.sizes()[i] != 1) sizes.push_back(x.sizes()[i]);
                  return view(x, sizes);
                },
            .vjp = [](Vjp v, LazyTensor x) { return view_back(v, x); },
            .samples = "f32[1,3,1] [0,2] | f32[1,3,1] [0] | f32[2,3] [1]",
            .also = {"aten::squeeze_copy.dims"}});
  rows.add({.schema = "aten::squeeze.dim(Tensor(a) self, int dim) -> Tensor(a)",
            .kind = OpKind::movement,
            .decompose = [](LazyTensor x, int64_t dim) { return LazyTensors{squeeze(x, {dim})}; },
            .samples = "f32[1,3,1] 0 | f32[2,3] 1 | f32[] 0",
            .also = {"aten::squeeze_copy.dim"}});
  rows.add({.schema = "aten::expand(Tensor(a) self, SymInt[] size, *, bool implicit=False) -> "
                      "Tensor(a)",
            .kind = OpKind::movement,
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
            .vjp = [](Vjp v,
                      LazyTensor x) { return Gradients{sum_to_size(v.cotangents[0], x.sizes())}; },
            .samples = "f32[3,1] [2,3,4] | f32[1,3] [-1,3] | f32[] [2]",
            .bad = "f32[3] [2]: do not",
            .also = {"aten::expand_copy"}});
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
            .kind = OpKind::movement,
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
                [](Vjp v, LazyTensor x, Ints dims) {
                  Ints back(dims.size());
                  for (size_t i = 0; i < dims.size(); ++i)
                    back[static_cast<size_t>(wrap_axis(dims[i], x.rank()))] =
                        static_cast<int64_t>(i);
                  return Gradients{permute(v.cotangents[0], back)};
                },
            .samples = "f32[2,3,4] [2,0,1] | f32[2,3] [-1,0]",
            .bad = "f32[2,3] [0]: expected 2 axes | f32[2,3] [0,0]: given twice",
            .also = {"aten::permute_copy"}});
  rows.add({.schema = "aten::transpose.int(Tensor(a) self, int dim0, int dim1) -> Tensor(a)",
            .kind = OpKind::movement,
            .loops =
                [](In x, int64_t a, int64_t b) {
                  std::vector<size_t> order(static_cast<size_t>(x.rank()));
                  std::iota(order.begin(), order.end(), size_t{0});
                  const auto i = static_cast<size_t>(wrap_axis(a, x.rank()));
                  const auto j = static_cast<size_t>(wrap_axis(b, x.rank()));
                  if (!order.empty()) std::swap(order[i], order[j]);
                  return permuted(x, order);
                },
            .vjp = [](Vjp v, LazyTensor, int64_t a,
                      int64_t b) { return Gradients{transpose(v.cotangents[0], a, b)}; },
            .samples = "f32[2,3,4] 0 2 | f32[2,3] -1 -2 | f32[] 0 0",
            .bad = "f32[2,3] 0 2: expected an axis",
            .also = {"aten::transpose_copy.int"}});
  rows.add({.schema = "aten::t(Tensor(a) self) -> Tensor(a)",
            .kind = OpKind::movement,
            .decompose =
                [](LazyTensor x) {
                  if (x.rank() > 2)
                    throw UserError("expected at most 2 axes, received sizes " + str(x.sizes()));
                  return LazyTensors{x.rank() < 2 ? reshape(x, x.sizes()) : transpose(x, 0, 1)};
                },
            .samples = "f32[2,3] | f32[3]",
            .bad = "f32[2,3,4]: at most 2",
            .also = {"aten::t_copy"}});
  rows.add(
      {.schema = "aten::flip(Tensor self, int[] dims) -> Tensor",
       .kind = OpKind::movement,
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
       .vjp = [](Vjp v, LazyTensor, Ints dims) { return Gradients{flip(v.cotangents[0], dims)}; },
       .samples = "f32[2,3] [0] | f32[2,3] [0,-1] | i64[3] [0] | f32[2] []"});
}

// Other spellings of the views above.
static void add_view_spellings(OperationTable& rows) {
  rows.add({.schema = "aten::squeeze(Tensor(a) self) -> Tensor(a)",
            .kind = OpKind::movement,
            .decompose =
                [](LazyTensor x) {
                  Ints sizes = x.sizes();
                  std::erase(sizes, 1);
                  return LazyTensors{reshape(x, sizes)};
                },
            .samples = "f32[1,3,1] | f32[2,3] | f32[1]",
            .also = {"aten::squeeze_copy"}});
  rows.add({.schema = "aten::unflatten.int(Tensor(a) self, int dim, SymInt[] sizes) -> Tensor(a)",
            .kind = OpKind::movement,
            .decompose =
                [](LazyTensor x, int64_t dim, Ints sizes) {
                  const int64_t axis = wrap_axis(dim, x.rank());
                  if (x.rank() == 0)
                    throw UserError("expected an axis at least, received a number");
                  Ints whole = x.sizes();
                  int64_t known = 1;
                  for (int64_t size : sizes) known *= size == -1 ? 1 : size;
                  for (int64_t& size : sizes)
                    if (size == -1) size = known == 0 ? 0 : x.size(axis) / known;
                  whole.erase(whole.begin() + axis);
                  whole.insert(whole.begin() + axis, sizes.begin(), sizes.end());
                  return LazyTensors{reshape(x, whole)};
                },
            .samples = "f32[2,6] 1 [2,3] | f32[6,2] 0 [-1,2] | f32[4] -1 [2,2]",
            .bad = "f32[5] 0 [2,2]: do not hold | f32[] 0 [1]: an axis at least"});
  rows.add({.schema = "aten::expand_as(Tensor(a) self, Tensor other) -> Tensor(a)",
            .kind = OpKind::movement,
            .decompose = [](LazyTensor x,
                            LazyTensor other) { return LazyTensors{expand(x, other.sizes())}; },
            .samples = "f32[3,1] f32[2,3,4] | f32[] i64[2]",
            .bad = "f32[3] f32[2]: do not"});
  rows.add({.schema = "aten::view_as(Tensor(a) self, Tensor other) -> Tensor(a)",
            .kind = OpKind::movement,
            .decompose = [](LazyTensor x,
                            LazyTensor other) { return LazyTensors{reshape(x, other.sizes())}; },
            .samples = "f32[2,6] f32[3,4] | f32[1] i64[]",
            .bad = "f32[3] f32[2]: do not hold",
            .also = {"aten::reshape_as"}});
  rows.add({.schema = "aten::broadcast_to(Tensor(a) self, SymInt[] size) -> Tensor(a)",
            .decompose =
                [](LazyTensor x, Ints size) {
                  return LazyTensors{apply_one("aten::expand", {x, size})};
                },
            .samples = "f32[3,1] [2,3,4] | f32[1,3] [-1,3]",
            .bad = "f32[3] [2]: do not"});
}

// ---- axes in another order ----------------------------------------------------------------------

// Axes `from` go to the places `to`; the others keep their order.
static LazyTensor moved(const LazyTensor& x, const Ints& from, const Ints& to) {
  if (from.size() != to.size())
    throw UserError("expected as many axes as places, received " + str(from) + " and " + str(to));
  if (from.empty()) return x;
  const std::vector<bool> taken = wrap_axes(from, x.rank()), filled = wrap_axes(to, x.rank());
  Ints order(static_cast<size_t>(x.rank()));
  for (size_t i = 0; i < from.size() && x.rank() > 0; ++i)
    order[static_cast<size_t>(wrap_axis(to[i], x.rank()))] = wrap_axis(from[i], x.rank());
  size_t next = 0;
  for (size_t place = 0; place < order.size(); ++place) {
    if (filled[place]) continue;
    while (taken[next]) ++next;
    order[place] = static_cast<int64_t>(next++);
  }
  return permute(x, order);
}

static void add_axis_orders(OperationTable& rows) {
  rows.add({.schema = "aten::movedim.int(Tensor(a) self, int source, int destination) -> Tensor(a)",
            .kind = OpKind::movement,
            .decompose = [](LazyTensor x, int64_t from,
                            int64_t to) { return LazyTensors{moved(x, {from}, {to})}; },
            .samples = "f32[2,3,4] 0 2 | f32[2,3,4] -1 0 | f32[] 0 0",
            .bad = "f32[2,3] 2 0: expected an axis"});
  rows.add({.schema = "aten::movedim.intlist(Tensor(a) self, int[] source, int[] destination) -> "
                      "Tensor(a)",
            .kind = OpKind::movement,
            .decompose = [](LazyTensor x, Ints from,
                            Ints to) { return LazyTensors{moved(x, from, to)}; },
            .samples = "f32[2,3,4] [0,1] [2,0] | f32[2,3,4,2] [-1,1] [0,-1]",
            .bad = "f32[2,3] [0] [0,1]: as many axes | f32[2,3] [0,0] [0,1]: given twice"});
  rows.add({.schema = "aten::swapaxes(Tensor(a) self, int axis0, int axis1) -> Tensor(a)",
            .decompose = [](LazyTensor x, int64_t a,
                            int64_t b) { return LazyTensors{transpose(x, a, b)}; },
            .samples = "f32[2,3,4] 0 2"});
  rows.add({.schema = "aten::swapdims(Tensor(a) self, int dim0, int dim1) -> Tensor(a)",
            .decompose = [](LazyTensor x, int64_t a,
                            int64_t b) { return LazyTensors{transpose(x, a, b)}; },
            .samples = "f32[2,3,4] 0 -1"});
  rows.add({.schema = "aten::mT(Tensor(a) self) -> Tensor(a)",
            .kind = OpKind::movement,
            .decompose =
                [](LazyTensor x) {
                  if (x.rank() < 2)
                    throw UserError("expected 2 axes at least, received sizes " + str(x.sizes()));
                  return LazyTensors{transpose(x, -2, -1)};
                },
            .samples = "f32[2,3,4] | f32[2,3]",
            .bad = "f32[3]: 2 axes at least"});
  rows.add({.schema = "aten::numpy_T(Tensor(a) self) -> Tensor(a)",
            .kind = OpKind::movement,
            .decompose =
                [](LazyTensor x) {
                  Ints order(static_cast<size_t>(x.rank()));
                  std::iota(order.rbegin(), order.rend(), int64_t{0});
                  return LazyTensors{permute(x, order)};
                },
            .samples = "f32[2,3] | f32[3]"});
}

void add_movement_rows(OperationTable& rows) {
  add_views(rows);
  add_permutations(rows);
  add_view_spellings(rows);
  add_axis_orders(rows);
}

}  // namespace composit
