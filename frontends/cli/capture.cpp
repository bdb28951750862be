// `flashlight capture -- COMMAND…`: runs the command with a library preloaded that captures what
// LibTorch does in it (frontends/preload).
#include <fcntl.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <ostream>

#include "composit/ir/error.h"
#include "frontends/cli/commands.h"
#include "frontends/preload/settings.h"

namespace cli {
namespace {

namespace fs = std::filesystem;
using composit::UserError;
using flashlight::preload::Settings;

constexpr const char* kStub = "libflashlight_preload.so";
constexpr int kForwarded[] = {SIGTERM, SIGHUP, SIGUSR1, SIGUSR2, SIGCONT, SIGTSTP};

// The folder in which it is installed, or built.
fs::path find_stub() {
  const fs::path here = fs::read_symlink("/proc/self/exe").parent_path();
  std::string tried;
  for (const char* folder : {"../lib/flashlight", "../preload"}) {
    const fs::path stub = here / folder / kStub;
    if (fs::exists(stub)) return fs::canonical(stub);
    tried += (tried.empty() ? "" : ", ") + stub.string();
  }
  throw UserError("[capture] cannot find the library to preload: " + tried);
}

fs::path make_folder(const std::string& name) {
  const fs::path folder = fs::absolute(name);
  if (fs::exists(folder) && (!fs::is_directory(folder) || !fs::is_empty(folder)))
    throw UserError("[capture] " + folder.string() + " exists and is not an empty folder");
  std::error_code error;
  fs::create_directories(folder, error);
  if (error) throw UserError("[capture] cannot make " + folder.string() + ": " + error.message());
  return folder;
}

void put_first(const char* variable, const std::string& value) {
  const char* before = std::getenv(variable);
  const std::string all = before == nullptr || *before == 0 ? value : value + ":" + before;
  setenv(variable, all.c_str(), 1);
}

[[noreturn]] void execute(const std::vector<std::string>& command, const fs::path& stub,
                          const Settings& settings, int report) {
  put_first("LD_PRELOAD", stub.string());
  setenv(flashlight::preload::kVariable, print(settings).c_str(), 1);
  std::vector<char*> arguments;
  for (const std::string& argument : command)
    arguments.push_back(const_cast<char*>(argument.c_str()));
  arguments.push_back(nullptr);
  execvp(arguments[0], arguments.data());
  const int error = errno;
  if (write(report, &error, sizeof error) < 0) _exit(126);
  _exit(127);
}

pid_t child = 0;

void forward(int signal) {
  if (child > 0) kill(child, signal);
}

// Signals from the terminal reach the command as well as this program; the command decides. Signals
// sent to this program are passed on to the command.
void hand_on_signals() {
  signal(SIGINT, SIG_IGN);
  signal(SIGQUIT, SIG_IGN);
  for (const int number : kForwarded) signal(number, forward);
}

int wait_for(pid_t process) {
  int status = 0;
  while (waitpid(process, &status, 0) < 0 && errno == EINTR) {
  }
  return status;
}

// Runs it; the status as of waitpid.
int run_command(const std::vector<std::string>& command, const fs::path& stub,
                const Settings& settings) {
  int report[2];
  if (pipe2(report, O_CLOEXEC) != 0)
    throw UserError(std::string("[capture] cannot make a pipe: ") + std::strerror(errno));
  child = fork();
  if (child < 0)
    throw UserError(std::string("[capture] cannot start a process: ") + std::strerror(errno));
  if (child == 0) execute(command, stub, settings, report[1]);
  hand_on_signals();
  close(report[1]);
  int error = 0;
  const bool started = read(report[0], &error, sizeof error) <= 0;
  close(report[0]);
  const int status = wait_for(child);
  if (!started)
    throw UserError("[capture] cannot run '" + command[0] + "': " + std::strerror(error));
  return status;
}

// ---- afterwards ---------------------------------------------------------------------------------

std::vector<fs::path> processes_in(const fs::path& folder) {
  std::vector<fs::path> processes;
  for (const auto& entry : fs::directory_iterator(folder))
    if (entry.path().filename().string().rfind("process_", 0) == 0)
      processes.push_back(entry.path());
  std::sort(processes.begin(), processes.end());
  return processes;
}

// The captures of the only process lie in the folder itself.
std::vector<fs::path> flatten(const fs::path& folder) {
  const std::vector<fs::path> processes = processes_in(folder);
  if (processes.size() != 1) return processes;
  for (const auto& entry : fs::directory_iterator(processes[0]))
    fs::rename(entry.path(), folder / entry.path().filename());
  fs::remove(processes[0]);
  return {folder};
}

void report(const fs::path& folder, std::ostream& out) {
  const std::vector<fs::path> processes = flatten(folder);
  if (processes.empty()) {
    out << "flashlight: nothing captured: no process loaded a LibTorch that can be captured\n";
    fs::remove(folder);
  }
  for (const fs::path& process : processes) {
    out << "flashlight: " << process.string() << '\n';
    std::ifstream index(process / "index.txt");
    for (std::string line; std::getline(index, line);) out << "  " << line << '\n';
  }
}

// Ends as the command ended.
int end_as(int status) {
  if (!WIFSIGNALED(status)) return WEXITSTATUS(status);
  const rlimit no_core{};
  setrlimit(RLIMIT_CORE, &no_core);
  signal(WTERMSIG(status), SIG_DFL);
  raise(WTERMSIG(status));
  return 128 + WTERMSIG(status);
}

}  // namespace

int capture(const CaptureArguments& arguments, std::ostream& log) {
  if (arguments.command.empty())
    throw UserError("[capture] expected a command: flashlight capture [OPTIONS] -- COMMAND…");
  Settings settings;
  settings.cut = flashlight::preload::parse_cut(arguments.cut);
  settings.step = arguments.step;
  settings.steps = arguments.steps;
  settings.lines = arguments.lines;
  const fs::path stub = find_stub();
  settings.folder = make_folder(arguments.folder);
  const int status = run_command(arguments.command, stub, settings);
  report(settings.folder, log);
  log.flush();
  return end_as(status);
}

}  // namespace cli
