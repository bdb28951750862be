// Ragged tensors: elements of sizes that depend on an index or on values. Values by hand,
// derivatives by central differences, results of both compilers beside those.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <sstream>

#include "composit/ops/native.h"
#include "flashlight/backends/registry.h"
#include "frontends/ks/parse.h"
#include "frontends/ks/run.h"
#include "tests/frontends/ks/run_program.h"
#include "tests/user_error.h"

namespace flashlight::ks::test {
namespace {

using composit::user_error;
using testing::ElementsAre;
using testing::HasSubstr;

constexpr double kNothing = std::numeric_limits<double>::quiet_NaN();  // behind the lengths

// An input of a function: Floats, the lengths of a ragged tensor, or Integers.
struct RaggedInput {
  composit::Dims sizes;
  Numbers values;
  bool is_integer = false, is_length = false;
};
RaggedInput integers(std::vector<int64_t> of) {
  return {{static_cast<int64_t>(of.size())}, Numbers(of.begin(), of.end()), true, false};
}
RaggedInput lengths(std::vector<int64_t> of) {
  RaggedInput made = integers(std::move(of));
  made.is_length = true;
  return made;
}
using RaggedInputs = std::vector<RaggedInput>;

composit::Type type_of(const RaggedInput& one) {
  return composit::tensor_type(one.is_integer ? composit::DType::int64 : composit::DType::float64,
                               one.sizes);
}
composit::Graph ragged_graph(const std::string& text, const std::string& function,
                             const RaggedInputs& inputs) {
  // What is written and read again is the same program.
  const Program program = parse(print(parse(text, "test.ks")), "test.ks");
  std::vector<ArgumentLeaf> leaves;
  for (const RaggedInput& one : inputs) leaves.emplace_back(type_of(one));
  return graph_of(program, function, leaves, {.floating = composit::DType::float64});
}
std::vector<composit::Array> arrays_of(const RaggedInputs& inputs) {
  std::vector<composit::Array> arrays;
  for (const RaggedInput& one : inputs)
    arrays.push_back(composit::array_of(type_of(one), one.values));
  return arrays;
}
// The numbers of all results, one after the other.
Numbers run(const composit::Graph& graph, const RaggedInputs& inputs) {
  Numbers all;
  for (const composit::Array& one : composit::evaluate(graph, arrays_of(inputs)))
    for (const double number : composit::elements<double>(one)) all.push_back(number);
  return all;
}

struct RaggedProgram {
  std::string name, text;
  RaggedInputs inputs;
  Numbers expected;    // lengths first
  size_t lengths = 0;  // how many of these numbers are lengths
  RaggedInputs cotangents = {};
};
void PrintTo(const RaggedProgram& one, std::ostream* out) { *out << one.name; }

const RaggedInput kRows = {{3, 3}, {1, kNothing, kNothing, 2, 3, kNothing, 4, 5, 6}};

std::vector<RaggedProgram> programs() {
  return {{"triangle",
           "(def f (Vec (Vec Float)) (v : Vec Float) (build (size v) (lam (i : Integer)\n"
           "  (build (add i 1) (lam (j : Integer) (mul (index i v) (index j v)))))))",
           {{{3}, {2, 3, 5}}},
           {1, 2, 3, 4, 0, 0, 6, 9, 0, 10, 15, 25},
           3,
           {{{3, 3}, {1, kNothing, kNothing, .5, 2, kNothing, -1, 3, 1}}}},
          {"sum_of_each_row",
           "(def f (Vec Float) (rows : Vec (Vec Float)) (build (size rows) (lam (i : Integer)\n"
           "  (let (row (index i rows)) (sumbuild (size row) (lam (j : Integer)\n"
           "    (div (exp (index j row)) (to_float (size row)))))))))",
           {lengths({1, 2, 0}), kRows},
           {std::exp(1), (std::exp(2) + std::exp(3)) / 2, 0},
           0,
           {{{3}, {1, -2, 3}}}},
          {"a_map_of_each_row",
           "(def squares (Vec Float) (v : Vec Float) (map (lam (x : Float) (mul x x)) v))\n"
           "(def f (Vec (Vec Float)) (rows : Vec (Vec Float))\n"
           "  (map (lam (row : Vec Float) (squares row)) rows))",
           {lengths({1, 2, 3}), kRows},
           {1, 2, 3, 1, 0, 0, 4, 9, 0, 16, 25, 36},
           3,
           {{{3, 3}, {1, kNothing, kNothing, .5, 2, kNothing, -1, 3, 1}}}},
          {"a_fold_over_each_row",
           "(def f (Vec Float) (rows : Vec (Vec Float)) (build (size rows) (lam (i : Integer)\n"
           "  (fold (lam (t : Tuple Float Float) (mul (get$1$2 t) (sin (get$2$2 t)))) 1.0\n"
           "        (index i rows)))))",
           {lengths({1, 2, 0}), kRows},
           {std::sin(1), std::sin(2) * std::sin(3), 1},
           0,
           {{{3}, {1, -2, 3}}}},
          {"a_derivative_of_each_row",
           "(def norm Float (v : Vec Float) (sqrt (sum (map (lam (x : Float) (mul x x)) v))))\n"
           "(def f (Vec (Vec Float)) (rows : Vec (Vec Float))\n"
           "  (map (lam (row : Vec Float) ([rev norm] row 1.0)) rows))",
           {lengths({1, 2, 2}), kRows},
           {1, 2, 2, 1, 0, 0, 2 / std::sqrt(13), 3 / std::sqrt(13), 0, 4 / std::sqrt(41),
            5 / std::sqrt(41), 0},
           3,
           {{{3, 3}, {1, kNothing, kNothing, .5, 2, kNothing, -1, 3, kNothing}}}},
          {"rows_that_are_written_one_by_one",
           "(def f (Vec (Vec Float)) (x : Float)\n"
           "  (Vec_init (Vec_init x) (Vec_init (mul x x) 1.0 (exp x)) (constVec 2 x)))",
           {{{}, {2}}},
           {1, 3, 2, 2, 0, 0, 4, 1, std::exp(2), 2, 2, 0},
           3,
           {{{3, 3}, {1, kNothing, kNothing, .5, 2, 3, -1, 3, kNothing}}}},
          {"ragged_twice",
           "(def f Float (v : Vec Float) (let (t (build (size v) (lam (i : Integer)\n"
           "    (build (add i 1) (lam (j : Integer) (build (add j 1) (lam (k : Integer)\n"
           "      (mul (index i v) (exp (mul (index j v) (index k v)))))))))))\n"
           "  (sum (map (lam (rows : Vec (Vec Float))\n"
           "              (sum (map (lam (row : Vec Float) (sum row)) rows))) t))))",
           {{{3}, {.2, -.3, .5}}},
           {[] {
             const Numbers v = {.2, -.3, .5};
             double total = 0;
             for (size_t i = 0; i < 3; ++i)
               for (size_t j = 0; j <= i; ++j)
                 for (size_t k = 0; k <= j; ++k) total += v[i] * std::exp(v[j] * v[k]);
             return total;
           }()},
           0,
           {{{}, {1}}}},
          {"the_largest_of_each_row",
           "(def f (Vec Float) (rows : Vec (Vec Float)) (map (lam (row : Vec Float)\n"
           "  (add (max row) (to_float (mul 10 (imax row))))) rows))",
           {lengths({1, 2, 3}), {{3, 3}, {-1, 9, 9, -2, -3, 9, 4, 6, 5}}},
           {-1, -2, 16},
           0,
           {{{3}, {1, -2, 3}}}},
          {"a_size_of_values",
           "(def f (Vec (Vec Float)) ((n : Vec Integer) (x : Float)) (map (lam (k : Integer)\n"
           "  (constVec (max 0 (min 2 k)) (exp x))) n))",
           {integers({1, 7, -3}), {{}, {1}}},
           {1, 2, 0, std::exp(1), 0, std::exp(1), std::exp(1), 0, 0},
           3,
           {{{3, 2}, {1, kNothing, 2, 3, kNothing, kNothing}}}},
          {"tuples_of_ragged_tensors",
           "(def f (Tuple Float Float) (t : Vec (Tuple Float (Vec Float)))\n"
           "  (let ((weights rows) (unzip t))\n"
           "    (tuple (ts_dot rows rows) (sum (map (lam (one : Tuple Float (Vec Float))\n"
           "      (let ((w row) one) (mul w (sum row)))) t)))))",
           {{{3}, {.5, -1, 2}}, lengths({1, 2, 0}), kRows},
           {1 + 4 + 9, .5 * 1 - 5},
           0,
           {{{}, {1}}, {{}, {-2}}}}};
}

Numbers compiled(const char* backend, const composit::Graph& graph, const RaggedInputs& inputs) {
  Numbers all;
  for (const composit::Array& one :
       flashlight::backend_named(backend).compile(graph, {.name = "ragged"})(arrays_of(inputs)))
    for (const double number : composit::elements<double>(one)) all.push_back(number);
  return all;
}

// NaN behind the lengths of an input reaches no result.
class KsRagged : public testing::TestWithParam<RaggedProgram> {};

TEST_P(KsRagged, HasItsValuesByAllBackends) {
  const RaggedProgram& one = GetParam();
  const composit::Graph graph = ragged_graph(one.text, "f", one.inputs);
  expect_near(run(graph, one.inputs), one.expected, 1e-13);
  for (const char* backend : {"cpp", "mosaic"})
    expect_near(compiled(backend, graph, one.inputs), one.expected, 1e-13);
}

double weighted(const RaggedProgram& one, const RaggedInputs& inputs) {
  const Numbers values = run(ragged_graph(one.text, "f", inputs), inputs);
  double sum = 0;
  size_t next = one.lengths;
  for (const RaggedInput& cotangent : one.cotangents)
    for (const double dy : cotangent.values) {
      if (!std::isnan(dy)) sum += dy * values.at(next);
      ++next;
    }
  return sum;
}

TEST_P(KsRagged, HasDerivatives) {
  const RaggedProgram& one = GetParam();
  RaggedInputs inputs = one.inputs;
  inputs.insert(inputs.end(), one.cotangents.begin(), one.cotangents.end());
  const composit::Graph graph = ragged_graph(one.text, "[rev f]", inputs);
  Numbers expected;
  constexpr double kStep = 1e-5;
  for (size_t i = 0; i < one.inputs.size(); ++i) {
    if (one.inputs[i].is_length)
      for (const double length : one.inputs[i].values) expected.push_back(length);
    for (size_t k = 0; !one.inputs[i].is_integer && k < one.inputs[i].values.size(); ++k) {
      RaggedInputs above = one.inputs, below = one.inputs;
      above[i].values[k] += kStep;
      below[i].values[k] -= kStep;
      expected.push_back((weighted(one, above) - weighted(one, below)) / (2 * kStep));
    }
  }
  expect_near(run(graph, inputs), expected, 1e-7);
  for (const char* backend : {"cpp", "mosaic"})
    expect_near(compiled(backend, graph, inputs), run(graph, inputs), 1e-13);

  // Forward: <dy, f'(x) dx> = <f'(x)^T dy, dx>, with dx = 1 for all Floats.
  RaggedInputs forward = one.inputs;
  for (const RaggedInput& input : one.inputs)
    if (!input.is_integer) forward.push_back({input.sizes, Numbers(input.values.size(), 1)});
  const Numbers pushed = run(ragged_graph(one.text, "[fwd f]", forward), forward);
  double received = 0, along = 0;
  size_t next = one.lengths;
  for (const RaggedInput& cotangent : one.cotangents)
    for (const double dy : cotangent.values) {
      if (!std::isnan(dy)) received += dy * pushed.at(next);
      ++next;
    }
  RaggedInputs shifted = one.inputs, back = one.inputs;
  for (size_t i = 0; i < shifted.size(); ++i)
    if (!shifted[i].is_integer)
      for (size_t k = 0; k < shifted[i].values.size(); ++k) {
        shifted[i].values[k] += kStep;
        back[i].values[k] -= kStep;
      }
  along = (weighted(one, shifted) - weighted(one, back)) / (2 * kStep);
  EXPECT_NEAR(received, along, 1e-7 * (1 + std::abs(along)));
}

INSTANTIATE_TEST_SUITE_P(All, KsRagged, testing::ValuesIn(programs()),
                         [](const auto& one) { return one.param.name; });

// Nobody can refuse a length when a program runs; what it would be of is no number.
TEST(KsRaggedInputs, ALengthOutOfRangeGivesNaN) {
  const std::string text =
      "(def f (Vec Float) (rows : Vec (Vec Float)) (map (lam (row : Vec Float) (sum row)) rows))";
  const RaggedInputs inputs = {lengths({1, 4, -1}), {{3, 3}, Numbers(9, 1)}};
  const Numbers sums = run(ragged_graph(text, "f", inputs), inputs);
  EXPECT_EQ(sums[0], 1);
  EXPECT_TRUE(std::isnan(sums[1]));
  EXPECT_TRUE(std::isnan(sums[2]));
}
TEST(KsRaggedInputs, AnIndexBehindALengthGivesNaN) {
  const RaggedInputs inputs = {lengths({1, 2, 0}), {{3, 3}, Numbers(9, 1)}};
  const Numbers second = run(ragged_graph("(def f (Vec Float) (rows : Vec (Vec Float))\n"
                                          "  (map (lam (row : Vec Float) (index 1 row)) rows))",
                                          "f", inputs),
                             inputs);
  EXPECT_TRUE(std::isnan(second[0]));
  EXPECT_EQ(second[1], 1);
  EXPECT_TRUE(std::isnan(second[2]));
}
TEST(KsRaggedInputs, APlainTensorIsOneWithoutLengths) {
  const std::string text = "(def f Integer (rows : Vec (Vec Float)) (size (index 1 rows)))";
  const RaggedInputs plain = {{{2, 3}, Numbers(6, 1)}},
                     ragged = {lengths({1, 2}), {{2, 3}, Numbers(6, 1)}};
  EXPECT_THAT(run(ragged_graph(text, "f", plain), plain), ElementsAre(3));
  EXPECT_THAT(run(ragged_graph(text, "f", ragged), ragged), ElementsAre(2));
}

TEST(KsRaggedRefuses, WithAPlace) {
  const auto error = [](const std::string& body, const std::string& result = "Float") {
    const RaggedInputs inputs = {
        lengths({1, 2}), {{2, 3}, Numbers(6, 1)}, lengths({1, 2}), {{2, 3}, Numbers(6, 1)}};
    const std::string text =
        "(def f " + result + " ((a : Vec (Vec Float)) (b : Vec (Vec Float)))\n " + body + ")";
    return user_error([&] { ragged_graph(text, "f", inputs); }).value_or("");
  };
  EXPECT_THAT(error("(sum (sum a))"), HasSubstr("2:8: 'sum' of tensors of different sizes"));
  EXPECT_THAT(error("(ts_dot a b)"),
              HasSubstr("2:3: 'ts_dot' of tensors whose sizes are not known to be the same: build "
                        "one over the size of the other"));
  EXPECT_THAT(error("(build 2 (lam (i : Integer) (constVec (sub i 1) 0.0)))"),
              HasSubstr("2:31: a size that may be negative: 'constVec' gets one that is -1 at "
                        "least; (max 0 n) is not"));
  EXPECT_THAT(
      error("(sum (index 0 (buildFromSparse a 2 (lam (i : Integer) (tuple i (index i a))))))"),
      HasSubstr("'buildFromSparse' of a ragged tensor"));
}

TEST(KsRaggedRun, PrintsWhatIsThere) {
  std::ostringstream out;
  flashlight::ks::run(parse("(def main Integer () (print (build 3 (lam (i : Integer)\n"
                            "  (build i (lam (j : Integer) (add (mul 10 i) j)))))))",
                            "test.ks"),
                      out);
  EXPECT_EQ(out.str(), "[[], [10], [20, 21]]");
}

}  // namespace
}  // namespace flashlight::ks::test
