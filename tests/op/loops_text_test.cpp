// Loops as text: what it looks like, and that what reads back is equal.
#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <limits>

#include "composit/ir/error.h"
#include "composit/op/nest.h"
#include "tests/op/random_loops.h"

namespace composit {
namespace {

constexpr DType f32 = DType::float32, f64 = DType::float64, i64 = DType::int64;
constexpr double kInfinity = std::numeric_limits<double>::infinity();

Loops with_operands(Loops loops, std::vector<Type> operands) {
  loops.operands = std::move(operands);
  return loops;
}

// Prints and reads `loops`; gives the text.
std::string round_trip(const Loops& loops) {
  verify(loops);
  const std::string text = print(loops);
  const Loops read = parse_loops(text);
  verify(read);
  EXPECT_TRUE(read == loops) << text << "\nreads as\n" << print(read);
  EXPECT_EQ(print(read), text);
  return text;
}

// y[i] = value, where value may use x[i] of `dtype`.
Loops pointwise(Expr value, DType dtype = f32) {
  Nest nest;
  nest.parallel(8, "i");
  return with_operands(nest.store(std::move(value)).loops(), {tensor_type(dtype, {8})});
}
Expr x_at_i(DType dtype = f32) { return Expr::load(0, dtype, {Expr::axis(0)}); }

// ---- what it looks like -------------------------------------------------------------------------

TEST(LoopsText, Matmul) {
  const In a(0, tensor_type(f32, {32, 64})), b(1, tensor_type(f32, {64, 16}));
  Nest nest;
  const Expr i = nest.parallel(32, "i"), j = nest.parallel(16, "j"), k = nest.reduction(64, "k");
  nest.store(nest.sum(a(i, k) * b(k, j)));
  EXPECT_EQ(round_trip(with_operands(nest.loops(), {a.type(), b.type()})),
            R"(loops(x0: float32[32, 64], x1: float32[64, 16]) -> (y0: float32[32, 16]) {
  for i < 32, j < 16 {
    var s0: float32 = 0
    reduce k < 64 {
      s0 += x0[i, k] * x1[k, j]
    }
    y0[i, j] = s0
  }
})");
}

TEST(LoopsText, ConvolutionHasADomain) {
  const In x(0, tensor_type(f32, {3, 28})), w(1, tensor_type(f32, {4, 3, 5}));
  const In bias(2, tensor_type(f32, {4}));
  Nest nest;
  const Expr c = nest.parallel(4, "c"), y = nest.parallel(14, "y0");
  const Expr ci = nest.reduction(3, "ci"), k = nest.reduction(5, "k");
  const Expr at = y * 2 - 2 + k;
  nest.where(at >= 0 && at < 28);
  nest.store(max(nest.sum(x(ci, at) * w(c, ci, k)) + bias(c), 0));
  EXPECT_EQ(
      round_trip(with_operands(nest.loops(), {x.type(), w.type(), bias.type()})),
      R"(loops(x0: float32[3, 28], x1: float32[4, 3, 5], x2: float32[4]) -> (y_0: float32[4, 14]) {
  for c < 4, y0 < 14 {
    var s0: float32 = 0
    reduce ci < 3, k < 5 {
      let t0 = y0 * 2 - 2 + k
      where t0 >= 0 && t0 < 28
      s0 += x0[ci, t0] * x1[c, ci, k]
    }
    y_0[c, y0] = max(s0 + x2[c], 0)
  }
})");
}

std::vector<Expr> first_larger(const std::vector<Expr>& left, const std::vector<Expr>& right) {
  const Expr larger = right[0] > left[0];
  return {select(larger, right[0], left[0]), select(larger, right[1], left[1])};
}

TEST(LoopsText, ArgmaxHasTwoAccumulators) {
  const In x(0, tensor_type(f32, {32, 64}));
  Nest nest;
  const Expr i = nest.parallel(32, "i"), r = nest.reduction(64, "r");
  const auto found = nest.fold({-kInfinity, 0}, {x(i, r), r}, first_larger);
  nest.store(found[0]).store(found[1]);
  EXPECT_EQ(round_trip(with_operands(nest.loops(), {x.type()})),
            R"(loops(x0: float32[32, 64]) -> (y0: float32[32], y1: int64[32]) {
  for i < 32 {
    var s0: float32 = -inf
    var s1: int64 = 0
    reduce r < 64 {
      new v0 = x0[i, r]
      new v1 = r
      let t0 = v0 > s0
      s0, s1 = t0 ? v0 : s0, t0 ? v1 : s1
    }
    y0[i] = s0
    y1[i] = s1
  }
})");
}

TEST(LoopsText, ScanStoresInside) {
  const In x(0, tensor_type(f32, {8, 9}));
  Nest nest;
  const Expr i = nest.parallel(8, "i"), j = nest.scan(9, "j");
  nest.store(nest.sum(x(i, j)));
  EXPECT_EQ(round_trip(with_operands(nest.loops(), {x.type()})),
            R"(loops(x0: float32[8, 9]) -> (y0: float32[8, 9]) {
  for i < 8 {
    var s0: float32 = 0
    scan j < 9 {
      s0 += x0[i, j]
      y0[i, j] = s0
    }
  }
})");
}

TEST(LoopsText, ScatterAddHasTwoStatements) {
  const In x(0, tensor_type(f32, {5})), at(1, tensor_type(i64, {9})),
      from(2, tensor_type(f32, {9}));
  Nest copy, add;
  const Expr i = copy.parallel(5, "i"), j = add.parallel(9, "j");
  copy.store(x(i));
  add.store_into(0, {at(j)}, from(j), true);
  EXPECT_EQ(round_trip(with_operands(sequence({copy, add}), {x.type(), at.type(), from.type()})),
            R"(loops(x0: float32[5], x1: int64[9], x2: float32[9]) -> (y0: float32[5]) {
  for i < 5 {
    y0[i] = x0[i]
  }
  for j < 9 {
    y0[x1[j]] += x2[j]
  }
})");
}

TEST(LoopsText, NoAxes) {
  Nest sum;
  sum.store(sum.sum(Expr::load(0, f32, {})));
  EXPECT_EQ(round_trip(with_operands(sum.loops(), {tensor_type(f32, {})})),
            R"(loops(x0: float32[]) -> (y0: float32[]) {
  {
    var s0: float32 = 0
    s0 += x0[]
    y0[] = s0
  }
})");
  EXPECT_EQ(round_trip({}), "loops() -> () {\n}");
}

TEST(LoopsText, SharedPartsHaveNames) {
  const Expr x = x_at_i(), t = tanh(0.75 * (x + 0.125 * x * x * x));
  EXPECT_EQ(print(pointwise(0.5 * (1 + t) + 0.5 * x * (1 - t * t))),
            R"(loops(x0: float32[8]) -> (y0: float32[8]) {
  for i < 8 {
    let t0 = tanh(0.75 * (x0[i] + 0.125 * x0[i] * x0[i] * x0[i]))
    y0[i] = 0.5 * (1 + t0) + 0.5 * x0[i] * (1 - t0 * t0)
  }
})");
  EXPECT_EQ(print(exp(x) * exp(x)), "let t0 = exp(x0[i0])\nt0 * t0");
}

TEST(LoopsText, ParenthesesWhereNeeded) {
  const Expr a = Expr::parameter(0, f32), b = Expr::parameter(1, f32), n = Expr::axis(0);
  const std::vector<std::pair<Expr, std::string>> cases = {
      {a + b + a, "p0 + p1 + p0"},
      {a + (b + a), "p0 + (p1 + p0)"},
      {a - (b - a), "p0 - (p1 - p0)"},
      {(a + b) * a / b, "(p0 + p1) * p0 / p1"},
      {a / (b * a), "p0 / (p1 * p0)"},
      {-(a + b), "-(p0 + p1)"},
      {-a * b, "-p0 * p1"},
      {-exp(a), "-exp(p0)"},
      {!(a < b) && b < 1, "!(p0 < p1) && p1 < 1"},
      {a < b || (a > b && a < 2), "p0 < p1 || p0 > p1 && p0 < 2"},
      {select(a < b, a, select(b < a, b, 0)), "p0 < p1 ? p0 : p1 < p0 ? p1 : 0"},
      {select(a < b, select(b < a, b, 0), a), "p0 < p1 ? (p1 < p0 ? p1 : 0) : p0"},
      {select(a < b, a, b) + 1, "(p0 < p1 ? p0 : p1) + 1"},
      {a - -2, "p0 - -2"},
      {pow(a, -2) + min(a, b + 1), "pow(p0, -2) + min(p0, p1 + 1)"},
      {bitwise_and(n, 3) + shift_left(n, 2), "(i0 & 3) + (i0 << 2)"},
      {floor_divide(n, 2) * remainder(n, 2), "floor_divide(i0, 2) * remainder(i0, 2)"},
      {n / 2, "float32(i0) / 2"},
      {cast(cast(a, i64), f64), "float64(int64(p0))"},
      {Expr::load(3, f32, {n, n + 1}), "x3[i0, i0 + 1]"},
      {Expr::left(0, f32) + Expr::right(0, f32), "left0 + right0"},
      {Expr::accumulator(1, f32), "s1"},
      {Expr(), "absent"},
  };
  for (const auto& [expr, text] : cases) EXPECT_EQ(print(expr), text);
}

TEST(LoopsText, AxisNamesAreMadeValidAndUnique) {
  Loops loops = pointwise(1.0);
  loops.statements[0].axes = {{"", 1}, {"a b", 2}, {"a_b", 3}, {"for", 4}, {"2d", 5}, {"t1", 6}};
  loops.statements[0].stores[0].at = {0};
  EXPECT_NE(round_trip(loops).find("for i0 < 1, a_b < 2, a_b_ < 3, for_ < 4, i4 < 5, t1 < 6 {"),
            std::string::npos);
}

// ---- equality -----------------------------------------------------------------------------------

TEST(LoopsEquality, LooksAtEverythingButNames) {
  const Loops loops = parse_loops(
      "loops(x: float32[4, 5]) -> (y: float32[4]) { for i < 4 { var s: float32 = 0 "
      "reduce r < 5 { where r < 3 s += x[i, r] } y[i] = s } }");
  EXPECT_TRUE(loops == parse_loops("loops(a: float32[4, 5]) -> (b: float32[4]) { for j < 4 { "
                                   "var q: float32 = 0.0 reduce k < 5 { where k < 3 new v = a[j, k]"
                                   " q = q + v } b[j] = q } }"));
  const auto differs = [&](auto change) {
    Loops other = loops;
    change(other, other.statements[0]);
    EXPECT_FALSE(other == loops);
  };
  differs([](Loops& l, Statement&) { l.operands[0].dtype = f64; });
  differs([](Loops& l, Statement&) { l.operands[0].sizes[0] = 5; });
  differs([](Loops& l, Statement&) { l.results[0].dtype = f64; });
  differs([](Loops& l, Statement& s) { l.statements.push_back(s); });
  differs([](Loops&, Statement& s) { s.axes[1].extent = 6; });
  differs([](Loops&, Statement& s) { s.axes[1].kind = AxisKind::scan; });
  differs([](Loops&, Statement& s) { s.domain = {}; });
  differs([](Loops&, Statement& s) { s.init[0] = 1.0; });
  differs([](Loops&, Statement& s) { s.init[0] = -0.0; });
  differs([](Loops&, Statement& s) { s.body[0] = 1.0; });
  differs([](Loops&, Statement& s) { s.combine[0] = s.combine[0][0] * s.combine[0][1]; });
  differs([](Loops&, Statement& s) { s.stores[0].add = true; });
  differs([](Loops&, Statement& s) { s.stores[0].at[0] = 0; });
  differs([](Loops&, Statement& s) { s.stores[0].value = 1.0; });
  Loops strided = loops;
  strided.operands[0].strides = {1, 4};
  EXPECT_TRUE(strided == loops);
}

TEST(LoopsEquality, ALiteralTakesTheDtypeOfWhatItIsAssignedTo) {
  Loops weak = pointwise(x_at_i()), typed = weak;
  weak.statements[0].stores[0].value = 0.1;
  typed.statements[0].stores[0].value = Expr::literal(0.1, f32);
  EXPECT_TRUE(weak == typed);
  weak.results[0].dtype = typed.results[0].dtype = f64;
  EXPECT_FALSE(weak == typed);  // 0.1 in float64, and in float32
}

// ---- literals -----------------------------------------------------------------------------------

TEST(LoopsText, LiteralsKeepEveryBit) {
  constexpr double kNan = std::numeric_limits<double>::quiet_NaN();
  const std::vector<Scalar::Value> values = {true,
                                             false,
                                             int64_t{0},
                                             int64_t{-1},
                                             int64_t{255},
                                             std::numeric_limits<int64_t>::min(),
                                             std::numeric_limits<int64_t>::max(),
                                             0.0,
                                             -0.0,
                                             0.1,
                                             1.0 / 3,
                                             std::nextafter(1.0, 2.0),
                                             1e300,
                                             5e-324,
                                             65504.0,
                                             16777216.0,
                                             1e15,
                                             1e22,
                                             kInfinity,
                                             -kInfinity,
                                             kNan,
                                             -kNan,
                                             std::bit_cast<double>(uint64_t{0x7ff8000020000001}),
                                             std::complex<double>(0.1, -0.0),
                                             std::complex<double>(-kNan, kInfinity)};
  for (const Scalar::Value& value : values) {
    const Expr weak{Scalar(value)};
    for (int i = 0; i < static_cast<int>(DType::count_); ++i) {
      const auto dtype = static_cast<DType>(i);
      if (!is_computable(dtype)) continue;
      const Expr x = x_at_i(dtype), typed = Expr::literal(value, dtype);
      round_trip(pointwise(eq(x, typed), dtype));
      round_trip(pointwise(eq(x, weak), dtype));
      round_trip(pointwise(typed, dtype));
      round_trip(pointwise(select(x_at_i(DType::bool_), typed, typed + typed), DType::bool_));
    }
    round_trip(pointwise(weak));
  }
}

TEST(LoopsText, LiteralsAreShort) {
  const Expr a = Expr::parameter(0, f32);
  const std::vector<std::pair<Expr, std::string>> cases = {
      {a * 2, "p0 * 2"},
      {a * 0.1, "p0 * 0.1"},
      {cast(a, f64) * 0.1, "float64(p0) * 0.1"},
      {cast(a, DType::bfloat16) * 0.1, "bfloat16(p0) * 0.100097656"},
      {a * -0.0, "p0 * -0.0"},
      {a + std::complex<double>(0, 0.5), "complex64(p0) + complex(0, 0.5)"},
      {cast(a, DType::bool_) && eq(a, 1), "bool(p0) && p0 == 1"},
      {2.0, "2.0"},
      {2, "2"},
      {true, "true"},
      {-kInfinity, "-inf"},
      {std::complex<double>(1, 2), "complex(1, 2)"},
      {Expr::literal(2.0, f32), "float32(2)"},
      {Expr::literal(int64_t{2}, DType::uint8), "uint8(2)"},
      {Expr::literal(std::complex<double>(1, 0.1), DType::complex64), "complex64(1, 0.1)"},
  };
  for (const auto& [expr, text] : cases) EXPECT_EQ(print(expr), text);
}

// ---- large --------------------------------------------------------------------------------------

TEST(LoopsText, IsLinearInTheGraphOfExpressions) {
  Expr doubled = x_at_i(), left = doubled, right = doubled, nested = doubled, chosen = doubled;
  for (int i = 0; i < 10000; ++i) {
    doubled = doubled + doubled;
    left = left + 0.5;
    right = 0.5 * right;
    nested = exp(nested);
    chosen = select(x_at_i() < i, i, chosen);
  }
  for (const Expr& x : {doubled, left, right, nested, chosen})
    EXPECT_LT(round_trip(pointwise(x)).size(), 600000u);
}

TEST(LoopsText, RandomLoopsReadBack) {
  RandomLoops random(1);
  for (int i = 0; i < 2000 && !::testing::Test::HasFailure(); ++i) round_trip(random.next());
}

}  // namespace
}  // namespace composit
