// Which compiler is taken where the one that built Flashlight is not there.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "flashlight/toolchain/compiler.h"
#include "tests/flashlight/toolchain/workshop.h"

namespace flashlight::toolchain {
namespace {

using composit::test::message_of;
using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

class Elsewhere : public ::testing::Test {
 protected:
  Variable ours_{"FLASHLIGHT_CXX", std::nullopt};
  Variable theirs_{"CXX", std::nullopt};
};

TEST_F(Elsewhere, the_path_is_searched) {
  const composit::test::TemporaryFolder folder;
  const auto make_program = [&](const std::string& name) {
    composit::test::write_file(folder / name, "#!/bin/sh\necho 1.0\n");
    std::filesystem::permissions(folder / name, std::filesystem::perms::owner_all);
  };
  const Variable path("PATH", "/nowhere:" + folder.path().string());
  composit::test::write_file(folder / "c++", "not a program");
  make_program("clang++");
  EXPECT_THAT(find_compiler().words, ElementsAre((folder / "clang++").string()));
  make_program("g++");
  EXPECT_THAT(find_compiler().words, ElementsAre((folder / "g++").string()));
  EXPECT_EQ(find_compiler().found_by, "PATH");
}

TEST_F(Elsewhere, a_missing_compiler_says_what_was_looked_for) {
  const Variable path("PATH", "/nowhere");
  EXPECT_THAT(
      message_of([] { find_compiler(); }),
      AllOf(HasSubstr("/nowhere/c++ is not there, and there is no c++, g++ or clang++ on PATH"),
            HasSubstr("apt install g++")));
}

}  // namespace
}  // namespace flashlight::toolchain
