// Text that cannot be read gets an error with its place; unsound loops get one with their text.
#include <gtest/gtest.h>

#include "composit/ir/error.h"
#include "composit/op/loops.h"
#include "tests/op/random_loops.h"
#include "tests/user_error.h"

namespace composit {
namespace {

constexpr DType f32 = DType::float32, f64 = DType::float64;

std::string message_of(std::string_view text) {
  return user_error([&] { parse_loops(text); }).value_or("no error");
}

struct Case {
  std::string text, message;
};
void expect_messages(const std::vector<Case>& cases) {
  for (const auto& [text, message] : cases)
    EXPECT_EQ(message_of(text), "[parse] loops:" + message) << text;
}

// A nest around statements, on a line of their own.
std::string in_nest(const std::string& statements) {
  return "loops(x: float32[4, 5], n: int64[4]) -> (y: float32[4]) { for i < 4 {\n" + statements +
         "\n} }";
}

TEST(LoopsErrors, Structure) {
  expect_messages({
      {"", "1:1: expected 'loops', received the end of the text"},
      {"loops(x float32[2])", "1:9: expected ':', received 'float32'"},
      {"loops(for: float32[2])", "1:7: expected the name of a tensor or ')', received 'for'"},
      {"loops(x: float[2])", "1:10: expected a dtype, received 'float'"},
      {"loops(x: qint8[2])", "1:10: expected a dtype, received 'qint8'"},
      {"loops(x: int8[-2])", "1:15: expected a size or ']', received '-'"},
      {"loops(x: int8[2.5])", "1:15: expected an integer of 64 bits, received '2.5'"},
      {"loops(x: int8[2 3])", "1:17: expected ',' or ']', received '3'"},
      {"loops(x: int8[2], x: int8[])",
       "1:19: expected a new name, received 'x', which is defined before"},
      {"loops() (", "1:9: expected '->', received '('"},
      {"loops() -> () { while }", "1:17: expected 'for', '{' or '}', received 'while'"},
      {"loops() -> () { for { } }", "1:21: expected the name of an axis, received '{'"},
      {"loops() -> () { for i 4 { } }", "1:23: expected '<', received '4'"},
      {"loops() -> () { for i < -4 { } }", "1:25: expected an extent, received '-'"},
      {"loops() -> () { for i < 4, i < 3 { } }",
       "1:28: expected a new name, received 'i', which is defined before"},
      {"loops() -> () { for i < 4 { reduce j < 3 { } scan k < 2 { } } }",
       "1:46: expected '}', received 'scan'"},
      {"loops() -> () { } x", "1:19: expected the end of the text, received 'x'"},
      {"loops() -> () {", "1:16: expected 'for', '{' or '}', received the end of the text"},
  });
}

TEST(LoopsErrors, Statements) {
  expect_messages({
      {in_nest("y = x[i, 0]"), "2:3: expected '[', received '='"},
      {in_nest("y[i] = q"), "2:8: expected a name defined before, received 'q'"},
      {in_nest("y[i] = y[i]"), "2:8: expected a value, received the result 'y'"},
      {in_nest("y[i, 0] = 1"), "2:2: expected 1 index of 'y', received 2"},
      {in_nest("y[i] - 1"), "2:6: expected '=', received '-'"},
      {in_nest("x[i, 0] = 1"), "2:1: expected '}', received 'x'"},
      {in_nest("var s = 0"), "2:7: expected ':', received '='"},
      {in_nest("var s: f4 = 0"), "2:8: expected a dtype, received 'f4'"},
      {in_nest("var s: int64 = 0.5"), "2:16: expected a value of int64, received one of float32"},
      {in_nest("var s: float32 = 0"), "3:1: expected what becomes of 's', received '}'"},
      {in_nest("var s: float32 = 0 s = s"), "3:1: expected 'new' for 's', received '}'"},
      {in_nest("var s: float32 = 0 s += 1 s += 2"),
       "2:27: expected each 'var' to become something once, received 's'"},
      {in_nest("var s: float32 = 0 s += i"),
       "2:25: expected a value of float32, received one of int64"},
      {in_nest("var s: float32 = 0 new v = 1 new w = 2"),
       "2:34: expected no more than 1 'new', as many as 'var', received 'w'"},
      {in_nest("var s: float32 = 0 new v = 1 s += 2"),
       "2:35: expected 'new' and '+=' in the order of 'var'"},
      {in_nest("var s: float32 = 0 var u: float32 = 0 u += 1 s += 1"),
       "2:44: expected 'new' and '+=' in the order of 'var'"},
      {in_nest("var s: float32 = 0 new v = 1 s, i = v, v"),
       "2:33: expected the name of a 'var', received 'i'"},
      {in_nest("var s: float32 = 0 new v = 1 s = v + x[i, 0]"),
       "1:59: the combination depends on axis i"},
      {in_nest("var s: float32 = 0 reduce r < 5 { s += x[i, r] } y[i] = s + x[i, r]"),
       "2:66: expected a name defined before, received 'r'"},
      {in_nest("where i"), "2:7: expected a value of bool, received one of int64"},
      {in_nest("where i < 2 where i < 3"), "2:13: expected one 'where'"},
      {in_nest("let i = 2"), "2:5: expected a new name, received 'i', which is defined before"},
      {in_nest("let where = 2"), "2:5: expected a name, received 'where'"},
  });
}

TEST(LoopsErrors, Expressions) {
  const auto stored = [](const std::string& expr) { return in_nest("y[i] = " + expr); };
  expect_messages({
      {stored(""), "3:1: expected an expression, received '}'"},
      {stored("x"), "3:1: expected '[', received '}'"},
      {stored("x[i]"), "2:9: expected 2 indices of 'x', received 1"},
      {stored("x[i, 0.5]"), "2:9: expected integers as indices of 'x', received one of float32"},
      {stored("x[i, true]"), "2:9: expected integers as indices of 'x', received one of bool"},
      {stored("x[i, 0"), "3:1: expected ',' or ']', received '}'"},
      {stored("(i + 1"), "3:1: expected ')', received '}'"},
      {stored("i +"), "3:1: expected an expression, received '}'"},
      {stored("i ? 1"), "3:1: expected ':', received '}'"},
      {stored("i $ 1"), "2:10: expected '}', received '$'"},
      {stored("foo(i)"), "2:8: expected a function, received 'foo'"},
      {stored("cast(i)"), "2:8: expected a function, received 'cast'"},
      {stored("exp(i, i)"), "2:8: expected 1 argument of 'exp', received 2"},
      {stored("pow(i)"), "2:8: expected 2 arguments of 'pow', received 1"},
      {stored("float32(i, i)"), "2:8: expected 1 argument of 'float32', received 2"},
      {stored("qint8(i)"), "2:8: expected a dtype, received 'qint8'"},
      {stored("floor(complex(1, 2))"), "2:8: [floor] expected a real number, received complex64"},
      {stored("x[i, 0] & 1"), "2:16: [bitwise_and] expected an integer or bool, received float32"},
      {stored("99999999999999999999"),
       "2:8: expected an integer of 64 bits, received '99999999999999999999'"},
      {stored("1.5.2"), "2:8: expected a number, received '1.5.2'"},
      {stored("2x"), "2:8: expected an integer of 64 bits, received '2x'"},
      {stored(std::string(300, '(')),
       "2:108: expected at most 200 expressions within each other; 'let' gives parts a name"},
  });
}

bool reads_back(const Loops& loops) {
  verify(loops);
  return parse_loops(print(loops)) == loops;
}

TEST(LoopsErrors, HostileTextIsReadOrRefused) {
  for (const std::string open : {"(", "-", "!", "exp(", "x[", "i ? ", "1 ? 2 : "}) {
    std::string text;
    for (int i = 0; i < 100000; ++i) text += open;
    EXPECT_NE(message_of(in_nest("y[i] = " + text)), "no error");
  }
  std::string chain = "let t0 = x[i, 0]\n";
  for (int i = 1; i < 100000; ++i)
    chain += "let t" + std::to_string(i) + " = exp(t" + std::to_string(i - 1) + ")\n";
  EXPECT_TRUE(reads_back(parse_loops(in_nest(chain + "y[i] = t99999"))));
  EXPECT_NE(message_of("loops(x: float32[9223372036854775807, 9223372036854775807]) -> () {}"),
            "no error");
}

// Small changes of sound text: it is sound still, or there is an error.
TEST(LoopsErrors, MutatedTextIsReadOrRefused) {
  const std::vector<std::string> pieces = {
      "(", ")", "[",  "]",  "{",  "}",       ",", "<",    "let ", "0",   "1",  "-",
      "?", ":", "s0", "x0", "t0", "float32", "i", "new ", "=",    "+= ", "\n", "\x80"};
  RandomLoops random(2);
  size_t read = 0;
  for (int round = 0; round < 10000; ++round) {
    std::string text = print(random.next());
    for (size_t edits = 1 + random.below(2); edits > 0; --edits)
      text.replace(random.below(text.size()), random.below(4), pieces[random.below(pieces.size())]);
    try {
      const Loops loops = parse_loops(text);
      ++read;
      ASSERT_TRUE(reads_back(loops)) << text;
    } catch (const UserError&) {
    }
  }
  EXPECT_GT(read, 100u);
  EXPECT_LT(read, 9900u);
}

// ---- verify -------------------------------------------------------------------------------------

std::string fault_after(void (*change)(Loops&, Statement&)) {
  Loops loops = parse_loops(
      "loops(x: float32[4, 5]) -> (y: float32[4]) { for i < 4 { var s: float32 = 0 "
      "reduce r < 5 { where r < 3 s += x[i, r] } y[i] = s } }");
  change(loops, loops.statements[0]);
  try {
    verify(loops);
  } catch (const InternalError& error) {
    const std::string what = error.what();
    EXPECT_NE(what.find("\nloops("), std::string::npos) << "the text follows";
    return what.substr(0, what.find('\n'));
  }
  return "no error";
}

TEST(VerifyLoops, SaysWhatIsWrong) {
  const auto expect_fault = [](void (*change)(Loops&, Statement&), const std::string& fault) {
    const std::string found = fault_after(change);
    EXPECT_TRUE(found.ends_with(": " + fault)) << found << "\nexpected " << fault;
  };
  expect_fault([](Loops&, Statement& s) { s.axes[0].extent = -1; }, "axis i has an extent of -1");
  expect_fault([](Loops&, Statement& s) { std::swap(s.axes[0], s.axes[1]); },
               "axes are not in the order parallel, scan, reduction");
  expect_fault([](Loops&, Statement& s) { s.domain = Expr::axis(0); },
               "the domain is of int64, not of bool");
  expect_fault([](Loops&, Statement& s) { s.domain = Expr::axis(2) < 3; },
               "the domain has axis 2 of 2");
  expect_fault([](Loops&, Statement& s) { s.domain = Expr::accumulator(0, f32) < 3; },
               "the domain uses accumulator 0");
  expect_fault([](Loops&, Statement& s) { s.init.clear(); },
               "there are 0 initial values, 1 bodies and 1 combinations");
  expect_fault([](Loops&, Statement& s) { s.init[0] = cast(Expr::axis(1), f32); },
               "the initial value depends on axis r");
  expect_fault([](Loops&, Statement& s) { s.init[0] = Expr::literal(0.0, f64); },
               "the initial value of accumulator 0 is of float64, the accumulator of float32");
  expect_fault([](Loops&, Statement& s) { s.body[0] = Expr::axis(1); },
               "the body of accumulator 0 is of int64, the accumulator of float32");
  expect_fault([](Loops&, Statement& s) { s.body[0] = Expr(); }, "the body is absent");
  expect_fault([](Loops&, Statement& s) { s.body[0] = Expr::right(0, f32); },
               "the body uses accumulator 0");
  expect_fault([](Loops&, Statement& s) { s.body[0] = Expr::load(1, f32, {}); },
               "the body loads operand 1 of 1");
  expect_fault([](Loops&, Statement& s) { s.body[0] = Expr::load(0, f32, {Expr::axis(0)}); },
               "the body loads operand 0 with 1 indices, it has 2 axes");
  expect_fault([](Loops& l, Statement&) { l.operands[0].dtype = f64; },
               "the body loads operand 0 as float32, it is of float64");
  expect_fault([](Loops&, Statement& s) { s.combine[0] = Expr::left(1, f32); },
               "the combination uses accumulator 1 of 1");
  expect_fault([](Loops&, Statement& s) { s.combine[0] = cast(Expr::left(0, f32), f64); },
               "the combination uses accumulator 0 as float32, it is of float64");
  expect_fault([](Loops&, Statement& s) { s.combine[0] = Expr::left(0, f32) + Expr::axis(0); },
               "the combination depends on axis i");
  expect_fault([](Loops&, Statement& s) { s.stores[0].result = 1; },
               "a store goes to result 1 of 1");
  expect_fault([](Loops&, Statement& s) { s.stores[0].at.clear(); },
               "a store has 0 indices, result 0 has 1 axes");
  expect_fault([](Loops&, Statement& s) { s.stores[0].at[0] = cast(Expr::axis(0), f32); },
               "a store has an index of float32");
  expect_fault([](Loops&, Statement& s) { s.stores[0].value = Expr::axis(1); },
               "a store depends on axis r");
  expect_fault([](Loops&, Statement& s) { s.stores[0].value = Expr::left(0, f32); },
               "a store uses accumulator 0");
  expect_fault([](Loops&, Statement& s) { s.stores[0].value = Expr::parameter(0, f32); },
               "a store has a parameter, which belongs to scalar programs");
  expect_fault([](Loops& l, Statement&) { l.results[0].dtype = DType::qint8; },
               "a dtype without arithmetic");
}

}  // namespace
}  // namespace composit
