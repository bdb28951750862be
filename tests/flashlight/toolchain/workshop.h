// A cache and a compiler of a test's own, for as long as it runs; the compiler writes down how it
// is called. There is a space in every path.
//
//   Workshop workshop;
//   Library::load(sources_of({{"one.cpp", "extern \"C\" int one() { return 1; }"}}));
//   EXPECT_EQ(workshop.compiled(), std::vector<std::string>{"one.cpp"});
#pragma once

#include <filesystem>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "flashlight/toolchain/sources.h"
#include "tests/io/temporary_folder.h"

namespace flashlight::toolchain {

// An environment variable, set or (nullopt) unset until the end of the scope.
class Variable {
 public:
  Variable(std::string name, const std::optional<std::string>& value);
  ~Variable();
  Variable(const Variable&) = delete;
  Variable& operator=(const Variable&) = delete;

 private:
  std::string name_;
  std::optional<std::string> before_;
};

class Workshop {
 public:
  // `shell_lines` run in each call of the compiler before the compiler does.
  explicit Workshop(const std::string& shell_lines = "");

  const composit::test::TemporaryFolder& folder() const { return folder_; }
  std::filesystem::path cache() const { return folder_ / "the cache"; }
  std::filesystem::path compiler() const { return folder_ / "the compiler"; }
  // The files of this kind in the cache.
  std::vector<std::filesystem::path> cached(const std::string& extension) const;

  // The units that were compiled, sorted, or how often it linked, since one of both was asked last.
  std::vector<std::string> compiled() { return calls_since().compiled; }
  int links() { return calls_since().links; }

 private:
  struct Calls {
    std::vector<std::string> compiled;
    int links = 0;
  };
  Calls calls_since();
  std::filesystem::path calls() const { return folder_ / "the calls"; }

  composit::test::TemporaryFolder folder_;
  Variable cache_variable_, compiler_variable_;
};

Sources sources_of(std::vector<SourceFile> units);
// extern "C" int NAME() { return VALUE; } in a unit NAME.cpp.
SourceFile constant_function(const std::string& name, const std::string& value);

// Calls it in so many processes at once, and returns whether all of them returned true.
bool all_in_forks(int count, const std::function<bool()>& action);

}  // namespace flashlight::toolchain
