#include "composit/op/expr.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <variant>

#include "composit/ir/error.h"
#include "composit/op/fold.h"
#include "tests/user_error.h"

namespace composit {
namespace {

constexpr double kInf = std::numeric_limits<double>::infinity();

Expr x_of(DType dtype) { return Expr::parameter(0, dtype); }
Expr y_of(DType dtype) { return Expr::parameter(1, dtype); }
const Expr kFloat = x_of(DType::float32), kDouble = x_of(DType::float64),
           kInteger = x_of(DType::int64), kByte = x_of(DType::uint8), kTruth = x_of(DType::bool_),
           kHalf = x_of(DType::float16), kComplex = x_of(DType::complex64);

::testing::AssertionResult is(const Expr& x, const Expr& expected) {
  if (x.same(expected)) return ::testing::AssertionSuccess();
  return ::testing::AssertionFailure()
         << "dtype " << name(x.dtype()) << ", kind " << static_cast<int>(x.kind());
}
// A literal of that dtype and value, to the bit.
::testing::AssertionResult is(const Expr& x, DType dtype, Scalar::Value value) {
  return is(x, Expr::literal(value, dtype));
}

// --- Types ------------------------------------------------------------------------------------

TEST(ExprType, OperandsArePromoted) {
  EXPECT_EQ((kFloat + kInteger).dtype(), DType::float32);
  EXPECT_EQ((kByte * x_of(DType::int8)).dtype(), DType::int16);
  EXPECT_EQ((kHalf - x_of(DType::bfloat16)).dtype(), DType::float32);
  EXPECT_EQ((kDouble + kComplex).dtype(), DType::complex128);
  EXPECT_TRUE((kFloat + kInteger)[1].is(Function::cast));
  EXPECT_TRUE((kFloat + kInteger)[0].same(kFloat));
}

TEST(ExprType, LiteralsTakeTheDTypeOfWhatTheyMeet) {
  EXPECT_EQ((kByte + 1).dtype(), DType::uint8);
  EXPECT_EQ((kHalf * 2.5).dtype(), DType::float16);
  EXPECT_EQ((kHalf * 2).dtype(), DType::float16);
  EXPECT_EQ((kByte * 2.5).dtype(), DType::float32);
  EXPECT_EQ((kTruth + 1).dtype(), DType::int64);
  EXPECT_EQ((kDouble * std::complex<double>(0, 1)).dtype(), DType::complex128);
  EXPECT_TRUE(is((kFloat * 0.1)[1], DType::float32, 0.1f));
  EXPECT_TRUE(is((kByte + 257)[1], DType::uint8, int64_t{1}));
}

TEST(ExprType, LiteralsStayWeakAndExactAmongEachOther) {
  const Expr third = Expr(1) / 3;
  EXPECT_TRUE(third.weak());
  EXPECT_EQ(third.dtype(), DType::float32);
  EXPECT_TRUE(is((kDouble * third)[1], DType::float64, 1.0 / 3));
  EXPECT_TRUE(is((kDouble * sqrt(Expr(2)))[1], DType::float64, std::sqrt(2.0)));
  EXPECT_TRUE(is((kFloat * third)[1], DType::float32, 1.0f / 3.0f));
  EXPECT_EQ((kByte + (Expr(1) + 2)).dtype(), DType::uint8);
  EXPECT_TRUE((Expr(1) < Expr(2)).weak());
  EXPECT_TRUE(is(kDouble * complex(Expr(1), 2), kDouble * std::complex<double>(1, 2)));
}

TEST(ExprType, FunctionsSayWhatTheyGive) {
  EXPECT_EQ(exp(kInteger).dtype(), DType::float32);
  EXPECT_EQ(exp(kHalf).dtype(), DType::float16);
  EXPECT_EQ((kInteger / kInteger).dtype(), DType::float32);
  EXPECT_EQ(abs(kComplex).dtype(), DType::float32);
  EXPECT_EQ((kFloat < 0).dtype(), DType::bool_);
  EXPECT_EQ((kFloat && kInteger).dtype(), DType::bool_);
  EXPECT_EQ(isnan(kComplex).dtype(), DType::bool_);
  EXPECT_EQ(complex(kDouble, 1).dtype(), DType::complex128);
  EXPECT_EQ(select(kFloat, kByte, 2.5).dtype(), DType::float32);
  EXPECT_EQ(floor(kByte).dtype(), DType::uint8);
}

TEST(ExprType, RefusesWhatThereIsNoFunctionOf) {
  const auto message = [](auto make) { return user_error(make).value_or("nothing was thrown"); };
  EXPECT_EQ(message([] { floor(kComplex); }), "[floor] expected a real number, received complex64");
  EXPECT_EQ(message([] { bitwise_and(kFloat, 1); }),
            "[bitwise_and] expected an integer or bool, received float32");
  EXPECT_EQ(message([] { -kTruth; }), "[neg] expected a number, received bool");
  EXPECT_EQ(message([] { kComplex < 1; }), "[lt] expected real numbers, received complex64");
  EXPECT_EQ(message([] { erf(kComplex); }), "[erf] expected a real number, received complex64");
  EXPECT_THROW(Expr::call(Function::add, {kFloat}), InternalError);
  EXPECT_THROW(Expr() + 1, InternalError);
}

TEST(ExprType, CastsOfLiteralsAreMadeAtOnce) {
  EXPECT_TRUE(is(cast(300.7, DType::int8), DType::int8, int64_t{44}));
  EXPECT_TRUE(is(cast(Expr(0.1), DType::bfloat16), DType::bfloat16, 0.10009765625));
  EXPECT_TRUE(cast(kFloat, DType::float32).same(kFloat));
  EXPECT_TRUE(cast(kFloat, DType::float64).is(Function::cast));
  EXPECT_TRUE(with_dtype(kFloat, DType::float64).same(kFloat));
  EXPECT_TRUE(is(with_dtype(1, DType::float64), DType::float64, 1.0));
}

TEST(ExprType, ConvertedRoundsAndWraps) {
  EXPECT_EQ(converted(int64_t{300}, DType::uint8), Scalar::Value(int64_t{44}));
  EXPECT_EQ(converted(0.1, DType::float32), Scalar::Value(double{0.1f}));
  EXPECT_EQ(converted(2.5, DType::bool_), Scalar::Value(true));
  EXPECT_EQ(converted(true, DType::complex64), Scalar::Value(std::complex<double>(1)));
  EXPECT_EQ(converted(std::complex<double>(1, 2), DType::int64), Scalar::Value(int64_t{1}));
}

// --- Identity ---------------------------------------------------------------------------------

TEST(ExprIdentity, SameStandsForTheSameExpression) {
  EXPECT_TRUE((kFloat + 1).same(kFloat + 1));
  EXPECT_FALSE((kFloat + 1).same(kDouble + 1));
  EXPECT_FALSE((kFloat - kDouble).same(kDouble - kFloat));
  EXPECT_FALSE((kFloat * 0.0).same(kFloat * -0.0));
  EXPECT_FALSE(Expr(1).same(Expr(true)));
  EXPECT_FALSE(x_of(DType::float32).same(y_of(DType::float32)));
  EXPECT_FALSE(Expr::left(0, DType::float32).same(Expr::right(0, DType::float32)));
  EXPECT_FALSE(Expr::axis(0).same(Expr::axis(1)));
  EXPECT_FALSE(Expr::load(0, DType::float32, {0}).same(Expr::load(1, DType::float32, {0})));
}

// --- Folding ----------------------------------------------------------------------------------

// Of x < c ? c : x beside the same c: that of x, and no other comparison.
TEST(ExprFold, ComparisonsOfWhatIsClamped) {
  const Expr relu = select(kFloat < 0.0, 0.0, kFloat);
  EXPECT_TRUE(is(relu <= 0.0, kFloat <= 0.0));
  EXPECT_TRUE(is(relu > 0.0, kFloat > 0.0));
  for (const Expr& kept :
       {relu < 0.0, relu >= 0.0, eq(relu, 0.0), relu <= 1.0,
        select(kFloat < 0.0, 1.0, kFloat) <= 0.0, select(kFloat > 0.0, 0.0, kFloat) <= 0.0})
    EXPECT_TRUE(kept[0].is(Function::select));
}

TEST(ExprFold, LiteralsAreComputed) {
  const auto int8 = [](int64_t x) { return Expr::literal(x, DType::int8); };
  EXPECT_TRUE(is(int8(100) + int8(100), DType::int8, int64_t{-56}));
  EXPECT_TRUE(is(floor_divide(int8(-5), int8(3)), DType::int8, int64_t{-2}));
  EXPECT_TRUE(is(eq(int8(3), int8(3)), DType::bool_, true));
  EXPECT_TRUE(is(Expr::literal(1.0, DType::float32) / Expr::literal(3.0, DType::float32),
                 DType::float32, double{1.0f / 3.0f}));
  EXPECT_TRUE(
      is(abs(Expr::literal(std::complex<double>(3, 4), DType::complex64)), DType::float32, 5.0));
  EXPECT_TRUE(is(!Expr::literal(true, DType::bool_), DType::bool_, false));
  EXPECT_TRUE(is(select(true, kFloat, y_of(DType::float32)), kFloat));
  EXPECT_TRUE(is(select(false, kFloat, 2), DType::float32, 2.0));
}

// It may stand in a branch that is never taken.
TEST(ExprFold, DivisionOfIntegersByZeroIsLeftToEvaluation) {
  EXPECT_TRUE(floor_divide(Expr(1), 0).is(Function::floor_divide));
  EXPECT_TRUE(remainder(Expr::literal(int64_t{1}, DType::int8), 0).is(Function::remainder));
  EXPECT_TRUE(is_literal(floor_divide(Expr(1.0), 0), kInf));
}

TEST(ExprFold, NeutralLiteralsOfIntegersVanish) {
  for (const DType dtype : {DType::int64, DType::uint8, DType::int32}) {
    const Expr x = x_of(dtype);
    for (const Expr& same : {x + 0, 0 + x, x - 0, x * 1, 1 * x, floor_divide(x, 1),
                             trunc_divide(x, 1), -(-x), (x + 3) + -3})
      EXPECT_TRUE(is(same, x));
    for (const Expr& zero : {x * 0, 0 * x, remainder(x, 1), fmod(x, 1)})
      EXPECT_TRUE(is(zero, dtype, int64_t{0}));
    EXPECT_TRUE(is((x + 2) + 3, x + 5));
    EXPECT_TRUE(is(3 + (2 + x), x + 5));
  }
  EXPECT_TRUE((0 - kInteger).is(Function::sub));
  EXPECT_TRUE(floor_divide(1, kInteger).is(Function::floor_divide));
}

TEST(ExprFold, OnlyWhatHoldsForNaNInfinitiesAndSignedZerosVanishesForFloats) {
  for (const Expr& same : {kFloat * 1, 1.0 * kFloat, kFloat / 1, kFloat - 0.0, -(-kFloat)})
    EXPECT_TRUE(is(same, kFloat));
  EXPECT_TRUE((kFloat + 0).is(Function::add));     // -0 + 0 is 0
  EXPECT_TRUE((kFloat - -0.0).is(Function::sub));  // the same
  EXPECT_TRUE((kFloat * 0).is(Function::mul));     // of infinity: NaN
  EXPECT_TRUE(floor_divide(kFloat, 1).is(Function::floor_divide));
  EXPECT_TRUE(((kFloat + 1) + 2)[0].is(Function::add));
  EXPECT_TRUE((kComplex * 1).is(Function::mul));  // inf + 0i times 1 + 0i has a NaN
  EXPECT_TRUE(eq(kFloat, kFloat).is(Function::eq));
}

TEST(ExprFold, LogicOfLiterals) {
  const Expr p = x_of(DType::bool_), q = y_of(DType::bool_), yes = true, no = false;
  for (const Expr& same : {p && yes, yes && p, p || no, no || p, !!p, select(q, p, p)})
    EXPECT_TRUE(is(same, p));
  EXPECT_TRUE(is(p && no, DType::bool_, false));
  EXPECT_TRUE(is(yes || p, DType::bool_, true));
  EXPECT_TRUE((p && q).is(Function::logical_and));
}

TEST(ExprFold, IntegersComparedWithThemselves) {
  const Expr x = kInteger + y_of(DType::int64);
  for (const Expr& holds : {eq(x, x), x <= x, x >= x}) EXPECT_TRUE(is(holds, DType::bool_, true));
  for (const Expr& fails : {ne(x, x), x<x, x> x}) EXPECT_TRUE(is(fails, DType::bool_, false));
}

// --- Walks ------------------------------------------------------------------------------------

// 10,000 deep, and a tree of 2^10000 nodes.
Expr squared(int depth) {
  Expr x = kFloat;
  for (int i = 0; i < depth; ++i) x = x * x;
  return x;
}

TEST(ExprWalk, PartsOfASharedExpressionAreVisitedOnce) {
  const std::vector<Expr> parts = parts_of({squared(10000)});
  ASSERT_EQ(parts.size(), 10001u);
  EXPECT_TRUE(parts[0].same(kFloat));
  for (size_t i = 1; i < parts.size(); ++i) ASSERT_TRUE(parts[i][0].same(parts[i - 1]));
}

TEST(ExprWalk, ReplaceIsLinear) {
  const Expr x = squared(10000);
  size_t calls = 0;
  const Expr replaced = replace(x, [&](const Expr& part) {
    ++calls;
    return part.same(kFloat) ? kDouble : Expr();
  });
  EXPECT_EQ(calls, 10001u);
  EXPECT_EQ(replaced.dtype(), DType::float64);
  EXPECT_EQ(parts_of({replaced}).size(), 10001u);
  EXPECT_TRUE(replace(x, [](const Expr&) { return Expr(); }).same(x));
}

TEST(ExprWalk, ReplacedArgumentsAreFolded) {
  const Expr i = Expr::axis(0), x = Expr::load(0, DType::float32, {i * 2 + 1});
  const auto at = [&](int64_t value) {
    return replace(x, [&](const Expr& part) {
      return part.same(i) ? Expr::literal(value, DType::int64) : Expr();
    });
  };
  EXPECT_TRUE(is(at(3)[0], DType::int64, int64_t{7}));
  EXPECT_TRUE(is(
      cast(replace(cast(kByte, DType::float32),
                   [](const Expr& part) { return part.same(kByte) ? y_of(DType::uint8) : Expr(); }),
           DType::float32),
      cast(y_of(DType::uint8), DType::float32)));
}

TEST(ExprWalk, PartsOfSeveralRootsAreSharedAndAbsentOnesSkipped) {
  const Expr x = kFloat + 1;
  EXPECT_EQ(parts_of({x, Expr(), x * 2, x}).size(), 5u);
  EXPECT_FALSE(replace({Expr(), x}, [](const Expr&) { return Expr(); })[0].defined());
}

TEST(ExprWalk, DependsOn) {
  const Expr x = Expr::load(2, DType::float32, {Expr::axis(1)}) + 1;
  EXPECT_TRUE(depends_on(x, ExprKind::axis, 1));
  EXPECT_FALSE(depends_on(x, ExprKind::axis, 0));
  EXPECT_TRUE(depends_on(x, ExprKind::load, 2));
}

}  // namespace
}  // namespace composit
