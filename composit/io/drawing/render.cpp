#include "composit/io/drawing/render.h"

#include <fcntl.h>
#include <spawn.h>
#include <spdlog/fmt/fmt.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
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
    std::error_code error;
    const auto parent = std::filesystem::temp_directory_path(error);
    if (error) io::throw_system_error("visualize", "folder for temporary files", error.value());
    path_ = (parent / "flashlight-dot-XXXXXX").string();
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

// `program` at work on one page. It gets a process of its own because what graphviz 2.43 draws
// depends on what it drew before.
class Job {
 public:
  Job(const Scratch& scratch, const std::string& program, size_t page)
      : program_(program),
        messages_(scratch.file(page, ".messages")),
        picture_(scratch.file(page, ".svg")) {
    std::array<std::string, 5> words = {program, "-Tsvg", "-o", picture_,
                                        scratch.file(page, ".dot")};
    std::array<char*, 6> arguments = {};
    std::transform(words.begin(), words.end(), arguments.begin(),
                   [](auto& word) { return word.data(); });

    posix_spawn_file_actions_t actions;
    posix_spawn_file_actions_init(&actions);
    posix_spawn_file_actions_addopen(&actions, STDERR_FILENO, messages_.c_str(),
                                     O_WRONLY | O_CREAT | O_TRUNC, 0600);
    const int error =
        ::posix_spawnp(&process_, program.c_str(), &actions, nullptr, arguments.data(), environ);
    posix_spawn_file_actions_destroy(&actions);
    if (error != 0)
      throw UserError(fmt::format(
          "[visualize] cannot run graphviz's '{}': {}. Install graphviz (Debian: apt-get install "
          "graphviz), or write a .dot file",
          program, std::generic_category().message(error)));
  }
  ~Job() { wait(); }
  Job(const Job&) = delete;
  Job& operator=(const Job&) = delete;

  // The picture.
  std::string finish() {
    if (wait() != 0)
      throw UserError(fmt::format("[visualize] graphviz's '{}' failed: {}", program_,
                                  io::MappedFile::open(messages_)->text().substr(0, 500)));
    std::string svg(io::MappedFile::open(picture_)->text());
    if (svg.find("</svg>") == std::string::npos)
      throw UserError(fmt::format(
          "[visualize] {}: graphviz wrote half a picture; is the disk full?", picture_));
    return svg;
  }

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
  std::string picture_;
  pid_t process_ = -1;
};

}  // namespace

std::vector<std::string> render_svg(const std::vector<std::string>& pages,
                                    const std::string& program, size_t processes) {
  const Scratch scratch;
  Progress progress("drawing", pages.size());
  std::deque<Job> jobs;
  std::vector<std::string> pictures;
  for (size_t page = 0; pictures.size() < pages.size();) {
    if (page < pages.size() && jobs.size() < processes) {
      io::OutputFile file(scratch.file(page, ".dot"));
      file.write(pages[page]);
      file.commit();
      jobs.emplace_back(scratch, program, page++);
      continue;
    }
    pictures.push_back(jobs.front().finish());
    jobs.pop_front();
    progress.advance(1);
  }
  return pictures;
}

}  // namespace composit::drawing
