// Triangles and diagonals.
#include <algorithm>

#include "composit/ops/functions.h"
#include "composit/ops/native.h"
#include "composit/ops/places.h"

namespace composit {
namespace {

// ---- triangles ----------------------------------------------------------------------------------

template <bool kLower>
Loops triangle(const In& x, int64_t diagonal) {
  if (x.rank() < 2) throw UserError("expected 2 axes at least, received sizes " + str(x.sizes()));
  Nest nest;
  const Index at = nest.parallel(x.sizes());
  const Expr distance = at.back() - at[at.size() - 2];
  const Expr kept = kLower ? distance <= diagonal : distance >= diagonal;
  return nest.store(select(kept, x(at), Expr::literal(int64_t{0}, x.dtype()))).loops();
}

template <bool kLower>
void add_triangle(OperationTable& rows, std::string_view schema) {
  rows.add({.schema = schema,
            .loops = [](In x, int64_t diagonal) { return triangle<kLower>(x, diagonal); },
            .vjp =
                [](Vjp v, LazyTensor, int64_t diagonal) {
                  return apply(kLower ? "aten::tril" : "aten::triu", {v.cotangents[0], diagonal});
                },
            .samples = "f32[3,3] | f32[2,3,4] 1 | f32[4,3] -1 | i64[3,3] | bool[3,3] | c64[2,2]",
            .bad = "f32[3]: 2 axes"});
}

// Rows, then columns, of the places of a triangle, row by row.
Ints triangle_places(int64_t height, int64_t width, int64_t offset, bool lower) {
  if (height < 0 || width < 0)
    throw UserError("expected rows and columns of at least 0, received " + str({height, width}));
  Ints rows, columns;
  for (int64_t i = 0; i < height; ++i)
    for (int64_t j = 0; j < width; ++j)
      if (lower ? j - i <= offset : j - i >= offset) {
        rows.push_back(i);
        columns.push_back(j);
      }
  rows.insert(rows.end(), columns.begin(), columns.end());
  return rows;
}

Type places_type(const Ints& places, std::optional<DType> dtype) {
  return tensor_type(dtype.value_or(DType::int64), {2, static_cast<int64_t>(places.size()) / 2});
}

template <bool kLower>
void add_places(OperationTable& rows, std::string_view schema) {
  rows.add({.schema = schema,
            .infer =
                [](int64_t height, int64_t width, int64_t offset, std::optional<DType> dtype) {
                  return std::vector{
                      places_type(triangle_places(height, width, offset, kLower), dtype)};
                },
            .native =
                [](int64_t height, int64_t width, int64_t offset, std::optional<DType> dtype) {
                  const Ints places = triangle_places(height, width, offset, kLower);
                  return std::vector{array_of(places_type(places, dtype), places)};
                },
            .samples = "3 3 | 2 4 1 | 4 2 -1 int32 | 0 3",
            .bad = "-1 2: at least 0"});
}

// ---- diagonals ----------------------------------------------------------------------------------

// Two axes of a tensor of these sizes, and the elements of their diagonal: (begin1 + i, begin2 +
// i).
struct Diagonal {
  size_t axis1, axis2;
  int64_t begin1, begin2, length;
  Ints sizes;  // of the tensor of diagonals: the other axes, then the diagonal

  Diagonal(const Ints& whole, int64_t offset, int64_t dim1, int64_t dim2)
      : axis1(wrapped(dim1, whole)), axis2(wrapped(dim2, whole)) {
    if (axis1 == axis2 || whole.size() < 2)
      throw UserError("expected two different axes, received " + str({dim1, dim2}) + " for sizes " +
                      str(whole));
    begin1 = std::max<int64_t>(-offset, 0);
    begin2 = std::max<int64_t>(offset, 0);
    length = std::max<int64_t>(0, std::min(whole[axis1] - begin1, whole[axis2] - begin2));
    for (size_t axis = 0; axis < whole.size(); ++axis)
      if (axis != axis1 && axis != axis2) sizes.push_back(whole[axis]);
    sizes.push_back(length);
  }

  // The index in the whole of element `at` of the diagonals.
  Index place(const Index& at) const {
    Index index;
    size_t next = 0;
    for (size_t axis = 0; axis < sizes.size() + 1; ++axis) {
      if (axis == axis1)
        index.push_back(at.back() + begin1);
      else if (axis == axis2)
        index.push_back(at.back() + begin2);
      else
        index.push_back(at[next++]);
    }
    return index;
  }

 private:
  static size_t wrapped(int64_t axis, const Ints& whole) {
    return static_cast<size_t>(wrap_axis(axis, static_cast<int64_t>(whole.size())));
  }
};

Loops into_diagonal(const In& x, const Ints& whole, int64_t offset, int64_t dim1, int64_t dim2) {
  const Diagonal diagonal(whole, offset, dim1, dim2);
  if (x.sizes() != diagonal.sizes)
    throw UserError("expected diagonals of sizes " + str(diagonal.sizes) + ", received " +
                    str(x.sizes()));
  Nest nest;
  const Index at = nest.parallel(x.sizes());
  return nest.store(whole, diagonal.place(at), x(at)).loops();
}

LazyTensor diagonal_of(const LazyTensor& x, int64_t offset, int64_t dim1, int64_t dim2) {
  return apply_one("aten::diagonal", {x, offset, dim1, dim2});
}

void add_diagonals(OperationTable& rows) {
  rows.add({.schema = "aten::diagonal(Tensor(a) self, int offset=0, int dim1=0, int dim2=1) -> "
                      "Tensor(a)",
            .kind = OpKind::movement,
            .loops =
                [](In x, int64_t offset, int64_t dim1, int64_t dim2) {
                  const Diagonal diagonal(x.sizes(), offset, dim1, dim2);
                  Nest nest;
                  return nest.store(x(diagonal.place(nest.parallel(diagonal.sizes)))).loops();
                },
            .vjp =
                [](Vjp v, LazyTensor x, int64_t offset, int64_t dim1, int64_t dim2) {
                  return Gradients{apply_one("aten::diagonal_backward",
                                             {v.cotangents[0], x.sizes(), offset, dim1, dim2})};
                },
            .samples = "f32[3,3] | f32[3,4] 1 | f32[3,4] -1 | f32[2,3,4] 0 -1 0 | i64[2,2] 5",
            .bad = "f32[3]: expected an axis | f32[2,2] 0 1 1: two different axes",
            .also = {"aten::diagonal_copy"}});
  rows.add({.schema = "aten::diagonal_backward(Tensor grad_output, SymInt[] input_sizes, int "
                      "offset, int dim1, int dim2) -> Tensor",
            .kind = OpKind::movement,
            .loops = [](In g, Ints sizes, int64_t offset, int64_t dim1,
                        int64_t dim2) { return into_diagonal(g, sizes, offset, dim1, dim2); },
            .vjp =
                [](Vjp v, LazyTensor, Ints, int64_t offset, int64_t dim1, int64_t dim2) {
                  return Gradients{diagonal_of(v.cotangents[0], offset, dim1, dim2)};
                },
            .samples = "f32[3] [3,4] 1 0 1 | f32[3,2] [2,3,4] 0 -1 0",
            .bad = "f32[3] [2,2] 0 0 1: diagonals of sizes"});
  rows.add({.schema = "aten::diag_embed(Tensor self, int offset=0, int dim1=-2, int dim2=-1) -> "
                      "Tensor",
            .loops =
                [](In x, int64_t offset, int64_t dim1, int64_t dim2) {
                  if (x.rank() == 0)
                    throw UserError("expected an axis at least, received a number");
                  Ints whole = x.sizes();
                  const int64_t size = whole.back() + std::abs(offset);
                  whole.pop_back();
                  const int64_t rank = x.rank() + 1;
                  const int64_t first = wrap_axis(dim1, rank), second = wrap_axis(dim2, rank);
                  for (int64_t axis : {std::min(first, second), std::max(first, second)})
                    whole.insert(whole.begin() + std::min(axis, int64_t(whole.size())), size);
                  return into_diagonal(x, whole, offset, dim1, dim2);
                },
            .vjp =
                [](Vjp v, LazyTensor, int64_t offset, int64_t dim1, int64_t dim2) {
                  return Gradients{diagonal_of(v.cotangents[0], offset, dim1, dim2)};
                },
            .samples = "f32[3] | f32[2,3] 1 | f32[2,3] -1 0 2 | i64[2]",
            .bad = "f32[]: an axis at least | f32[2] 0 1 1: two different axes"});
  rows.add(
      {.schema = "aten::diagonal_scatter(Tensor self, Tensor src, int offset=0, int dim1=0, "
                 "int dim2=1) -> Tensor",
       .kind = OpKind::movement,
       .loops =
           [](In x, In source, int64_t offset, int64_t dim1, int64_t dim2) {
             const Diagonal diagonal(x.sizes(), offset, dim1, dim2);
             if (source.sizes() != diagonal.sizes)
               throw UserError("expected diagonals of sizes " + str(diagonal.sizes) +
                               ", received " + str(source.sizes()));
             Nest written;
             const Index at = written.parallel(diagonal.sizes);
             written.store_into(0, diagonal.place(at), source(at));
             return sequence({copy_of(x), written});
           },
       .vjp =
           [](Vjp v, LazyTensor, LazyTensor source, int64_t offset, int64_t dim1, int64_t dim2) {
             const LazyTensor& g = v.cotangents[0];
             return Gradients{
                 apply_one("aten::diagonal_scatter", {g, zeros_like(source), offset, dim1, dim2}),
                 diagonal_of(g, offset, dim1, dim2)};
           },
       .samples = "f32[3,4] f32[3] 1 | f32[2,3,4] f32[3,2] 0 2 0",
       .bad = "f32[3,3] f32[2]: diagonals of sizes"});
  rows.add({.schema = "aten::diag(Tensor self, int diagonal=0) -> Tensor",
            .decompose =
                [](LazyTensor x, int64_t offset) {
                  if (x.rank() == 1) return LazyTensors{apply_one("aten::diag_embed", {x, offset})};
                  if (x.rank() == 2) return LazyTensors{diagonal_of(x, offset, 0, 1)};
                  throw UserError("expected 1 or 2 axes, received sizes " + str(x.sizes()));
                },
            .samples = "f32[3] 1 | f32[3,4] -1",
            .bad = "f32[1,2,2]: 1 or 2 axes"});
  rows.add({.schema = "aten::trace(Tensor self) -> Tensor",
            .decompose =
                [](LazyTensor x) {
                  if (x.rank() != 2)
                    throw UserError("expected a matrix, received sizes " + str(x.sizes()));
                  return LazyTensors{sum(diagonal_of(x, 0, 0, 1))};
                },
            .samples = "f32[3,3] | f32[2,4] | i64[3,2]",
            .bad = "f32[3]: a matrix"});
}

}  // namespace

void add_triangle_rows(OperationTable& rows) {
  add_triangle<true>(rows, "aten::tril(Tensor self, SymInt diagonal=0) -> Tensor");
  add_triangle<false>(rows, "aten::triu(Tensor self, SymInt diagonal=0) -> Tensor");
  add_places<true>(rows,
                   "aten::tril_indices(int row, int col, int offset=0, *, ScalarType? dtype=4, "
                   "Layout? layout=None, Device? device=None, bool? pin_memory=None) -> Tensor");
  add_places<false>(rows,
                    "aten::triu_indices(int row, int col, int offset=0, *, ScalarType? dtype=4, "
                    "Layout? layout=None, Device? device=None, bool? pin_memory=None) -> Tensor");
  add_diagonals(rows);
}

}  // namespace composit
