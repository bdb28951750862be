// The output of a program's main.
#include "frontends/ks/run.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <sstream>

#include "frontends/ks/parse.h"
#include "tests/user_error.h"

namespace flashlight::ks {
namespace {

using composit::user_error;
using testing::HasSubstr;

std::string printed(const std::string& text) {
  std::ostringstream out;
  run(parse(text, "test.ks"), out);
  return out.str();
}

TEST(KsRun, PrintsValuesOfAllForms) {
  EXPECT_EQ(printed(R"(
(def pair (Tuple Float (Vec Integer)) (x : Float) (tuple (mul x x) (build 2 (lam (i : Integer) i))))
(def main Integer ()
  (print "pair " (pair 1.5) "\n"
         (build (tuple 2 3) (lam (t : Tuple Integer Integer) (let ((i j) t) (add (mul 10 i) j))))
         (gt 1.0 0.0) (tuple) (div 2.0 3.0) " "
         (build 2 (lam (i : Integer) (tuple i (Vec_init 0.5 (to_float i)))))
         (build 0 (lam (i : Integer) i)))))"),
            "pair 2.25,[0, 1]\n[[0, 1, 2], [10, 11, 12]]10.666667 [0,[0.5, 0], 1,[0.5, 1]][]");
}

TEST(KsRun, PrintsInOrderAndWhatAFunctionPrints) {
  EXPECT_EQ(printed(R"(
(def tell Integer (x : Float) (print "x=" x ";"))
(def main Integer () (let (a (tell 1.0)) (let (b (if (gt a 0) (tell 2.0) 0)) (print a b)))))"),
            "x=1;x=2;22");
}

// What is printed after a tensor without elements is what stands there.
TEST(KsRun, PrintsWhatFollowsTensorsWithoutElements) {
  EXPECT_EQ(printed(R"(
(def main Integer ()
  (print (build 2 (lam (i : Integer) (build (sub 1 i) (lam (j : Integer) 5)))) " " 7 " " 8 " "
         (build 0 (lam (i : Integer) (tuple i 1.0))) " " 2.5)))"),
            "[[5], []] 7 8 [] 2.5");
}

TEST(KsRun, TakesLongLetsAndRefusesWhatFillsTheStack) {
  std::string bindings = "(x0 0.0)";
  for (int i = 1; i < 15000; ++i)
    bindings += " (x" + std::to_string(i) + " (add x" + std::to_string(i - 1) + " 1.0))";
  EXPECT_EQ(printed("(def main Integer () (print (let (" + bindings + ") x14999)))"), "14999");
  std::string body = "(f (sub n 1))";
  for (int i = 0; i < 50; ++i) body = "(add 1.0 " + body + ")";
  const std::string deep = "(def f Float (n : Integer) (if (eq n 0) 0.0 " + body +
                           ")) (def main Integer () (print (f 900)))";
  EXPECT_THAT(user_error([&] { printed(deep); }).value_or(""),
              HasSubstr("expected fewer calls and expressions within one another"));
}

// ---- rules --------------------------------------------------------------------------------------

TEST(KsRule, LooksAtWhatANameMeans) {
  // The inner q hides the outer one, which x of the rule would be.
  EXPECT_EQ(printed(R"(
(rule "r" ((x : Float) (y : Float)) (f (let (a x) (let (b y) (sub a b)))) (g x y))
(def f Float (x : Float) x)
(def g Float ((x : Float) (y : Float)) (f (sub x y)))
(def main Integer () (print (f (let (q 1.0) (let (q 2.0) (sub q q)))) " "
                            (f (let (p 1.0) (let (q 4.0) (sub p q)))))))"),
            "0 -3");
  // A parameter that is a function hides the program's one.
  EXPECT_EQ(printed(R"(
(rule "r" (x : Integer) (g x) 100)
(def g Integer (x : Integer) 7)
(def f Integer ((n : Integer) (g : (Lam Integer Integer))) (g n))
(def main Integer () (print (f 3 (lam (i : Integer) (mul i i))) " " (g 3))))"),
            "9 100");
}

TEST(KsRule, IsNotAppliedToItsRightSideAlsoWithinFunctions) {
  EXPECT_EQ(printed(R"(
(rule "b" (v : Vec Float) (f v) (build (size v) (lam (i : Integer) (add 1.0 (index i (f v))))))
(def f (Vec Float) (v : Vec Float) (mul 2.0 v))
(def main Integer () (print (f (build 2 (lam (i : Integer) 1.0))))))"),
            "[3, 3]");
}

TEST(KsRule, HasParametersThatAreFunctions) {
  EXPECT_EQ(printed(R"(
(rule "s" ((n : Integer) (f : (Lam Integer Float))) (sumbuild n f) 100.0)
(def main Integer () (print (sumbuild 3 (lam (i : Integer) 1.0)))))"),
            "100");
}

TEST(KsRule, IsRefusedWhereItCouldNeverBeApplied) {
  const auto error = [](const std::string& rule) {
    return user_error([&] { printed(rule + "\n(def main Integer () (print 1))"); }).value_or("");
  };
  EXPECT_THAT(error("(rule \"a\" (x : Float) x 1.0)"),
              HasSubstr("test.ks:1:1: expected a call as the left side of the rule \"a\""));
  EXPECT_THAT(error("(rule \"b\" ((x : Float) (y : Float)) (sin x) y)"),
              HasSubstr("a left side of the rule \"b\" that reads its parameter 'y'"));
  EXPECT_THAT(error("(rule \"c\" (x : Float) (sin x) (add x z))"),
              HasSubstr("there is no variable 'z' in the rule \"c\""));
  EXPECT_EQ(error("(rule \"d\" (x : Float) (sin x) (let (z x) (add x z)))"), "");
}

TEST(KsRun, RefusesWhatHasNoOrder) {
  const auto error = [](const std::string& text) {
    return user_error([&] { printed(text); }).value_or("");
  };
  EXPECT_THAT(error("(def main Integer () (sumbuild 3 (lam (i : Integer)\n (print i))))"),
              HasSubstr("test.ks:2:2: 'print' in a function that is called for each index"));
  EXPECT_THAT(error("(def f Float (x : Float) x)"), HasSubstr("there is no function 'main'"));
  EXPECT_THAT(error("(def main Integer (n : Integer) n)"),
              HasSubstr("'main' has parameters: import a function to call it with values"));
  EXPECT_THAT(error("(def main Integer () (print (lam (x : Float) x)))"),
              HasSubstr("'print' expects values, not functions"));
}

}  // namespace
}  // namespace flashlight::ks
