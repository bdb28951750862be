#include "tests/frontends/preload/run.h"

#include <ATen/Context.h>
#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cstring>
#include <fstream>
#include <iterator>
#include <sstream>

namespace flashlight::testing {
namespace {

namespace fs = std::filesystem;

fs::path scratch() {
  static int number = 0;
  const fs::path folder = fs::path(::testing::TempDir()) /
                          ("preload_" + std::to_string(getpid()) + "_" + std::to_string(number++));
  fs::remove_all(folder);
  fs::create_directories(folder);
  return folder;
}

std::string read_file(const fs::path& file) {
  std::ifstream in(file);
  return {std::istreambuf_iterator<char>(in), std::istreambuf_iterator<char>()};
}

void redirect(int descriptor, const fs::path& file) {
  const int target = open(file.c_str(), O_WRONLY | O_CREAT | O_TRUNC, 0600);
  dup2(target, descriptor);
  close(target);
}

// Lines of ours begin with "flashlight:", or with two spaces behind such a line.
void take_log(Captured& captured) {
  std::istringstream lines(std::exchange(captured.outcome.err, ""));
  bool ours = false;
  for (std::string line; std::getline(lines, line);) {
    ours = line.rfind("flashlight:", 0) == 0 || (ours && line.rfind("  ", 0) == 0);
    (ours ? captured.log : captured.outcome.err) += line + '\n';
  }
}

std::map<std::string, at::Tensor> copies(const std::vector<NamedTensor>& tensors) {
  std::map<std::string, at::Tensor> copied;
  for (const NamedTensor& tensor : tensors) copied[tensor.name] = tensor.tensor.detach().clone();
  return copied;
}

}  // namespace

Outcome run(const Command& command) {
  const fs::path folder = scratch();
  const pid_t child = fork();
  if (child == 0) {
    redirect(STDOUT_FILENO, folder / "out");
    redirect(STDERR_FILENO, folder / "err");
    std::vector<char*> arguments;
    for (const std::string& argument : command)
      arguments.push_back(const_cast<char*>(argument.c_str()));
    arguments.push_back(nullptr);
    execvp(arguments[0], arguments.data());
    _exit(126);
  }
  Outcome outcome;
  waitpid(child, &outcome.status, 0);
  outcome.out = read_file(folder / "out");
  outcome.err = read_file(folder / "err");
  fs::remove_all(folder);
  return outcome;
}

Captured capture(const Command& options, const Command& command) {
  Captured captured;
  captured.folder = scratch() / "captured";
  Command all = {FLASHLIGHT_CLI, "capture", "-o", captured.folder.string()};
  all.insert(all.end(), options.begin(), options.end());
  all.push_back("--");
  all.insert(all.end(), command.begin(), command.end());
  captured.outcome = run(all);
  take_log(captured);
  return captured;
}

std::vector<std::string> steps_in(const fs::path& folder) {
  std::vector<std::string> steps;
  if (!fs::exists(folder)) return steps;
  for (const auto& entry : fs::directory_iterator(folder))
    if (entry.is_directory()) steps.push_back(entry.path().filename().string());
  std::sort(steps.begin(), steps.end());
  return steps;
}

Replayed replay(const fs::path& folder) {
  Replayed replayed{load(folder), {}, {}, {}};
  replayed.before = copies(replayed.capture.state());
  at::Generator generator = at::globalContext().defaultGenerator(c10::kCPU);
  if (const at::Tensor& state = replayed.capture.example_generator(); state.defined())
    generator.set_state(state);
  replayed.results = replayed.capture.replay(replayed.capture.example_arguments());
  replayed.after = copies(replayed.capture.state());
  return replayed;
}

bool same(const at::Tensor& a, const at::Tensor& b) {
  if (a.sizes() != b.sizes() || a.scalar_type() != b.scalar_type()) return false;
  const at::Tensor x = a.contiguous(), y = b.contiguous();
  return std::memcmp(x.const_data_ptr(), y.const_data_ptr(), x.nbytes()) == 0;
}

}  // namespace flashlight::testing
