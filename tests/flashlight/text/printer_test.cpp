// Lines broken as clang-format-14 breaks them with Google's style in 100 columns; what is expected
// here is its output.
#include "flashlight/text/printer.h"

#include <gtest/gtest.h>

#include <algorithm>

namespace flashlight::text {
namespace {

Lambda lambda(const std::string& parameters, const Code& body) {
  return {.head = "[&](" + parameters + ")", .body = body};
}

// In a block of that depth: what stands at its column, and as many lines as are counted.
void expect_printed(const Code& code, const std::string& expected, size_t column = 0) {
  EXPECT_EQ(str(code, column), expected);
  EXPECT_EQ(line_count(code, column),
            static_cast<size_t>(std::count(expected.begin(), expected.end(), '\n')));
}

TEST(Printer, short_bodies_join_their_loops) {
  const For loop = {"int", "i", "0", "3"};
  expect_printed(block(loop, assignment("y[i]", "0.0f")),
                 "for (int i = 0; i < 3; ++i) y[i] = 0.0f;\n");
  expect_printed(block(loop, block(For{"int64_t", "j", "i + 1", "9", "3"}, statement("f(i, j);"))),
                 "for (int i = 0; i < 3; ++i)\n"
                 "  for (int64_t j = i + 1; j < 9; j += 3) f(i, j);\n");
  expect_printed(block(If{"x > 0"}, returned("0.0f")), "if (x > 0) return 0.0f;\n");
}

TEST(Printer, a_body_joins_up_to_the_last_column) {
  const For loop = {"int", "i", "0", "3"};
  const std::string head = "    for (int i = 0; i < 3; ++i)", most(63, 'x');
  expect_printed(block(loop, assignment("y", most)), head + " y = " + most + ";\n", 4);
  expect_printed(block(loop, assignment("y", most + "x")), head + "\n      y = " + most + "x;\n",
                 4);
}

TEST(Printer, braces_hold_what_is_more_than_a_statement) {
  const For loop = {"int", "i", "0", "3"};
  Code two = comment("zeros");
  two += statement("f(i);");
  expect_printed(block(loop, two), "for (int i = 0; i < 3; ++i) {\n  // zeros\n  f(i);\n}\n");
  Code unrolled = directive("#pragma GCC unroll 1");
  unrolled += block(loop, statement("f(i);"));
  expect_printed(block(If{"x"}, unrolled),
                 "  if (x) {\n#pragma GCC unroll 1\n    for (int i = 0; i < 3; ++i) f(i);\n  }\n",
                 2);
  expect_printed(braced(For{"", "trip", "0", ""}, statement("f();")),
                 "for (trip = 0;; ++trip) {\n  f();\n}\n");
}

TEST(Printer, alternatives_follow_each_other) {
  const auto set = [](const char* value) { return assignment("y", value); };
  expect_printed(if_else("a", set("1"), if_else("b", set("2"), set("3"))),
                 "if (a) {\n  y = 1;\n} else if (b) {\n  y = 2;\n} else {\n  y = 3;\n}\n");
  expect_printed(code(Chain{{{"try", statement("f();")}, {"catch (...)", returned("1")}}}),
                 "try {\n  f();\n} catch (...) {\n  return 1;\n}\n");
}

TEST(Printer, long_values_stand_below) {
  const std::string most(81, 'x'), longer(82, 'x');
  expect_printed(assignment("const float sum", most), "const float sum = " + most + ";\n");
  expect_printed(assignment("const float sum", longer), "const float sum =\n    " + longer + ";\n");
  expect_printed(assignment("sum", std::string(93, 'x'), "+="),
                 "sum +=\n    " + std::string(93, 'x') + ";\n");
}

// A name of a module may have any characters.
TEST(Printer, comments_stay_comments) {
  expect_printed(comment("layer\n#error\r\\"), "// layer #error /\n");
}

TEST(Printer, sums_are_cut_behind_a_sign) {
  const std::string a(50, 'a'), b(45, 'b'), c(25, 'c');
  const auto binary = ExpressionText::binary;
  expect_printed(assignment("y[i]", binary(binary(a, "+", b), "-", c)),
                 "y[i] = " + a + " +\n       " + b + " - " + c + ";\n");
  expect_printed(assignment("y[i]", binary(a, "*", b + c)),
                 "y[i] = " + a + " *\n       " + b + c + ";\n");
}

TEST(Printer, subscripts_stand_below_each_other) {
  const std::string index = "fl::floor_divide<int64_t>(index_for_the_first_dimension, 2)";
  const Element element = {"x", {"k", index, index}};
  expect_printed(returned(element.text()),
                 "  return x[k][" + index + "]\n          [" + index + "];\n", 2);
  const std::string sum = "  return x[k][" + index + "][" + index + "] + y;\n";
  expect_printed(returned(element.text() + " + y"), sum, 2);
}

TEST(Printer, lambdas_stand_below_the_other_arguments) {
  const std::string value = "sum[j] * cat[constant[i + j * 64]]",
                    first = "fl::sum<double>(std::max(0, i), 64,",
                    second = "[&](int j) { return " + value + "; });";
  const auto sum = [&](const std::string& target) {
    return call({.target = target,
                 .function = "fl::sum<double>",
                 .arguments = {"std::max(0, i)", "64", lambda("int j", returned(value))}});
  };
  expect_printed(sum("d_means[i]"),
                 "    d_means[i] = " + first + "\n" + std::string(33, ' ') + second + "\n", 4);
  expect_printed(sum("d_means_of_the_mixture[i]"),
                 "    d_means_of_the_mixture[i] = fl::sum<double>(\n        std::max(0, i), 64, " +
                     second + "\n",
                 4);
  Code body = assignment("const float x", "f(j)");
  body += returned("x * x");
  expect_printed(call({.target = "const float sum",
                       .function = "fl::sum<float>",
                       .arguments = {"9", lambda("int j", body)}}),
                 "const float sum = fl::sum<float>(9, [&](int j) {\n  const float x = f(j);\n"
                 "  return x * x;\n});\n");
}

// Sizes and a lambda that do not fit one line: one with a return type takes the last size along,
// where both fit.
TEST(Printer, sizes_go_with_lambdas) {
  const auto printed = [](const Call::Argument& size, const Lambda& first) {
    return str(
        call({.function = "fl::product<float>",
              .arguments = {"320", "1024", size, first, lambda("int k, int j", returned("x[k][j]")),
                            lambda("int i, int j, float sum", assignment("y[i]", "sum"))}}));
  };
  const auto expected = [](const std::string& middle) {
    return "fl::product<float>(\n    " + middle +
           "    [&](int k, int j) { return x[k][j]; }, "
           "[&](int i, int j, float sum) { y[i] = sum; });\n";
  };
  const auto place = [](const std::string& element) {
    return Lambda{"[&](int i, int k) -> auto&", true, returned(element)};
  };
  const std::string query = "query[i][j * 64 + k] * 0.35355338f * 0.35355338f + 0.5f";
  EXPECT_EQ(printed("2880", lambda("int i, int k", returned(query))),
            expected("320, 1024, 2880,\n    [&](int i, int k) { return " + query + "; },\n"));
  const std::string both = "weights.conv1_weight[i][k / 9][k / 3 % 300][k % 3]",
                    one = "weights.conv1_weight[i][k / 9][k / 3 % 300000][k % 3]",
                    none = "weights.downsamplers_0_conv_weight[i][k / 9][k / 3 % 3][k % 3]";
  const auto text = [](const std::string& element) {
    return "[&](int i, int k) -> auto& { return " + element + "; },\n";
  };
  EXPECT_EQ(printed("2880", place(both)), expected("320, 1024,\n    2880, " + text(both)));
  EXPECT_EQ(printed("2880", place(one)), expected("320, 1024, 2880,\n    " + text(one)));
  EXPECT_EQ(printed("2880", place(none)),
            expected("320, 1024, 2880,\n    [&](int i, int k) -> auto& {\n      return " + none +
                     ";\n    },\n"));
  const auto inner =
      std::make_shared<const Call>(Call{"", "f", {std::string("2"), std::string("3")}, ""});
  EXPECT_EQ(printed(inner, place(both)), expected("320, 1024, f(2, 3),\n    " + text(both)));
}

TEST(Printer, calls_take_the_lines_they_need) {
  const std::string a(32, 'a'), b(44, 'b'), c(14, 'c');
  expect_printed(
      call("layer", {"weights.layer[0]", a, b, c, "arena + 4096"}),
      "layer(weights.layer[0], " + a + ",\n      " + b + ", " + c + ", arena + 4096);\n");
  const std::string name(74, 'f'), d(18, 'd');
  expect_printed(call(name, {c, d, c, d, c}),
                 name + "(\n    " + c + ", " + d + ", " + c + ", " + d + ", " + c + ");\n");
  expect_printed(call("f", {std::string(96, 'a')}), "f(" + std::string(96, 'a') + ");\n");
  expect_printed(call("f", {}), "f();\n");
  expect_printed(code(List{"const char* const names[] = ", {"\"" + a + "\"", "\"" + b + "\""}}),
                 "const char* const names[] = {\"" + a + "\",\n                             \"" +
                     b + "\"};\n");
}

TEST(Printer, functions_have_their_comments_above) {
  const Function relu = {.heading = comment(std::string(60, 'a') + " " + std::string(40, 'b')),
                         .name = "relu",
                         .parameters = {"const float (&x)[3]", "float (&__restrict y)[3]"},
                         .body = statement("f(x, y);")};
  expect_printed(definition(relu), "// " + std::string(60, 'a') + "\n// " + std::string(40, 'b') +
                                       "\nvoid relu(const float (&x)[3], float (&__restrict y)[3]) "
                                       "{\n  f(x, y);\n}\n");
  expect_printed(declaration(relu), "void relu(const float (&x)[3], float (&__restrict y)[3]);\n");
  Function other = relu;
  other.name = "gelu";
  other.heading = {};
  EXPECT_EQ(text_without_name(relu), text_without_name(other));
}

// A line for each statement, whether or not it shares one or needs two.
TEST(Printer, the_length_is_that_of_statements) {
  const Code loop = block(For{"int", "i", "0", "3"}, assignment("y[i]", std::string(92, 'x')));
  EXPECT_EQ(length(loop), 2U);
  EXPECT_EQ(line_count(loop), 3U);
  EXPECT_EQ(length(block(If{"x"}, statement("f();"))), 2U);
  EXPECT_EQ(line_count(block(If{"x"}, statement("f();"))), 1U);
  EXPECT_EQ(length(if_else("x", loop, statement("f();"))), 6U);
}

TEST(ExpressionText, a_value_stands_where_the_accumulator_was) {
  const ExpressionText sum = ExpressionText::accumulator("_");
  const ExpressionText twice = sum + " + " + sum, scaled = "a_b * " + sum + " + c_d";
  EXPECT_EQ(scaled.accumulators(), 1U);
  EXPECT_EQ(scaled.fill("f(x)").str(), "a_b * f(x) + c_d");
  EXPECT_EQ(twice.accumulators(), 2U);
}

}  // namespace
}  // namespace flashlight::text
