// Lists of passes, their checks, and what is printed of them.
#include "composit/passes/pass.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <sstream>

#include "composit/ir/error.h"
#include "composit/ir/parse.h"
#include "composit/ir/transform.h"
#include "composit/ops/functions.h"
#include "tests/user_error.h"

namespace composit {
namespace {

using ::testing::HasSubstr;

Graph relu_graph() {
  return parse(R"(graph(%x: float32[2]) {
    %relu: float32[2] = aten::relu(%x)
    return %relu
  })");
}

// The graph with another operation instead of relu.
Pass renaming(const char* name) {
  return {.name = "rename", .help = "for tests", .run = [name](const Graph& graph) {
            return rebuild(graph, [&](const Node& node, const LazyTensors& operands) {
              std::optional<Replacement> replacement;
              if (is_input(node)) return replacement;
              NodeSpec spec = copy_of(node, operands);
              spec.op = Symbol(name);
              replacement = replace_by(std::move(spec).make_node());
              return replacement;
            });
          }};
}

TEST(Passes, of_a_user_run_in_the_order_of_the_list) {
  const Passes list = {find_pass("canonicalize"), renaming("aten::abs"), renaming("aten::neg")};
  const Graph after = run_passes(relu_graph(), list, {});
  EXPECT_EQ(after.outputs()[0].node->op().str(), "aten::neg");
}

TEST(Passes, are_found_by_name) {
  EXPECT_EQ(find_pass("drop_no_ops").assumes, Assumes::exact);
  EXPECT_EQ(find_passes("drop_no_ops,canonicalize").at(1).name, "canonicalize");
  EXPECT_TRUE(find_passes("").empty());
  EXPECT_THAT(user_error([] { find_passes("drop_no_ops,fuse"); }).value_or(""),
              ::testing::AllOf(HasSubstr("canonicalize, canonicalize_exact"), HasSubstr("'fuse'")));
}

TEST(Passes, an_illegal_graph_names_the_pass) {
  const Pass broken{.name = "broken", .help = "", .run = [](const Graph& graph) {
                      Graph::Parts parts = graph.parts();
                      parts.inputs.clear();
                      return Graph(parts);
                    }};
  try {
    run_passes(relu_graph(), {broken}, {});
    FAIL() << "no error";
  } catch (const InternalError& error) {
    EXPECT_THAT(error.what(), HasSubstr("after the pass 'broken'"));
    EXPECT_THAT(error.what(), HasSubstr("an input is used that the graph does not list"));
  }
}

TEST(Passes, an_output_of_another_type_is_an_error) {
  const Pass wider{.name = "wider", .help = "", .run = [](const Graph& graph) {
                     Graph::Parts parts = graph.parts();
                     parts.outputs[0] = to(parts.outputs[0], DType::float64);
                     return Graph(parts);
                   }};
  EXPECT_THROW(run_passes(relu_graph(), {wider}, {}), InternalError);
}

TEST(Passes, another_input_is_an_error) {
  const Pass more{.name = "more", .help = "", .run = [](const Graph& graph) {
                    Graph::Parts parts = graph.parts();
                    parts.inputs.push_back(input("y", parts.inputs[0].type()));
                    return Graph(parts);
                  }};
  EXPECT_THROW(run_passes(relu_graph(), {more}, {}), InternalError);
}

TEST(Passes, print_what_is_asked_for) {
  const auto printed = [](const std::string& what) {
    std::ostringstream out;
    run_passes(relu_graph(), {find_pass("drop_no_ops"), renaming("aten::abs")},
               {.print = what, .out = &out});
    return out.str();
  };
  EXPECT_EQ(printed(""), "");
  EXPECT_EQ(printed("sizes"),
            "after drop_no_ops: 2 nodes, before: 2\nafter rename: 2 nodes, before: 2\n");
  EXPECT_THAT(printed("rename"), HasSubstr("after rename: 2 nodes, before: 2\ngraph("));
  EXPECT_THAT(printed("rename"), ::testing::Not(HasSubstr("relu")));
  EXPECT_THAT(printed("graphs"), ::testing::AllOf(HasSubstr("aten::relu"), HasSubstr("aten::abs")));
}

TEST(Passes, are_printed_as_the_environment_says) {
  setenv("FLASHLIGHT_PRINT_PASSES", "sizes", 1);
  EXPECT_EQ(pass_options().print, "sizes");
  unsetenv("FLASHLIGHT_PRINT_PASSES");
  EXPECT_EQ(pass_options().print, "");
}

TEST(Passes, need_something_to_run) {
  const auto message = user_error([] { run_passes(relu_graph(), {{.name = "idle"}}, {}); });
  EXPECT_EQ(message, "[passes] expected `run` in the pass 'idle'");
}

TEST(Passes, say_what_they_assume_and_do) {
  for (const Pass& pass : all_passes()) {
    EXPECT_FALSE(pass.help.empty()) << pass.name;
    EXPECT_EQ(name(pass.assumes), pass.name == "canonicalize" ? "reassociates" : "exact");
  }
}

}  // namespace
}  // namespace composit
