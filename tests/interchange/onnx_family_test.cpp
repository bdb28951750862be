// Families as graphs of ONNX's operators that work out their sizes.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <set>

#include "composit/family/unify.h"
#include "composit/interchange/onnx/family.h"
#include "composit/interchange/onnx/size_fits.h"
#include "composit/interchange/onnx/size_nodes.h"
#include "composit/interchange/onnx/sized_constants.h"
#include "composit/ir/parse.h"
#include "composit/ir/print.h"
#include "composit/ops/native.h"
#include "tests/user_error.h"

namespace composit::onnx::test {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

// A program at several sizes: `text` with "N" and "M" (twice N) in the place of numbers.
Family family_of(const std::string& text, const std::vector<int64_t>& sizes) {
  std::vector<Graph> graphs;
  for (const int64_t size : sizes) {
    std::string one = text;
    for (const auto& [name, number] :
         std::vector<std::pair<std::string, int64_t>>{{"N", size}, {"M", 2 * size}})
      for (size_t at = one.find(name); at != std::string::npos; at = one.find(name))
        one.replace(at, 1, std::to_string(number));
    graphs.push_back(parse(one));
  }
  return unify(graphs, {.names = {"rows"}});
}

std::string text_at(const char* text, const std::vector<int64_t>& sizes = {5, 7, 12}) {
  return print(lower_family(family_of(text, sizes)).lowered.graph);
}

TEST(onnx_family, a_shape_that_follows_from_sizes_is_worked_out) {
  const std::string text = text_at(R"(
    graph(%x: float32[N, 6]) {
      %y: float32[M, 3] = aten::view(%x, size=[M, 3])
      return %y
    })");
  EXPECT_THAT(text, HasSubstr("onnx::Shape(%x, start=0, end=1)"));
  EXPECT_THAT(text, HasSubstr("onnx::Mul("));
  EXPECT_THAT(text, HasSubstr("onnx::Concat("));
  EXPECT_THAT(text, HasSubstr("onnx::Reshape(%x, %Concat)"));
}

TEST(onnx_family, what_does_not_follow_from_sizes_stays_a_constant) {
  const std::string text = text_at(R"(
    graph(%x: float32[N, 6]) {
      %a: float32[N, 6] = aten::relu(%x)
      %y: float32[N, 3] = aten::slice.Tensor(%a, dim=1, start=0, end=3, step=1)
      return %y
    })");
  EXPECT_THAT(text, HasSubstr("onnx::Relu"));
  EXPECT_THAT(text, Not(HasSubstr("onnx::Concat")));
}

// What the program makes of no tensor is made when the model runs.
TEST(onnx_family, counters_are_ranges) {
  const std::string text = text_at(R"(
    graph(%x: float32[N]) {
      %i: int64[N] = aten::arange(end=scalar(N), dtype=none, layout=none, device=none, pin_memory=none)
      %y: float32[N] = aten::add.Tensor(%x, %i, alpha=scalar(1))
      return %y
    })");
  EXPECT_THAT(text, HasSubstr("onnx::Range("));
}

TEST(onnx_family, guards_say_which_sizes_there_are) {
  const Unified unified = lower_family(family_of(R"(
    graph(%x: float32[N, 2], %y: float32[N, 2]) {
      %z: float32[N, 2] = aten::add.Tensor(%x, %y, alpha=scalar(1))
      return %z
    })",
                                                 {4, 8, 16}));
  ASSERT_EQ(unified.lowered.guards.size(), 1u);
  EXPECT_EQ(unified.lowered.guards[0],
            "the size 'rows' is from 4 to 16 in steps of 4: axis 0 of 'x', axis 0 of 'y'");
  EXPECT_EQ(unified.lowered.graph.outputs().size(), 2u);
  const Graph& graph = unified.lowered.graph;
  const SizeNames& names = unified.names.at({graph.outputs()[0].node.get(), 0});
  EXPECT_EQ(names, (SizeNames{"rows", std::nullopt}));
}

// ---- formulas -----------------------------------------------------------------------------------

// One size, "n" from 2 to 60, of the input that `x` is.
struct OneSize {
  LazyTensor x = input("x", tensor_type(DType::float32, {9}));
  Family family = {
      .example = Graph({.inputs = {x}, .outputs = {x}}),
      .sizes =
          {{.name = "n", .axes = {{0, 0}}, .shown = {9, 17, 40}, .low = 2, .high = 60, .step = 1}},
      .value_sizes = {},
      .formulas = {}};

  SizeFits fits(const std::vector<int64_t>& numbers) const {
    std::vector<SizeValues> points;
    for (const int64_t n : numbers) points.push_back({{"n", n}});
    return {family, {x}, points, {}};
  }
};

// Without one remainder, (n + 1) / 4 is n / 4.
TEST(onnx_family, a_quotient_is_known_when_all_remainders_were_seen) {
  const OneSize one;
  const auto quotients = [](const std::vector<int64_t>& numbers) {
    Series series;
    for (const int64_t n : numbers) series.push_back((n + 1) / 4);
    return series;
  };
  std::vector<int64_t> numbers = {9, 17, 40, 26, 58, 12, 33, 2, 60};  // none is 3 of 4
  EXPECT_THROW(one.fits(numbers).find(quotients(numbers)), ExampleWanted);
  numbers.push_back(43);
  EXPECT_FALSE(one.fits(numbers).find(quotients(numbers)).has_value());
  Series plain;
  for (const int64_t n : numbers) plain.push_back(n / 4);
  SizeFits fits = one.fits(numbers);
  EXPECT_EQ(fits.text(*fits.find(plain)), "div(n, 4)");
}

TEST(onnx_family, sums_and_products_are_found_of_three_sizes_as_well) {
  const OneSize one;
  const std::vector<int64_t> numbers = {9, 17, 40, 26};
  SizeFits fits = one.fits(numbers);
  EXPECT_EQ(fits.text(*fits.find({23, 39, 85, 57})), "(2 * n) + 5");
  EXPECT_EQ(fits.text(*fits.find({729, 4913, 64000, 17576})), "n * (n * n)");
  EXPECT_FALSE(fits.find({1, 2, 1, 2}).has_value());
}

// Of one constant at several sizes.
std::optional<SizedConstant::Form> form_of(const std::vector<Array>& arrays) {
  const OneSize one;
  SizeFits fits = one.fits({3, 5, 8});
  const auto found =
      sized_constant(arrays, [&](const Series& series) { return fits.find(series); });
  return found ? std::optional(found->form) : std::nullopt;
}

Array numbers(DType dtype, Dims sizes, const std::vector<double>& values) {
  return array_of(tensor_type(dtype, std::move(sizes)), values);
}

TEST(onnx_family, constants_that_follow_from_sizes) {
  using Form = SizedConstant::Form;
  const auto each = [](auto make) {
    std::vector<Array> arrays;
    for (const double n : {3.0, 5.0, 8.0}) arrays.push_back(make(n));
    return arrays;
  };
  const auto filled = [](double n, double value) {
    return std::vector<double>(static_cast<size_t>(n), value);
  };
  const auto size = [](double n) { return Dims{static_cast<int64_t>(n)}; };
  EXPECT_EQ(form_of(each([](double n) {
              return numbers(DType::int64, {2}, {n, 4});
            })),
            Form::integers);
  EXPECT_EQ(form_of(each([](double n) { return numbers(DType::float32, {}, {2 * n}); })),
            Form::number);
  EXPECT_EQ(form_of(each([](double n) { return numbers(DType::float32, {}, {1 / n}); })),
            Form::reciprocal);
  EXPECT_EQ(form_of(each([&](double n) { return numbers(DType::bool_, size(n), filled(n, 1)); })),
            Form::filled);
  EXPECT_EQ(form_of(each([&](double n) {
              std::vector<double> values;
              for (double i = 0; i < n; ++i) values.push_back(2 * i - 1);
              return numbers(DType::float32, {1, static_cast<int64_t>(n)}, values);
            })),
            Form::steps);
  // A root, a table, and numbers of which one differs.
  EXPECT_FALSE(form_of(each([](double n) { return numbers(DType::float32, {}, {std::sqrt(n)}); })));
  EXPECT_FALSE(form_of(each([](double n) { return numbers(DType::float32, {2}, {n, n}); })));
  EXPECT_FALSE(form_of(each([&](double n) {
    std::vector<double> values = filled(n, 2);
    values.back() = 3;
    return numbers(DType::float32, size(n), values);
  })));
  EXPECT_FALSE(form_of(each([&](double n) {  // zeros of another sign
    return numbers(DType::float32, size(n), filled(n, n == 5 ? -0.0 : 0.0));
  })));
}

// Factors of Fourier transforms of N and of 2 N numbers, which no formula of sizes gives.
TEST(onnx_family, all_constants_without_a_formula_are_refused_at_once) {
  const auto error = user_error([] {
    text_at(R"(
      graph(%x: float32[N, 6]) {
        %y: float32[M, 3] = aten::view(%x, size=[M, 3])
        %a: complex64[N, 6] = aten::_fft_r2c(%x, dim=[0], normalization=0, onesided=false)
        %b: complex64[M, 3] = aten::_fft_r2c(%y, dim=[0], normalization=0, onesided=false)
        return %a, %b
      })");
  });
  ASSERT_TRUE(error.has_value());
  EXPECT_THAT(*error, HasSubstr("these cannot be exported:\n"));
  EXPECT_THAT(*error, HasSubstr("array(float64[5"));
  EXPECT_THAT(*error, HasSubstr("array(float64[10"));
}

TEST(onnx_family, operators_that_change_nothing_are_left_out_elsewhere) {
  const Dims sizes = {2, 3};
  EXPECT_TRUE(interchange::is_left_out(sizes, sizes));
  {
    const interchange::AllOperators outer;
    EXPECT_FALSE(interchange::is_left_out(sizes, sizes));
    try {
      const interchange::AllOperators inner;
      throw 1;
    } catch (int) {
    }
    EXPECT_FALSE(interchange::is_left_out(sizes, sizes));
  }
  EXPECT_TRUE(interchange::is_left_out(sizes, sizes));
}

}  // namespace
}  // namespace composit::onnx::test
