// Transposed loop forms where values decide: indices that are data, selects, complex numbers,
// places written twice; and what is refused.
#include <gtest/gtest.h>

#include <cmath>

#include "composit/ad/transpose.h"
#include "composit/ir/error.h"
#include "tests/ad/gradient_check.h"
#include "tests/user_error.h"

namespace composit::test {
namespace {

// ---- data-dependent indices ---------------------------------------------------------------------

TEST(Transpose, Embedding) {
  const In table = operand(0, {5, 3}), index = operand(1, {4}, DType::int64);
  Nest nest;
  const Index i = nest.parallel({4, 3});
  nest.store(table(index(i[0]), i[1]));
  check_linear(loops_of({nest}, {table, index}), {random(table), integers(index, {4, 0, 4, 2})},
               {0});
}

TEST(Transpose, Gather) {
  const In x = operand(0, {3, 4}), index = operand(1, {3, 2}, DType::int64);
  Nest nest;
  const Index i = nest.parallel({3, 2});
  nest.store(x(i[0], index(i)));
  check_linear(loops_of({nest}, {x, index}), {random(x), integers(index, {3, 3, 0, 1, 2, 0})}, {0});
}

TEST(Transpose, IndexInOneAxisSummedAlongAnother) {
  const In x = operand(0, {3, 4, 2}), w = operand(1, {4}), index = operand(2, {5}, DType::int64);
  Nest nest;
  const Expr i = nest.parallel(5), j = nest.parallel(2), r = nest.reduction(4);
  nest.store(nest.sum(x(index(i), r, j) * w(r)));
  check_linear(loops_of({nest}, {x, w, index}),
               {random(x), random(w), integers(index, {2, 0, 2, 1, 1})}, {0, 1});
}

TEST(Transpose, CopyThenScatterAdd) {
  const In x = operand(0, {4, 3}), source = operand(1, {5, 3});
  const In index = operand(2, {5, 3}, DType::int64);
  Nest copy, scatter;
  const Index i = copy.parallel({4, 3}), j = scatter.parallel({5, 3});
  copy.store(x(i));
  scatter.store_into(0, {index(j), j[1]}, source(j) * source(j), true);
  check_gradients(
      loops_of({copy, scatter}, {x, source, index}),
      {random(x), random(source), integers(index, {0, 1, 2, 3, 3, 3, 0, 0, 1, 2, 1, 0, 3, 2, 1})});
}

TEST(Transpose, ValueAtTheLargest) {  // the place comes from an accumulator
  const In key = operand(0, {3, 4}), x = operand(1, {3, 4});
  Nest nest;
  const Expr i = nest.parallel(3), r = nest.reduction(4);
  const auto larger = [](const std::vector<Expr>& a, const std::vector<Expr>& b) {
    const Expr first = a[0] >= b[0];
    return std::vector<Expr>{select(first, a[0], b[0]), select(first, a[1], b[1])};
  };
  const auto best = nest.fold({-INFINITY, 0}, {key(i, r), r}, larger);
  nest.store(x(i, best[1]) * x(i, best[1]));
  const Loops loops = loops_of({nest}, {key, x});
  const std::vector<Array> operands = random_all({key, x});
  check_gradients(loops, operands);
  EXPECT_TRUE(transpose_all(loops, 0).loops.statements.empty());
}

// ---- elementwise --------------------------------------------------------------------------------

Expr gelu(const Expr& x) { return x * 0.5 * (1 + erf(x * std::sqrt(0.5))); }
Expr relu6(const Expr& x) { return min(max(x, 0), 6); }

TEST(Transpose, Gelu) {
  const In x = operand(0, {7}), y = operand(1, {7});
  Nest nest;
  const Expr i = nest.parallel(7);
  check_random(nest.store(gelu(x(i)) * y(i)), {x, y});
}

TEST(Transpose, Relu6) {
  const In x = operand(0, {16});
  Nest nest;
  const Expr i = nest.parallel(16);
  nest.store(relu6(x(i) * 9) * x(i));
  check_random(nest, {x});
}

TEST(Transpose, Where) {  // a branch that data choose
  const In c = operand(0, {4}, DType::int64), x = operand(1, {4}), y = operand(2, {4});
  Nest nest;
  const Expr i = nest.parallel(4);
  nest.store(select(eq(c(i), 1), x(i) * y(i), y(i)));
  check_gradients(loops_of({nest}, {c, x, y}), {integers(c, {1, 0, 0, 1}), random(x), random(y)});
}

TEST(Transpose, BilinearUpsample) {
  const In x = operand(0, {2, 3, 3});
  Nest nest;
  const Index i = nest.parallel({2, 5, 7});
  // align_corners=False: source = (place + 0.5) * in / out - 0.5, not below 0.
  const auto source = [](const Expr& place, double scale) {
    return max((cast(place, DType::float64) + 0.5) * scale - 0.5, 0);
  };
  Expr total;
  for (int corner = 0; corner < 4; ++corner) {
    Expr weight;
    Index at = {i[0]};
    for (int axis = 0; axis < 2; ++axis) {
      const Expr from = source(i[axis + 1], axis == 0 ? 3.0 / 5 : 3.0 / 7);
      const Expr low = cast(floor(from), DType::int64), part = from - floor(from);
      const bool upper = corner >> axis & 1;
      at.push_back(upper ? min(low + 1, 2) : low);
      const Expr share = upper ? part : 1 - part;
      weight = axis == 0 ? share : weight * share;
    }
    total = corner == 0 ? x(at) * weight : total + x(at) * weight;
  }
  check_random(nest.store(total), {x}, {0});
}

TEST(Transpose, NearestUpsample) {
  const In x = operand(0, {2, 3, 4});
  Nest nest;
  const Index i = nest.parallel({2, 6, 6});
  // floor(place * in / out), for a whole and for another factor
  check_random(nest.store(x(i[0], floor_divide(i[1] * 3, 6), floor_divide(i[2] * 4, 6))), {x}, {0});
}

TEST(Transpose, FlooredIndexOfAWindow) {  // floor((2 i + j - 3) / 4), partly out of range
  const In x = operand(0, {3});
  Nest nest;
  const Expr i = nest.parallel(8), j = nest.reduction(3);
  check_random(nest.store(nest.sum(x.padded({floor_divide(i * 2 + j - 3, 4)}, 0))), {x}, {0});
}

TEST(Transpose, ComplexProductAndMagnitude) {
  const In a = operand(0, {2, 3}, DType::complex128), b = operand(1, {3}, DType::complex128);
  Nest product, magnitude;
  const Expr i = product.parallel(2), r = product.reduction(3);
  product.store(product.sum(a(i, r) * exp(b(r))));
  const Index j = magnitude.parallel({2, 3});
  magnitude.store(abs(a(j)) + real(a(j)) * imag(conj(a(j))));
  check_gradients(loops_of({product, magnitude}, {a, b}), random_all({a, b}));
}

TEST(Transpose, RealIntoComplex) {
  const In x = operand(0, {4}), z = operand(1, {4}, DType::complex128);
  Nest nest;
  const Expr i = nest.parallel(4);
  check_random(nest.store(complex(x(i), x(i) * x(i)) * z(i) + x(i)), {x, z});
}

// ---- overwriting --------------------------------------------------------------------------------

TEST(Transpose, OverwrittenPlacesGetNothing) {  // select_scatter: y = x, y[:, 2] = z
  const In x = operand(0, {3, 4}), z = operand(1, {3});
  Nest copy, over;
  const Index i = copy.parallel({3, 4});
  const Expr j = over.parallel(3);
  copy.store(exp(x(i)));
  over.store_into(0, {j, 2}, z(j));
  check_gradients(loops_of({copy, over}, {x, z}), random_all({x, z}));
}

TEST(Transpose, OverwrittenEverySecondWhereADomainHolds) {
  const In x = operand(0, {9}), z = operand(1, {4});
  Nest copy, over;
  const Expr i = copy.parallel(9), j = over.parallel(4);
  copy.store(x(i));
  over.where(j >= 1);
  over.store_into(0, {7 - 2 * j}, z(j));
  check_gradients(loops_of({copy, over}, {x, z}), random_all({x, z}));
}

TEST(Transpose, OverwrittenSum) {  // the cotangent of an accumulator is masked
  const In x = operand(0, {4, 3}), z = operand(1, {});
  Nest sums, over;
  const Expr i = sums.parallel(4), r = sums.reduction(3);
  sums.store(sums.sum(x(i, r)));
  over.store_into(0, {3}, z(Index{}));
  check_gradients(loops_of({sums, over}, {x, z}), random_all({x, z}));
}

// ---- refusals -----------------------------------------------------------------------------------

template <class F>
std::string message_of(F f) {
  return user_error(f).value_or("no error");
}

TEST(Transpose, RefusesWhatIsNotLinearInItsAccumulator) {
  const In x = operand(0, {3, 4});
  Nest squares, largest, norm, running, decaying, sorted;
  Expr i = largest.parallel(3), r = largest.reduction(4);
  largest.store(largest.fold(-INFINITY, x(i, r), max));
  i = norm.parallel(3), r = norm.reduction(4);
  norm.store(sqrt(norm.sum(x(i, r) * x(i, r))));
  i = running.parallel(3), r = running.scan(4);
  running.store(running.fold(1, x(i, r), [](Expr a, Expr b) { return a * b; }));
  i = decaying.parallel(3), r = decaying.scan(4);
  decaying.store(decaying.fold(0, x(i, r), [](Expr a, Expr b) { return a * 0.5 + b; }));
  i = sorted.parallel(3), r = sorted.reduction(4);
  const auto by_sign = [](Expr a, Expr b) { return a + select(a < 0, b, b * 2); };
  sorted.store(sorted.fold(0, x(i, r), by_sign));
  i = squares.parallel(3), r = squares.scan(4);
  const Expr sum = squares.sum(x(i, r));
  squares.store(sum * sum);
  for (const Nest& nest : {squares, largest, norm, running, decaying, sorted}) {
    const Loops loops = loops_of({nest}, {x});
    EXPECT_EQ(message_of([&] { transpose_all(loops, 0); }),
              "loop form is not linear in its accumulator");
  }
}

TEST(Transpose, RefusesStoresThatMayMeet) {
  const In x = operand(0, {3}), index = operand(1, {3}, DType::int64);
  Nest scatter, last;
  Expr i = scatter.parallel(3);
  scatter.store({5}, {index(i)}, x(i));
  i = last.parallel(3);
  last.store({2}, {floor_divide(i, 2)}, x(i));
  for (const Nest& nest : {scatter, last}) {
    const Loops loops = loops_of({nest}, {x, index});
    EXPECT_EQ(message_of([&] { transpose_all(loops, 0); }),
              "loop form may store two values to one place");
  }
}

TEST(Transpose, RefusesOverwritingByData) {
  const In x = operand(0, {5}), index = operand(1, {3}, DType::int64);
  Nest copy, over;
  const Expr i = copy.parallel(5), j = over.parallel(3);
  copy.store(x(i));
  over.store_into(0, {index(j)}, 0.0);
  const Loops loops = loops_of({copy, over}, {x, index});
  EXPECT_EQ(message_of([&] { transpose_all(loops, 0); }),
            "loop form overwrites places that depend on data");
}

TEST(Transpose, NamesAFunctionWithoutDerivative) {
  const In x = operand(0, {5});
  Nest nest;
  const Expr i = nest.parallel(5);
  const Loops loops = loops_of({nest.store(nextafter(x(i), 1))}, {x});
  EXPECT_EQ(message_of([&] { transpose_all(loops, 0); }),
            "[nextafter] has no derivative with respect to its first argument");
}

}  // namespace
}  // namespace composit::test
