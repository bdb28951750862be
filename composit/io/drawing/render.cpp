#include "composit/io/drawing/render.h"

#include <fcntl.h>
#include <spawn.h>
#include <spdlog/fmt/fmt.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <deque>
#include <filesystem>
#include <system_error>

#include "composit/io/file.h"
#include "composit/io/log.h"
#include "composit/ir/error.h"

extern char** environ;

namespace composit::drawing {
namespace {

// A folder of our own for the files that `dot` reads and writes.
class Scratch {
 public:
  Scratch() {
    path_ = (std::filesystem::temp_directory_path() / "flashlight-dot-XXXXXX").string();
    if (::mkdtemp(path_.data()) == nullptr) io::throw_system_error("visualize", path_, errno);
  }
  ~Scratch() {
    std::error_code ignored;
    std::filesystem::remove_all(path_, ignored);
  }
  Scratch(const Scratch&) = delete;
  Scratch& operator=(const Scratch&) = delete;

  std::string file(size_t number, const char* suffix) const {
    return fmt::format("{}/{}{}", path_, number, suffix);
  }

 private:
  std::string path_;
};

// `program` at work on pages `begin` to `end`. What it says goes to a file named after the first.
class Job {
 public:
  Job(const Scratch& scratch, const std::string& program, size_t begin, size_t end)
      : program_(program), messages_(scratch.file(begin, ".messages")), end_(end) {
    std::vector<std::string> words{program, "-Tsvg", "-O"};
    for (size_t page = begin; page < end; ++page) words.push_back(scratch.file(page, ".dot"));
    std::vector<char*> arguments;
    for (std::string& word : words) arguments.push_back(word.data());
    arguments.push_back(nullptr);

    posix_spawn_file_actions_t actions;
    posix_spawn_file_actions_init(&actions);
    posix_spawn_file_actions_addopen(&actions, STDERR_FILENO, messages_.c_str(),
                                     O_WRONLY | O_CREAT | O_TRUNC, 0600);
    const int error =
        ::posix_spawnp(&process_, program.c_str(), &actions, nullptr, arguments.data(), environ);
    posix_spawn_file_actions_destroy(&actions);
    if (error != 0)
      throw UserError(
          fmt::format("[visualize] cannot run graphviz's '{}': {}. Install graphviz (Debian: "
                      "apt-get install graphviz), or write a .dot file",
                      program, std::generic_category().message(error)));
  }
  ~Job() { wait(); }
  Job(const Job&) = delete;
  Job& operator=(const Job&) = delete;

  void finish() {
    if (wait() == 0) return;
    const auto said = io::MappedFile::open(messages_);
    throw UserError(fmt::format("[visualize] graphviz's '{}' failed: {}", program_,
                                said->text().substr(0, 500)));
  }
  size_t end() const { return end_; }

 private:
  int wait() {
    int status = 0;
    while (process_ > 0 && ::waitpid(process_, &status, 0) < 0 && errno == EINTR) {
    }
    process_ = -1;
    return status;
  }

  std::string program_;
  std::string messages_;
  size_t end_;
  pid_t process_ = -1;
};

std::string read_svg(const std::string& path) {
  std::string svg(io::MappedFile::open(path)->text());
  if (svg.find("</svg>") == std::string::npos)
    throw UserError(
        fmt::format("[visualize] {}: graphviz wrote half a picture; is the disk full?", path));
  return svg;
}

}  // namespace

std::vector<std::string> render_svg(const std::vector<std::string>& pages,
                                    const std::string& program, size_t processes) {
  constexpr size_t kPagesPerJob = 4;  // starting a process costs as much as a small page
  const Scratch scratch;
  for (size_t page = 0; page < pages.size(); ++page) {
    io::OutputFile file(scratch.file(page, ".dot"));
    file.write(pages[page]);
    file.commit();
  }
  Progress progress("drawing", pages.size());
  std::deque<Job> jobs;
  const size_t step = std::clamp<size_t>(pages.size() / processes, 1, kPagesPerJob);
  for (size_t page = 0; page < pages.size() || !jobs.empty();) {
    if (page < pages.size() && jobs.size() < processes) {
      jobs.emplace_back(scratch, program, page, std::min(page + step, pages.size()));
      page = jobs.back().end();
      continue;
    }
    jobs.front().finish();
    jobs.pop_front();
    progress.advance(step);
  }
  std::vector<std::string> pictures;
  for (size_t page = 0; page < pages.size(); ++page)
    pictures.push_back(read_svg(scratch.file(page, ".dot.svg")));
  return pictures;
}

}  // namespace composit::drawing
