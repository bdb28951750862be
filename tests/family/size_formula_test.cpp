// Formulas over sizes: text, values, and what is refused.
#include "composit/ir/size_formula.h"

#include <gtest/gtest.h>

#include <cmath>
#include <random>

#include "composit/ir/lexer.h"
#include "composit/ir/parse.h"
#include "composit/ir/print.h"
#include "tests/user_error.h"

namespace composit {
namespace {

using Kind = SizeFormula::Kind;

// A graph with values to read sizes of.
struct Values {
  Graph graph = parse(R"(graph(%x: float32[2, 16], %y: float32[5]) {
    %z: float32[2, 16] = aten::relu(%x)
    return %z, %y
  })");
  Names names{graph};
  LazyTensor x = graph.inputs()[0], y = graph.inputs()[1], z = graph.outputs()[0];

  SizeFormula read(const std::string& text) const {
    Lexer lexer(text, "formula", 1);
    const SizeFormula formula = read_formula(lexer, [this](std::string_view name) {
      for (const LazyTensor& value : {x, y, z})
        if (names.of(value).substr(1) == name) return value;
      return LazyTensor();
    });
    if (lexer.peek().kind != TokenKind::end) lexer.fail_expected("the end");
    return formula;
  }
};

int64_t size_in_types(const LazyTensor& tensor, size_t axis) { return tensor.sizes().at(axis); }

TEST(SizeFormula, PrintsAsItIsRead) {
  const Values v;
  for (const char* text :
       {"size(%x, 0)", "size(%x, 1) + 3", "2 * size(%y, 0) - 1", "size(%x, 0) * size(%y, 0)",
        "(size(%x, 0) + 1) * size(%y, 0)", "size(%x, 0) - (size(%y, 0) - 1)", "div(size(%x, 1), 4)",
        "ceil_div(size(%x, 1) + 1, 3)", "exact_div(size(%x, 1), 8)", "mod(0 - size(%y, 0), 4)",
        "min(size(%x, 1), 20)", "max(size(%relu, 0), 3)", "7", "-7"})
    EXPECT_EQ(print(v.read(text), v.names), text);
}

TEST(SizeFormula, RoundsAsItSays) {
  const Values v;
  const auto value = [&](const std::string& text) { return v.read(text).evaluate(size_in_types); };
  EXPECT_EQ(value("size(%x, 0) * size(%x, 1) + size(%y, 0)"), 37);
  EXPECT_EQ(value("div(size(%y, 0), 2)"), 2);
  EXPECT_EQ(value("ceil_div(size(%y, 0), 2)"), 3);
  EXPECT_EQ(value("div(0 - size(%y, 0), 2)"), -3);
  EXPECT_EQ(value("ceil_div(0 - size(%y, 0), 2)"), -2);
  EXPECT_EQ(value("mod(0 - size(%y, 0), 4)"), 3);
  EXPECT_EQ(value("exact_div(size(%x, 1), 8)"), 2);
  EXPECT_EQ(value("min(size(%x, 1), 20) + max(size(%x, 0), 3)"), 19);
}

TEST(SizeFormula, RefusesWhatHasNoValue) {
  const Values v;
  const auto error = [&](const std::string& text) {
    return user_error([&] { v.read(text).evaluate(size_in_types); }).value_or("");
  };
  EXPECT_EQ(error("div(3, 0)"), "[size formula] expected a divisor other than 0");
  EXPECT_EQ(error("exact_div(size(%y, 0), 2)"),
            "[size formula] expected a multiple of 2, received 5");
  EXPECT_EQ(error("9223372036854775807 + size(%y, 0)"),
            "[size formula] expected a number of 64 bits, received a larger one");
  EXPECT_EQ(error("div(-9223372036854775808, -1)"),
            "[size formula] expected a number of 64 bits, received a larger one");
}

TEST(SizeFormula, TextThatIsNoneIsRefusedWithItsPlace) {
  const Values v;
  const auto error = [&](const std::string& text) {
    return user_error([&] { v.read(text); }).value_or("");
  };
  EXPECT_EQ(error("size(%q, 0)"),
            "[parse] formula:1:6: expected a name defined before, received '%q'");
  EXPECT_EQ(error("size(%x, 2)"), "[parse] formula:1:10: expected an axis below 2, received 2");
  EXPECT_EQ(error("3 *"),
            "[parse] formula:1:4: expected an integer, a size or a function of sizes, received the "
            "end of the text");
  EXPECT_EQ(error("min(1 2)"), "[parse] formula:1:7: expected ',', received '2'");
  EXPECT_EQ(error(std::string(200, '(')),
            "[parse] formula:1:101: expected at most 100 nested parentheses");
}

TEST(SizeFormula, EqualFormulasHaveOneHash) {
  const Values v, w;
  EXPECT_EQ(v.read("size(%x, 0) + 1"), w.read("size(%x,0)+ 1"));
  EXPECT_FALSE(v.read("size(%x, 0) + 1") == v.read("size(%x, 1) + 1"));
  EXPECT_FALSE(v.read("size(%x, 0)") == v.read("size(%relu, 0)"));
  EXPECT_FALSE(v.read("1 - size(%x, 0)") == v.read("size(%x, 0) - 1"));
}

// ---- against integers ---------------------------------------------------------------------------

struct Random {
  std::mt19937_64 engine;
  int64_t below(int64_t n) { return static_cast<int64_t>(engine() % static_cast<uint64_t>(n)); }
};

// A formula and its value, computed another way: with doubles, exact below 2^53.
struct Known {
  SizeFormula formula;
  double value;
  bool legal = true;
};

Known random_formula(Random& random, const Values& v, int depth) {
  if (depth == 0 || random.below(4) == 0) {
    if (random.below(2) == 0) {
      const int64_t number = random.below(19) - 9;
      return {number, static_cast<double>(number)};
    }
    const LazyTensor tensor = std::vector<LazyTensor>{v.x, v.y, v.z}[size_t(random.below(3))];
    const auto axis = static_cast<size_t>(random.below(tensor.rank()));
    return {size_of(tensor, axis), static_cast<double>(tensor.sizes()[axis])};
  }
  const Known a = random_formula(random, v, depth - 1), b = random_formula(random, v, depth - 1);
  const auto kind = static_cast<Kind>(2 + random.below(8));
  double value = 0;
  bool legal = a.legal && b.legal;
  switch (kind) {
    case Kind::add:
      value = a.value + b.value;
      break;
    case Kind::subtract:
      value = a.value - b.value;
      break;
    case Kind::multiply:
      value = a.value * b.value;
      break;
    case Kind::min:
      value = std::fmin(a.value, b.value);
      break;
    case Kind::max:
      value = std::fmax(a.value, b.value);
      break;
    case Kind::div:
      value = std::floor(a.value / b.value);
      break;
    case Kind::ceil_div:
      value = std::ceil(a.value / b.value);
      break;
    case Kind::exact_div:
      value = a.value / b.value;
      legal &= value == std::floor(value);
      break;
    default:
      value = a.value - std::floor(a.value / b.value) * b.value;
  }
  if (kind >= Kind::div && kind <= Kind::mod) legal &= b.value != 0;
  return {SizeFormula::call(kind, a.formula, b.formula), value, legal};
}

TEST(SizeFormula, TenThousandHaveTheirValueAndTheirText) {
  const Values v;
  Random random{std::mt19937_64(7)};
  for (int i = 0; i < 10'000; ++i) {
    const Known known = random_formula(random, v, 4);
    const std::string text = print(known.formula, v.names);
    ASSERT_EQ(v.read(text), known.formula) << text;
    if (known.legal)
      ASSERT_EQ(static_cast<double>(known.formula.evaluate(size_in_types)), known.value) << text;
    else
      ASSERT_TRUE(user_error([&] { known.formula.evaluate(size_in_types); })) << text;
  }
}

// ---- in graphs ----------------------------------------------------------------------------------

TEST(SizeFormula, StandsInPlaceOfIntegersOfAGraph) {
  const std::string text = R"(graph(%x: float32[2, 16]) {
  %view: float32[2, 4, 4] = aten::view(%x, size=[size(%x, 0), 4, div(size(%x, 1), 4)])
  %add: float32[2, 4, 4] = aten::add.Scalar(%view, other=scalar(size(%view, 1) * 2), alpha=scalar(1)) {expected=[scalar(size(%view, 2) + 1)]}
  %rows: float32[size(%add, 0) + 1, 4] = own::rows(%add, list=[[1, size(%add, 0)], none])
  %constant: int64[2] = composit::constant(value=array(int64[2], [size(%rows, 1), 7]))
  return %rows, %constant
}
)";
  Formulas formulas;
  const Graph graph = parse(text, ParseOptions{.formulas = &formulas});
  EXPECT_EQ(print(graph, {.formulas = &formulas}), text);
  const Graph plain = parse(print(graph));
  EXPECT_EQ(plain, graph);
  EXPECT_EQ(to_ints(plain.nodes()[1]->attribute("size")), (std::vector<int64_t>{2, 4, 4}));
  EXPECT_EQ(plain.outputs()[0].sizes(), (Dims{3, 4}));
  EXPECT_EQ(user_error([&] { parse(text); }).value_or(""),
            "[parse] graph:2:50: expected the value of an attribute, received 'size'");
}

}  // namespace
}  // namespace composit
