// Graphs that hold for what was captured, evaluated on values for which they do and do not.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "composit/eval/evaluate.h"
#include "composit/ir/parse.h"
#include "composit/ops/native.h"
#include "tests/user_error.h"

namespace composit {
namespace {

using testing::HasSubstr;
using testing::Optional;

Array floats(const std::vector<double>& values) {
  return array_of(tensor_type(DType::float32, {static_cast<int64_t>(values.size())}), values);
}

// `body` with inputs x and y of two numbers each; gives x.
Array run(const std::string& body, const std::vector<double>& x, const std::vector<double>& y) {
  const Graph graph = parse("graph(%x: float32[2], %y: float32[2]) {\n" + body + "\nreturn %x\n}");
  return evaluate(graph, {floats(x), floats(y)})[0];
}

constexpr const char* kSum =
    "%sum: float32[] = aten::sum(%x, dtype=none)\n"
    "aten::_local_scalar_dense(%sum) {expected=[scalar(3.0)], effect=0}";

TEST(Guards, a_number_is_what_it_was_up_to_rounding) {
  EXPECT_EQ(elements<double>(run(kSum, {1, 2}, {0, 0})), (std::vector<double>{1, 2}));
  run(kSum, {1, 2.00001}, {0, 0});
  EXPECT_THAT(user_error([] {
                run(kSum, {1, 3}, {0, 0});
              }),
              Optional(HasSubstr("guard 'aten::_local_scalar_dense' gave another number")));
}

TEST(Guards, tensors_are_equal_or_close) {
  const char* equal = "aten::equal(%x, %y) {expected=[scalar(true)], effect=0}";
  run(equal, {1, 2}, {1, 2});
  EXPECT_THAT(user_error([&] {
                run(equal, {1, 2}, {1, 2.001});
              }),
              Optional(HasSubstr("aten::equal")));
  const char* close =
      "aten::allclose(%x, %y, rtol=0.01, atol=0.0, equal_nan=false) {expected=[scalar(true)], "
      "effect=0}";
  run(close, {1, 2}, {1, 2.001});
  EXPECT_THAT(user_error([&] {
                run(close, {1, 2}, {1, 3});
              }),
              Optional(HasSubstr("aten::allclose")));
}

TEST(Guards, tensors_of_other_sizes_are_not_equal) {
  const std::string sum = "%sum: float32[] = aten::sum(%x, dtype=none)\n";
  run(sum + "aten::equal(%x, %sum) {expected=[scalar(false)], effect=0}", {1, 1}, {0, 0});
  EXPECT_THAT(
      user_error([&] {
        run(sum + "aten::equal(%x, %sum) {expected=[scalar(true)], effect=0}", {1, 1}, {0, 0});
      }),
      Optional(HasSubstr("gave another number than scalar(true)")));
}

TEST(Guards, a_condition_holds) {
  const std::string sum = "%sum: float32[] = aten::sum(%x, dtype=none)\n";
  for (const char* call :
       {"aten::_assert_async(%sum)", "aten::_assert_async.msg(%sum, assert_msg=\"not zero\")"}) {
    run(sum + call + " {effect=0}", {1, 2}, {0, 0});
    EXPECT_THAT(user_error([&] {
                  run(sum + call + " {effect=0}", {1, -1}, {0, 0});
                }),
                Optional(HasSubstr("does not hold")));
  }
}

TEST(Guards, types_are_fixed) {
  run("aten::_assert_tensor_metadata(%x, size=none, stride=none, dtype=float32, device=none, "
      "layout=none) {effect=0}",
      {1, 2}, {0, 0});
}

TEST(Guards, a_matrix_without_factors) {
  const char* errors =
      "%info: int32[2] = aten::_to_copy(%x, dtype=int32)\n"
      "aten::_linalg_check_errors(%info, api_name=\"linalg.cholesky\", is_matrix=false) {effect=0}";
  run(errors, {0, 0}, {0, 0});
  EXPECT_THAT(user_error([&] {
                run(errors, {0, 2}, {0, 0});
              }),
              Optional(HasSubstr("no such factors")));
}

TEST(Guards, sizes_that_depend_on_values) {
  const auto places = [](const std::vector<double>& x) {
    const Graph graph = parse(
        "graph(%x: float32[2]) {\n"
        "%places: int64[1, 1] = aten::nonzero(%x) {effect=0}\nreturn %places\n}");
    return elements<int64_t>(evaluate(graph, {floats(x)})[0]);
  };
  EXPECT_EQ(places({0, 5}), std::vector<int64_t>{1});
  EXPECT_THAT(user_error([&] {
                places({4, 5});
              }),
              Optional(HasSubstr("the graph holds for int64[1, 1]")));
}

}  // namespace
}  // namespace composit
