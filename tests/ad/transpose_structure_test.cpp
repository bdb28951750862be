// The form of transposed loops: which loops run, what is read, what is stored. Among them
// the mistakes of an early version, each by name.
#include <gtest/gtest.h>

#include <algorithm>

#include "composit/eval/loops.h"
#include "composit/op/affine.h"
#include "tests/ad/gradient_check.h"

namespace composit::test {
namespace {

Statement only_statement(const Loops& loops) {
  EXPECT_EQ(loops.statements.size(), 1U) << print(loops);
  return loops.statements.at(0);
}

bool stores_are_plain(const Statement& statement) {
  return std::none_of(statement.stores.begin(), statement.stores.end(),
                      [](const Store& store) { return store.add; });
}

// x: float64[n, g * ci, size, size], w: float64[g * co, ci, 3, 3], padding 1.
Loops convolution(int64_t stride, int64_t groups, int64_t size) {
  const int64_t in = 6, out = 5, to = (size - 1) / stride + 1;
  const In x = operand(0, {2, groups * in, size, size}), w = operand(1, {groups * out, in, 3, 3});
  Nest nest;
  const Expr n = nest.parallel(2), g = nest.parallel(groups), c = nest.parallel(out);
  const Expr y0 = nest.parallel(to), y1 = nest.parallel(to);
  const Expr ci = nest.reduction(in), k0 = nest.reduction(3), k1 = nest.reduction(3);
  const Expr from = x.padded({n, g * in + ci, y0 * stride + k0 - 1, y1 * stride + k1 - 1}, 0);
  const Expr total = nest.sum(from * w(g * out + c, ci, k0, k1));
  return loops_of({nest.store({2, groups * out, to, to}, {n, g * out + c, y0, y1}, total)}, {x, w});
}

TEST(TransposeStructure, ConvolutionInputIsAConvolution) {
  const Statement dx = only_statement(transpose_all(convolution(1, 1, 28), 0).loops);
  EXPECT_EQ(loops_of_statement(dx), "2 6 28 28 | 5 3 3 ");
  EXPECT_TRUE(stores_are_plain(dx));
  EXPECT_EQ(conjuncts(dx.domain).size(), 4U);  // 0 <= y - k + 1 < 28, twice
}

// The index 2 * y + k - 1 is solved for y: the sum runs over 3 x 3 taps, not over 14 x 14 outputs.
TEST(TransposeStructure, StridedConvolutionInputRunsOverTheKernel) {
  const Transposed dx = transpose_all(convolution(2, 1, 28), 0);
  EXPECT_EQ(loops_of_statement(only_statement(dx.loops)), "2 6 28 28 | 5 3 3 ");
}

TEST(TransposeStructure, ConvolutionWeightIsAContraction) {
  const Statement dw = only_statement(transpose_all(convolution(2, 1, 28), 1).loops);
  EXPECT_EQ(loops_of_statement(dw), "5 6 3 3 | 2 14 14 ");
  // Padding bounds the loops, instead of being summed as zeros.
  EXPECT_TRUE(dw.body[0].is(Function::mul)) << print(dw.body[0]);
  EXPECT_EQ(conjuncts(dw.domain).size(), 2U);
}

// Windows side by side that overlap the border: were they copied, each channel would add.
TEST(TransposeStructure, PaddedWindowsThatDoNotMeetAreSummedOverChannels) {
  const In x = operand(0, {6}), w = operand(1, {4, 2});
  Nest nest;
  const Expr c = nest.parallel(4), y = nest.parallel(4), k = nest.reduction(2);
  nest.store(nest.sum(x.padded({y * 2 + k - 1}, 0) * w(c, k)));
  const Statement dx = only_statement(transpose_all(loops_of({nest}, {x, w}), 0).loops);
  EXPECT_EQ(loops_of_statement(dx), "6 | 4 2 ");
  EXPECT_TRUE(stores_are_plain(dx));
}

TEST(TransposeStructure, GroupsStayTwoAxes) {
  const Statement dx = only_statement(transpose_all(convolution(1, 3, 8), 0).loops);
  EXPECT_EQ(loops_of_statement(dx), "2 3 6 8 8 | 5 3 3 ");
  EXPECT_TRUE(dx.stores[0].at[1].same(Expr::axis(1) * 6 + Expr::axis(2)));
  EXPECT_TRUE(stores_are_plain(dx));
}

// Transposed twice, the loops of a strided convolution are those of the convolution again.
TEST(TransposeStructure, TransposedTwiceIsTheConvolution) {
  const Loops dx = transpose_all(convolution(2, 2, 28), 0).loops;
  EXPECT_EQ(loops_of_statement(only_statement(transpose_all(dx, 1).loops)), "2 2 5 14 14 | 6 3 3 ");
  EXPECT_EQ(loops_of_statement(only_statement(transpose_all(dx, 0).loops)), "2 5 6 3 3 | 2 14 14 ");
}

TEST(TransposeStructure, MatmulGradientsAreMatmuls) {
  const In a = operand(0, {3, 4}), b = operand(1, {4, 2});
  Nest nest;
  const Expr i = nest.parallel(3), k = nest.parallel(2), j = nest.reduction(4);
  const Loops loops = loops_of({nest.store(nest.sum(a(i, j) * b(j, k)))}, {a, b});
  const Expr first = Expr::axis(0), second = Expr::axis(1), summed = Expr::axis(2);
  const In g = operand(1, {3, 2});
  for (const size_t operand : {0, 1}) {
    const Transposed transposed = transpose_all(loops, operand);
    const Statement nest_of = only_statement(transposed.loops);
    EXPECT_EQ(loops_of_statement(nest_of), operand == 0 ? "3 4 | 2 " : "4 2 | 3 ");
    EXPECT_FALSE(nest_of.domain.defined());
    EXPECT_TRUE(stores_are_plain(nest_of));
    const auto load = [&](size_t number, const Expr& x, const Expr& y) {
      return Expr::load(number, DType::float64, {x, y});
    };
    const Expr body = operand == 0 ? load(1, first, summed) * load(0, second, summed)
                                   : load(1, summed, second) * load(0, summed, first);
    EXPECT_TRUE(nest_of.body[0].same(body)) << print(nest_of.body[0]);
  }
}

TEST(TransposeStructure, WindowsThatDoNotMeetAreCopied) {
  const In x = operand(0, {8, 9});
  Nest nest;
  const Expr y0 = nest.parallel(4), y1 = nest.parallel(3);
  const Expr k0 = nest.reduction(2), k1 = nest.reduction(3);
  const Loops loops = loops_of({nest.store(nest.sum(x(y0 * 2 + k0, y1 * 3 + k1)) / 6)}, {x});
  const Statement dx = only_statement(transpose_all(loops, 0).loops);
  EXPECT_EQ(loops_of_statement(dx), "4 2 3 3 | ");
  EXPECT_TRUE(stores_are_plain(dx));
}

TEST(TransposeStructure, NearestUpsampleSumsItsCopies) {
  const In x = operand(0, {5});
  Nest nest;
  const Loops loops = loops_of({nest.store(x(floor_divide(nest.parallel(15), 3)))}, {x});
  EXPECT_EQ(loops_of_statement(only_statement(transpose_all(loops, 0).loops)), "5 | 3 ");
}

TEST(TransposeStructure, FlippedAndPaddedStoresAreTheIdentity) {
  const In x = operand(0, {16});
  Nest flip, pad;
  flip.store(x(15 - flip.parallel(16)));
  pad.store(x.padded({pad.parallel(20) - 2}, 0));
  for (const Nest& nest : {flip, pad}) {
    const Statement dx = only_statement(transpose_all(loops_of({nest}, {x}), 0).loops);
    EXPECT_EQ(loops_of_statement(dx), "16 | ");
    EXPECT_TRUE(dx.stores[0].at[0].same(Expr::axis(0)));
    EXPECT_FALSE(dx.domain.defined());
  }
}

TEST(TransposeStructure, BroadcastAxesAreSummed) {
  const In x = operand(0, {1, 3}), y = operand(1, {4, 3});
  Nest nest;
  const Index i = nest.parallel({4, 3});
  const Loops loops = loops_of({nest.store(x.broadcast(i) + y(i))}, {x, y});
  EXPECT_EQ(loops_of_statement(only_statement(transpose_all(loops, 0).loops)), "3 | 4 ");
  EXPECT_EQ(loops_of_statement(only_statement(transpose_all(loops, 1).loops)), "4 3 | ");
}

TEST(TransposeStructure, ScanRunsFromTheEnd) {
  const In x = operand(0, {2, 5});
  Nest nest;
  const Expr i = nest.parallel(2), t = nest.scan(5);
  const Loops loops = loops_of({nest.store(nest.sum(x(i, t)))}, {x});
  const Statement dx = only_statement(transpose_all(loops, 0).loops);
  EXPECT_EQ(loops_of_statement(dx), "2 | scan 5 ");
  EXPECT_TRUE(dx.stores[0].at[1].same(4 - Expr::axis(1)));
}

TEST(TransposeStructure, OneLoopPerLoadWhateverItsSelects) {
  const In x = operand(0, {16});
  Nest nest;
  const Expr v = x(nest.parallel(16));
  const Loops loops = loops_of({nest.store(select(v < 0, 0, select(v < 1, v * v * v, v)))}, {x});
  const Statement dx = only_statement(transpose_all(loops, 0).loops);
  EXPECT_FALSE(dx.domain.defined());
  EXPECT_TRUE(stores_are_plain(dx));
}

// ---- mistakes not to make again -----------------------------------------------------------------

// (a) The derivative of select(p, a * b, 0) was select(p, g, 0) * b, which loads b out of range.
TEST(TransposeStructure, ConditionsOfThePathGuardAllLoads) {
  const In a = operand(0, {4}), b = operand(1, {4});
  Nest nest;
  const Expr i = nest.parallel(9) - 3;
  nest.store(select(i >= 0 && i < 4, a(i) * b(i), 0));
  const Loops loops = loops_of({nest}, {a, b});
  check_gradients(loops, {random(a), random(b)});  // an index out of range is an error
  EXPECT_EQ(loops_of_statement(only_statement(transpose_all(loops, 0).loops)), "4 | ");
}

// (b) A guard was left out because its index is a bare axis, which was longer than the tensor.
TEST(TransposeStructure, BareAxesAreGuardedToo) {
  const In x = operand(0, {3});
  Nest nest;
  const Expr i = nest.parallel(5);
  const Loops loops = loops_of({nest.store(select(i < 3, x(i) * x(i), 1.0))}, {x});
  check_gradients(loops, {random(x)});
}

// (c) All forward operands were operands of the derivative, so that none could be freed.
TEST(TransposeStructure, OnlyWhatIsReadIsAnOperand) {
  const In a = operand(0, {3}), b = operand(1, {3}), c = operand(2, {3});
  Nest nest;
  const Expr i = nest.parallel(3);
  nest.store(a(i) * c(i) + b(i)).store(b(i));
  const Loops loops = loops_of({nest}, {a, b, c});
  EXPECT_EQ(transpose_all(loops, 0).operands, (std::vector<size_t>{2, 3}));
  EXPECT_EQ(transpose_all(loops, 1).operands, (std::vector<size_t>{3, 4}));
  EXPECT_EQ(transpose(loops, 1, {false, true}).operands, (std::vector<size_t>{4}));
  EXPECT_EQ(transpose(loops, 0, {false, true}).operands, (std::vector<size_t>{}));
}

// (d) NaN was lost in a maximum: its derivative passes NaN's cotangent on, as torch does.
TEST(TransposeStructure, NaNPassesThroughMaximum) {
  const In x = operand(0, {3});
  Nest nest;
  const Loops loops = loops_of({nest.store(max(x(nest.parallel(3)), 0))}, {x});
  const Transposed dx = transpose_all(loops, 0);
  const std::vector<double> values = {-1, std::nan(""), 2}, g = {5, 7, 9};
  const Array x_values = Array::copy_of(x.type(), values.data());
  const Array cotangent = Array::copy_of(x.type(), g.data());
  const Array result = evaluate(dx.loops, operands_of(dx, {x_values}, {cotangent})).at(0);
  EXPECT_EQ(numbers(result), (std::vector<double>{0, 7, 9}));
}

// (e) C++'s / and % round towards zero. Numerators of strided windows are negative at the border:
// they are divided downwards, and only where they are in range.
TEST(TransposeStructure, NegativeNumeratorsRoundDown) {
  const Statement dx = only_statement(transpose_all(convolution(2, 1, 7), 0).loops);
  std::vector<Expr> roots = dx.body;
  roots.push_back(dx.domain);
  size_t divided = 0;
  IndexAnalysis analysis(dx.axes);
  for (const Expr& part : parts_of(roots)) {
    EXPECT_FALSE(part.is(Function::trunc_divide) || part.is(Function::fmod)) << print(part);
    if (!part.is(Function::floor_divide)) continue;
    ++divided;
    EXPECT_LT(analysis.range(part[0]).low, 0);
    const auto predicates = conjuncts(dx.domain);
    EXPECT_TRUE(std::any_of(predicates.begin(), predicates.end(), [&](const Expr& p) {
      return p.same(part[0] >= 0);
    })) << print(part);
  }
  EXPECT_EQ(divided, 2U);
}

}  // namespace
}  // namespace composit::test
