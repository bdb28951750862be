// A test's folder with a program that a backend wrote in it, and its compiler.
//
//   TEST_P(Offline, …) { write(capture, {.name = "encoder"});   compile();   run(); }
#pragma once

#include <gtest/gtest.h>

#include <filesystem>
#include <ostream>
#include <string>
#include <vector>

#include "flashlight/cpp/backend.h"
#include "flashlight/mosaic/offline.h"
#include "flashlight/toolchain/process.h"
#include "tests/io/temporary_folder.h"

namespace flashlight::test {

using Words = std::vector<std::string>;

// But for g++ 12 seeing rounds of loops that are too short to have them; clang knows no such
// warning.
inline const Words kWarnings = {"-Wall",
                                "-Wextra",
                                "-Wconversion",
                                "-Werror",
                                "-Wno-unknown-warning-option",
                                "-Wno-aggressive-loop-optimizations"};

// The output of a program, which has to end with `status`.
inline std::string output_of(const Words& words, int status = 0,
                             const std::filesystem::path& folder = {}) {
  const toolchain::ProcessResult result = toolchain::run({words, folder});
  EXPECT_EQ(WEXITSTATUS(result.status), status) << toolchain::shell_text({words, folder}) << "\n"
                                                << result.output;
  return result.output;
}

enum class Backend { cpp, mosaic };
inline std::string name_of(Backend backend) { return backend == Backend::cpp ? "cpp" : "mosaic"; }
inline void PrintTo(Backend backend, std::ostream* out) { *out << name_of(backend); }

struct ProgramOptions {
  std::string name = "program";
  std::vector<std::string> output_names = {};
  int threads = 2;  // of mosaic
};

// A folder with a space in its name, and the program in it.
class ProgramFolder : public testing::Test {
 protected:
  explicit ProgramFolder(Backend backend) : backend_(backend) {}

  std::filesystem::path program() const { return folder_ / "the program"; }
  std::filesystem::path executable() const { return folder_ / "an example"; }
  bool is_cpp() const { return backend_ == Backend::cpp; }

  void write(const composit::SavedCapture& capture,
             const ProgramOptions& options = {.name = "encoder"}) {
    if (is_cpp())
      cpp::write_program(capture, program(),
                         {.name = options.name, .results = options.output_names});
    else
      mosaic::write_program(capture, program(),
                            {.plan = {.name = options.name, .results = options.output_names},
                             .threads = options.threads});
  }

  // The translation units of the program, and flags that all of them need.
  Words units() const {
    Words units;
    for (const auto& file : std::filesystem::directory_iterator(program()))
      if (file.path().extension() == ".cpp" && file.path().filename() != "main.cpp")
        units.push_back(file.path().filename());
    return units;
  }
  Words flags() const {
    Words flags = {"-std=c++17", "-fwrapv"};
    if (!is_cpp()) flags.insert(flags.end(), {"-march=native", "-pthread"});
    return flags;
  }

  // The example, by one command.
  void compile(const Words& more = {"-O1"}, const std::string& compiler = FLASHLIGHT_TEST_CXX) {
    Words words = {compiler};
    for (const Words& some : {flags(), more, kWarnings, {"-o", executable(), "main.cpp"}, units()})
      words.insert(words.end(), some.begin(), some.end());
    output_of(words, 0, program());
  }

  std::string run(int status = 0, const Words& arguments = {}) {
    Words words = {executable(), program()};
    words.insert(words.end(), arguments.begin(), arguments.end());
    return output_of(words, status, folder_.path());
  }

  const Backend backend_;
  composit::test::TemporaryFolder folder_;
};

// Tests of what programs of all backends do.
class Offline : public ProgramFolder, public testing::WithParamInterface<Backend> {
 protected:
  Offline() : ProgramFolder(GetParam()) {}
};

inline const auto kBackends = testing::Values(Backend::cpp, Backend::mosaic);
inline const auto name_of_case = [](const auto& info) { return name_of(info.param); };

}  // namespace flashlight::test
