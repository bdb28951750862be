// Values of transposed loop forms, first and second order. What they look like is in
// transpose_structure_test.cpp.
#include "composit/ad/transpose.h"

#include <gtest/gtest.h>

#include <cmath>

#include "composit/ir/error.h"
#include "gradient_check.h"

namespace composit::test {
namespace {

std::vector<Array> random_all(const std::vector<In>& operands) {
  std::vector<Array> arrays;
  for (const In& operand : operands) arrays.push_back(random(operand));
  return arrays;
}

void check_random(const Nest& nest, const std::vector<In>& operands,
                  const std::vector<size_t>& linear = {}) {
  check_linear(loops_of({nest}, operands), random_all(operands), linear);
}

// ---- contractions -------------------------------------------------------------------------------

TEST(Transpose, Matmul) {
  const In a = operand(0, {3, 4}), b = operand(1, {4, 2});
  Nest nest;
  const Expr i = nest.parallel(3), k = nest.parallel(2), j = nest.reduction(4);
  check_random(nest.store(nest.sum(a(i, j) * b(j, k))), {a, b}, {0, 1});
}

TEST(Transpose, BroadcastAddWithUnitAxes) {
  const In a = operand(0, {2, 1, 3}), b = operand(1, {4, 1}), c = operand(2, {});
  Nest nest;
  const Index at = nest.parallel({2, 4, 3});
  nest.store(a.broadcast(at) + 2 * b.broadcast(at) + c(Index{}));
  check_random(nest, {a, b, c});
}

TEST(Transpose, MeanAlongTwoAxes) {
  const In x = operand(0, {2, 3, 4});
  Nest nest;
  const Index at = nest.reduce_over(x, {0, 2}, true);
  check_random(nest.store(nest.sum(x(at)) / 8), {x}, {0});
}

struct ConvolutionCase {
  const char* name;
  int64_t groups, stride, padding, dilation, axes;
  std::vector<int64_t> size;
  int64_t kernel = 3;
};

struct Convolution : testing::TestWithParam<ConvolutionCase> {};

Nest convolution(const ConvolutionCase& with, const In& x, const In& w, int64_t in, int64_t out) {
  Nest nest;
  const Expr n = nest.parallel(2, "n"), g = nest.parallel(with.groups, "g");
  const Expr c = nest.parallel(out, "c");
  Index y, k, from;
  Ints sizes = {2, with.groups * out};
  for (int64_t size : with.size) {
    sizes.push_back(
        (size + 2 * with.padding - with.dilation * (with.kernel - 1) - 1) / with.stride + 1);
    y.push_back(nest.parallel(sizes.back(), "y" + std::to_string(y.size())));
  }
  const Expr ci = nest.reduction(in, "ci");
  Index x_at = {n, g * in + ci}, w_at = {g * out + c, ci}, y_at = {n, g * out + c};
  for (size_t i = 0; i < with.size.size(); ++i) {
    k.push_back(nest.reduction(with.kernel, "k" + std::to_string(i)));
    x_at.push_back(y[i] * with.stride + k[i] * with.dilation - with.padding);
    w_at.push_back(k[i]);
    y_at.push_back(y[i]);
  }
  const Expr element = with.padding > 0 ? x.padded(x_at, 0) : x(x_at);
  const Expr total = nest.sum(element * w(w_at));
  return nest.store(sizes, y_at, total);
}

TEST_P(Convolution, AgreesWithDifferences) {
  const ConvolutionCase& with = GetParam();
  const int64_t in = 2, out = 2;
  Ints x_sizes = {2, with.groups * in}, w_sizes = {with.groups * out, in};
  for (int64_t size : with.size) {
    x_sizes.push_back(size);
    w_sizes.push_back(with.kernel);
  }
  const In x = operand(0, x_sizes), w = operand(1, w_sizes);
  check_random(convolution(with, x, w, in, out), {x, w}, {0, 1});
}

INSTANTIATE_TEST_SUITE_P(Transpose, Convolution,
                         testing::Values(ConvolutionCase{"plain", 1, 1, 0, 1, 1, {7}},
                                         ConvolutionCase{"padded", 1, 1, 1, 1, 1, {5}},
                                         ConvolutionCase{"strided", 1, 2, 1, 1, 1, {8}},
                                         ConvolutionCase{"dilated", 1, 1, 2, 2, 1, {6}},
                                         ConvolutionCase{"strided_dilated", 1, 3, 2, 2, 1, {11}},
                                         ConvolutionCase{"groups", 2, 1, 1, 1, 1, {5}},
                                         ConvolutionCase{"stride_of_kernel", 1, 2, 1, 1, 1, {6}, 2},
                                         ConvolutionCase{
                                             "stride_beyond_kernel", 1, 3, 0, 1, 1, {8}, 2},
                                         ConvolutionCase{"two_axes", 2, 2, 1, 1, 2, {5, 4}}),
                         [](const auto& of) { return of.param.name; });

// As rows write it: the output's place decides which inputs reach it.
TEST(Transpose, TransposedConvolution) {
  const int64_t stride = 2, padding = 1;
  const In x = operand(0, {2, 3, 4}), w = operand(1, {3, 2, 3});
  Nest nest;
  const Expr n = nest.parallel(2), c = nest.parallel(2), y = nest.parallel(7);
  const Expr ci = nest.reduction(3), k = nest.reduction(3);
  const Expr p = y + padding - k;
  nest.where(p >= 0 && p < 4 * stride && eq(remainder(p, stride), 0));
  nest.store(nest.sum(x(n, ci, floor_divide(p, stride)) * w(ci, c, k)));
  check_random(nest, {x, w}, {0, 1});
}

TEST(Transpose, AveragePool) {
  const In x = operand(0, {2, 6, 7});
  Nest nest;
  const Expr n = nest.parallel(2), y0 = nest.parallel(3), y1 = nest.parallel(3);
  const Expr k0 = nest.reduction(2), k1 = nest.reduction(3);
  const Expr from = y1 * 3 - 1;  // padding 1, which does not count
  const Expr count = min(from + 3, 7) - max(from, 0);
  const Expr total = nest.sum(x.padded({n, y0 * 2 + k0, from + k1}, 0));
  check_random(nest.store(total / (cast(count, DType::float64) * 2)), {x}, {0});
}

// ---- movement -----------------------------------------------------------------------------------

TEST(Transpose, SliceFlipPermute) {
  const In x = operand(0, {4, 9, 3});
  Nest nest;
  const Index i = nest.parallel({3, 4, 4});
  check_random(nest.store(exp(x(3 - i[2], i[1] * 2 + 1, i[0]))), {x});
}

TEST(Transpose, DiagonalAndAntiDiagonal) {
  const In x = operand(0, {4, 4});
  Nest nest;
  const Expr i = nest.parallel(4);
  check_random(nest.store(x(i, i) * x(i, 3 - i)), {x});
}

TEST(Transpose, SkewedIndices) {  // x[i + j, i]: one index is solved with the other's axis
  const In x = operand(0, {6, 3});
  Nest nest;
  const Index i = nest.parallel({3, 4});
  check_random(nest.store(x(i[0] + i[1], i[0])), {x}, {0});
}

TEST(Transpose, Cat) {
  const In a = operand(0, {2, 3}), b = operand(1, {2, 2});
  Nest first, second;
  const Index i = first.parallel({2, 3}), j = second.parallel({2, 2});
  first.store({2, 5}, i, a(i) * a(i));
  second.store_into(0, {j[0], j[1] + 3}, b(j));
  check_linear(loops_of({first, second}, {a, b}), random_all({a, b}), {});
}

TEST(Transpose, Split) {  // two results of one statement
  const In x = operand(0, {2, 4});
  Nest nest;
  const Index i = nest.parallel({2, 2});
  nest.store(x(i)).store(x(i[0], i[1] + 2));
  check_random(nest, {x}, {0});
}

TEST(Transpose, ResultsWithoutCotangent) {
  const In x = operand(0, {2, 4});
  Nest nest;
  const Index i = nest.parallel({2, 2});
  nest.store(x(i)).store(x(i[0], i[1] + 2));
  const Transposed transposed = transpose(loops_of({nest}, {x}), 0, {false, true});
  EXPECT_EQ(transposed.operands, std::vector<size_t>{2});
  EXPECT_EQ(transposed.loops.statements.size(), 1U);
}

TEST(Transpose, View) {  // whose flat index is affine, as sizes nest
  const In x = operand(0, {2, 6});
  Nest nest;
  const Index i = nest.parallel({2, 3, 2});
  const Expr flat = i[0] * 6 + i[1] * 2 + i[2];
  check_random(nest.store(x(floor_divide(flat, 6), remainder(flat, 6))), {x}, {0});
}

TEST(Transpose, ViewAcrossAxes) {
  const In x = operand(0, {4, 3});
  Nest nest;
  const Index i = nest.parallel({2, 6});
  const Expr flat = i[0] * 6 + i[1];
  check_random(nest.store(x(floor_divide(flat, 3), remainder(flat, 3))), {x}, {0});
}

TEST(Transpose, PadReflected) {  // two loads of each place, some reached by one path only
  const In x = operand(0, {4});
  Nest nest;
  const Expr i = nest.parallel(8), p = i - 2;
  nest.store(select(p < 0, x(-p), select(p >= 4, x(6 - p), x(p))));
  check_random(nest, {x}, {0});
}

// ---- sums and scans -----------------------------------------------------------------------------

TEST(Transpose, SumOfSquaresThatAnEpilogueScales) {
  const In x = operand(0, {3, 4}), bias = operand(1, {3});
  Nest nest;
  const Expr i = nest.parallel(3), r = nest.reduction(4);
  check_random(nest.store(nest.sum(x(i, r) * x(i, r)) * exp(bias(i)) + bias(i)), {x, bias});
}

TEST(Transpose, InitialValueOfASum) {
  const In x = operand(0, {3, 4}), bias = operand(1, {3});
  Nest nest;
  const Expr i = nest.parallel(3), r = nest.reduction(4);
  check_random(
      nest.store(nest.fold(bias(i), x(i, r), [](Expr left, Expr right) { return left + right; })),
      {x, bias}, {});
}

TEST(Transpose, InitialValueOfAScan) {
  const In x = operand(0, {3, 4}), start = operand(1, {3});
  Nest nest;
  const Expr i = nest.parallel(3), t = nest.scan(4);
  const auto add = [](Expr left, Expr right) { return left + right; };
  check_random(nest.store(nest.fold(exp(start(i)), x(i, t), add)), {x, start});
}

// With a reduction the store happens outside of the domain, too.
TEST(Transpose, DomainOfASumDoesNotGuardItsStore) {
  const In x = operand(0, {3, 4}), bias = operand(1, {3});
  Nest nest;
  const Expr i = nest.parallel(3), r = nest.reduction(4);
  nest.where(i >= 1 && r >= i);
  check_random(nest.store(nest.sum(x(i, r)) + bias(i)), {x, bias}, {});
}

TEST(Transpose, SumOverNothing) {
  const In x = operand(0, {3, 0}), bias = operand(1, {3});
  Nest nest;
  const Expr i = nest.parallel(3), r = nest.reduction(0);
  check_random(nest.store(nest.sum(x(i, r)) + bias(i)), {x, bias}, {});
}

TEST(Transpose, TwoSumsInOneStore) {
  const In x = operand(0, {3, 4});
  Nest nest;
  const Expr i = nest.parallel(3), r = nest.reduction(4);
  const Expr plain = nest.sum(x(i, r)), squares = nest.sum(x(i, r) * x(i, r));
  check_random(nest.store(squares - 2 * plain), {x});
}

TEST(Transpose, CumulativeSum) {
  const In x = operand(0, {2, 5});
  Nest nest;
  const Expr i = nest.parallel(2), t = nest.scan(5);
  check_random(nest.store(nest.sum(x(i, t))), {x}, {0});
}

TEST(Transpose, CumulativeSumOfProducts) {
  const In x = operand(0, {2, 5}), w = operand(1, {5});
  Nest nest;
  const Expr i = nest.parallel(2), t = nest.scan(5);
  check_random(nest.store(nest.sum(x(i, t) * w(t)) * w(t)), {x, w});
}

TEST(Transpose, ScanOverPaddedLoads) {  // the sum runs on where the load is not reached
  const In x = operand(0, {3});
  Nest nest;
  const Expr t = nest.scan(6);
  check_random(nest.store(nest.sum(x.padded({t - 2}, 0))), {x}, {0});
}

TEST(Transpose, ScanWithReductionAndDomain) {
  const In x = operand(0, {4, 3});
  Nest nest;
  const Expr t = nest.scan(4), r = nest.reduction(3);
  nest.where(r <= t);
  check_random(nest.store(nest.sum(x(t, r) * x(t, r))), {x});
}

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
  try {
    f();
  } catch (const UserError& error) {
    return error.what();
  }
  return "no error";
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
