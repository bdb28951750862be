#include "frontends/preload/library.h"

#include <pthread.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cstdio>
#include <cstring>
#include <exception>

#include "composit/io/log.h"
#include "frontends/preload/crash.h"
#include "frontends/preload/session.h"

namespace flashlight::preload {
namespace {

Session* session = nullptr;  // never destroyed: the program may end at any place
pid_t process = 0;

void complain(const char* what) {
  dprintf(STDERR_FILENO, "flashlight: %s; nothing of this process is captured\n", what);
}

void finish() {
  if (Session* here = session_here()) here->end();
}

void finish_after(int signal) {
  try {
    session->end(std::string("killed by ") + strsignal(signal));
  } catch (...) {  // what has been written is there
  }
}

}  // namespace

Session* session_here() {
  return session != nullptr && getpid() == process && syscall(SYS_gettid) == process ? session
                                                                                     : nullptr;
}

}  // namespace flashlight::preload

void flashlight_attach(const char* library, const char* settings, const char* torch) {
  using namespace flashlight::preload;
  composit::log_nothing();
  try {
    session = new Session(parse_settings(settings), torch);
    process = getpid();
    install_python_hooks(library);
    pthread_atfork(nullptr, nullptr, [] { session->forget(); });
    watch_crashes(finish_after);
  } catch (const std::exception& error) {
    complain(error.what());
  }
}

void flashlight_finish() { flashlight::preload::finish(); }
