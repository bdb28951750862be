// A folder for a test's files, removed with all that is in it.
//
//   TemporaryFolder folder;
//   write_file(folder / "a.txt", "text");
#pragma once

#include <gtest/gtest.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <string>
#include <string_view>
#include <vector>

#include "composit/ir/error.h"
#include "tests/user_error.h"

namespace composit::test {

class TemporaryFolder {
 public:
  enum class Place {
    disk,
    memory
  };  // in memory if there is such a place: for thousands of small files

  explicit TemporaryFolder(Place place = Place::disk) {
    static int count = 0;
    const bool memory = place == Place::memory && std::filesystem::is_directory("/dev/shm");
    path_ = std::filesystem::path(memory ? "/dev/shm" : ::testing::TempDir()) /
            ("flashlight_io_" + std::to_string(::getpid()) + "_" + std::to_string(count++));
    std::filesystem::create_directories(path_);
  }
  ~TemporaryFolder() { std::filesystem::remove_all(path_); }
  TemporaryFolder(const TemporaryFolder&) = delete;
  TemporaryFolder& operator=(const TemporaryFolder&) = delete;

  const std::filesystem::path& path() const { return path_; }
  std::filesystem::path operator/(const std::string& name) const { return path_ / name; }

  // Names of all files and folders in it, sorted, with paths relative to it.
  std::vector<std::string> list() const {
    std::vector<std::string> names;
    for (const auto& entry : std::filesystem::recursive_directory_iterator(path_))
      names.push_back(std::filesystem::relative(entry.path(), path_).string());
    std::sort(names.begin(), names.end());
    return names;
  }

 private:
  std::filesystem::path path_;
};

// A file in memory that has a path: for tests that write thousands of files.
class MemoryFile {
 public:
  MemoryFile() : descriptor_(::memfd_create("test", MFD_CLOEXEC)) {}
  ~MemoryFile() { ::close(descriptor_); }
  MemoryFile(const MemoryFile&) = delete;
  MemoryFile& operator=(const MemoryFile&) = delete;

  std::filesystem::path path() const { return "/proc/self/fd/" + std::to_string(descriptor_); }
  void write(std::string_view bytes) const {
    ASSERT_EQ(::ftruncate(descriptor_, 0), 0);
    ASSERT_EQ(::pwrite(descriptor_, bytes.data(), bytes.size(), 0),
              static_cast<ssize_t>(bytes.size()));
  }

 private:
  int descriptor_;
};

inline std::string read_file(const std::filesystem::path& path) {
  std::ifstream stream(path, std::ios::binary);
  EXPECT_TRUE(stream) << path;
  return {std::istreambuf_iterator<char>(stream), {}};
}

inline void write_file(const std::filesystem::path& path, std::string_view bytes) {
  std::ofstream stream(path, std::ios::binary);
  stream.write(bytes.data(), static_cast<std::streamsize>(bytes.size()));
  ASSERT_TRUE(stream.flush()) << path;
}

// The message of the UserError that `action` throws.
template <class Action>
std::string message_of(Action action) {
  if (const auto message = user_error(action)) return *message;
  ADD_FAILURE() << "expected a UserError";
  return "";
}

}  // namespace composit::test
