// Several compilers, threads and processes at once, and what signals do.

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/wait.h>

#include <array>
#include <atomic>
#include <cerrno>
#include <csignal>
#include <thread>

#include "flashlight/toolchain/library.h"
#include "flashlight/toolchain/process.h"
#include "tests/flashlight/toolchain/workshop.h"

namespace flashlight::toolchain {
namespace {

using composit::test::message_of;
using ::testing::HasSubstr;

Sources many_units() {
  Sources sources;
  for (const char* name : {"a", "b", "c", "d"})
    sources.units.push_back(constant_function(name, "'" + std::string(name) + "'"));
  return sources;
}

bool loads_right() {
  const Library library = Library::load(many_units());
  return library.symbol<int()>("a")() == 'a' && library.symbol<int()>("d")() == 'd';
}

// In place of a compiler: ends when two of them run.
constexpr const char* kWaitForAnother =
    "case \"$*\" in *' -c '*) echo >> \"$MEETING\"\n"
    "  until test $(wc -l < \"$MEETING\") -ge 2; do sleep 0.01; done;; esac";

TEST(concurrency, compiles_units_at_the_same_time) {
  const Workshop workshop(kWaitForAnother);
  const Variable meeting("MEETING", (workshop.folder() / "meeting").string());
  const Sources sources = sources_of({constant_function("a", "1"), constant_function("b", "2")});
  EXPECT_EQ(Library::load(sources, {.jobs = 2}).symbol<int()>("b")(), 2);
}

TEST(concurrency, compiles_no_more_at_once_than_it_may) {
  const Workshop workshop(
      "case \"$*\" in *' -c '*) mkdir \"$MEETING\" || exit 1; sleep 0.05; rmdir \"$MEETING\";; "
      "esac");
  const Variable meeting("MEETING", (workshop.folder() / "meeting").string());
  EXPECT_NO_THROW(build(many_units(), {.jobs = 1}));
}

TEST(concurrency, processes_share_a_cache) {
  Workshop workshop;
  EXPECT_TRUE(all_in_forks(4, loads_right));
  EXPECT_GE(workshop.compiled().size(), 4);
  EXPECT_TRUE(loads_right());
  EXPECT_EQ(workshop.compiled().size(), 0);
  EXPECT_TRUE(std::filesystem::is_empty(workshop.cache() / "builds"));
}

TEST(concurrency, threads_share_a_cache) {
  Workshop workshop;
  std::atomic<int> right{0};
  {
    std::array<std::jthread, 4> threads;
    for (std::jthread& thread : threads)
      thread = std::jthread([&] { right += loads_right() ? 1 : 0; });
  }
  EXPECT_EQ(right, 4);
  workshop.compiled();
  EXPECT_TRUE(loads_right());
  EXPECT_EQ(workshop.compiled().size(), 0);
}

TEST(concurrency, leaves_no_zombies) {
  const Workshop workshop;
  EXPECT_TRUE(loads_right());
  EXPECT_EQ(::waitpid(-1, nullptr, WNOHANG), -1);
  EXPECT_EQ(errno, ECHILD);
}

class IgnoredSignal {
 public:
  explicit IgnoredSignal(int signal) : signal_(signal), before_(std::signal(signal, SIG_IGN)) {}
  ~IgnoredSignal() { std::signal(signal_, before_); }
  IgnoredSignal(const IgnoredSignal&) = delete;
  IgnoredSignal& operator=(const IgnoredSignal&) = delete;

 private:
  int signal_;
  void (*before_)(int);
};

TEST(concurrency, works_where_the_status_of_children_is_dropped) {
  const Workshop workshop;
  const IgnoredSignal ignored(SIGCHLD);
  EXPECT_TRUE(loads_right());
  const Sources bad = sources_of({constant_function("bad", "nothing_of_this_name")});
  EXPECT_THAT(message_of([&] { build(bad); }), HasSubstr("bad.cpp:1:"));
}

TEST(concurrency, says_that_a_compiler_was_killed) {
  const Workshop workshop("test \"$1\" = --version || kill -9 $$");
  EXPECT_THAT(message_of([] { build(many_units()); }), HasSubstr("killed by signal 9 (Killed)"));
}

// A thread that blocks signals passes that on to programs it starts, unless told otherwise.
TEST(concurrency, compilers_can_be_stopped) {
  const Workshop workshop("test \"$1\" = --version || kill -TERM $$");
  sigset_t all, before;
  sigfillset(&all);
  ::pthread_sigmask(SIG_BLOCK, &all, &before);
  const std::string message = message_of([] { build(many_units()); });
  ::pthread_sigmask(SIG_SETMASK, &before, nullptr);
  EXPECT_THAT(message, HasSubstr("killed by signal 15 (Terminated)"));
}

TEST(concurrency, output_of_any_length_is_read_in_order) {
  const ProcessResult result = run({.words = {"sh", "-c", "seq 100000; echo last >&2; exit 3"}});
  EXPECT_EQ(result.end(), "exit status 3");
  EXPECT_EQ(result.output.substr(0, 6), "1\n2\n3\n");
  EXPECT_TRUE(result.output.ends_with("99999\n100000\nlast\n"));
}

TEST(concurrency, programs_read_nothing_and_speak_english) {
  const Variable language("LC_ALL", "de_DE.UTF-8");
  EXPECT_EQ(run({.words = {"sh", "-c", "cat; echo $LC_ALL"}}).output, "C\n");
}

}  // namespace
}  // namespace flashlight::toolchain
