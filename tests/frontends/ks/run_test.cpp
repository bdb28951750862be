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

TEST(KsRun, RefusesWhatHasNoOrder) {
  const auto error = [](const std::string& text) {
    return user_error([&] { printed(text); }).value_or("");
  };
  EXPECT_THAT(error("(def main Integer () (sumbuild 3 (lam (i : Integer)\n (print i))))"),
              HasSubstr("test.ks:2:2: 'print' in a function that is called for each index"));
  EXPECT_THAT(error("(def f Float (x : Float) x)"), HasSubstr("there is no function 'main'"));
  EXPECT_THAT(error("(def main Integer (n : Integer) n)"),
              HasSubstr("'main' has parameters: import a function to call it with values"));
}

}  // namespace
}  // namespace flashlight::ks
