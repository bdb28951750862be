#include "frontends/preload/crash.h"

#include <ATen/Parallel.h>
#include <errno.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <iterator>

namespace flashlight::preload {
namespace {

constexpr int kSignals[] = {SIGSEGV, SIGBUS, SIGFPE, SIGILL,  SIGABRT, SIGTRAP,
                            SIGTERM, SIGHUP, SIGINT, SIGQUIT, SIGXCPU};
constexpr unsigned kSeconds = 20;

struct sigaction before[std::size(kSignals)];
void (*write_capture)(int) = nullptr;
pid_t watched_process = 0;
volatile sig_atomic_t crashing = 0;

void write_in_a_copy(int signal) {
  const int saved = errno;
  const pid_t copy = _Fork();  // safe in a handler, unlike fork()
  if (copy == 0) {
    ::signal(SIGALRM, SIG_DFL);
    alarm(kSeconds);
    at::set_num_threads(1);  // the threads of the pool are not in the copy
    write_capture(signal);
    syscall(SYS_exit_group, 0);
  }
  int status = 0;
  while (copy > 0 && waitpid(copy, &status, 0) < 0 && errno == EINTR) {
  }
  errno = saved;
}

void handle(int signal, siginfo_t* info, void*) {
  if (!crashing && getpid() == watched_process) {
    crashing = 1;
    write_in_a_copy(signal);
  }
  for (size_t i = 0; i < std::size(kSignals); ++i)
    if (kSignals[i] == signal) sigaction(signal, &before[i], nullptr);
  // A fault comes again when the instruction is run again; what was sent is sent again.
  const bool fault = info->si_code > 0 && info->si_code != SI_KERNEL && signal != SIGABRT;
  if (!fault) raise(signal);
}

// A handler needs memory of its own where the stack has overflowed.
void make_stack() {
  constexpr size_t kBytes = 8 << 20;
  stack_t now{};
  if (sigaltstack(nullptr, &now) != 0 || (now.ss_flags & SS_DISABLE) == 0) return;
  void* memory = mmap(nullptr, kBytes, PROT_READ | PROT_WRITE,
                      MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_STACK, -1, 0);
  if (memory == MAP_FAILED) return;
  stack_t own{};
  own.ss_sp = memory;
  own.ss_size = kBytes;
  sigaltstack(&own, nullptr);
}

}  // namespace

void watch_crashes(void (*write)(int signal)) {
  write_capture = write;
  watched_process = getpid();
  make_stack();
  for (size_t i = 0; i < std::size(kSignals); ++i) {
    struct sigaction action {};
    if (sigaction(kSignals[i], nullptr, &before[i]) != 0 || before[i].sa_handler != SIG_DFL)
      continue;
    action.sa_sigaction = handle;
    action.sa_flags = SA_SIGINFO | SA_ONSTACK;
    sigemptyset(&action.sa_mask);
    sigaction(kSignals[i], &action, nullptr);
  }
}

}  // namespace flashlight::preload
