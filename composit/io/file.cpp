#include "composit/io/file.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <system_error>
#include <utility>

#include "composit/ir/error.h"

namespace composit::io {

void throw_system_error(std::string_view operation, const std::filesystem::path& path, int error) {
  throw UserError("[" + std::string(operation) + "] " + path.string() + ": " +
                  std::generic_category().message(error));
}

Descriptor& Descriptor::operator=(Descriptor&& other) noexcept {
  std::swap(number_, other.number_);
  return *this;
}

int Descriptor::release() { return std::exchange(number_, -1); }

int Descriptor::close() {
  const int number = release();
  return number < 0 || ::close(number) == 0 ? 0 : errno;
}

OutputFile::OutputFile(std::filesystem::path path)
    : path_(std::move(path)), partial_(path_.string() + ".partial-" + std::to_string(::getpid())) {
  descriptor_ =
      Descriptor(::open(partial_.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0666));
  if (!descriptor_) throw_system_error("write", path_, errno);
}

OutputFile::~OutputFile() {
  if (!partial_.empty()) ::unlink(partial_.c_str());
}

void OutputFile::write(const void* data, size_t size) {
  const auto* bytes = static_cast<const char*>(data);
  while (size > 0) {
    const ssize_t written = ::write(descriptor_.get(), bytes, size);
    if (written < 0 && errno == EINTR) continue;
    if (written < 0) throw_system_error("write", path_, errno);
    bytes += written;
    size -= static_cast<size_t>(written);
  }
}

void OutputFile::sync() {
  if (::fsync(descriptor_.get()) != 0) throw_system_error("write", path_, errno);
}

void OutputFile::commit() {
  if (const int error = descriptor_.close()) throw_system_error("write", path_, error);
  if (::rename(partial_.c_str(), path_.c_str()) != 0) throw_system_error("write", path_, errno);
  partial_.clear();
}

std::shared_ptr<const MappedFile> MappedFile::open(const std::filesystem::path& path) {
  // O_NONBLOCK: a pipe in the file's place must not make us wait.
  const Descriptor file(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK));
  if (!file) throw_system_error("read", path, errno);
  struct stat status = {};
  if (::fstat(file.get(), &status) != 0) throw_system_error("read", path, errno);
  if (!S_ISREG(status.st_mode)) throw UserError("[read] " + path.string() + ": not a regular file");

  const auto size = static_cast<size_t>(status.st_size);
  if (size == 0)
    return std::shared_ptr<const MappedFile>(new MappedFile(nullptr, 0));  // mmap refuses
  void* data =
      ::mmap(nullptr, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_NORESERVE, file.get(), 0);
  if (data == MAP_FAILED) throw_system_error("read", path, errno);
  return std::shared_ptr<const MappedFile>(
      new MappedFile(static_cast<const std::byte*>(data), size));
}

MappedFile::~MappedFile() {
  if (data_ != nullptr) ::munmap(const_cast<std::byte*>(data_), size_);
}

std::shared_ptr<const std::byte> MappedFile::part(const std::byte* data, size_t size) const {
  return {data, [file = shared_from_this(), size](const std::byte* begin) {
            static const auto page = static_cast<uintptr_t>(::sysconf(_SC_PAGESIZE));
            const auto address = reinterpret_cast<uintptr_t>(begin);
            const uintptr_t first = (address + page - 1) / page * page;
            const uintptr_t end = (address + size) / page * page;
            if (first < end) ::madvise(reinterpret_cast<void*>(first), end - first, MADV_DONTNEED);
          }};
}

OpenFolder::OpenFolder(const std::filesystem::path& folder)
    : descriptor_(::open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC)) {
  if (!descriptor_) throw_system_error("read", folder, errno);
}

bool OpenFolder::is_at(const std::filesystem::path& folder) const {
  struct stat ours = {}, there = {};
  return ::fstat(descriptor_.get(), &ours) == 0 && ::stat(folder.c_str(), &there) == 0 &&
         ours.st_dev == there.st_dev && ours.st_ino == there.st_ino;
}

void sync_folder(const std::filesystem::path& folder) {
  const Descriptor descriptor(::open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (!descriptor) throw_system_error("write", folder, errno);
  // Some file systems cannot sync a folder and say EINVAL.
  if (::fsync(descriptor.get()) != 0 && errno != EINVAL) throw_system_error("write", folder, errno);
}

}  // namespace composit::io
