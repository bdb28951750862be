// Backends by name, and backends of shared libraries.
#include "flashlight/backends/registry.h"

#include <gmock/gmock.h>

#include <cstdlib>
#include <fstream>

#include "composit/eval/evaluate.h"
#include "composit/io/saved_capture.h"
#include "composit/op/plugin.h"
#include "composit/ops/functions.h"
#include "composit/ops/native.h"
#include "flashlight/cpp/backend.h"
#include "flashlight/mosaic/backend.h"
#include "flashlight/runtime/profile.hpp"
#include "tests/agreement.h"
#include "tests/counting_backend.h"
#include "tests/io/temporary_folder.h"
#include "tests/user_error.h"

namespace flashlight {
namespace {

using composit::Array;
using composit::Backend;
using composit::Compiled;
using composit::Device;
using composit::Graph;
using composit::InputBuffer;
using composit::LazyTensor;
using composit::user_error;
using composit::test::CountingBackend;
using testing::HasSubstr;
using testing::Optional;

class Named : public CountingBackend {
 public:
  explicit Named(std::string name, composit::OptionTable table = {})
      : name_(std::move(name)), table_(std::move(table)) {}
  std::string name() const override { return name_; }
  const composit::OptionTable& options() const override { return table_; }

 private:
  std::string name_;
  composit::OptionTable table_;
};

// sin(x * y) + x
struct Program {
  LazyTensor x = composit::input("x", composit::tensor_type(composit::DType::float64, {3})),
             y = composit::input("y", x.type());
  Graph graph{{.inputs = {x, y}, .outputs = {(sin(x * y) + x)}}};
  std::vector<Array> inputs = {composit::array_of(x.type(), std::vector<double>{0.5, -1, 2}),
                               composit::array_of(x.type(), std::vector<double>{3, 0.25, 1})};
};

void expect_equal(const Array& actual, const Array& expected) {
  EXPECT_EQ(composit::test::difference(actual, expected), "");
}

TEST(Backends, that_are_linked) {
  EXPECT_EQ(&backend_named("cpp"), &cpp::backend());
  EXPECT_EQ(&backend_named("mosaic"), &mosaic::backend());
  EXPECT_EQ(&backend_named("reference"), &composit::reference());
}

TEST(Backends, are_listed_where_there_is_none_of_the_name) {
  EXPECT_THAT(
      user_error([] { backend_named("fortran"); }),
      Optional(testing::MatchesRegex(
          R"(\[backend\] expected one of .*cpp, .*mosaic, .*reference.*, received .fortran.)")));
}

TEST(Backends, of_ones_own) {
  static const Named mine("mine_here");
  register_backend(mine);
  register_backend(mine);  // again
  const Program program;
  expect_equal(composit::evaluate(program.graph, program.inputs, backend_named("mine_here"))[0],
               composit::evaluate(program.graph, program.inputs)[0]);
  EXPECT_EQ(mine.run, 1);
  static const Named other("mine_here"), spaced("a b"), twice("twice", {{"x"}, {"x"}}),
      no_word("no_word", {{"a-b"}});
  EXPECT_THAT(user_error([] { register_backend(other); }),
              Optional(HasSubstr("expected a name that no backend has, received 'mine_here'")));
  EXPECT_THAT(user_error([] { register_backend(spaced); }),
              Optional(HasSubstr("expected an identifier for a name, received 'a b'")));
  EXPECT_THAT(user_error([] { register_backend(twice); }),
              Optional(HasSubstr("with distinct identifiers for names, received 'x'")));
  EXPECT_THAT(user_error([] { register_backend(no_word); }),
              Optional(HasSubstr("with distinct identifiers for names, received 'a-b'")));
}

// All backends by the one interface: on arrays, and on memory.
TEST(Backends, run_on_buffers_of_the_cpu) {
  const Program program;
  const Array expected = composit::evaluate(program.graph, program.inputs)[0];
  for (const char* name : {"cpp", "mosaic", "reference"}) {
    SCOPED_TRACE(name);
    const Compiled compiled = backend_named(name).compile(program.graph, {.name = "wave"});
    expect_equal(compiled(program.inputs)[0], expected);
    std::vector<double> result(3);
    std::vector<InputBuffer> from = {program.inputs[0].data(), program.inputs[1].data()};
    std::vector<composit::Buffer> to = {result.data()};
    compiled->run(from, to, nullptr);
    expect_equal(composit::array_of(program.x.type(), result), expected);
    const Device elsewhere = {.type = 1, .index = 0};
    from[1].device = elsewhere;
    EXPECT_THAT(
        user_error([&] { compiled->run(from, to, nullptr); }),
        Optional(HasSubstr("[wave] y: expected memory of the CPU, received memory of cuda:0")));
    from[1].device = {};
    to[0].device = elsewhere;
    EXPECT_THAT(user_error([&] { compiled->run(from, to, nullptr); }),
                Optional(HasSubstr("[wave] a result: expected memory of the CPU")));
    to[0].device = {};
    from[0].data = nullptr;
    EXPECT_TRUE(user_error([&] { compiled->run(from, to, nullptr); }).has_value());
  }
}

TEST(Backends, say_what_they_cannot_do) {
  const Program program;
  EXPECT_THAT(user_error([&] { composit::reference().write_program({}, "folder"); }),
              Optional(HasSubstr("[reference] expected a backend that writes programs")));
  EXPECT_THAT(user_error([&] { cpp::compile(program.graph)->profile({}, {}, nullptr); }),
              Optional(HasSubstr("[program] profile: expected a backend that times its kernels")));
  EXPECT_THAT(user_error([&] {
                cpp::compile(program.graph, {.options = {{"threads", 2}}});
              }),
              Optional(HasSubstr("[cpp] expected the option link_aten, received 'threads'")));
  EXPECT_THAT(user_error([&] {
                mosaic::backend().source(program.graph, {.options = {{"threads", -1}}});
              }),
              Optional(HasSubstr("[mosaic] option 'threads': expected a number of threads, or 0, "
                                 "received -1")));
}

// ---- plugins ------------------------------------------------------------------------------------

TEST(Plugins, are_backends_by_name) {
  const Backend& stack = load_plugin(FLASHLIGHT_STACK_PLUGIN);
  EXPECT_EQ(&backend_named("stack"), &stack);
  EXPECT_EQ(&load_plugin(FLASHLIGHT_STACK_PLUGIN), &stack);
  const Program program;
  const Compiled compiled = stack.compile(program.graph, {.options = {{"scale", 2}}});
  EXPECT_THAT(compiled->source(), HasSubstr("x y mul sin x add"));
  const Array expected =
      composit::evaluate({(program.graph.outputs()[0] * 2.0)},
                         {{program.x, program.inputs[0]}, {program.y, program.inputs[1]}})[0];
  expect_equal(compiled(program.inputs)[0], expected);
  EXPECT_THAT(user_error([&] {
                stack.compile(program.graph, {.options = {{"width", 2}}});
              }),
              Optional(HasSubstr("[stack] expected one of the options finite, depth, scale, "
                                 "comment, received 'width'")));
  EXPECT_THAT(user_error([&] {
                stack.compile(program.graph, {.options = {{"depth", "2"}}});
              }),
              Optional(HasSubstr("[stack] option 'depth': expected an integer, received '2'")));
}

std::optional<std::string> refusal_of(const std::string& text) {
  const composit::test::TemporaryFolder folder;
  const std::string path = folder / "plugin.so";
  std::ofstream(path, std::ios::binary) << text;
  return user_error([&] { load_plugin(path); });
}

TEST(Plugins, other_files_are_refused) {
  EXPECT_THAT(refusal_of("no library"),
              Optional(HasSubstr("plugin.so: expected a library with COMPOSIT_BACKEND_PLUGIN")));
  const std::string other = std::string(COMPOSIT_PLUGIN_HEAD) + "0, libstdc++ ABI 1";
  EXPECT_THAT(refusal_of("ELF" + other + '\0' + "rest"),
              Optional(HasSubstr("expected a plugin for interface " COMPOSIT_PLUGIN_INTERFACE
                                 ", received one for interface 0, libstdc++ ABI 1")));
  const std::string same = COMPOSIT_PLUGIN_HEAD COMPOSIT_PLUGIN_INTERFACE;
  EXPECT_THAT(refusal_of(same + '\0'),
              Optional(HasSubstr("expected a library that this program can load, received one it "
                                 "cannot: ")));
  EXPECT_THAT(user_error([] { load_plugin("/there/is/none.so"); }),
              Optional(HasSubstr("/there/is/none.so: No such file")));
}

// Whose operations would be others than those of a graph it is given.
TEST(Plugins, with_a_composit_of_their_own_are_refused) {
  EXPECT_THAT(user_error([] { load_plugin(FLASHLIGHT_APART_PLUGIN); }),
              Optional(HasSubstr("expected a plugin that uses the composit of the program that "
                                 "loads it, received one with a copy of its own")));
}

// In a process of its own: the environment is looked at once.
TEST(PluginsDeathTest, of_the_environment) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  const auto exit_with = [](const std::string& paths) {
    ::setenv("FLASHLIGHT_PLUGINS", paths.c_str(), 1);
    try {
      std::_Exit(backend_named("stack").name() == "stack" ? 0 : 1);
    } catch (const composit::UserError&) {
      std::_Exit(2);
    }
  };
  EXPECT_EXIT(exit_with(std::string(":") + FLASHLIGHT_STACK_PLUGIN), testing::ExitedWithCode(0),
              "");
  EXPECT_EXIT(exit_with("/there/is/none.so"), testing::ExitedWithCode(2), "");
}

}  // namespace
}  // namespace flashlight
