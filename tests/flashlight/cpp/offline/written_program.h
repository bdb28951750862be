// A test's folder with a written program in it, and its compiler.
//
//   TEST_F(Offline, …) { write(capture, {.name = "encoder"});   compile();   run(); }
#pragma once

#include <gtest/gtest.h>

#include <filesystem>
#include <string>
#include <vector>

#include "flashlight/cpp/offline.h"
#include "flashlight/toolchain/process.h"
#include "tests/io/temporary_folder.h"

namespace flashlight::cpp::test {

using Words = std::vector<std::string>;

inline const Words kWarnings = {"-Wall", "-Wextra", "-Wconversion", "-Werror"};

// What a program prints; it has to end with `status`.
inline std::string output_of(const Words& words, int status = 0,
                             const std::filesystem::path& folder = {}) {
  const toolchain::ProcessResult result = toolchain::run({words, folder});
  EXPECT_EQ(WEXITSTATUS(result.status), status) << toolchain::shell_text({words, folder}) << "\n"
                                                << result.output;
  return result.output;
}

// A folder with a space in its name, and the program in it.
class Offline : public testing::Test {
 protected:
  std::filesystem::path program() const { return folder_ / "the program"; }
  std::filesystem::path executable() const { return folder_ / "an example"; }

  void write(const composit::SavedCapture& capture,
             const ProgramOptions& options = {.name = "encoder"}) {
    write_program(capture, program(), options);
  }

  // The example, by one command.
  void compile(const Words& flags = {"-O1"}, const std::string& compiler = FLASHLIGHT_TEST_CXX) {
    Words words = {compiler, "-std=c++17", "-fwrapv"};
    words.insert(words.end(), flags.begin(), flags.end());
    words.insert(words.end(), kWarnings.begin(), kWarnings.end());
    words.insert(words.end(), {"-o", executable(), "main.cpp", "model.cpp", "model_c.cpp"});
    output_of(words, 0, program());
  }

  std::string run(int status = 0, const Words& arguments = {}) {
    Words words = {executable(), program()};
    words.insert(words.end(), arguments.begin(), arguments.end());
    return output_of(words, status);
  }

  composit::test::TemporaryFolder folder_;
};

}  // namespace flashlight::cpp::test
