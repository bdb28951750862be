// Pictures say what the graph says; what is large is divided into pages that lead to each other.

#include "composit/io/visualize.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>
#include <iostream>
#include <map>
#include <random>
#include <set>
#include <sstream>

#include "composit/ops/operations.h"
#include "tests/io/arrays.h"
#include "tests/io/command.h"
#include "tests/io/model_graphs.h"
#include "tests/io/temporary_folder.h"

namespace composit::test {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

size_t count(const std::string& text, const std::string& pattern) {
  size_t found = 0;
  for (size_t at = text.find(pattern); at != std::string::npos; at = text.find(pattern, at + 1))
    ++found;
  return found;
}

// Pages and the number of nodes on each, after all links have been followed from `first`.
std::map<std::string, size_t> pages_from(const std::filesystem::path& first) {
  const CommandResult result = run(
      {FLASHLIGHT_SYSTEM_PYTHON, FLASHLIGHT_SOURCE_DIR "/tests/io/check_pages.py", first.string()});
  EXPECT_EQ(result.status, 0) << result.output;
  std::map<std::string, size_t> pages;
  std::istringstream lines(result.output);
  size_t nodes = 0;
  for (std::string name; lines >> nodes && std::getline(lines >> std::ws, name);)
    pages[name] = nodes;
  return pages;
}

// The counts of graphviz itself for a DOT text, which it must accept.
size_t nodes_in(const std::string& dot) {
  const TemporaryFolder folder;
  write_file(folder / "a.dot", dot);
  const CommandResult result = run({"dot", "-Tplain", (folder / "a.dot").string()});
  EXPECT_EQ(result.status, 0) << result.output;
  return count(result.output, "\nnode ");
}

LazyTensor op(std::string_view name, const LazyTensor& x, const std::string& scope) {
  return std::move(NodeSpec(name).tensor(x).annotate("scope", scope).output(x.type())).make();
}

const Type kPair = tensor_type(DType::float32, {2});

// ---- one page -----------------------------------------------------------------------------------

TEST(visualize, shows_operations_types_parameters_and_scopes) {
  const std::string dot = to_dot(perceptron_graph());
  EXPECT_EQ(nodes_in(dot), 8U);  // x, t, addmm, relu, t, addmm, softmax, output
  for (const char* text : {"<B>addmm</B>", "float32 32×128", "bias  128", "weight  128×784",
                           "<B>softmax</B>", "output 0"})
    EXPECT_THAT(dot, HasSubstr(text));
  EXPECT_EQ(count(dot, "subgraph cluster_"), 2U);
  EXPECT_THAT(dot, HasSubstr("label=<hidden>"));
  EXPECT_THAT(dot, HasSubstr("label=<output>"));
}

TEST(visualize, writes_one_picture_of_a_small_graph) {
  const TemporaryFolder folder;
  visualize(perceptron_graph(), folder / "a.svg");
  visualize(perceptron_graph(), folder / "a.dot");
  EXPECT_EQ(folder.list(), (std::vector<std::string>{"a.dot", "a.svg"}));
  EXPECT_EQ(pages_from(folder / "a.svg"), (std::map<std::string, size_t>{{"a.svg", 8}}));
  EXPECT_EQ(read_file(folder / "a.dot"), to_dot(perceptron_graph()));
}

TEST(visualize, draws_tensors) {
  const TemporaryFolder folder;
  const auto before = std::filesystem::current_path();
  std::filesystem::current_path(folder.path());
  const LazyTensor x = input("x", kPair);
  visualize(op("aten::relu", x, ""), op("aten::tanh", x, ""));
  std::filesystem::current_path(before);
  EXPECT_EQ(pages_from(folder / "graph.svg"), (std::map<std::string, size_t>{{"graph.svg", 5}}));
}

TEST(visualize, shows_effects_mutations_constants_and_several_outputs) {
  const LazyTensor x = input("x", kPair);
  const LazyTensor mean = input("bn.mean", kPair, InputKind::buffer);
  NodeSpec draw("aten::bernoulli");
  draw.tensor(x).run("effect", 0).output(kPair).output(kPair);
  const NodePtr drawn = std::move(draw).make_node();
  const LazyTensor first{drawn, 0}, second{drawn, 1};
  const LazyTensor half = constant(array_of<double>(DType::float64, {}, {0.5}));
  const LazyTensor scaled =
      std::move(NodeSpec("aten::mul.Tensor").tensor(first).tensor(half).output(kPair)).make();
  const Graph graph({.inputs = {x, mean},
                     .outputs = {scaled, second, scaled, {}, mean},
                     .mutations = {{mean, scaled}, {x, mean}},
                     .effects = {drawn}});
  const std::string dot = to_dot(graph);
  for (const char* text :
       {"effect 0", "writes bn.mean", "<B>writes x</B>", "0.5  float64", "<B>output 0, 2</B>",
        "<B>output 1</B>", "<B>output 3</B>", "undefined", "<B>output 4</B>", "bn.mean  2"})
    EXPECT_THAT(dot, HasSubstr(text));
  nodes_in(dot);
}

// The colour of an operation that changes the shape of what it is given.
std::string colour_of(std::string_view name, bool effect = false) {
  NodeSpec spec(name);
  spec.tensor(input("x", kPair)).output(tensor_type(DType::float32, {3}));
  if (effect) spec.run("effect", 0);
  const NodePtr node = std::move(spec).make_node();
  const std::string dot = to_dot(Graph({.outputs = {{node, 0}}, .effects = {node}}));
  const size_t at = dot.rfind("fillcolor=", dot.find("tooltip=\"" + std::string(name)));
  return dot.substr(at, std::string("fillcolor=\"#rrggbb\"").size());
}

TEST(visualize, operations_have_the_colours_of_their_kinds) {
  add_operation({.schema = "visualize::project(Tensor x) -> Tensor",
                 .kind = OpKind::contraction,
                 .scalar = [](Expr x) { return x; }});
  const std::string product = colour_of("aten::mm"), move = colour_of("aten::permute"),
                    random = colour_of("aten::rand_like"), unknown = colour_of("mine::unknown");
  EXPECT_EQ(std::set({product, move, random, unknown}).size(), 4U);
  EXPECT_EQ(colour_of("visualize::project"), product);
  EXPECT_EQ(colour_of("aten::conv2d"), product);
  // Other overloads, in place, backward, another name of the same operation.
  EXPECT_EQ(colour_of("aten::squeeze_.dims"), move);
  EXPECT_EQ(colour_of("aten::_pad_backward"), move);
  EXPECT_EQ(colour_of("aten::concatenate"), move);
  EXPECT_EQ(colour_of("composit::storage_view"), move);
  EXPECT_EQ(colour_of("aten::cauchy_", true), random);
  EXPECT_EQ(colour_of("composit::scan"), colour_of("composit::cond"));
  EXPECT_NE(colour_of("mine::unknown", true), unknown);
}

// A layer_norm whose body is a subtraction and a division.
Graph composite_graph() {
  const LazyTensor x = input("x", kPair), w = input("w", kPair, InputKind::parameter);
  const LazyTensor a = input("0", kPair, InputKind::block), b = input("1", kPair, InputKind::block);
  const LazyTensor inner =
      std::move(NodeSpec("aten::sub.Tensor").tensor(a).tensor(a).output(kPair)).make();
  const LazyTensor result =
      std::move(NodeSpec("aten::div.Tensor").tensor(inner).tensor(b).output(kPair)).make();
  NodeSpec composite("aten::layer_norm");
  composite.tensor(x).tensor({}).tensor(w).output(kPair);
  composite.run("body",
                std::make_shared<const Graph>(Graph::Parts{.inputs = {a, b}, .outputs = {result}}));
  return Graph({.inputs = {x, w}, .outputs = {op("aten::relu", std::move(composite).make(), "")}});
}

TEST(visualize, opens_composites_on_request) {
  const std::string closed = to_dot(composite_graph());
  EXPECT_EQ(nodes_in(closed), 4U);
  EXPECT_THAT(closed, HasSubstr("<B>layer_norm</B>"));
  EXPECT_THAT(closed, Not(HasSubstr("<B>div</B>")));

  const std::string open = to_dot(composite_graph(), {.open_bodies = true});
  EXPECT_EQ(nodes_in(open), 5U);
  EXPECT_THAT(open, HasSubstr("label=<layer_norm>"));
  EXPECT_THAT(open, HasSubstr("w  2"));
  EXPECT_EQ(count(open, " -> "), 4U);  // x, sub, div, relu, output
}

TEST(visualize, is_deterministic) {
  const TemporaryFolder folder;
  EXPECT_EQ(to_dot(bert_graph(12)), to_dot(bert_graph(12)));
  const Graph unet = unet_graph(2, 1);
  visualize(unet, folder / "one", {.processes = 1});
  visualize(unet, folder / "three", {.processes = 3});
  std::vector<std::string> differing;
  for (const auto& entry : std::filesystem::directory_iterator(folder / "one"))
    if (entry.path().extension() == ".svg" &&
        read_file(entry.path()) != read_file(folder / "three" / entry.path().filename()))
      differing.push_back(entry.path().filename());
  EXPECT_TRUE(differing.empty()) << differing[0];
}

// ---- repeats ------------------------------------------------------------------------------------

TEST(visualize, draws_equal_layers_once) {
  const std::string folded = to_dot(bert_graph(12));
  EXPECT_EQ(count(folded, "<B>scaled_dot_product_attention</B>"), 1U);
  EXPECT_THAT(folded, HasSubstr("encoder.layer.0 … 11"));
  EXPECT_THAT(folded, HasSubstr("<B>×12</B>"));
  const std::string all = to_dot(bert_graph(12), {.fold_repeats = false});
  EXPECT_EQ(count(all, "<B>scaled_dot_product_attention</B>"), 12U);
  EXPECT_THAT(all, Not(HasSubstr("<B>×")));
  EXPECT_EQ(nodes_in(folded), nodes_in(to_dot(bert_graph(2))));
}

TEST(visualize, folds_each_stage_of_a_resnet) {
  const std::string dot = to_dot(resnet50_graph());
  for (const char* badge : {"1 … 2 <", "1 … 3 <", "1 … 5 <"}) EXPECT_THAT(dot, HasSubstr(badge));
  EXPECT_EQ(count(dot, "<B>×2</B>"), 2U);
  EXPECT_EQ(count(dot, "<B>×3</B>"), 1U);
  EXPECT_EQ(count(dot, "<B>×5</B>"), 1U);
}

// Layers of two operations each, in scopes of these names.
std::string dot_of_layers(const std::vector<std::string>& scopes, const std::string& odd_op = "",
                          bool chained = true) {
  const LazyTensor x = input("x", kPair);
  LazyTensor y = x;
  LazyTensors outputs;
  for (const std::string& scope : scopes) {
    const bool is_odd = !odd_op.empty() && scope == scopes.back();
    y = op(is_odd ? odd_op : "aten::tanh", op("aten::relu", chained ? y : x, scope), scope);
    outputs.push_back(y);
  }
  return to_dot(Graph({.inputs = {x}, .outputs = outputs}));
}

TEST(visualize, folds_only_what_is_equal_numbered_and_chained) {
  EXPECT_THAT(dot_of_layers({"a.0", "a.1", "a.2"}), HasSubstr("a.0 … 2"));
  EXPECT_THAT(dot_of_layers({"0", "1"}), HasSubstr("0 … 1"));
  EXPECT_THAT(dot_of_layers({"a.0", "a.1", "a.2"}, "aten::exp"), HasSubstr("0 … 1"));
  EXPECT_THAT(dot_of_layers({"a.0", "a.1"}, "aten::exp"), Not(HasSubstr("×")));
  EXPECT_THAT(dot_of_layers({"a.0", "a.2"}), Not(HasSubstr("<B>×")));
  EXPECT_THAT(dot_of_layers({"fc1", "fc2"}), Not(HasSubstr("<B>×")));
  EXPECT_THAT(dot_of_layers({"a.0", "a.1", "a.2"}, "", false), Not(HasSubstr("<B>×")));
}

TEST(visualize, folds_layers_although_the_last_ends_with_more) {
  LazyTensor x = input("x", kPair);
  const LazyTensor first = x;
  for (const char* scope : {"layer.0", "layer.1", "layer.2"})
    for (int i = 0; i < 4; ++i) x = op("aten::relu", x, scope);
  const auto dot = [&](const LazyTensor& output) {
    return to_dot(Graph({.inputs = {first}, .outputs = {output}}));
  };
  const LazyTensor more = op("aten::tanh", x, "layer.2");
  const std::string folded = dot(more);
  EXPECT_THAT(folded, HasSubstr("0 … 2 <"));
  EXPECT_EQ(nodes_in(folded), 7U);       // x, four times relu, tanh, output
  EXPECT_EQ(count(folded, " -> "), 6U);  // the tanh follows the last relu
  EXPECT_THAT(dot(op("aten::tanh", more, "layer.2")), HasSubstr("0 … 1 <"));  // too much
}

TEST(visualize, does_not_fold_layers_that_differ_in_an_attribute) {
  const auto dot = [](int second) {
    LazyTensor x = input("x", kPair);
    const LazyTensor first = x;
    for (int i = 0; i < 2; ++i) {
      const std::string scope = "layer." + std::to_string(i);
      NodeSpec sum("aten::sum");
      sum.tensor(op("aten::relu", x, scope))
          .attribute("dim", i == 0 ? 1 : second)
          .annotate("scope", scope)
          .output(kPair);
      x = std::move(sum).make();
    }
    return to_dot(Graph({.inputs = {first}, .outputs = {x}}));
  };
  EXPECT_THAT(dot(1), HasSubstr("<B>×2</B>"));
  EXPECT_THAT(dot(2), Not(HasSubstr("<B>×")));
}

// ---- many pages ---------------------------------------------------------------------------------

TEST(visualize, divides_a_large_graph_into_pages) {
  const TemporaryFolder folder;
  const Graph unet = unet_graph();
  EXPECT_GE(unet.size(), 3000U);
  const auto start = std::chrono::steady_clock::now();
  visualize(unet, folder / "unet");
  const std::chrono::duration<double> seconds = std::chrono::steady_clock::now() - start;
  const auto pages = pages_from(folder / "unet/index.html");
  std::cout << unet.size() << " nodes on " << pages.size() << " pages in " << seconds.count()
            << " s\n";
  EXPECT_GT(pages.size(), 20U);
  EXPECT_TRUE(pages.contains("down_blocks.0.svg"));
  for (const auto& [page, nodes] : pages) EXPECT_LT(nodes, 100U) << page;
  EXPECT_THAT(read_file(folder / "unet/index.html"), HasSubstr("<h1>unet</h1>"));
}

TEST(visualize, shows_every_node_on_some_page) {
  const TemporaryFolder folder;
  const Graph unet = unet_graph(2, 1);
  visualize(unet, folder / "unet", {.max_nodes = 40, .fold_repeats = false});
  size_t convolutions = 0;
  for (const auto& entry : std::filesystem::directory_iterator(folder / "unet"))
    if (entry.path().extension() == ".svg")
      convolutions += count(read_file(entry.path()), ">conv2d</text>");
  size_t expected = 0;
  for (const NodePtr& node : unet.nodes()) expected += node->op() == Symbol("aten::conv2d");
  EXPECT_EQ(convolutions, expected);
}

TEST(visualize, writes_the_pages_beside_a_picture) {
  const TemporaryFolder folder;
  visualize(unet_graph(2, 1), folder / "my graph.svg", {.max_nodes = 100});
  EXPECT_TRUE(std::filesystem::is_regular_file(folder / "my graph_pages/index.html"));
  EXPECT_GT(pages_from(folder / "my graph.svg").size(), 3U);
  EXPECT_GT(pages_from(folder / "my graph_pages/index.html").size(), 3U);
}

TEST(visualize, divides_what_has_no_scopes) {
  const TemporaryFolder folder;
  visualize(chain_graph(1000), folder / "chain");
  const auto pages = pages_from(folder / "chain/index.html");
  EXPECT_EQ(pages.size(), 15U);
  size_t total = 0;
  for (const auto& [page, nodes] : pages) {
    EXPECT_LT(nodes, 80U) << page;
    total += nodes;
  }
  EXPECT_EQ(total, 1002U + 14U +
                       26U);  // the nodes; the boxes of the overview; what leads from page to page
}

TEST(visualize, draws_a_small_graph_into_a_folder_too) {
  const TemporaryFolder folder;
  visualize(perceptron_graph(), folder / "a");
  EXPECT_EQ(folder.list(), (std::vector<std::string>{"a", "a/index.html", "a/overview.svg"}));
  pages_from(folder / "a/index.html");
}

// ---- hostile text and errors --------------------------------------------------------------------

TEST(visualize, escapes_whatever_text_there_is) {
  const TemporaryFolder folder;
  std::mt19937 random(5);
  const std::vector<std::string> nasty = {"</svg>",     "<B>",
                                          "&amp;",      "\"; evil",
                                          "\\N\\G",     "\n\r\t",
                                          "\xff\xfe",   "\xed\xa0\x80",
                                          "$(touch x)", "../..",
                                          "-",          "%s{}",
                                          "ü×…",        std::string("\0\x01\x1f", 3),
                                          "]]>",        "'",
                                          "."};
  const auto text = [&] {
    std::string result;
    for (size_t parts = random() % 4; parts-- > 0;) result += nasty[random() % nasty.size()];
    return result;
  };
  for (int round = 0; round < 10; ++round) {
    LazyTensor x = input(text(), kPair);
    const LazyTensor first = x;
    LazyTensors parameters;
    for (int i = 0; i < 40; ++i) {
      parameters.push_back(input(text() + std::to_string(i), kPair, InputKind::parameter));
      NodeSpec spec("user::" + text());
      spec.tensor(x).tensor(parameters.back()).attribute(text(), text());
      x = std::move(spec.annotate("scope", text()).annotate("source", text()).output(kPair)).make();
    }
    LazyTensors inputs = parameters;
    inputs.push_back(first);
    const Graph graph({.inputs = inputs, .outputs = {x}});
    const auto path = folder / ("a" + std::to_string(round));
    visualize(graph, path, {.max_nodes = round % 2 == 0 ? size_t{200} : size_t{10}});
    pages_from(path / "index.html");
  }
}

TEST(visualize, survives_scopes_of_any_depth) {
  std::string scope;
  for (int i = 0; i < 100000; ++i) scope += "a.";
  nodes_in(dot_of_layers({scope, scope + "b", "...", "."}));
}

TEST(visualize, says_what_is_wrong) {
  const TemporaryFolder folder;
  const auto message = [&](const std::string& file, const VisualizeOptions& options = {}) {
    return message_of([&] { visualize(perceptron_graph(), folder / file, options); });
  };
  EXPECT_THAT(message("a.png"),
              HasSubstr("expected a file that ends in .svg, .dot or .gv, or a folder, received '"));
  EXPECT_THAT(message("missing/a.svg"), HasSubstr("missing/a.svg: No such file or directory"));
  EXPECT_THAT(
      message("a.svg", {.dot = "no-such-program"}),
      HasSubstr(
          "cannot run graphviz's 'no-such-program': No such file or directory. Install graphviz"));
  EXPECT_THAT(message("a.svg", {.dot = "false"}), HasSubstr("graphviz's 'false' failed"));
  EXPECT_THAT(message("a.svg", {.dot = "true"}), HasSubstr("No such file or directory"));
  EXPECT_TRUE(folder.list().empty());
}

}  // namespace
}  // namespace composit::test
