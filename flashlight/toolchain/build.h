// Builds a shared library from sources with the system's compiler.
//
//   const std::filesystem::path library = build(sources, {.flags = {"-std=c++17", "-O3"}});
//
// Each unit is compiled by itself, several at once. Objects and library are kept in the cache
// (cache.h): only units that changed are compiled again, and the same sources cost no more than a
// look into it. The key is the compiler and its version, flags, the texts of all files, and with
// -march=native the processor. It does not cover files that flags lead to (-I, -l): mention their
// version in a flag or a text.
#pragma once

#include <filesystem>
#include <functional>
#include <string>
#include <vector>

#include "flashlight/toolchain/sources.h"

namespace flashlight::toolchain {

// A unit that is done.
struct Progress {
  std::string unit;    // its name
  size_t done, total;  // units
  bool cached;         // it was in the cache
  double seconds;      // this unit took
};

// Options of compiling.
struct CompileOptions {
  std::vector<std::string> flags = {"-std=c++17", "-O2"};  // for compiling and linking
  std::vector<std::string> link_flags = {};                // after all objects: "-lm"
  int jobs = 0;                                            // compilers at once; 0: as many as cores
  // Called after each unit, by one thread at a time, but not always by the same one.
  std::function<void(const Progress&)> progress = {};
};

// The library's file, in the cache. Units find headers by path from the folder of all sources.
// Throws UserError if there is no compiler, or if it fails: with the line, the operation that it
// was emitted for, the command, and the folder in which the sources stay for a day.
std::filesystem::path build(const Sources& sources, const CompileOptions& options = {});

}  // namespace flashlight::toolchain
