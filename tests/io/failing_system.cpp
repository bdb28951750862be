#include "tests/io/failing_system.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>
#include <cstdarg>
#include <cstdio>

namespace composit::test {
namespace {

thread_local bool armed = false;
thread_local Failure failure;
thread_local int64_t calls = 0;

bool fails() {
  if (!armed || calls++ != failure.call) return false;
  if (failure.error == 0) ::_exit(9);
  errno = failure.error;
  return true;
}

template <class... Arguments>
int call(long number, Arguments... arguments) {
  return fails() ? -1 : static_cast<int>(::syscall(number, arguments...));
}

}  // namespace

FailingSystem::FailingSystem(Failure wanted) {
  failure = wanted;
  calls = 0;
  armed = true;
}
FailingSystem::~FailingSystem() { armed = false; }
bool FailingSystem::happened() const { return calls > failure.call; }

bool cannot_exchange() { return armed && failure.no_exchange; }

}  // namespace composit::test

using composit::test::call;

extern "C" {

ssize_t write(int file, const void* data, size_t size) {
  return composit::test::fails() ? -1 : ::syscall(SYS_write, file, data, size);
}
int fsync(int file) { return call(SYS_fsync, file); }
int close(int file) { return call(SYS_close, file); }
int mkdir(const char* path, mode_t mode) noexcept {
  return call(SYS_mkdirat, AT_FDCWD, path, mode);
}
int rename(const char* from, const char* to) noexcept {
  return call(SYS_renameat2, AT_FDCWD, from, AT_FDCWD, to, 0);
}
int renameat2(int from_folder, const char* from, int to_folder, const char* to,
              unsigned flags) noexcept {
  if (composit::test::cannot_exchange()) {
    errno = EINVAL;
    return -1;
  }
  return call(SYS_renameat2, from_folder, from, to_folder, to, flags);
}
int open(const char* path, int flags, ...) {
  va_list arguments;
  va_start(arguments, flags);
  const mode_t mode = (flags & O_CREAT) != 0 ? va_arg(arguments, mode_t) : 0;
  va_end(arguments);
  return call(SYS_openat, AT_FDCWD, path, flags, mode);
}
}
