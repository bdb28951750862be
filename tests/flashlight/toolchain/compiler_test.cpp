// Which compiler is taken, and what is said where there is none.

#include "flashlight/toolchain/compiler.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "flashlight/toolchain/library.h"
#include "tests/flashlight/toolchain/workshop.h"

namespace flashlight::toolchain {
namespace {

using composit::test::message_of;
using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::StartsWith;

TEST(compiler, is_the_one_asked_for) {
  const Workshop workshop;  // FLASHLIGHT_CXX
  const Variable other("CXX", "no-such-compiler");
  const Compiler compiler = find_compiler();
  EXPECT_THAT(compiler.words, ElementsAre(workshop.compiler().string()));
  EXPECT_EQ(compiler.found_by, "FLASHLIGHT_CXX");
  EXPECT_FALSE(compiler.version.empty());
}

TEST(compiler, is_that_of_cxx_and_may_have_arguments) {
  Workshop workshop;
  std::filesystem::rename(workshop.compiler(), workshop.folder() / "my-c++");
  const Variable ours("FLASHLIGHT_CXX", "");
  const Variable path("PATH", workshop.folder().path().string() + ":/usr/bin:/bin");
  const Variable theirs("CXX", " my-c++  -DVALUE=5 ");
  const Library library = Library::load(sources_of({constant_function("value", "VALUE")}));
  EXPECT_EQ(library.symbol<int()>("value")(), 5);
  EXPECT_THAT(find_compiler().words,
              ElementsAre((workshop.folder() / "my-c++").string(), "-DVALUE=5"));
  EXPECT_THAT(workshop.compiled(), ElementsAre("value.cpp"));
}

TEST(compiler, is_the_one_that_built_this_where_nobody_says) {
  const Variable ours("FLASHLIGHT_CXX", std::nullopt);
  const Variable theirs("CXX", std::nullopt);
  EXPECT_THAT(find_compiler().words, ElementsAre(FLASHLIGHT_TEST_CXX));
  EXPECT_EQ(find_compiler().found_by, "the build of Flashlight");
}

TEST(compiler, that_is_missing_says_how_to_get_one) {
  const Variable variable("FLASHLIGHT_CXX", "no-such-compiler -O2");
  EXPECT_THAT(
      message_of([] { find_compiler(); }),
      AllOf(StartsWith("[compiler] FLASHLIGHT_CXX='no-such-compiler -O2': there is no program "
                       "'no-such-compiler'"),
            HasSubstr("apt install g++"), HasSubstr("dnf install gcc-c++"),
            HasSubstr("brew install gcc")));
}

TEST(compiler, that_does_not_run_says_why) {
  const Workshop workshop("echo broken; exit 7");
  EXPECT_THAT(message_of([] { find_compiler(); }),
              AllOf(HasSubstr("exit status 7\nbroken"), HasSubstr("--version")));
}

}  // namespace
}  // namespace flashlight::toolchain
