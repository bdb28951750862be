#include "flashlight/toolchain/process.h"

#include <fcntl.h>
#include <spawn.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <csignal>
#include <cstring>
#include <string_view>

#include "composit/io/file.h"
#include "composit/ir/error.h"

namespace flashlight::toolchain {
namespace {

using composit::UserError;
using composit::io::Descriptor;

// The settings of posix_spawn() beside the words of the command.
class SpawnSettings {
 public:
  SpawnSettings(const std::filesystem::path& folder, const Descriptor& output) {
    posix_spawn_file_actions_init(&actions_);
    posix_spawn_file_actions_adddup2(&actions_, output.get(), STDOUT_FILENO);
    posix_spawn_file_actions_adddup2(&actions_, output.get(), STDERR_FILENO);
    posix_spawn_file_actions_addopen(&actions_, STDIN_FILENO, "/dev/null", O_RDONLY, 0);
    if (!folder.empty()) posix_spawn_file_actions_addchdir_np(&actions_, folder.c_str());
    posix_spawnattr_init(&attributes_);
    sigset_t none;
    sigemptyset(&none);
    posix_spawnattr_setsigmask(&attributes_, &none);
    posix_spawnattr_setflags(&attributes_, POSIX_SPAWN_SETSIGMASK);
  }
  ~SpawnSettings() {
    posix_spawnattr_destroy(&attributes_);
    posix_spawn_file_actions_destroy(&actions_);
  }
  SpawnSettings(const SpawnSettings&) = delete;
  SpawnSettings& operator=(const SpawnSettings&) = delete;

  const posix_spawn_file_actions_t* actions() const { return &actions_; }
  const posix_spawnattr_t* attributes() const { return &attributes_; }

 private:
  posix_spawn_file_actions_t actions_;
  posix_spawnattr_t attributes_;
};

std::vector<char*> pointers(std::vector<std::string>& words) {
  std::vector<char*> result;
  result.reserve(words.size() + 1);
  for (std::string& word : words) result.push_back(word.data());
  result.push_back(nullptr);
  return result;
}

// Messages are in English: this code parses them, and people search for them.
std::vector<std::string> english_environment() {
  std::vector<std::string> variables = {"LC_ALL=C"};
  for (char** variable = environ; *variable != nullptr; ++variable)
    if (!std::string_view(*variable).starts_with("LC_ALL=")) variables.emplace_back(*variable);
  return variables;
}

int wait_for(pid_t process) {
  int status = 0;
  while (::waitpid(process, &status, 0) < 0)
    if (errno != EINTR) return 0;  // ECHILD: the system dropped it
  return status;
}

std::string content(const Descriptor& file) {
  std::string text;
  std::array<char, 4096> buffer;
  for (ssize_t size; (size = ::pread(file.get(), buffer.data(), buffer.size(),
                                     static_cast<off_t>(text.size()))) > 0;)
    text.append(buffer.data(), static_cast<size_t>(size));
  return text;
}

std::string quoted(const std::string& word) {
  constexpr std::string_view kPlain =
      "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789@%+=:,./_-";
  if (!word.empty() && word.find_first_not_of(kPlain) == std::string::npos) return word;
  std::string text = "'";
  for (const char c : word) text += c == '\'' ? "'\\''" : std::string(1, c);
  return text + "'";
}

}  // namespace

std::string shell_text(const Command& command) {
  std::string text = command.folder.empty() ? "" : "cd " + quoted(command.folder) + " &&";
  for (const std::string& word : command.words) text += (text.empty() ? "" : " ") + quoted(word);
  return text;
}

std::string ProcessResult::end() const {
  if (!WIFSIGNALED(status)) return "exit status " + std::to_string(WEXITSTATUS(status));
  const int signal = WTERMSIG(status);
  return "killed by signal " + std::to_string(signal) + " (" + ::strsignal(signal) + ")";
}

ProcessResult run(const Command& command) {
  // The output goes to memory, not to a pipe: its size has no limit before we read, and we do not
  // wait for a server that the program leaves running with the same output.
  const Descriptor output(::memfd_create("output", MFD_CLOEXEC));
  if (!output) composit::io::throw_system_error("run", command.words.at(0), errno);
  std::vector<std::string> words = command.words;
  std::vector<std::string> environment = english_environment();
  const SpawnSettings settings(command.folder, output);
  pid_t process = 0;
  if (const int error =
          ::posix_spawnp(&process, words[0].c_str(), settings.actions(), settings.attributes(),
                         pointers(words).data(), pointers(environment).data()))
    composit::io::throw_system_error("run", words[0], error);
  const int status = wait_for(process);
  return {status, content(output)};
}

}  // namespace flashlight::toolchain
