// Values of transposed loop forms, first and second order: contractions, movement, sums and scans.
// Their form is tested in transpose_structure_test.cpp.
#include "composit/ad/transpose.h"

#include <gtest/gtest.h>

#include "tests/ad/gradient_check.h"

namespace composit::test {
namespace {

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

void PrintTo(const ConvolutionCase& with, std::ostream* out) { *out << with.name; }

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

}  // namespace
}  // namespace composit::test
