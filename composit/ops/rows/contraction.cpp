// Matrix products and what is made of them.
#include <functional>
#include <numeric>

#include "composit/ops/functions.h"

namespace composit {

static void expect_rank(const In& x, const char* what, int64_t rank) {
  if (x.rank() != rank)
    throw UserError("expected " + std::string(what) + " of " + std::to_string(rank) +
                    " axes, received sizes " + str(x.sizes()));
}

static void expect_same_dtype(const In& a, const In& b) {
  if (a.dtype() != b.dtype())
    throw UserError("expected one dtype, received " + std::string(name(a.dtype())) + " and " +
                    std::string(name(b.dtype())));
}

static void expect_product(const In& a, const In& b, int64_t inner_a, int64_t inner_b) {
  expect_same_dtype(a, b);
  if (inner_a != inner_b)
    throw UserError("sizes " + str(a.sizes()) + " and " + str(b.sizes()) + " do not multiply");
}

// beta * input + alpha * product, torch's addmm family; the input is not read where beta is 0.
static Expr blended(const In& input, const Index& at, Expr product, Scalar beta, Scalar alpha) {
  const DType dtype = product.dtype();
  if (!is_literal(Expr(alpha), 1)) product = product * cast(Expr(alpha), dtype);
  if (is_literal(Expr(beta), 0)) return product;
  const Expr added = cast(input.broadcast(at), dtype);
  return (is_literal(Expr(beta), 1) ? added : cast(Expr(beta), dtype) * added) + product;
}

static void add_matrix_products(OperationTable& rows) {
  rows.add(
      {.schema = "aten::mm(Tensor self, Tensor mat2) -> Tensor",
       .kind = OpKind::contraction,
       .loops =
           [](In a, In b) {
             expect_rank(a, "a matrix", 2);
             expect_rank(b, "a matrix", 2);
             expect_product(a, b, a.size(1), b.size(0));
             Nest nest;
             const Expr i = nest.parallel(a.size(0)), j = nest.parallel(b.size(1));
             const Expr r = nest.reduction(a.size(1));
             return nest.store(nest.sum(a(i, r) * b(r, j))).loops();
           },
       .vjp =
           [](Vjp v, LazyTensor a, LazyTensor b) {
             const LazyTensor& g = v.cotangents[0];
             return Gradients{v.wanted[0] ? mm(g, conj(transpose(b, 0, 1))) : LazyTensor(),
                              v.wanted[1] ? mm(conj(transpose(a, 0, 1)), g) : LazyTensor()};
           },
       .samples = "f32[2,3] f32[3,4] | f64[1,5] f64[5,1] | f32[2,0] f32[0,3] | i64[2,2] i64[2,2]",
       .bad = "f32[2,3] f32[2,3]: do not multiply | f32[2] f32[2,2]: of 2 axes | f32[2,2] "
              "f64[2,2]: one dtype"});
  rows.add({.schema = "aten::bmm(Tensor self, Tensor mat2) -> Tensor",
            .kind = OpKind::contraction,
            .loops =
                [](In a, In b) {
                  expect_rank(a, "a batch of matrices", 3);
                  expect_rank(b, "a batch of matrices", 3);
                  expect_product(a, b, a.size(2), b.size(1));
                  if (a.size(0) != b.size(0))
                    throw UserError("expected as many matrices, received sizes " + str(a.sizes()) +
                                    " and " + str(b.sizes()));
                  Nest nest;
                  const Expr n = nest.parallel(a.size(0)), i = nest.parallel(a.size(1));
                  const Expr j = nest.parallel(b.size(2)), r = nest.reduction(a.size(2));
                  return nest.store(nest.sum(a(n, i, r) * b(n, r, j))).loops();
                },
            .vjp =
                [](Vjp v, LazyTensor a, LazyTensor b) {
                  const LazyTensor& g = v.cotangents[0];
                  return Gradients{v.wanted[0] ? bmm(g, conj(transpose(b, 1, 2))) : LazyTensor(),
                                   v.wanted[1] ? bmm(conj(transpose(a, 1, 2)), g) : LazyTensor()};
                },
            .samples = "f32[2,3,4] f32[2,4,2]",
            .bad = "f32[2,3,4] f32[3,4,2]: as many matrices"});
  rows.add({.schema = "aten::addmm(Tensor self, Tensor mat1, Tensor mat2, *, Scalar beta=1, Scalar "
                      "alpha=1) -> Tensor",
            .kind = OpKind::contraction,
            .loops =
                [](In input, In a, In b, Scalar beta, Scalar alpha) {
                  expect_rank(a, "a matrix", 2);
                  expect_rank(b, "a matrix", 2);
                  expect_product(a, b, a.size(1), b.size(0));
                  Nest nest;
                  const Index at = nest.parallel(Ints{a.size(0), b.size(1)});
                  const Expr r = nest.reduction(a.size(1));
                  // Products of 16-bit floats are rounded behind the factors.
                  const bool is_plain = is_literal(Expr(alpha), 1) && is_literal(Expr(beta), 1);
                  const DType wide = is_plain ? a.dtype() : opmath_dtype(a.dtype());
                  const Expr product = nest.sum(cast(a(at[0], r), wide) * cast(b(r, at[1]), wide));
                  if (broadcast_sizes({input.sizes(), {a.size(0), b.size(1)}}) !=
                      Ints{a.size(0), b.size(1)})
                    throw UserError("sizes " + str(input.sizes()) + " do not broadcast to " +
                                    str({a.size(0), b.size(1)}));
                  const Expr result = blended(input, at, product, beta, alpha);
                  return nest.store(cast(result, a.dtype())).loops();
                },
            .vjp =
                [](Vjp v, LazyTensor input, LazyTensor a, LazyTensor b, Scalar beta, Scalar alpha) {
                  const LazyTensor& g = v.cotangents[0];
                  const auto times = [](const LazyTensor& x, const Scalar& factor) {
                    return is_literal(Expr(factor), 1) ? x : x * Number(factor);
                  };
                  const LazyTensor scaled = times(g, alpha);
                  return Gradients{
                      v.wanted[0] ? sum_to_size(times(g, beta), input.sizes()) : LazyTensor(),
                      v.wanted[1] ? mm(scaled, conj(transpose(b, 0, 1))) : LazyTensor(),
                      v.wanted[2] ? mm(conj(transpose(a, 0, 1)), scaled) : LazyTensor()};
                },
            .samples = "f32[4] f32[2,3] f32[3,4] | f32[2,4] f32[2,3] f32[3,4] 0.5 2 | f32[2,1] "
                       "f32[2,3] f32[3,4] 0",
            .bad = "f32[3] f32[2,3] f32[3,4]: do not broadcast"});
}

// Batch axes of a matmul: those before the last two.
static Ints batch_of(const In& x) {
  Ints sizes = x.sizes();
  sizes.resize(sizes.size() - static_cast<size_t>(std::min<int64_t>(x.rank(), 2)));
  return sizes;
}

// The element (row, column) of the matrices of `x` broadcast to the axes of `batch`.
static Expr matrix_element(const In& x, const Index& batch, const Expr& row, const Expr& column) {
  Index at(batch.end() - (x.rank() - 2), batch.end());
  for (size_t i = 0; i < at.size(); ++i)
    if (x.sizes()[i] == 1) at[i] = 0;
  at.push_back(row);
  at.push_back(column);
  return x(at);
}

static Loops matmul_loops(const In& a, const In& b) {
  if (a.rank() == 0 || b.rank() == 0)
    throw UserError("expected an axis at least, received sizes " + str(a.sizes()) + " and " +
                    str(b.sizes()));
  expect_product(a, b, a.size(-1), b.rank() == 1 ? b.size(0) : b.size(-2));
  Nest nest;
  const Index batch = nest.parallel(broadcast_sizes({batch_of(a), batch_of(b)}));
  const Expr row = a.rank() > 1 ? nest.parallel(a.size(-2)) : Expr();
  const Expr column = b.rank() > 1 ? nest.parallel(b.size(-1)) : Expr();
  const Expr r = nest.reduction(a.size(-1));
  const Expr x = a.rank() > 1 ? matrix_element(a, batch, row, r) : a(r);
  const Expr y = b.rank() > 1 ? matrix_element(b, batch, r, column) : b(r);
  return nest.store(nest.sum(x * y)).loops();
}

static Gradients matmul_gradients(const Vjp& v, const LazyTensor& a, const LazyTensor& b) {
  if (a.rank() < 2 || b.rank() < 2) return {};  // by transposition
  const LazyTensor& g = v.cotangents[0];
  const auto adjoint = [](const LazyTensor& x) { return conj(transpose(x, -2, -1)); };
  const auto rows = [](const LazyTensor& x) {  // counted, since no elements tell nothing of them
    const Ints sizes = x.sizes();
    const int64_t count =
        std::accumulate(sizes.begin(), sizes.end() - 1, int64_t{1}, std::multiplies<>());
    return reshape(x, {count, x.size(-1)});
  };
  Gradients gradients(2);
  if (v.wanted[0]) gradients[0] = sum_to_size(matmul(g, adjoint(b)), a.sizes());
  if (v.wanted[1] && b.rank() == 2)  // one product, without a sum over batches after it
    gradients[1] = mm(adjoint(rows(a)), rows(g));
  else if (v.wanted[1])
    gradients[1] = sum_to_size(matmul(adjoint(a), g), b.sizes());
  return gradients;
}

static void add_matmul(OperationTable& rows) {
  rows.add({.schema = "aten::matmul(Tensor self, Tensor other) -> Tensor",
            .kind = OpKind::contraction,
            .loops = [](In a, In b) { return matmul_loops(a, b); },
            .vjp = [](Vjp v, LazyTensor a, LazyTensor b) { return matmul_gradients(v, a, b); },
            .samples = "f32[2,3] f32[3,4] | f32[3] f32[3] | f32[2,3] f32[3] | f32[3] f32[3,2] | "
                       "f32[2,1,3,4] f32[5,4,2] | f32[2,2,3] f32[3,2]",
            .bad = "f32[2,3] f32[2]: do not multiply | f32[] f32[2]: an axis at least | f32[2,2,3] "
                   "f32[3,3,2]: do not broadcast"});
  rows.add({.schema = "aten::linear(Tensor input, Tensor weight, Tensor? bias=None) -> Tensor",
            .kind = OpKind::contraction,
            .loops =
                [](In x, In weight, std::optional<In> bias) {
                  if (x.rank() == 0)
                    throw UserError("expected an axis at least, received a number");
                  if (weight.rank() > 2 || weight.rank() == 0)
                    throw UserError("expected a weight of 1 or 2 axes, received sizes " +
                                    str(weight.sizes()));
                  expect_product(x, weight, x.size(-1), weight.size(-1));
                  Nest nest;
                  Ints sizes = x.sizes();
                  sizes.pop_back();
                  Index at = nest.parallel(sizes);
                  Index from = at, row;
                  if (weight.rank() == 2) row.push_back(nest.parallel(weight.size(0)));
                  from.push_back(nest.reduction(x.size(-1)));
                  Index to = row;
                  to.push_back(from.back());
                  const Expr product = nest.sum(x(from) * weight(to));
                  at.insert(at.end(), row.begin(), row.end());
                  return nest.store(bias ? product + bias->broadcast(at) : product).loops();
                },
            .vjp =
                [](Vjp v, LazyTensor x, LazyTensor weight, std::optional<LazyTensor> bias) {
                  if (weight.rank() != 2) return Gradients{};
                  const LazyTensor& g = v.cotangents[0];
                  int64_t count = 1;  // -1 would not say how many there are of no elements
                  for (int64_t axis = 0; axis + 1 < x.rank(); ++axis) count *= x.size(axis);
                  const LazyTensor outputs = reshape(g, {count, weight.size(0)});
                  const LazyTensor inputs = reshape(x, {count, weight.size(1)});
                  return Gradients{
                      v.wanted[0] ? matmul(g, conj(weight)) : LazyTensor(),
                      v.wanted[1] ? mm(transpose(outputs, 0, 1), conj(inputs)) : LazyTensor(),
                      bias && v.wanted[2] ? sum_to_size(g, bias->sizes()) : LazyTensor()};
                },
            .samples = "f32[2,3] f32[4,3] f32[4] | f32[2,5,3] f32[4,3] | f32[3] f32[4,3] f32[4] | "
                       "f32[2,3] f32[3] | f32[2,5,0] f32[4,0]",
            .bad = "f32[2,3] f32[4,2] f32[4]: do not multiply"});
}

void add_contraction_rows(OperationTable& rows) {
  add_matrix_products(rows);
  add_matmul(rows);
}

}  // namespace composit
