// Parts of a tensor: slices, elements of an axis, windows, strides; and parts put back.
#include <algorithm>
#include <tuple>

#include "composit/ir/print.h"
#include "composit/ops/functions.h"
#include "composit/ops/places.h"

namespace composit {

static void expect_sizes(const In& x, const Ints& sizes) {
  if (x.sizes() != sizes)
    throw UserError("expected sizes " + str(sizes) + " of what is put there, received " +
                    str(x.sizes()));
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

// Elements begin, begin + step, … along one axis.
struct Slice {
  size_t axis;
  int64_t first, step;
  Ints sizes;

  Slice(const Ints& whole, int64_t dim, std::optional<int64_t> begin, std::optional<int64_t> end,
        int64_t by)
      : axis(static_cast<size_t>(wrap_axis(dim, static_cast<int64_t>(whole.size())))),
        step(by),
        sizes(whole) {
    if (whole.empty()) throw UserError("expected an axis to slice, received a number");
    std::tie(first, sizes[axis]) = slice_of(whole[axis], begin, end, step);
  }
  Index place(Index at) const {
    at[axis] = at[axis] * step + first;
    return at;
  }
};

// One element along an axis, which is gone in the result.
struct Selection {
  size_t axis;
  int64_t element;
  Ints sizes;

  Selection(const Ints& whole, int64_t dim, int64_t index)
      : axis(static_cast<size_t>(wrap_axis(dim, static_cast<int64_t>(whole.size())))),
        sizes(whole) {
    if (whole.empty()) throw UserError("expected an axis, received a number");
    const int64_t size = whole[axis];
    if (index < -size || index >= size)
      throw UserError("index " + std::to_string(index) + " is out of range for axis " +
                      std::to_string(axis) + " of size " + std::to_string(size));
    element = index < 0 ? index + size : index;
    sizes.erase(sizes.begin() + static_cast<int64_t>(axis));
  }
  Index place(Index at) const {
    at.insert(at.begin() + static_cast<int64_t>(axis), Expr(element));
    return at;
  }
};

// The elements of x at the places of `part`.
template <class Part>
static Loops taken(const In& x, const Part& part) {
  Nest nest;
  return nest.store(x(part.place(nest.parallel(part.sizes)))).loops();
}

// A tensor of zeros but for x at the places of `part`.
template <class Part>
static Loops into_zeros(const In& x, const Ints& whole, const Part& part) {
  expect_sizes(x, part.sizes);
  Nest nest;
  const Index at = nest.parallel(part.sizes);
  return nest.store(whole, part.place(at), x(at)).loops();
}

// `x` but for `source` at the places of `part`.
template <class Part>
static Loops overwritten(const In& x, const In& source, const Part& part) {
  expect_sizes(source, part.sizes);
  Nest written;
  const Index at = written.parallel(part.sizes);
  written.store_into(0, part.place(at), source(at));
  return sequence({copy_of(x), written});
}

static void add_slices(OperationTable& rows) {
  rows.add({.schema = "aten::slice.Tensor(Tensor(a) self, int dim=0, SymInt? start=None, SymInt? "
                      "end=None, SymInt step=1) -> Tensor(a)",
            .kind = OpKind::movement,
            .loops = [](In x, int64_t dim, std::optional<int64_t> begin, std::optional<int64_t> end,
                        int64_t step) { return taken(x, Slice(x.sizes(), dim, begin, end, step)); },
            .vjp =
                [](Vjp v, LazyTensor x, int64_t dim, std::optional<int64_t> begin,
                   std::optional<int64_t> end, int64_t step) {
                  return Gradients{apply_one("aten::slice_backward",
                                             {v.cotangents[0], x.sizes(), dim, begin.value_or(0),
                                              end.value_or(x.size(dim)), step})};
                },
            .samples = "f32[5,3] 0 1 4 | f32[5,3] 0 None -1 2 | f32[5,3] 1 2 100 | f32[4] 0 3 1",
            .bad = "f32[5] 0 0 5 0: positive step | f32[] 0: an axis",
            .also = {"aten::slice_copy.Tensor"}});
  rows.add({.schema = "aten::select.int(Tensor(a) self, int dim, SymInt index) -> Tensor(a)",
            .kind = OpKind::movement,
            .loops = [](In x, int64_t dim,
                        int64_t index) { return taken(x, Selection(x.sizes(), dim, index)); },
            .vjp =
                [](Vjp v, LazyTensor x, int64_t dim, int64_t index) {
                  return Gradients{
                      apply_one("aten::select_backward", {v.cotangents[0], x.sizes(), dim, index})};
                },
            .samples = "f32[2,3] 0 1 | f32[2,3,4] -1 -2 | f32[3] 0 0",
            .bad = "f32[2,3] 0 2: out of range",
            .also = {"aten::select_copy.int"}});
  rows.add({.schema = "aten::narrow(Tensor(a) self, int dim, SymInt start, SymInt length) -> "
                      "Tensor(a)",
            .kind = OpKind::movement,
            .decompose =
                [](LazyTensor x, int64_t dim, int64_t begin, int64_t length) {
                  const int64_t size = x.size(dim), first = begin < 0 ? begin + size : begin;
                  if (first < 0 || length < 0 || first + length > size)
                    throw UserError("expected start and length within " + std::to_string(size) +
                                    ", received " + str({begin, length}));
                  return LazyTensors{slice(x, dim, first, first + length)};
                },
            .samples = "f32[5,3] 0 1 3 | f32[5,3] 1 -2 2 | f32[4] 0 4 0",
            .bad = "f32[5] 0 3 3: within 5",
            .also = {"aten::narrow_copy"}});
}

static void add_slice_inverses(OperationTable& rows) {
  rows.add(
      {.schema = "aten::slice_backward(Tensor grad_output, SymInt[] input_sizes, int dim, "
                 "SymInt start, SymInt end, SymInt step) -> Tensor",
       .kind = OpKind::movement,
       .loops =
           [](In g, Ints sizes, int64_t dim, int64_t begin, int64_t end, int64_t step) {
             return into_zeros(g, sizes, Slice(sizes, dim, begin, end, step));
           },
       .vjp = [](Vjp v, LazyTensor, Ints, int64_t dim, int64_t begin, int64_t end,
                 int64_t step) { return Gradients{slice(v.cotangents[0], dim, begin, end, step)}; },
       .samples = "f32[3,3] [5,3] 0 1 4 1 | f32[2,2] [2,5] 1 1 -1 2",
       .bad = "f32[3] [5] 0 0 2 1: expected sizes [2]"});
  rows.add(
      {.schema = "aten::select_backward(Tensor grad_output, SymInt[] input_sizes, int dim, "
                 "SymInt index) -> Tensor",
       .kind = OpKind::movement,
       .loops = [](In g, Ints sizes, int64_t dim,
                   int64_t index) { return into_zeros(g, sizes, Selection(sizes, dim, index)); },
       .vjp = [](Vjp v, LazyTensor, Ints, int64_t dim,
                 int64_t index) { return Gradients{select_at(v.cotangents[0], dim, index)}; },
       .samples = "f32[3] [2,3] 0 1 | f32[2,3] [2,3,4] -1 -2",
       .bad = "f32[3] [2,3] 0 2: out of range"});
  rows.add(
      {.schema = "aten::slice_scatter(Tensor self, Tensor src, int dim=0, SymInt? "
                 "start=None, SymInt? end=None, SymInt step=1) -> Tensor",
       .kind = OpKind::movement,
       .loops =
           [](In x, In source, int64_t dim, std::optional<int64_t> begin,
              std::optional<int64_t> end, int64_t step) {
             return overwritten(x, source, Slice(x.sizes(), dim, begin, end, step));
           },
       .vjp =
           [](Vjp v, LazyTensor x, LazyTensor source, int64_t dim, std::optional<int64_t> begin,
              std::optional<int64_t> end, int64_t step) {
             const LazyTensor& g = v.cotangents[0];
             const int64_t first = begin.value_or(0), last = end.value_or(x.size(dim));
             return Gradients{
                 apply_one("aten::slice_scatter", {g, zeros_like(source), dim, first, last, step}),
                 slice(g, dim, first, last, step)};
           },
       .samples = "f32[5,3] f32[3,3] 0 1 4 | f32[5,3] f32[2,3] 0 None -1 2 | f32[2,3] f32[2,3] "
                  "1",
       .bad = "f32[5] f32[3] 0 0 2: expected sizes [2]"});
  rows.add({.schema = "aten::select_scatter(Tensor self, Tensor src, int dim, SymInt index) -> "
                      "Tensor",
            .kind = OpKind::movement,
            .loops =
                [](In x, In source, int64_t dim, int64_t index) {
                  return overwritten(x, source, Selection(x.sizes(), dim, index));
                },
            .vjp =
                [](Vjp v, LazyTensor, LazyTensor source, int64_t dim, int64_t index) {
                  const LazyTensor& g = v.cotangents[0];
                  return Gradients{
                      apply_one("aten::select_scatter", {g, zeros_like(source), dim, index}),
                      select_at(g, dim, index)};
                },
            .samples = "f32[2,3] f32[3] 0 1 | f32[2,3,4] f32[2,3] -1 -2",
            .bad = "f32[2,3] f32[2] 0 1: expected sizes [3]"});
}

// ---- windows and strides ------------------------------------------------------------------------

// Windows of `size` elements, `step` apart, along an axis; their elements go along a new last axis.
struct Windows {
  size_t axis;
  int64_t step;
  Ints sizes;

  Windows(const Ints& whole, int64_t dim, int64_t size, int64_t by)
      : axis(static_cast<size_t>(wrap_axis(dim, static_cast<int64_t>(whole.size())))),
        step(by),
        sizes(whole) {
    const int64_t length = whole.empty() ? 1 : whole[axis];
    if (size < 0 || size > length || step < 1)
      throw UserError("expected windows of at most " + std::to_string(length) +
                      " and a step above 0, received " + str({size, step}));
    if (!sizes.empty()) sizes[axis] = (length - size) / step + 1;
    sizes.push_back(size);
  }
  Index place(Index at) const {
    const Expr within = at.back();
    at.pop_back();
    if (!at.empty()) at[axis] = at[axis] * step + within;
    return at;
  }
};

// Elements at offset + sum of index * stride of a contiguous tensor of sizes `whole`.
struct Strided {
  Ints whole, sizes, strides;
  int64_t offset;

  Strided(Ints of, Ints size, Ints stride, std::optional<int64_t> begin)
      : whole(std::move(of)),
        sizes(std::move(size)),
        strides(std::move(stride)),
        offset(begin.value_or(0)) {
    if (sizes.size() != strides.size())
      throw UserError("expected a stride per size, received " + str(sizes) + " and " +
                      str(strides));
    int64_t last = offset, numel = 1, count = 1;
    for (size_t i = 0; i < sizes.size(); ++i) {
      last += (sizes[i] - 1) * strides[i];
      count *= sizes[i];
    }
    for (int64_t extent : whole) numel *= extent;
    if (offset < 0 || (count > 0 && last >= numel))
      throw UserError("sizes " + str(sizes) + " with strides " + str(strides) + " and offset " +
                      std::to_string(offset) + " reach beyond the " + std::to_string(numel) +
                      " elements of " + str(whole));
  }
  Index place(const Index& at) const {
    Expr flat = offset;
    for (size_t i = 0; i < at.size(); ++i) flat = flat + at[i] * strides[i];
    return unflattened(flat, whole);
  }
};

// Strides are those of a tensor that lies in the order of its indices: of others they say nothing
// here, where no memory is known. The tracer permutes these first.
static void expect_row_major(In x) {
  const Type& type = x.type();
  const auto expected = contiguous_strides(type.sizes);
  for (size_t axis = 0; axis < type.rank(); ++axis)
    if (type.sizes[axis] > 1 && type.numel() > 0 && type.strides[axis] != expected[axis])
      throw UserError("expected a tensor that lies in the order of its indices, received " +
                      print(type) + ": permute it first");
}

static void add_windows(OperationTable& rows) {
  rows.add({.schema = "aten::unfold(Tensor(a) self, int dimension, int size, int step) -> "
                      "Tensor(a)",
            .kind = OpKind::movement,
            .loops = [](In x, int64_t dim, int64_t size,
                        int64_t step) { return taken(x, Windows(x.sizes(), dim, size, step)); },
            .vjp =
                [](Vjp v, LazyTensor x, int64_t dim, int64_t size, int64_t step) {
                  return Gradients{apply_one("aten::unfold_backward",
                                             {v.cotangents[0], x.sizes(), dim, size, step})};
                },
            .samples = "f32[7] 0 3 2 | f32[2,5,3] 1 2 1 | f32[4,2] -2 4 1 | f32[6] 0 2 3",
            .bad = "f32[3] 0 4 1: at most 3 | f32[3] 0 2 0: a step above 0",
            .also = {"aten::unfold_copy"}});
  rows.add({.schema = "aten::unfold_backward(Tensor grad_in, SymInt[] input_sizes, int dim, int "
                      "size, int step) -> Tensor",
            .kind = OpKind::movement,
            .loops =
                [](In g, Ints sizes, int64_t dim, int64_t size, int64_t step) {
                  const Windows windows(sizes, dim, size, step);
                  expect_sizes(g, windows.sizes);
                  Nest nest;
                  const Index at = nest.parallel(windows.sizes);
                  return nest.store(sizes, windows.place(at), g(at), true).loops();
                },
            .vjp =
                [](Vjp v, LazyTensor, Ints, int64_t dim, int64_t size, int64_t step) {
                  return Gradients{apply_one("aten::unfold", {v.cotangents[0], dim, size, step})};
                },
            .samples = "f32[3,3] [7] 0 3 2 | f32[2,4,3,2] [2,5,3] 1 2 1",
            .bad = "f32[3,2] [7] 0 3 2: expected sizes [3, 3]"});
  rows.add({.schema = "aten::as_strided(Tensor(a) self, SymInt[] size, SymInt[] stride, SymInt? "
                      "storage_offset=None) -> Tensor(a)",
            .kind = OpKind::movement,
            .loops =
                [](In x, Ints size, Ints stride, std::optional<int64_t> offset) {
                  expect_row_major(x);
                  return taken(x, Strided(x.sizes(), size, stride, offset));
                },
            .samples = "f32[3,4] [2,2] [4,1] 1 | f32[6] [2,3] [1,2] | f32[5] [3,3] [1,1] | f32[4] "
                       "[] [] 2 | f32[2,2,2] [2,2] [0,3]",
            .bad = "f32[4] [3] [2]: reach beyond | f32[4] [2] [1,1]: a stride per size",
            .also = {"aten::as_strided_copy"}});
  rows.add({.schema = "aten::as_strided_scatter(Tensor self, Tensor src, SymInt[] size, SymInt[] "
                      "stride, SymInt? storage_offset=None) -> Tensor",
            .kind = OpKind::movement,
            .loops =
                [](In x, In source, Ints size, Ints stride, std::optional<int64_t> offset) {
                  expect_row_major(x);
                  return overwritten(x, source, Strided(x.sizes(), size, stride, offset));
                },
            .vjp =
                [](Vjp v, LazyTensor, LazyTensor source, Ints size, Ints stride,
                   std::optional<int64_t> offset) {
                  const LazyTensor& g = v.cotangents[0];
                  const int64_t begin = offset.value_or(0);
                  return Gradients{apply_one("aten::as_strided_scatter",
                                             {g, zeros_like(source), size, stride, begin}),
                                   apply_one("aten::as_strided", {g, size, stride, begin})};
                },
            .samples = "f32[3,4] f32[2,2] [2,2] [4,1] 1 | f32[6] f32[2,3] [2,3] [1,2]",
            .bad = "f32[4] f32[2] [3] [1]: expected sizes [3]"});
}

void add_slices_rows(OperationTable& rows) {
  add_slices(rows);
  add_slice_inverses(rows);
  add_windows(rows);
}

}  // namespace composit
