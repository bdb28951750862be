// Schemas read and print back as torch writes them; defaults have the kinds that the tracer
// records.
#include "composit/op/schema.h"

#include <gtest/gtest.h>

#include <fstream>
#include <random>

#include "composit/ir/error.h"
#include "tests/user_error.h"

namespace composit {
namespace {

std::vector<std::string> torch_schemas() {
  std::vector<std::string> schemas;
  std::ifstream file(FLASHLIGHT_SCHEMAS);
  for (std::string line; std::getline(file, line);)
    if (!line.starts_with('#')) schemas.push_back(line);
  return schemas;
}

TEST(Schema, PrintsAsTorchDoes) {
  const auto schemas = torch_schemas();
  EXPECT_GE(schemas.size(), 100u);
  for (const std::string& text : schemas) EXPECT_EQ(print(parse_schema(text)), text);
}

TEST(Schema, Arguments) {
  const Schema sum = parse_schema(
      "aten::sum.dim_IntList(Tensor self, int[1]? dim, bool keepdim=False, *, ScalarType? "
      "dtype=None) -> Tensor");
  EXPECT_EQ(sum.name, Symbol("aten::sum.dim_IntList"));
  ASSERT_EQ(sum.arguments.size(), 4u);
  EXPECT_TRUE(sum.arguments[0].is_tensor());
  const SchemaArgument& dim = sum.arguments[1];
  EXPECT_EQ(dim.type, ArgumentType::integer);
  EXPECT_EQ(dim.type_name, "int");
  EXPECT_EQ(dim.name, "dim");
  EXPECT_TRUE(dim.list && dim.optional && !dim.optional_items && !dim.keyword_only);
  EXPECT_EQ(dim.length, 1);
  EXPECT_EQ(dim.default_text, std::nullopt);
  EXPECT_EQ(sum.arguments[2].default_text, "False");
  EXPECT_EQ(sum.arguments[3].type, ArgumentType::dtype);
  EXPECT_TRUE(sum.arguments[3].keyword_only && sum.arguments[3].optional);
  ASSERT_EQ(sum.results.size(), 1u);
  EXPECT_EQ(sum.results[0].name, "");
}

TEST(Schema, Lists) {
  const Schema put = parse_schema(
      "a::f(Tensor(a!) self, Tensor?[] indices, Tensor(b!)[] outs, Tensor[](c!) list, str[][] s, "
      "SymInt[2]? n) -> (Tensor(a!) values, Tensor[])");
  const auto& arguments = put.arguments;
  EXPECT_TRUE(arguments[0].written());
  EXPECT_TRUE(arguments[1].list && arguments[1].optional_items && !arguments[1].optional);
  EXPECT_TRUE(arguments[2].list && arguments[2].written());
  EXPECT_EQ(arguments[3].list_alias, "c!");
  EXPECT_FALSE(arguments[3].written());
  EXPECT_EQ(arguments[4].type, ArgumentType::other);
  EXPECT_EQ(arguments[4].type_name, "str[]");
  EXPECT_TRUE(arguments[4].list);
  EXPECT_EQ(arguments[5].type, ArgumentType::symint);
  EXPECT_EQ(put.results[0].name, "values");
  EXPECT_EQ(put.results[0].alias, "a!");
  EXPECT_TRUE(put.results[1].list);
}

TEST(Schema, OtherTypes) {
  const Schema schema = parse_schema(
      "a::f(Dict(str, t)(a!) d, (int, t)[] items, Future(t) f, t(b -> *) x, __torch__.Stack c, "
      "...) -> ((int, t))");
  const auto& arguments = schema.arguments;
  for (const auto& argument : arguments) EXPECT_EQ(argument.type, ArgumentType::other);
  EXPECT_EQ(arguments[0].type_name, "Dict(str, t)");
  EXPECT_EQ(arguments[0].alias, "a!");
  EXPECT_EQ(arguments[1].type_name, "(int, t)");
  EXPECT_TRUE(arguments[1].list);
  EXPECT_EQ(arguments[2].type_name, "Future(t)");
  EXPECT_EQ(arguments[3].alias, "b -> *");
  EXPECT_EQ(arguments[4].type_name, "__torch__.Stack");
  EXPECT_EQ(arguments[5].type_name, "...");
  ASSERT_EQ(schema.results.size(), 1u);
  EXPECT_EQ(schema.results[0].type_name, "(int, t)");
}

TEST(Schema, WhiteSpaceIsFree) {
  EXPECT_EQ(print(parse_schema(" a::f ( Tensor ( a! ->b|c ) x,int [2]?y = [ 1,2 ],*,str s)->( )")),
            "a::f(Tensor(a! -> b|c) x, int[2]? y=[ 1,2 ], *, str s) -> ()");
}

// The default of an argument that is declared so.
std::optional<Attribute> default_in(const std::string& argument) {
  return default_of(parse_schema("a::f(" + argument + ") -> ()").arguments.at(0));
}

TEST(SchemaDefault, HasTheKindTheTracerRecords) {
  const auto floats = [](const std::vector<double>& values) { return float_list(values); };
  const std::vector<std::pair<std::string, Attribute>> cases = {
      {"int x=3", 3},
      {"SymInt x=-1", -1},
      {"int x=Mean", 1},
      {"int reduction=Sum", 2},
      {"float eps=1e-05", 1e-05},
      {"float eps=1.0000000000000001e-05", 1e-05},
      {"float x=1", 1.0},
      {"float? x=0.", 0.0},
      {"complex x=2.", std::complex<double>(2)},
      {"Scalar x=1", Scalar(int64_t{1})},
      {"Scalar x=0.5", Scalar(0.5)},
      {"Scalar x=True", Scalar(true)},
      {"Scalar? x=None", {}},
      {"bool x=True", true},
      {"bool? x=None", {}},
      {"str s=\"mean\"", "mean"},
      {"str s='none of these'", "none of these"},
      {"str s=\"\\\"\\'\\\\\"", "\"'\\"},
      {"str s=\" \\n\\t\\f\\v\"", " \n\t\f\v"},
      {"str? s=None", {}},
      {"ScalarType? d=4", DType::int64},
      {"ScalarType d=long", DType::int64},
      {"ScalarType d=bfloat16", DType::bfloat16},
      {"Layout l=strided", Layout::strided},
      {"Layout l=0", Layout::strided},
      {"Device d=cpu", Device{}},
      {"MemoryFormat m=contiguous_format", MemoryFormat::contiguous},
      {"MemoryFormat m=channels_last", MemoryFormat::channels_last},
      {"MemoryFormat? m=0", MemoryFormat::contiguous},
      {"Tensor? x=None", {}},
      {"Generator? g=None", {}},
      {"int[] x=[]", int_list({})},
      {"int[2] x=[0, -1]", int_list({0, -1})},
      {"int[3] x=1", int_list({1, 1, 1})},
      {"SymInt[2]? x=None", {}},
      {"float[] x=[1, 0.5]", floats({1, 0.5})},
      {"bool[2] x=[True, False]", bool_list({true, false})},
      {"str[] s=[\"a\"]", List{AttributeKind::string, {"a"}}},
      {"Scalar[] x=[1]", List{AttributeKind::scalar, {Scalar(int64_t{1})}}},
      {"Tensor?[] x=[None]", List{AttributeKind::none, {Attribute()}}},
      {"Any x=1", 1},
  };
  for (const auto& [argument, expected] : cases)
    EXPECT_EQ(default_in(argument), expected) << argument;
  EXPECT_EQ(default_in("int x"), std::nullopt);
}

TEST(SchemaDefault, OfAnArgumentMadeByHand) {
  SchemaArgument argument = parse_schema("a::f(int x=3) -> ()").arguments[0];
  argument.default_text = "3 4";
  EXPECT_THROW(default_of(argument), UserError);
  argument.default_text = "many";
  EXPECT_THROW(default_of(argument), UserError);
}

std::string refusal_of(std::string_view text) {
  return user_error([&] { parse_schema(text); }).value_or("no error");
}

TEST(SchemaErrors, SayWhere) {
  const std::vector<std::pair<std::string, std::string>> cases = {
      {"",
       "1:1: expected an operation's name, as 'aten::add.Tensor', received the end of the text"},
      {"add(Tensor x) -> Tensor",
       "1:1: expected an operation's name, as 'aten::add.Tensor', received 'add'"},
      {"a::f", "1:5: expected '(', received the end of the text"},
      {"a::f(Tensor", "1:12: expected the name of an argument, received the end of the text"},
      {"a::f(Tensor)", "1:12: expected the name of an argument, received ')'"},
      {"a::f(Tensor x", "1:14: expected ',' or ')', received the end of the text"},
      {"a::f(3 x) -> ()", "1:6: expected a type, received '3'"},
      {"a::f(*) -> ()", "1:7: expected ',', received ')'"},
      {"a::f(*, *) -> ()", "1:9: expected a type, received '*'"},
      {"a::f(Tensor(3) x) -> ()", "1:13: expected an alias set, as 'a' or '*', received '3'"},
      {"a::f(Tensor(a x) -> ()", "1:15: expected ')', received 'x'"},
      {"a::f(Dict(str x", "1:16: expected ')', received the end of the text"},
      {"a::f(int[x] y) -> ()", "1:10: expected a length or ']', received 'x'"},
      {"a::f(int[1000000000] y=1) -> ()",
       "1:10: expected a length of at most 255, received '1000000000'"},
      {"a::f(int x=many) -> ()", "1:12: expected a default of type int, received 'many'"},
      {"a::f(int x=2.5) -> ()", "1:12: expected a default of type int, received '2.5'"},
      {"a::f(int[] x=1) -> ()", "1:14: expected a default of type int[], received '1'"},
      {"a::f(int x=[1]) -> ()", "1:12: expected a default of type int, received '[1]'"},
      {"a::f(str x=mean) -> ()", "1:12: expected a default of type str, received 'mean'"},
      {"a::f(MemoryFormat x=9) -> ()",
       "1:21: expected a default of type MemoryFormat, received '9'"},
      {"a::f(Tensor x=1) -> ()", "1:15: expected a default of type Tensor, received '1'"},
      {"a::f(int x=) -> ()", "1:12: expected a default, received ')'"},
      {"a::f(int[] x=[1) -> ()", "1:16: expected ',' or ']', received ')'"},
      {"a::f() Tensor", "1:8: expected '-', received 'Tensor'"},
      {"a::f() ->", "1:10: expected a type, received the end of the text"},
      {"a::f() -> (Tensor", "1:18: expected ',' or ')', received the end of the text"},
      {"a::f(int a,\n  int) -> ()", "2:6: expected the name of an argument, received ')'"},
      {"a::f() -> Tensor x y", "1:20: expected the end of the text, received 'y'"},
  };
  for (const auto& [text, message] : cases)
    EXPECT_EQ(refusal_of(text), "[parse] schema:" + message) << text;
}

TEST(SchemaErrors, AnyTextIsReadOrRefused) {
  std::mt19937 random(7);
  const auto below = [&](size_t n) {
    return std::uniform_int_distribution<size_t>(0, n - 1)(random);
  };
  const auto schemas = torch_schemas();
  const std::string_view characters = "()[]*?,.=-> |!\"'\\:aT0#%\n";
  for (int round = 0; round < 10000; ++round) {
    std::string text = schemas[below(schemas.size())];
    for (size_t edits = 1 + below(4); edits > 0; --edits)
      text.replace(below(text.size()), below(3), 1, characters[below(characters.size())]);
    try {
      const std::string printed = print(parse_schema(text));
      EXPECT_EQ(print(parse_schema(printed)), printed) << text;
    } catch (const UserError&) {
    }
  }
}

}  // namespace
}  // namespace composit
