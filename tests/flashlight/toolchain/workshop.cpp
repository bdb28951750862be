#include "tests/flashlight/toolchain/workshop.h"

#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <exception>
#include <iostream>
#include <sstream>

namespace flashlight::toolchain {

namespace fs = std::filesystem;
using composit::test::write_file;

Variable::Variable(std::string name, const std::optional<std::string>& value)
    : name_(std::move(name)) {
  if (const char* before = std::getenv(name_.c_str())) before_ = before;
  value ? ::setenv(name_.c_str(), value->c_str(), 1) : ::unsetenv(name_.c_str());
}

Variable::~Variable() {
  before_ ? ::setenv(name_.c_str(), before_->c_str(), 1) : ::unsetenv(name_.c_str());
}

Workshop::Workshop(const std::string& shell_lines)
    : cache_variable_("FLASHLIGHT_CACHE", cache()),
      compiler_variable_("FLASHLIGHT_CXX", compiler()) {
  write_file(calls(), "");
  write_file(compiler(), "#!/bin/sh\necho \"$@\" >> '" + calls().string() + "'\n" + shell_lines +
                             "\nexec " FLASHLIGHT_TEST_CXX " \"$@\"\n");
  fs::permissions(compiler(), fs::perms::owner_all);
}

Workshop::Calls Workshop::calls_since() {
  Calls found;
  std::istringstream lines(composit::test::read_file(calls()));
  write_file(calls(), "");
  for (std::string line; std::getline(lines, line);) {
    if (line.find(" -shared ") != std::string::npos) ++found.links;
    const size_t unit = line.find(" -c ");
    if (unit == std::string::npos) continue;
    const std::string name = line.substr(unit + 4);
    found.compiled.push_back(name.substr(0, name.find(' ')));
  }
  std::sort(found.compiled.begin(), found.compiled.end());
  return found;
}

std::vector<fs::path> Workshop::cached(const std::string& extension) const {
  std::vector<fs::path> files;
  for (const auto& entry : fs::directory_iterator(cache() / "files"))
    if (entry.path().extension() == extension) files.push_back(entry.path());
  return files;
}

Sources sources_of(std::vector<SourceFile> units) { return {.units = std::move(units)}; }

SourceFile constant_function(const std::string& name, const std::string& value) {
  return {name + ".cpp", "extern \"C\" int " + name + "() { return " + value + "; }\n"};
}

bool all_in_forks(int count, const std::function<bool()>& action) {
  std::vector<pid_t> processes;
  for (int i = 0; i < count; ++i) {
    const pid_t process = ::fork();
    if (process == 0) {
      bool succeeded = false;
      try {
        succeeded = action();
      } catch (const std::exception& error) {
        std::cerr << error.what() << '\n';
      }
      ::_exit(succeeded ? 0 : 1);
    }
    processes.push_back(process);
  }
  bool all = true;
  for (const pid_t process : processes) {
    int status = 1;
    all = ::waitpid(process, &status, 0) == process && status == 0 && all;
  }
  return all;
}

}  // namespace flashlight::toolchain
