// Saving is all or nothing, whatever fails and whenever the process ends.

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sched.h>
#include <sys/mount.h>
#include <sys/resource.h>
#include <sys/wait.h>

#include <atomic>
#include <cerrno>
#include <csignal>
#include <functional>
#include <thread>

#include "composit/io/saved_capture.h"
#include "tests/io/arrays.h"
#include "tests/io/failing_system.h"
#include "tests/io/sample_capture.h"
#include "tests/io/temporary_folder.h"

namespace composit::test {
namespace {

using ::testing::HasSubstr;
using ::testing::StartsWith;

const std::vector<std::string> kOnlyTheModel = {"model", "model/example.safetensors",
                                                "model/graph.txt", "model/weights.safetensors"};

float value_of(const SavedCapture& capture) {
  float value = 0;
  std::memcpy(&value, capture.weights.at("fc.bias").data(), sizeof value);
  return value;
}

// Which of the captures with `old_value` and `new_value` the folder holds; it must hold one of
// them, whole.
float value_in(const std::filesystem::path& folder) {
  const SavedCapture loaded = load(folder);
  const float value = value_of(loaded);
  EXPECT_EQ(loaded.weights, sample_capture(value).weights);
  EXPECT_EQ(loaded.graph, sample_capture(value).graph);
  EXPECT_EQ(loaded.example_outputs, sample_capture(value).example_outputs);
  return value;
}

// Saves the capture of value 2 while a call to the system fails.
struct Attempt {
  std::string error = {};  // empty: saved
  bool happened = false;   // there were as many calls
};
Attempt save_with(const Failure& failure, const std::filesystem::path& folder) {
  Attempt attempt;
  const FailingSystem failing(failure);
  try {
    save(sample_capture(2), folder);
  } catch (const UserError& error) {
    attempt.error = error.what();
  }
  attempt.happened = failing.happened();
  return attempt;
}

TEST(saving, replaces_a_capture) {
  const TemporaryFolder folder;
  save(sample_capture(1), folder / "model");
  save(sample_capture(2), folder / "model/");
  EXPECT_EQ(value_in(folder / "model"), 2);
  EXPECT_EQ(folder.list(), kOnlyTheModel);
}

TEST(saving, replaces_an_empty_folder) {
  const TemporaryFolder folder;
  std::filesystem::create_directory(folder / "model");
  save(sample_capture(1), folder / "model");
  EXPECT_EQ(folder.list(), kOnlyTheModel);
}

TEST(saving, replaces_what_a_link_leads_to) {
  const TemporaryFolder folder;
  save(sample_capture(1), folder / "model");
  std::filesystem::create_symlink("model", folder / "link");
  save(sample_capture(2), folder / "link");
  EXPECT_TRUE(std::filesystem::is_symlink(folder / "link"));
  EXPECT_EQ(value_in(folder / "model"), 2);
}

TEST(saving, replaces_the_files_that_the_capture_lies_in) {
  const TemporaryFolder folder;
  save(sample_capture(1), folder / "model");
  SavedCapture loaded = load(folder / "model");
  loaded.producer = "again";
  save(loaded, folder / "model");
  EXPECT_EQ(value_of(loaded), 1);
  EXPECT_EQ(value_in(folder / "model"), 1);
  EXPECT_EQ(load(folder / "model").producer, "again");
}

TEST(saving, leaves_alone_what_is_no_capture) {
  const TemporaryFolder folder;
  const auto message = [&] {
    return message_of([&] { save(sample_capture(), folder / "model"); });
  };
  write_file(folder / "model", "text");
  EXPECT_EQ(message(), "[save] " + (folder / "model").string() + ": there is a file of this name");
  std::filesystem::remove(folder / "model");

  std::filesystem::create_directory(folder / "model");
  write_file(folder / "model/graph.txt", "my notes");
  EXPECT_THAT(message(), HasSubstr("holds no capture; it is left as it is"));
  EXPECT_EQ(read_file(folder / "model/graph.txt"), "my notes");
  std::filesystem::remove_all(folder / "model");

  save(sample_capture(1), folder / "model");
  write_file(folder / "model/notes.txt", "mine");
  EXPECT_THAT(message(), HasSubstr("'notes.txt' in it is no part of a capture, and would be lost"));
  EXPECT_EQ(read_file(folder / "model/notes.txt"), "mine");
}

TEST(saving, makes_the_folders_around_it) {
  const TemporaryFolder folder;
  save(sample_capture(1), folder / "runs/today/model/");
  EXPECT_EQ(value_in(folder / "runs/today/model"), 1);
  EXPECT_EQ(std::filesystem::status(folder / "runs").permissions(),
            std::filesystem::status(folder / "runs/today/model").permissions());
  save(sample_capture(2), folder / "runs/today/model");
  EXPECT_EQ(value_in(folder / "runs/today/model"), 2);
}

TEST(saving, leaves_no_folder_around_what_it_could_not_save) {
  const TemporaryFolder folder;
  SavedCapture invalid = sample_capture();
  invalid.weights.begin()->second = {};
  EXPECT_THAT(message_of([&] { save(invalid, folder / "runs/today/model"); }),
              HasSubstr("has no value"));
  EXPECT_TRUE(folder.list().empty());
  int failed = 0;
  for (int64_t call = 0;; ++call) {
    SCOPED_TRACE("call " + std::to_string(call));
    const Attempt attempt = save_with({.call = call, .error = ENOSPC}, folder / "runs/today/model");
    if (attempt.error.empty())
      EXPECT_EQ(value_in(folder / "runs/today/model"), 2);
    else
      EXPECT_TRUE(folder.list().empty());
    if (!attempt.happened) break;
    failed += !attempt.error.empty();
    std::filesystem::remove_all(folder / "runs");
  }
  EXPECT_GT(failed, 10);
}

TEST(saving, says_what_failed) {
  const TemporaryFolder folder;
  write_file(folder / "file", "");
  const std::string model = (folder / "file/model").string();
  EXPECT_EQ(message_of([&] { save({}, model); }),
            "[save] " + model + ": [mkdir] " + model + ": Not a directory");
  EXPECT_THAT(message_of([&] { save({}, "/"); }), HasSubstr("[save] /: "));
}

// Saves while every call to the system fails in turn; the folder is as it was, or the new one.
void fail_everywhere(bool no_exchange) {
  const TemporaryFolder folder(TemporaryFolder::Place::memory);
  save(sample_capture(1), folder / "model");
  int failed = 0;
  for (int64_t call = 0;; ++call) {
    SCOPED_TRACE("call " + std::to_string(call));
    const Attempt attempt =
        save_with({.call = call, .error = ENOSPC, .no_exchange = no_exchange}, folder / "model");
    const bool thrown = !attempt.error.empty();
    if (thrown) {
      EXPECT_THAT(attempt.error, StartsWith("[save] " + (folder / "model").string()));
      EXPECT_THAT(attempt.error, HasSubstr("No space left on device"));
    }
    EXPECT_EQ(value_in(folder / "model"), thrown ? 1 : 2);
    EXPECT_EQ(folder.list(), kOnlyTheModel);
    if (!attempt.happened) break;
    failed += thrown;
    save(sample_capture(1), folder / "model");
  }
  EXPECT_GT(failed, 10);
}

TEST(saving, survives_a_failure_of_every_call) { fail_everywhere(false); }
TEST(saving, survives_a_failure_of_every_call_without_exchange) { fail_everywhere(true); }

// Runs `action` in a process of its own and returns its exit code.
int exit_code_of(const std::function<int()>& action) {
  const pid_t process = fork();
  if (process == 0) ::_exit(action());
  int status = 0;
  EXPECT_EQ(::waitpid(process, &status, 0), process);
  return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

TEST(saving, survives_the_end_of_the_process_at_every_call) {
  const TemporaryFolder folder(TemporaryFolder::Place::memory);
  save(sample_capture(1), folder / "model");
  bool left_something = false;
  for (int64_t call = 0;; ++call) {
    const int code = exit_code_of([&] {
      const FailingSystem failing({.call = call});
      save(sample_capture(2), folder / "model");
      return 0;
    });
    SCOPED_TRACE("call " + std::to_string(call));
    const float value = value_in(folder / "model");
    EXPECT_TRUE(value == 1 || value == 2);
    left_something = left_something || folder.list() != kOnlyTheModel;
    save(sample_capture(1), folder / "model");
    EXPECT_EQ(folder.list(), kOnlyTheModel);  // leftovers are gone
    if (code == 0) break;
    ASSERT_EQ(code, 9);
  }
  EXPECT_TRUE(left_something);
}

TEST(saving, leaves_alone_what_another_process_is_writing) {
  const TemporaryFolder folder;
  std::atomic<bool> stop{false};
  const auto save_all = [&](float value) {
    for (int i = 0; i < 25; ++i) save(sample_capture(value), folder / "model");
  };
  save(sample_capture(1), folder / "model");
  std::thread reader([&] {
    while (!stop) value_in(folder / "model");  // never a mixture of two
  });
  std::thread writer([&] { save_all(2); });
  save_all(1);
  writer.join();
  stop = true;
  reader.join();
  EXPECT_EQ(folder.list(), kOnlyTheModel);
}

TEST(saving, survives_a_limit_on_the_size_of_files) {
  const TemporaryFolder folder;
  save(sample_capture(1), folder / "model");
  const int code = exit_code_of([&] {
    std::signal(SIGXFSZ, SIG_IGN);
    const rlimit limit{500, 500};
    setrlimit(RLIMIT_FSIZE, &limit);
    const std::string message = message_of([&] { save(sample_capture(2), folder / "model"); });
    return message.find("weights.safetensors: File too large") != std::string::npos ? 0 : 1;
  });
  EXPECT_EQ(code, 0);
  EXPECT_EQ(value_in(folder / "model"), 1);
  EXPECT_EQ(folder.list(), kOnlyTheModel);
}

TEST(saving, survives_a_full_disk) {
  const TemporaryFolder folder;
  constexpr int kNotPermitted = 77;
  const int code = exit_code_of([&] {
    if (::unshare(CLONE_NEWNS) != 0 ||
        ::mount("none", "/", nullptr, MS_REC | MS_PRIVATE, nullptr) != 0 ||
        ::mount("tmpfs", folder.path().c_str(), "tmpfs", 0, "size=64k") != 0)
      return kNotPermitted;
    save(sample_capture(1), folder / "model");
    SavedCapture large = sample_capture(2);
    large.example_inputs = {counting_bytes(DType::uint8, {100000})};
    const std::string message = message_of([&] { save(large, folder / "model"); });
    const bool named =
        message.find("example.safetensors: No space left on device") != std::string::npos;
    return named && value_in(folder / "model") == 1 && folder.list() == kOnlyTheModel ? 0 : 1;
  });
  if (code == kNotPermitted) GTEST_SKIP() << "mounting is not permitted";
  EXPECT_EQ(code, 0);
}

}  // namespace
}  // namespace composit::test
