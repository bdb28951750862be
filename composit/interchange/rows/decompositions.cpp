// Singular values, and eigenvalues of symmetric matrices, by Jacobi's method (8.5 and 8.6.3 of
// "Matrix Computations"), with disjoint pairs of columns at once, as in a tournament. Vectors have
// the signs that come of it; torch says of its own that they are not unique.
#include <algorithm>
#include <numeric>

#include "composit/interchange/common_rows.h"
#include "composit/interchange/matrices.h"
#include "composit/ops/control_flow.h"
#include "composit/ops/functions.h"
#include "composit/ops/native.h"

namespace composit::interchange {
namespace {

using Types = std::vector<Type>;
using X = const LazyTensor&;

constexpr int64_t kSweeps = 14;  // each squares what is left; 8 are enough for most

// The partner of each column in each round, [rounds, n]: in n - 1 rounds (n, for an odd n, in each
// of which one has none) each column meets each other once.
LazyTensor tournament(int64_t n) {
  const int64_t even = n + n % 2, rounds = even - 1;
  std::vector<int64_t> partners;
  for (int64_t sweep = 0; sweep < kSweeps; ++sweep)
    for (int64_t round = 0; round < rounds; ++round)
      for (int64_t i = 0; i < n; ++i) {
        // The last one stays; the others turn.
        int64_t other = i == even - 1 ? round : (2 * round - i + 2 * rounds) % rounds;
        if (other == i) other = even - 1;
        partners.push_back(other < n ? other : i);
      }
  const Type type = tensor_type(DType::int64, {kSweeps * rounds, n});
  return constant(array_of(type, partners));
}

// Rotations that make pairs of columns orthogonal: of each column, by its own and its partner's
// squares and their product, what it is multiplied with and what its partner is.
struct Rotations {
  LazyTensor own, partners;
};

Rotations rotations(X own, X other, X product, X is_left, X is_small) {
  // From the side of the left column: (q - p) / 2r.
  const LazyTensor apart = (other - own) / where(is_small, 1, product * 2);
  const LazyTensor seen = where(is_left, apart, -apart);
  const LazyTensor size = abs(seen);
  const LazyTensor t = where(seen < 0, -1, ones_like(seen)) / (size + sqrt(square(size) + 1));
  const LazyTensor c = rsqrt(square(t) + 1), s = t * c;
  return {where(is_small, 1, c), where(is_small, 0, where(is_left, -s, s))};
}

// Targets see that places are in range, which within a loop nobody can ask.
LazyTensor partner_columns(X x, X partner) {
  const LazyTensor place = apply_one("aten::clamp", {partner, 0, x.size(-1) - 1});
  return apply_one("aten::index_select", {x, -1, place});
}

// [batch, 1, n] from what there is of each column.
LazyTensor turned(X x, const Rotations& by, X partner) {
  return x * by.own + partner_columns(x, partner) * by.partners;
}

// ---- singular values ----------------------------------------------------------------------------

// The columns of `a` become orthogonal to each other; second: what a was multiplied with for that.
LazyTensors with_orthogonal_columns(X a) {
  const int64_t n = a.size(2);
  const auto step = [&](const LazyTensors& in, const LazyTensors& slots) {
    X x = in[0], partner = slots[0];
    const LazyTensor y = partner_columns(x, partner);
    const LazyTensor own = sum(square(x), {-2}, true), other = sum(square(y), {-2}, true);
    const LazyTensor product = sum(x * y, {-2}, true);
    const LazyTensor is_small =
        logical_or(eq(partner, arange(n)), abs(product) <= sqrt(own) * sqrt(other) * 1e-15);
    const Rotations by = rotations(own, other, product, arange(n) < partner, is_small);
    return ScanStep{{turned(x, by, partner), turned(in[1], by, partner)}, {}};
  };
  const LazyTensor unit = unit_matrices(a.size(0), n, a.dtype());
  if (n == 1) return {a, unit};
  return scan(step, {a, unit}, {tournament(n)}).carried;
}

LazyTensor in_order(X x, X order) {
  return apply_one("aten::gather", {x, -1, expand(unsqueeze(order, 1), x.sizes())});
}

struct Singular {
  LazyTensor u, s, v;  // [batch, m, m], [batch, n], [batch, n, n]
};

// Of matrices that have at most as many columns as rows.
Singular singular_values(X a) {
  const int64_t n = a.size(2);
  const LazyTensors found = with_orthogonal_columns(a);
  const LazyTensor lengths = sum(square(found[0]), {-2});
  const LazyTensor order = apply("aten::sort", {lengths, -1, true})[1];
  const Factors factors = orthogonal_factors(in_order(found[0], order));  // R is diagonal
  const LazyTensor diagonal = apply_one("aten::diagonal", {factors.r, 0, -2, -1});
  const LazyTensor signs = where(diagonal < 0, -1, ones_like(diagonal));
  const LazyTensor u = cat(
      {slice(factors.q, 2, 0, n) * unsqueeze(signs, 1), slice(factors.q, 2, n, factors.q.size(2))},
      2);
  return {u, abs(diagonal), in_order(found[1], order)};
}

// Of matrices without elements: what is left of the vectors is any basis.
LazyTensor of_nothing(const Type& type) {
  if (type.numel() == 0) return zeros(type.sizes, type.dtype);
  return expand(apply_one("aten::eye.m", {type.sizes.back(), type.sizes.back(), type.dtype}),
                type.sizes);
}

LazyTensor as(X x, const Type& type) { return to(reshape(x, type.sizes), type.dtype); }

LazyTensors svd(const Call& call, const Types& results) {
  X a = tensor_of(call, "A");
  if (!is_single_or_double(a)) return {};
  if (a.numel() == 0)
    return {of_nothing(results[0]), of_nothing(results[1]), of_nothing(results[2])};
  const LazyTensor x = to(flat_batch(a, 2), DType::float64);
  const bool wide = x.size(1) < x.size(2);
  const Singular found = singular_values(wide ? transpose(x, 1, 2) : x);
  const LazyTensor s = as(found.s, results[1]);
  if (!bool_of(call, "compute_uv"))
    return {zeros(results[0].sizes, a.dtype()), s, zeros(results[2].sizes, a.dtype())};
  const LazyTensor &left = wide ? found.v : found.u, &right = wide ? found.u : found.v;
  const LazyTensor u = slice(left, 2, 0, results[0].sizes.back());
  const LazyTensor vh = slice(transpose(right, 1, 2), 1, 0, results[2].sizes.end()[-2]);
  return {as(u, results[0]), s, as(vh, results[2])};
}

// ---- eigenvalues --------------------------------------------------------------------------------

// A becomes diagonal by rotations from both sides.
LazyTensors diagonal_form(X a) {
  const int64_t n = a.size(2);
  const LazyTensor unit = unit_matrices(a.size(0), n, a.dtype());
  if (n == 1) return {a, unit};
  const LazyTensor size = sqrt(sum(square(a), {-2, -1}, true));
  const auto step = [&](const LazyTensors& in, const LazyTensors& slots) {
    X x = in[0], partner = slots[0];
    const LazyTensor row = unsqueeze(arange(n), 1), column = arange(n);
    const LazyTensor own = sum(where(eq(row, column), x, 0), {-2}, true);
    const LazyTensor product = sum(where(eq(row, partner), x, 0), {-2}, true);
    const LazyTensor other = partner_columns(own, partner);
    const LazyTensor is_small = logical_or(eq(partner, column), abs(product) <= size * 1e-16);
    const Rotations by = rotations(own, other, product, column < partner, is_small);
    const LazyTensor columns = turned(x, by, partner);
    const LazyTensor both = transpose(turned(transpose(columns, 1, 2), by, partner), 1, 2);
    return ScanStep{{both, turned(in[1], by, partner)}, {}};
  };
  return scan(step, {a, unit}, {tournament(n)}).carried;
}

LazyTensors eigh(const Call& call, const Types& results) {
  X a = tensor_of(call, "A");
  if (!is_single_or_double(a)) return {};
  if (a.numel() == 0) return {of_nothing(results[0]), of_nothing(results[1])};
  const bool upper = call["UPLO"].data().as<std::string>() == "U";
  const LazyTensor given = to(flat_batch(a, 2), DType::float64);
  const LazyTensor below = tril(upper ? transpose(given, 1, 2) : given);
  const LazyTensors found = diagonal_form(below + transpose(tril(below, -1), 1, 2));
  const LazyTensor values = apply_one("aten::diagonal", {found[0], 0, -2, -1});
  const LazyTensors sorted = apply("aten::sort", {values, -1, false});
  const LazyTensor value = as(sorted[0], results[0]);
  if (!bool_of(call, "compute_v")) return {value, zeros(results[1].sizes, a.dtype())};
  return {value, as(in_order(found[1], sorted[1]), results[1])};
}

}  // namespace

void add_decomposition_rows(std::vector<Row>& rows) {
  rows.insert(rows.end(), {{"aten::_linalg_svd", svd}, {"aten::_linalg_eigh", eigh}});
}

}  // namespace composit::interchange
