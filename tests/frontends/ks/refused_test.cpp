// Types fit exactly, definitions are unique, and what is refused has a place. Tensors without
// elements are values as others.
#include <gmock/gmock.h>

#include "flashlight/backends/registry.h"
#include "tests/frontends/ks/run_program.h"
#include "tests/user_error.h"

namespace flashlight::ks::test {
namespace {

using testing::HasSubstr;

std::string error_of(const std::string& body, const std::vector<Input>& inputs,
                     const std::string& before = "") {
  const std::string text = before + "(def f Float (v : Vec Float) " + body + ")";
  return user_error([&] { graph(text, "f", inputs); }).value_or("accepted");
}

TEST(KsRefused, NumbersOfOtherTypesWithinTensorsAndTuples) {
  const auto error = [](const std::string& body) { return error_of(body, {vec({1, 2, 3})}); };
  const char* expected = "expects numbers of one type, or tensors or tuples of them, received ";
  EXPECT_THAT(error("(sum (add v 1))"), HasSubstr(expected + std::string("(Vec Float) Integer")));
  EXPECT_THAT(error("(sum (mul v true))"), HasSubstr(expected + std::string("(Vec Float) Bool")));
  EXPECT_THAT(error("(sum (mul v (build 3 (lam (i : Integer) i))))"),
              HasSubstr(expected + std::string("(Vec Float) (Vec Integer)")));
  EXPECT_THAT(error("(get$1$2 (add (tuple 1.0 2.0) (tuple 1 2)))"),
              HasSubstr(expected + std::string("(Tuple Float Float) (Tuple Integer Integer)")));
  EXPECT_THAT(error("(sum (exp (build 3 (lam (i : Integer) i))))"),
              HasSubstr("'exp' expects a Float, received (Vec Integer)"));
  EXPECT_THAT(error("(neg true)"), HasSubstr("received Bool"));
  EXPECT_THAT(error("(max (build 3 (lam (i : Integer) (tuple 1.0 2.0))))"),
              HasSubstr("'max' expects a Vec of numbers"));
  EXPECT_THAT(error("(assert 1.0 2.0)"),
              HasSubstr("test.ks:1:38: expected a Bool, received Float"));
  EXPECT_EQ(error("(sum (pow v 2))"), "accepted");
}

TEST(KsRefused, ArgumentsThatAFunctionDoesNotTake) {
  const auto error = [](const std::string& body) { return error_of(body, {vec({1, 2, 3})}); };
  EXPECT_THAT(error("(sumbuild 3 (lam (i : Float) i))"),
              HasSubstr("test.ks:1:42: this function takes Float, received Integer"));
  EXPECT_THAT(error("(fold (lam (e : Tuple Float Float) 1) 0.0 v)"),
              HasSubstr("'fold' expects a function that gives Float, as its start is, received one "
                        "that gives Integer"));
  EXPECT_THAT(error("(sumbuild 3 (lam (i : Integer) \"a\"))"),
              HasSubstr("'sumbuild' expects a function that gives Floats"));
  EXPECT_THAT(error("(delta 1.0 1.0 2.0)"), HasSubstr("'delta' expects two Integers"));
  EXPECT_THAT(error("(sum (deltaVec (tuple 2 2) 1 1.0))"),
              HasSubstr("an index of as many Integers"));
  EXPECT_THAT(error("(sum (diag (tuple) 3 v))"), HasSubstr("'diag' expects two sizes and a Vec"));
  EXPECT_THAT(error("(sum (diag 5 5 v))"),
              HasSubstr("'diag' expects a Vec of 5 elements or more, received one of 3"));
  EXPECT_THAT(error("(get$1 (tuple 1.0))"), HasSubstr("there is no function 'get$1'"));
  EXPECT_THAT(error("(sum (build (tuple 4000000000 4000000000) (lam (i : Tuple Integer Integer) "
                    "1.0)))"),
              HasSubstr("expected sizes of up to 2^63 elements"));
  EXPECT_THAT(
      error_of("1.0", {vec({1})}, "(gdef rev [nothing Float])"),
      HasSubstr("expected a function of the program or of the language, received 'nothing'"));
  EXPECT_EQ(error_of("1.0", {vec({1})},
                     "(gdef rev [sin Float]) (edef h Float Float) (gdef fwd [h Float])"),
            "accepted");
  const std::string g = "(def g Float ((x : Float) (y : Float)) x)";
  EXPECT_THAT(error_of("([g (Tuple Float Float)] 1.0)", {vec({1})}, g),
              HasSubstr("expects (Tuple Float Float), received Float"));
  EXPECT_THAT(error_of("([sufrevpass g] 1.0)", {vec({1})}, g),
              HasSubstr("'sufrevpass' expects a cotangent and what 'suffwdpass' kept"));
}

TEST(KsRefused, TextThatCannotBeMeant) {
  const auto error = [](const std::string& text) {
    return user_error([&] { parse(text, "a.ks"); }).value_or("accepted");
  };
  const std::string f = "(def f Float (x : Float) x)";
  EXPECT_THAT(error(f + "\n" + f), HasSubstr("a.ks:2:1: 'f' is defined twice for these arguments"));
  EXPECT_EQ(error(f + "(def f Float (x : Vec Float) 1.0)"), "accepted");
  EXPECT_THAT(error("(def f Float ((x : Float) (x : Float)) x)"),
              HasSubstr("expected names that differ, received 'x' twice"));
  EXPECT_THAT(error("(def f Float (x : Float) (let ((a a) x) a))"), HasSubstr("'a' twice"));
  EXPECT_THAT(error("(def f Float (x : Float) (add 1.0x 2.0))"),
              HasSubstr("a.ks:1:34: expected a blank after the number 1.0, received 'x'"));
  EXPECT_THAT(error("(def f Float (é : Float) x)"), HasSubstr("received 'é'"));
  EXPECT_THAT(error(std::string("(def f Float \0 )", 16)), HasSubstr("received '\\x00'"));
  EXPECT_EQ(error("\xef\xbb\xbf" + f), "accepted");
  EXPECT_THAT(error("(def f Float (x : Float) ([foo f] x))"),
              HasSubstr("a.ks:1:28: expected a derivation (fwd, rev, "));
  std::string deep = "x";
  for (int i = 0; i < 20000; ++i) deep = "(neg " + deep + ")";
  EXPECT_THAT(error("(def f Float (x : Float) " + deep + ")"),
              HasSubstr("expected at most 2000 expressions around one"));
}

// ---- what is right ------------------------------------------------------------------------------

TEST(KsEmpty, BuildsSumsAndFoldsOfNothing) {
  const char* const bodies[] = {
      "(sumbuild (size v) (lam (i : Integer) (exp (index i v))))",
      "(sum (build (size v) (lam (i : Integer) (mul 2.0 (index i v)))))",
      "(sumbuild (size v) (lam (i : Integer) (index (sub i 1) v)))",
      "(fold (lam (a : Tuple Float Float) (mul (get$1$2 a) (get$2$2 a))) 0.0 v)"};
  const composit::Array none =
      composit::Array::copy_of(composit::tensor_type(composit::DType::float64, {0}), nullptr);
  for (const std::string body : bodies) {
    const std::string text = "(def f Float (v : Vec Float) (add 3.0 " + body + "))";
    EXPECT_EQ(test::run(text, "f", {vec({})}), Numbers{3}) << body;
    for (const char* backend : {"cpp", "mosaic"}) {
      const auto compiled =
          backend_named(backend).compile(graph(text, "f", {vec({})}), {.name = "empty"});
      EXPECT_EQ(composit::elements<double>(compiled({none})[0]), Numbers{3}) << body << backend;
    }
  }
}

// NaN, also in tensors of tensors.
TEST(KsEmpty, WhatIsNotThereIsNotANumber) {
  const Numbers all = test::run(
      "(def f (Vec (Vec (Vec Float))) (v : Vec (Vec (Vec Float))) (build 2 (lam (i : Integer) "
      "(index (sub i 1) v))))",
      "f", {{{1, 1, 2}, {1, 2}, {}}});
  ASSERT_EQ(all.size(), 4);
  EXPECT_TRUE(std::isnan(all[0]) && std::isnan(all[1]));
  EXPECT_EQ(Numbers(all.begin() + 2, all.end()), (Numbers{1, 2}));
}

// A definition is the derivative of a function, whether its name says the argument or not.
TEST(KsDefinitions, OfDerivativesAreFoundByBothNames) {
  const std::string text =
      "(def g Float (x : Float) (mul x x))"
      "(def [rev g] Float ((x : Float) (d : Float)) 50.0)"
      "(def f Float (x : Float) (add ([rev [g Float]] x 1.0) ([rev g] x 1.0)))";
  EXPECT_EQ(test::run(text, "f", {number(.5)}), Numbers{100});
}

TEST(KsDefinitions, TakeFunctions) {
  EXPECT_EQ(test::run("(def g Float ((h : Lam Float Float) (x : Float)) (h x))"
                      "(def f Float (x : Float) (g (lam (y : Float) (mul y y)) x))",
                      "f", {number(3)}),
            Numbers{9});
}

// Each level of a chain would be evaluated twice for a rule that does not fit.
TEST(KsDefinitions, RulesThatDoNotFitCostNothing) {
  std::string body = "x";
  for (int i = 0; i < 60; ++i) body = "(mul " + body + " 1.0)";
  EXPECT_EQ(test::run("(rule \"r\" ((a : Integer) (b : Integer)) (mul a b) (mul b a))"
                      "(def f Float (x : Float) " +
                          body + ")",
                      "f", {number(3)}),
            Numbers{3});
}

// A place below 0 is refused as one beyond the tensor is.
TEST(KsDefinitions, SparsePlacesDoNotCountFromTheEnd) {
  EXPECT_ANY_THROW(
      test::run("(def f (Vec Float) (v : Vec Float) (buildFromSparse v 3 (lam (i : Integer) "
                "(tuple (sub i 1) (index i v)))))",
                "f", {vec({1, 2, 3})}));
}

}  // namespace
}  // namespace flashlight::ks::test
