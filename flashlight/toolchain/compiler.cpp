#include "flashlight/toolchain/compiler.h"

#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <map>
#include <mutex>
#include <optional>
#include <sstream>

#include "composit/ir/error.h"
#include "composit/ir/knobs.h"
#include "flashlight/toolchain/process.h"

namespace flashlight::toolchain {
namespace {

namespace fs = std::filesystem;
using composit::UserError;

constexpr const char* kHowToGetOne =
    "\n  A C++ compiler comes with: apt install g++ (Debian, Ubuntu), dnf install gcc-c++ (Fedora, "
    "RHEL),\n  brew install gcc (Homebrew). FLASHLIGHT_CXX or CXX name one that is not on PATH.";

bool is_program(const fs::path& path) {
  std::error_code error;
  return fs::is_regular_file(path, error) && ::access(path.c_str(), X_OK) == 0;
}

std::string environment(const char* name) {
  const char* value = std::getenv(name);
  return value == nullptr ? "" : value;
}

// The full path of `name`, searched as a shell does; empty if there is none. Does not follow links:
// ccache knows by its own name which compiler it has to call.
fs::path locate(const std::string& name) {
  if (name.find('/') != std::string::npos) return is_program(name) ? fs::absolute(name) : "";
  std::istringstream folders(environment("PATH"));
  for (std::string folder; std::getline(folders, folder, ':');)
    if (fs::path path = fs::absolute(folder.empty() ? "." : folder) / name; is_program(path))
      return path;
  return "";
}

std::vector<std::string> split(const std::string& text) {
  if (is_program(text)) return {text};  // a path with spaces
  std::istringstream stream(text);
  std::vector<std::string> words;
  for (std::string word; stream >> word;) words.push_back(word);
  return words;
}

// The compiler that the variable names; nothing if it names none.
std::optional<Compiler> requested(const std::string& variable, const std::string& value) {
  std::vector<std::string> words = split(value);
  if (words.empty()) return std::nullopt;
  const fs::path program = locate(words[0]);
  if (program.empty())
    throw UserError("[compiler] " + variable + "='" + value + "': there is no program '" +
                    words[0] + "'" + kHowToGetOne);
  words[0] = program;
  return Compiler{std::move(words), "", variable};
}

Compiler choose() {
  if (auto compiler = requested("FLASHLIGHT_CXX", knob(composit::Knob::compiler))) return *compiler;
  if (auto compiler = requested("CXX", environment("CXX"))) return *compiler;
  if (is_program(FLASHLIGHT_CONFIGURED_CXX))
    return {{FLASHLIGHT_CONFIGURED_CXX}, "", "the build of Flashlight"};
  for (const char* name : {"c++", "g++", "clang++"})
    if (const fs::path program = locate(name); !program.empty()) return {{program}, "", "PATH"};
  throw UserError(
      "[compiler] no C++ compiler: FLASHLIGHT_CXX and CXX are not set, " FLASHLIGHT_CONFIGURED_CXX
      " is not there, and there is no c++, g++ or clang++ on PATH" +
      std::string(kHowToGetOne));
}

std::string ask_version(const Compiler& compiler) {
  Command command{compiler.words, ""};
  command.words.push_back("--version");
  const ProcessResult result = run(command);
  if (!result.succeeded())
    throw UserError("[compiler] " + compiler.found_by + ": " + shell_text(command) + ": " +
                    result.end() + "\n" + result.output);
  return result.output;
}

}  // namespace

Compiler find_compiler() {
  static std::mutex mutex;
  static std::map<std::vector<std::string>, std::string> versions;
  Compiler compiler = choose();
  const std::lock_guard lock(mutex);
  std::string& version = versions[compiler.words];
  if (version.empty()) version = ask_version(compiler);
  compiler.version = version;
  return compiler;
}

}  // namespace flashlight::toolchain
