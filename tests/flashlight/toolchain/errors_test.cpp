// Messages to users when the compiler refuses.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "flashlight/toolchain/library.h"
#include "flashlight/toolchain/process.h"
#include "tests/flashlight/toolchain/workshop.h"

namespace flashlight::toolchain {
namespace {

using composit::test::message_of;
using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;
using ::testing::StartsWith;

const SourceFile kBad = {"model.cpp",
                         "extern \"C\" float gelu(float x) {\n"
                         "  float y = x;\n"
                         "  return erff2(y);\n"
                         "}\n"};

std::string message_for(const Sources& sources) {
  return message_of([&] { build(sources); });
}

TEST(errors, name_the_line_and_the_operation_behind_it) {
  const Workshop workshop;
  Sources sources = sources_of({kBad});
  sources.origins = {{"other.cpp", 3, 3, "another file"},
                     {"model.cpp", 2, 2, "a line before"},
                     {"model.cpp", 4, 4, "a line behind"},
                     {"model.cpp", 1, 4, "the whole model"},
                     {"model.cpp", 3, 3, "aten::gelu at model.py:31 (encoder.layer.0)"},
                     {"model.cpp", 2, 3, "something wider"}};
  const std::string message = message_for(sources);
  EXPECT_THAT(message,
              StartsWith("[compile] model.cpp:3:10: 'erff2' was not declared in this scope"));
  EXPECT_THAT(message, HasSubstr("\n       3 |   return erff2(y);\n"
                                 "  emitted for aten::gelu at model.py:31 (encoder.layer.0)\n"
                                 "  sources and all of the compiler's output: " +
                                 workshop.cache().string()));
}

TEST(errors, command_and_sources_stay_for_another_try) {
  const Workshop workshop;
  const std::string message = message_for(sources_of({kBad}));
  constexpr std::string_view kLabel = "  command: ";
  const std::string command = message.substr(message.find(kLabel) + kLabel.size());
  const ProcessResult again = run({.words = {"sh", "-c", command}});
  EXPECT_FALSE(again.succeeded());
  EXPECT_THAT(again.output, HasSubstr("model.cpp:3:10: error: 'erff2' was not declared"));
  const auto folder = *std::filesystem::directory_iterator(workshop.cache() / "builds");
  EXPECT_EQ(composit::test::read_file(folder.path() / "model.cpp"), kBad.text);
  EXPECT_EQ(composit::test::read_file(folder.path() / "model.cpp.o.output.txt"), again.output);
}

TEST(errors, in_a_header_of_ours) {
  const Workshop workshop;
  Sources sources = sources_of({{"model.cpp", "\n#include \"kernels/mm.h\"\n"}});
  sources.headers = {{"kernels/mm.h", "\nint f() { return g(); }\n"}};
  sources.origins = {{"kernels/mm.h", 2, 2, "aten::mm"}, {"model.cpp", 2, 2, "the include"}};
  EXPECT_THAT(message_for(sources),
              AllOf(HasSubstr("kernels/mm.h:2:18: 'g' was not declared"),
                    HasSubstr("emitted for aten::mm\n"), Not(HasSubstr("reached from"))));
}

TEST(errors, in_a_header_of_others_show_the_line_that_led_there) {
  const Workshop workshop;
  Sources sources = sources_of(
      {{"model.cpp", "#include <memory>\n\nstatic auto p = std::make_unique<int&>();\n"}});
  sources.origins = {{"model.cpp", 3, 3, "aten::empty"}};
  EXPECT_THAT(message_for(sources),
              AllOf(StartsWith("[compile] /"), HasSubstr("reached from model.cpp:3\n"),
                    HasSubstr("emitted for aten::empty")));
}

TEST(errors, missing_headers_are_fatal_and_shown_likewise) {
  const Workshop workshop;
  EXPECT_THAT(message_for(sources_of({{"a.cpp", "#include \"missing.h\"\n"}})),
              StartsWith("[compile] a.cpp:1:10: missing.h: No such file or directory\n"
                         "       1 | #include \"missing.h\"\n"));
}

TEST(errors, of_the_linker_are_shown_as_they_are) {
  const Workshop workshop;
  EXPECT_THAT(message_for(sources_of({constant_function("a", "1"),
                                      {"b.cpp", "extern \"C\" int a() { return 2; }\n"}})),
              AllOf(HasSubstr("exit status 1"), HasSubstr("multiple definition of `a'"),
                    HasSubstr("-shared")));
}

TEST(errors, a_failure_leaves_what_was_compiled) {
  Workshop workshop;
  Sources sources = sources_of({constant_function("good", "1"), kBad});
  EXPECT_THROW(build(sources, {.jobs = 1}), composit::UserError);
  workshop.compiled();
  sources.units[1].text = "";
  build(sources);
  EXPECT_EQ(workshop.compiled(), std::vector<std::string>{"model.cpp"});
}

TEST(errors, symbols_that_nobody_defines) {
  const Workshop workshop;
  EXPECT_THAT(message_of([] {
                Library::load(sources_of(
                    {{"a.cpp", "extern \"C\" int far_away(); int a() { return far_away(); }"}}));
              }),
              AllOf(StartsWith("[load] "), HasSubstr("undefined symbol: far_away")));
  const Library library = Library::load(sources_of({constant_function("one", "1")}));
  EXPECT_THAT(message_of([&] { library.symbol<int()>("two"); }),
              AllOf(StartsWith("[symbol] "), HasSubstr("has no symbol 'two'")));
}

TEST(errors, names_of_files) {
  const Workshop workshop;
  EXPECT_EQ(message_for({}), "[compile] there is no unit to compile");
  EXPECT_EQ(message_for(sources_of({constant_function("a", "1"), constant_function("a", "2")})),
            "[sources] two files are named 'a.cpp'");
  for (const char* name : {"", "/tmp/a.cpp", "../a.cpp", "a/../b.cpp", "folder/"})
    EXPECT_THAT(message_for(sources_of({{name, ""}})), StartsWith("[sources] '")) << name;
}

}  // namespace
}  // namespace flashlight::toolchain
