// Texts that the parser refuses, with its messages, and texts it accepts that are never printed.
#include "composit/ir/parse.h"

#include <gtest/gtest.h>

#include "composit/ir/error.h"
#include "composit/ir/print.h"
#include "composit/ir/verify.h"
#include "tests/user_error.h"

namespace composit {
namespace {

std::string message_of(std::string_view text, const ParseOptions& options = {}) {
  return user_error([&] { parse(text, options); }).value_or("no error");
}

struct Case {
  std::string text, message;
};

void expect_messages(const std::vector<Case>& cases) {
  for (const auto& [text, message] : cases)
    EXPECT_EQ(message_of(text), "[parse] graph:" + message) << text;
}

// A graph around one node.
std::string with_node(const std::string& node) {
  return "graph(%x: float32[2]) {\n" + node + "\nreturn %x }";
}
// A graph around one attribute.
std::string with_value(const std::string& value) {
  return with_node("%y: none = aten::f(a=" + value + ")");
}

TEST(ParseErrors, Structure) {
  expect_messages({
      {"", "1:1: expected 'graph', received the end of the text"},
      {"grph()", "1:1: expected 'graph', received 'grph'"},
      {"graph", "1:6: expected '(', received the end of the text"},
      {"graph(x", "1:7: expected an input or ')', received 'x'"},
      {"graph(%x float32[2])", "1:10: expected ':', received 'float32'"},
      {"graph(%x: float32[2] %y", "1:22: expected ',' or ')', received '%y'"},
      {"graph(%x: float32[2] input)", "1:22: expected a kind of input, received 'input'"},
      {"graph() {", "1:10: expected a statement or 'return', received the end of the text"},
      {"graph() { return", "1:17: expected a tensor, received the end of the text"},
      {"graph() { return }\nx", "2:1: expected the end of the text, received 'x'"},
      {"graph() { return %x }", "1:18: expected a name defined before, received '%x'"},
      {"graph(%x: none, %x: none) { return }",
       "1:17: expected a new name, received '%x', which is defined before"},
      {"graph(%: none)", "1:7: expected a name behind '%'"},
      {"graph(%x: none \"a\\q\")", R"(1:16: expected escapes \" \\ \n \xHH, received "a\q")"},
      {"graph(%x: none \"a\n\")",
       "1:16: expected '\"' at the end of a string, received the end of the line"},
  });
}

TEST(ParseErrors, Statements) {
  expect_messages({
      {with_node("%y = f(%x)"), "2:4: expected ':', received '='"},
      {with_node("%y: none f(%x)"), "2:10: expected '=', received 'f'"},
      {with_node("%y, %z: none = f(%x)"), "2:14: expected 2 types, received '='"},
      {with_node("%y: none = f(%x"), "3:1: expected ',' or ')', received 'return'"},
      {with_node("%y: none = f(%z)"), "2:14: expected a name defined before, received '%z'"},
      {with_node("%y: none = f(%y)"), "2:14: expected a name defined before, received '%y'"},
      {with_node("%x: none = f()"),
       "2:1: expected a new name, received '%x', which is defined before"},
      {with_node("%y: none = f([%x, 3])"), "2:19: expected a tensor, received '3'"},
      {with_node("%y: none = f(3)"),
       "2:14: expected a tensor or an attribute's name, received '3'"},
      {with_node("%y: none = f(a)"), "2:15: expected '=', received ')'"},
      {with_node("%y: none = f(a=1, a=2)"), "2:1: [f] two attributes are called 'a'"},
      {with_node("%y: none = \"\"()"), "2:1: [] a node has no operation"},
      {with_node("%y: float32[2] = composit::input(name=\"y\", kind=\"buffer\")"),
       "2:1: expected inputs in the list of the graph only"},
      {with_node("%y: float32[2] = composit::constant()"),
       "2:1: [composit::constant] a constant has a value, one output and no operand"},
      {with_node("%y: none = f() {effect=-1}"),
       "2:1: [f] the attribute 'effect' is not a place in the effect order"},
      {with_node("%y: none = f()  # 0.note=x"), "2:1: [f] an annotation is on operand 0"},
      {with_node("mutate %x"), "3:1: expected '=', received 'return'"},
  });
}

TEST(ParseErrors, Graphs) {
  expect_messages({
      {"graph(%x: none \"a\", %y: none \"a\") { return }",
       "1:6: in this graph, two inputs are called 'a'"},
      {with_node("%y: float32[3] = f() mutate %x = %y"),
       "1:6: in this graph, input 'x' is float32[2], its new value float32[3]"},
      {with_node("%y: float32[2] = f() mutate %y = %x"),
       "1:6: in this graph, the target of a mutation is not an input"},
      {with_node("f() {effect=1} g() {effect=1}"),
       "1:6: in this graph, effects are not listed in their order"},
      {with_node("f(%x) {body=region() { return }}"),
       "2:1: [f] the body has 0 inputs for 1 operands"},
      {with_node("f(%x) {body=region(%0: float32[3]) { return }}"),
       "2:1: [f] the body's input 0 is float32[3], the operand float32[2]"},
      {with_node("%y: float32[3] = f(%x) {body=region(%0: float32[2]) { return %0 }}"),
       "2:1: [f] the body's output 0 is float32[2], the node's float32[3]"},
      {with_node("f(r=region(%0: float32[3] buffer) { return })"),
       "2:1: [f] an input of a region is not a block"},
      {with_node("f(r=region() { g() {effect=0} return })"),
       "2:1: [f] a region has effects, but its node has not"},
      {with_node("f(r=region() { return %x })"),
       "2:23: expected a name defined before, received '%x'"},
  });
}

TEST(ParseErrors, Types) {
  expect_messages({
      {with_node("%y: float[2] = f()"), "2:5: expected a dtype, received 'float'"},
      {with_node("%y: 3 = f()"), "2:5: expected a type, received '3'"},
      {with_node("%y: float32 = f()"), "2:13: expected '[', received '='"},
      {with_node("%y: float32[2.5] = f()"), "2:13: expected an integer of 64 bits, received '2.5'"},
      {with_node("%y: float32[a] = f()"), "2:13: expected an integer, received 'a'"},
      {with_node("%y: float32[-1] = f()"), "2:5: a type has a negative size or stride"},
      {with_node("%y: float32[2] strides=[-1] = f()"), "2:5: a type has a negative size or stride"},
      {with_node("%y: float32[2] strides=[1, 1] = f()"),
       "2:5: a type has another number of strides than of sizes"},
      {with_node("%y: float32[2] layout=sparse strides=[1] = f()"),
       "2:5: a type has another number of strides than of sizes"},
      {with_node("%y: float32[9223372036854775807] = f()"), "2:5: a type has too many elements"},
      {with_node("%y: float32[4294967296, 4294967296] = f()"), "2:5: a type has too many elements"},
      {with_node("%y: float32[4294967296, 0, 4294967296] = f()"),
       "2:5: a type has too many elements"},
      {with_node("%y: int8[2, 2] strides=[9223372036854775807, 9223372036854775807] = f()"),
       "2:5: a type has too many elements"},
      {with_node("%y: int8[9223372036854775808] = f()"),
       "2:10: expected an integer of 64 bits, received '9223372036854775808'"},
      {with_node("%y: int8[2] layout=dense = f()"), "2:20: expected a layout, received 'dense'"},
      {with_node("%y: int8[2] device=gpu = f()"), "2:20: expected a device, received 'gpu'"},
  });
  std::string many = "%y: int8[1";
  for (size_t i = 0; i < kMaxRank; ++i) many += ", 1";
  EXPECT_EQ(message_of(with_node(many + "] = f()")),
            "[parse] graph:2:5: a type has more than 255 axes");
}

TEST(ParseErrors, Values) {
  expect_messages({
      {with_value(""), "2:22: expected the value of an attribute, received ')'"},
      {with_value("%x"), "2:22: expected the value of an attribute, received '%x'"},
      {with_value("maybe"), "2:22: expected the value of an attribute, received 'maybe'"},
      {with_value("f(3)"), "2:22: expected the value of an attribute, received 'f'"},
      {with_value("3x"), "2:22: expected an integer of 64 bits, received '3x'"},
      {with_value("0x1g"), "2:22: expected a float, received '0x1g'"},
      {with_value("1e999"), "2:22: expected a float, received '1e999'"},
      {with_value("[]"),
       "2:22: expected the kind of the elements before '[', as in int[] or any[1, true]"},
      {with_value("[1, true]"),
       "2:22: expected the kind of the elements before '[', as in int[] or any[1, true]"},
      {with_value("[1, 2"), "2:27: expected ',' or ']', received ')'"},
      {with_value("number[1]"), "2:22: expected a kind of list elements, received 'number'"},
      {with_value("[region() { return }]"), "2:23: expected no region within a list"},
      {with_value("device(3)"), "2:29: expected a device, received '3'"},
      {with_value("generator(default)"),
       "2:32: expected the role of a generator, received 'default'"},
      {with_value("complex(1, x)"), "2:33: expected a float, received 'x'"},
      {with_value("scalar(\"1\")"), "2:29: expected a float, received \"1\""},
      {with_value("scalar(scalar(1))"), "2:29: expected a float, received 'scalar'"},
      {with_value("scalar(1, bare)"), "2:32: expected 'wrapped', received 'bare'"},
      {with_value("opaque(\"torch.Class\")"),
       "2:22: expected a value that can be read, received an object that only the process knew "
       "which printed it: \"torch.Class\""},
  });
}

TEST(ParseErrors, Arrays) {
  expect_messages({
      {with_value("array(none, [])"), "2:28: expected a strided type, received none"},
      {with_value("array(int8[2] layout=sparse, [1, 2])"),
       "2:28: expected a strided type, received int8[2] layout=sparse"},
      {with_value("array(int8[2], [1])"), "2:39: expected ',', received ']'"},
      {with_value("array(int8[2], [1, 2, 3])"),
       "2:42: expected ']' behind 2 elements, received ','"},
      {with_value("array(int8[9000000000000], [1])"), "2:51: expected ',', received ']'"},
      {with_value("array(int8[2], [1, 300])"), "2:41: expected an element of int8, received '300'"},
      {with_value("array(bool[1], [1])"), "2:38: expected an element of bool, received '1'"},
      {with_value("array(complex64[1], [1])"), "2:43: expected 'complex', received '1'"},
      {with_value("array(int8[2] strides=[1000000000], [1, 2])"),
       "2:28: expected strides that leave at most 268435456 bytes between all arrays' elements, "
       "received int8[2] strides=[1000000000]"},
      {with_value("array(int8[2] @ \"w\")"), "2:38: expected no stored arrays here, received 'w'"},
  });
}

// Gaps are counted over the whole text.
TEST(ParseErrors, ManyGaps) {
  const std::string gap = "array(int8[2] strides=[100000000], [1, 2])";
  EXPECT_EQ(message_of(with_value("[" + gap + ", " + gap + "]")), "no error");
  EXPECT_NE(message_of(with_value("[" + gap + ", " + gap + ", " + gap + "]")), "no error");
}

TEST(ParseErrors, Nesting) {
  const auto nested = [](size_t depth, const std::string& open, const std::string& close) {
    std::string text;
    for (size_t i = 0; i < depth; ++i) text += open;
    for (size_t i = 0; i < depth; ++i) text += close;
    return text;
  };
  EXPECT_EQ(message_of(with_value(nested(kMaxNesting, "list[", "]"))), "no error");
  EXPECT_EQ(message_of(with_value(nested(100000, "list[", "]"))),
            "[parse] graph:2:346: expected at most 64 nested lists");
  const std::string open = "region() { f(r=", close = ") {effect=0} return }";
  EXPECT_NE(message_of(with_value(nested(100000, open, close)))
                .find("expected at most 64 nested regions"),
            std::string::npos);
  const std::string deepest = nested(kMaxNesting - 1, open, close);
  std::string legal = deepest;
  legal.insert(legal.find(close), "region() { return }");
  const Graph graph = parse(with_node("f(r=" + legal + ") {effect=0}"));
  EXPECT_NO_THROW(verify(graph));
  EXPECT_EQ(parse(print(graph)), graph);
}

TEST(ParseErrors, NameTheFileAndItsLines) {
  EXPECT_EQ(message_of("graph(\n", {.file = "net/graph.txt", .first_line = 10}),
            "[parse] net/graph.txt:11:1: expected an input or ')', received the end of the text");
}

// ---- what people may write ----------------------------------------------------------------------

TEST(Parse, IsFreeInLayout) {
  const Graph graph = parse(
      "# a comment = not a remark\n"
      "graph ( %x:float32[2,3,] , ) {\n"
      "  # another\n"
      "  %a:float32[2, 3]=aten::relu(%x,)  # see the paper\n"
      "\r\n\t%b : float32[2, 3] = aten::add.Tensor ( %a , %a , alpha = scalar(1) , ) { }\n"
      "  return %b, }  # done");
  EXPECT_EQ(graph,
            parse("graph(%x: float32[2, 3]) { %a: float32[2, 3] = aten::relu(%x)\n"
                  "%b: float32[2, 3] = aten::add.Tensor(%a, %a, alpha=scalar(1)) return %b }"));
  for (const NodePtr& node : graph.nodes()) EXPECT_TRUE(node->annotations().empty());
}

TEST(Parse, RemarksAreAnnotationsOnlyWhenWhole) {
  const auto annotations = [](const std::string& remark) {
    const Graph graph = parse("graph() { %x: none = f()  #" + remark + "\nreturn %x }");
    return graph.outputs()[0].node->annotations();
  };
  EXPECT_EQ(annotations(" a=b c=\"d e\" f=\"\"").size(), 3U);
  EXPECT_EQ(annotations("a=b")[0].value, "b");
  EXPECT_EQ(annotations(" a=b=c")[0].value, "b=c");
  for (const char* other : {"", " ", " a", " a=", " a=b c", " =b", " a=\"b", " 1=2", " 0.=b",
                            " a b=c", " 99999999999.a=b", " a=\"\\q\""})
    EXPECT_TRUE(annotations(other).empty()) << other;
}

// Names that were given are not kept, nodes nobody needs are not part of the graph.
TEST(Parse, KeepsWhatIsNeeded) {
  const Graph graph = parse("graph(%x: none) { %a: none = f(%x) %b: none = g(%x) return %a }");
  EXPECT_EQ(graph.size(), 2U);
}

}  // namespace
}  // namespace composit
