#include "tests/flashlight/ks_causes.h"

#include <sstream>
#include <string>
#include <vector>

#include "composit/ir/type.h"
#include "frontends/ks/function.h"
#include "frontends/ks/graph.h"
#include "frontends/ks/parse.h"
#include "frontends/ks/run.h"

namespace flashlight::test {
namespace {

using ks::ArgumentLeaf;
using Leaves = std::vector<ArgumentLeaf>;

ArgumentLeaf floats(composit::Dims sizes) {
  return composit::tensor_type(composit::DType::float32, std::move(sizes));
}
ArgumentLeaf lengths() { return composit::tensor_type(composit::DType::int64, {2}); }

// The graph of f, or of another function.
void make(const std::string& text, const Leaves& leaves, const std::string& function = "f") {
  ks::graph_of(ks::parse(text, "a.ks"), function, leaves);
}
void run(const std::string& text) {
  std::ostringstream out;
  ks::run(ks::parse(text, "a.ks"), out);
}
void of_numbers(const std::string& text) {
  ks::ProgramFunction(ks::parse(text, "a.ks"), "f").number(Number(1.0));
}

void no_type() { ks::parse("(def f Flot (x : Float) x)", "a.ks"); }
void no_function() { make("(def f Float (x : Float) (g x))", {floats({})}); }
void no_variable() { make("(def f Float (x : Float) y)", {floats({})}); }
void only_declared() { make("(edef g Float Float) (def f Float (x : Float) (g x))", {floats({})}); }
void other_type() { make("(def f Float (x : Float) (add x 1))", {floats({})}); }
void other_result() { make("(def f Integer (x : Float) x)", {floats({})}); }
void other_parameter() {
  make("(def f Float (x : Float) (sumbuild 3 (lam (i : Float) i)))", {floats({})});
}
void defined_twice() {
  ks::parse("(def f Float (x : Float) x) (def f Integer (x : Float) 1)", "a.ks");
}
void deep() {
  ks::parse(
      "(def f Float (x : Float) " + std::string(3000, '(') + "x" + std::string(3000, ')') + ")",
      "a.ks");
}
void endless() { make("(def f Float (x : Float) (f x))", {floats({})}); }
void assert_fails() {
  make("(def f Float (v : Vec Float) (assert (eq (size v) 2) 1.0))", {floats({1})});
}
void index_outside() { make("(def f Float (v : Vec Float) (index 3 v))", {floats({3})}); }
void open_size() {
  make("(def f (Vec Float) (v : Vec Float) (build (imax v) (lam (i : Integer) 1.0)))",
       {floats({2})});
}
void negative_size() {
  make(
      "(def f (Vec (Vec Float)) (x : Float) (build 2 (lam (i : Integer) "
      "(constVec (sub i 1) x))))",
      {floats({})});
}
void different_sizes() {
  make("(def f Float (v : Vec (Vec Float)) (sum (sum v)))", {lengths(), floats({2, 3})});
}
void perhaps_different_sizes() {
  make("(def f Float ((a : Vec (Vec Float)) (b : Vec (Vec Float))) (ts_dot a b))",
       {lengths(), floats({2, 3}), lengths(), floats({2, 3})});
}
void other_input() { make("(def f Float (x : Float) x)", {floats({1})}); }
void more_inputs() { make("(def f Float (x : Float) x)", {floats({}), floats({})}); }
void other_derivation() { make("(def f Float (x : Float) x)", {floats({})}, "[shape f]"); }
void no_tensor() {
  ks::ProgramFunction(ks::parse("(def f Float (x : Float) x)", "a.ks"),
                      "f")({composit::LazyTensor()});
}
void main_has_parameters() { run("(def main Integer (n : Integer) n)"); }
void prints_for_each_index() {
  run("(def main Integer () (sumbuild 3 (lam (i : Integer) (print i))))");
}
void not_of_numbers() { of_numbers("(def f Float (v : Vec Float) (sum v))"); }
void derivative_of_numbers() { of_numbers("(def f Float (x : Float) ([rev exp] x 1.0))"); }
void long_sum_of_numbers() {
  of_numbers("(def f Float (x : Float) (sumbuild 5000 (lam (i : Integer) (mul x (to_float i)))))");
}

}  // namespace

Causes with_ks_causes(Causes others) {
  others.merge(Causes{
      {"[ks] …: expected …, received …", no_type},
      {"[ks] …: there is no function '…'", no_function},
      {"[ks] …: there is no variable '…'", no_variable},
      {"[ks] …: '…' is declared by edef, and defined nowhere", only_declared},
      {"[ks] …: '…' expects …, received …", other_type},
      {"[ks] …: '…' is declared to give …, and gives …", other_result},
      {"[ks] …: this function takes …, received …", other_parameter},
      {"[ks] …: '…' is defined twice for these arguments", defined_twice},
      {"[ks] …: expected at most … expressions around one", deep},
      {"[ks] …: '…' calls itself more than … times within one another: …", endless},
      {"[ks] …: this assert does not hold", assert_fails},
      {"[ks] …: the index … of a tensor of …", index_outside},
      {"[ks] …: a size that is not known: '…' gets one that depends on values, and nothing says "
       "how large it is at most, as (max 0 (min 10 n)) does",
       open_size},
      {"[ks] …: a size that may be negative: '…' gets one that is … at least; (max 0 n) is not",
       negative_size},
      {"[ks] …: '…' of tensors of different sizes", different_sizes},
      {"[ks] …: '…' of tensors whose sizes are not known to be the same: build one over the size "
       "of the other",
       perhaps_different_sizes},
      {"[ks] input …, of the parameter '…': expected … with … dimensions, received …", other_input},
      {"[ks] expected … inputs, received …", more_inputs},
      {"[ks] '…' has no graph: expected a function, its fwd, rev, sufrev, suffwdpass or sufrevpass",
       other_derivation},
      {"[ks] '…' received no tensor", no_tensor},
      {"[ks] …: 'main' has parameters: import a function to call it with values",
       main_has_parameters},
      {"[ks] …: 'print' in a function that is called for each index, in a derivative or under an "
       "if on values: nobody knows how often",
       prints_for_each_index},
      {"[ks] '…' is no function of Floats alone: it has a …", not_of_numbers},
      {"[ks] a function of numbers has no derivative, fold or tensor within: call it on tensors",
       derivative_of_numbers},
      {"[ks] a function of numbers has a sum of … terms; expected at most …",
       long_sum_of_numbers}});
  return others;
}

}  // namespace flashlight::test
