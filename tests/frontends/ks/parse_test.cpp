// Programs of Knossos' language: what is read is printed again, and what cannot be read has a
// place.
#include "frontends/ks/parse.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/user_error.h"

namespace flashlight::ks {
namespace {

using composit::user_error;

constexpr const char* kEveryForm = R"((def relu3 Float (x : Float)
  (if (lt x 0.0) 0.0 (if (lt x 1.0) (div (pow x 3) 3.0) (sub x (div 2.0 3.0)))))

(def f (Tuple Float (Vec Float)) ((v : (Vec Float)) (n : Integer))
  (let (m (size v))
  (let ((a b) (tuple 1.0 true))
  (assert (eq m n) (tuple (sumbuild n (lam (i : Integer) (mul a (index i v)))) (map (lam (x : Float)
    (relu3 x)) v))))))

(edef g Float (Float Integer))

(gdef rev [relu3 Float])

(gdef fwd [f (Tuple (Vec Float) Integer)])

(rule "mul2" (v : Float)
  (mul v 2.0)
  (add v v))

(def h Integer ()
  (print "a \"line\"\n" ([rev [relu3 Float]] 1.5 -2.0) ([sufrev relu3] 1.5 1e-05) ($dummy (Tensor 2 (Tuple Float Bool)))))
)";

// Without white space where the language does not ask for it.
std::string words(const std::string& text) {
  std::string all;
  for (const char c : text) {
    const bool space = c == ' ' || c == '\n';
    if (space && (all.empty() || all.back() == ' ' || all.back() == '(')) continue;
    if (c == ')' && !all.empty() && all.back() == ' ') all.pop_back();
    all += space ? ' ' : c;
  }
  return all;
}

TEST(KsParse, IsPrintedAgain) {
  const std::string printed = print(parse(kEveryForm));
  EXPECT_EQ(words(printed), words(kEveryForm));
  EXPECT_EQ(print(parse(printed)), printed);
}

TEST(KsParse, Comments) {
  EXPECT_EQ(print(parse("; one\n(def f Float () #| a #| b |# c |# 1.0) ; end")),
            print(parse("(def f Float () 1.0)")));
}

// Several bindings, one, and names for the items of a tuple.
TEST(KsParse, Lets) {
  const auto body = [](const std::string& text) {
    const Program program = parse("(def f Float (t : Float) " + text + ")");
    return print(*std::get<Def>(program.declarations[0].form).body);
  };
  EXPECT_EQ(body("(let ((x (f t)) (y x)) y)"), "(let (x (f t)) (let (y x) y))");
  EXPECT_EQ(body("(let (x t) x)"), "(let (x t) x)");
  EXPECT_EQ(body("(let ((x y) t) y)"), "(let ((x y) t) y)");
  EXPECT_EQ(body("(let ((x y) (g t)) y)"), "(let ((x y) (g t)) y)");
  EXPECT_EQ(body("(let () t)"), "t");
}

TEST(KsParse, ErrorsHaveAPlace) {
  const auto error = [](const char* text) {
    return user_error([&] { parse(text, "a.ks"); }).value_or("");
  };
  EXPECT_EQ(error("(def f Flot (x : Float) x)"),
            "[ks] a.ks:1:8: expected a type: Integer, Float, Bool, String or (…), received 'Flot'");
  EXPECT_EQ(error("\n (fun f)"), "[ks] a.ks:2:3: expected def, edef, gdef or rule, received 'fun'");
  EXPECT_EQ(error("(def f Float (x Float) x)"),
            "[ks] a.ks:1:17: expected ':' and a type after the parameter 'x', received 'Float'");
  EXPECT_EQ(error("(def f Float (x : Float)\n  (add x"),
            "[ks] a.ks:2:9: expected ')' after an expression, received the end of the text");
  EXPECT_EQ(error("(def f Float () 1.2.3)"), "[ks] a.ks:1:17: expected a number, received '1.2.3'");
  EXPECT_EQ(error("(def f Integer () 99999999999999999999)"),
            "[ks] a.ks:1:19: '99999999999999999999' is too large for an Integer, of 64 bits");
  EXPECT_EQ(error("(def f Float () 1e400)"),
            "[ks] a.ks:1:17: '1e400' is too large or too small for a Float");
  EXPECT_EQ(error("#| a"), "[ks] a.ks:1:1: a comment that does not end: expected |#");
  EXPECT_EQ(error("(def f String () \"a"),
            "[ks] a.ks:1:18: a string that does not end: expected \"");
  EXPECT_EQ(error("(gdef foo [f Float])"),
            "[ks] a.ks:1:7: expected a derivation (fwd, rev, suffwdpass, sufrevpass, sufrev), "
            "received 'foo'");
  EXPECT_EQ(error("(def f Float () {)"),
            "[ks] a.ks:1:17: expected a word, a number, a string or a parenthesis, received '{'");
}

// Also where nobody calls a function: then no graph is made of it.
TEST(KsParse, FindsNamesThatMeanNothing) {
  std::string found;
  for (const auto& [at, what] : unknown_names(parse(R"(
(edef e Float Float)
(def f Float (x : Float) (let ((a b) (tuple x y)) (if (gt a b) (g (e a)) (sin b))))
(def h Float (k : (Lam Float Float)) (k ([rev f] 1.0 a)))
(rule "r" (x : Float) (f x) (undefined (sumbuild 2 (lam (i : Integer) (index i v))))))")))
    found += std::to_string(at.line) + ":" + std::to_string(at.column) + " " + what + "\n";
  EXPECT_EQ(found,
            "3:47 there is no variable 'y'\n3:64 there is no function 'g'\n"
            "4:54 there is no variable 'a'\n5:29 there is no function 'undefined'\n"
            "5:80 there is no variable 'v'\n");
}

}  // namespace
}  // namespace flashlight::ks
