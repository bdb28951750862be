// Runs another program for a test, without a shell.
//
//   const CommandResult result = run({"dot", "-V"});
//   EXPECT_EQ(result.status, 0) << result.output;
#pragma once

#include <fcntl.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <string>
#include <vector>

extern char** environ;

namespace composit::test {

struct CommandResult {
  int status = -1;     // 0 if it succeeded
  std::string output;  // standard output and error
};

inline CommandResult run(std::vector<std::string> words) {
  std::vector<char*> arguments;
  for (std::string& word : words) arguments.push_back(word.data());
  arguments.push_back(nullptr);
  std::array<int, 2> pipe = {};
  CommandResult result;
  if (::pipe2(pipe.data(), O_CLOEXEC) != 0) return result;
  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  posix_spawn_file_actions_adddup2(&actions, pipe[1], STDOUT_FILENO);
  posix_spawn_file_actions_adddup2(&actions, pipe[1], STDERR_FILENO);
  pid_t process = 0;
  const int error =
      ::posix_spawnp(&process, arguments[0], &actions, nullptr, arguments.data(), environ);
  posix_spawn_file_actions_destroy(&actions);
  ::close(pipe[1]);
  std::array<char, 4096> buffer;
  for (ssize_t size; (size = ::read(pipe[0], buffer.data(), buffer.size())) > 0;)
    result.output.append(buffer.data(), static_cast<size_t>(size));
  ::close(pipe[0]);
  if (error == 0) ::waitpid(process, &result.status, 0);
  return result;
}

}  // namespace composit::test
