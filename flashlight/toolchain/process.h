// Runs another program to its end, without a shell.
//
//   const ProcessResult result = run({.words = {"g++", "--version"}});
//   if (!result.succeeded()) throw UserError(result.end() + ":\n" + result.output);
//
// Any number of threads may call it. The program reads nothing, speaks English (LC_ALL=C), and can
// be interrupted with ctrl-C even if the calling thread blocks signals.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

namespace flashlight::toolchain {

struct Command {
  std::vector<std::string> words;     // the program, looked for on PATH, and its arguments
  std::filesystem::path folder = {};  // its working folder; empty: ours
};

// As text to paste into a shell: "cd 'my folder' && g++ -c model.cpp".
std::string shell_text(const Command& command);

struct ProcessResult {
  int status = 0;      // as waitpid() gives it
  std::string output;  // standard output and error, in the order written

  bool succeeded() const { return status == 0; }
  std::string end() const;  // "exit status 1", "killed by signal 9 (Killed)"
};

// Throws UserError if the program cannot be started. If this process ignores SIGCHLD, the system
// drops the status of its children and success is reported: check then what the program should
// make.
ProcessResult run(const Command& command);

}  // namespace flashlight::toolchain
