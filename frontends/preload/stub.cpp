// The library that `flashlight capture` preloads into a program and its children. It knows nothing
// of LibTorch, so that a process that does not use it stays as it is: it waits until the process
// has loaded LibTorch, compares versions, and then loads the library that captures
// (library.h), whose LibTorch is the one that is there already.
//
// Programs that are linked to LibTorch have it when main() begins, others (Python) when a call of
// dlopen returns. So these are interposed, and the ways to end a process.
//
// Needs the C library alone: no exceptions, no C++ library.
#include <dlfcn.h>
#include <elf.h>
#include <limits.h>
#include <link.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#define EXPORTED extern "C" __attribute__((visibility("default")))

namespace {

constexpr const char* kLibTorch = "libtorch_cpu.so";

using Attach = void (*)(const char* library, const char* settings, const char* torch);
using Finish = void (*)();

enum class State { waiting, attaching, attached, refused };
State state = State::waiting;
Finish finish = nullptr;
pid_t attached_process = 0;

template <class Function>
Function next(const char* name) {
  return reinterpret_cast<Function>(dlsym(RTLD_NEXT, name));
}

// ---- which LibTorch -----------------------------------------------------------------------------

struct Version {
  char text[64];
};

// "2.13.0" from "2.13.0+cpu" or "__version__ = '2.13.0+cu126'".
bool read_version(const char* text, Version& version) {
  while (*text != 0 && (*text < '0' || *text > '9')) ++text;
  size_t length = 0;
  while (length + 1 < sizeof version.text && text[length] != 0 &&
         strchr("'\"+\n", text[length]) == nullptr)
    ++length;
  memcpy(version.text, text, length);
  version.text[length] = 0;
  return length > 0;
}

// The version as the distributions of LibTorch write it beside their libraries.
bool version_in_file(const char* library, const char* name, const char* line_begins,
                     Version& version) {
  char path[PATH_MAX];
  const char* slash = strrchr(library, '/');
  if (slash == nullptr) return false;
  snprintf(path, sizeof path, "%.*s/../%s", static_cast<int>(slash - library), library, name);
  FILE* file = fopen(path, "re");
  if (file == nullptr) return false;
  char line[256];
  bool found = false;
  while (!found && fgets(line, sizeof line, file) != nullptr)
    found = strncmp(line, line_begins, strlen(line_begins)) == 0 && read_version(line, version);
  fclose(file);
  return found;
}

// Without calling anything whose meaning depends on the version.
Version version_of(void* libtorch, const char* path) {
  Version version;
  if (void* abi = dlsym(libtorch, "aoti_torch_abi_version")) {  // stable, in C
    const uint64_t packed = reinterpret_cast<uint64_t (*)()>(abi)();
    snprintf(version.text, sizeof version.text, "%d.%d.%d", static_cast<int>(packed >> 56),
             static_cast<int>(packed >> 48 & 255), static_cast<int>(packed >> 40 & 255));
    return version;
  }
  if (version_in_file(path, "version.py", "__version__", version) ||
      version_in_file(path, "build-version", "", version))
    return version;
  snprintf(version.text, sizeof version.text, "%s", "of an unknown, older version");
  return version;
}

// ---- attaching ----------------------------------------------------------------------------------

void refuse(const char* why) {
  state = State::refused;
  dprintf(STDERR_FILENO, "flashlight: [capture] %s; nothing of this process is captured\n", why);
}

bool on_main_thread() { return syscall(SYS_gettid) == getpid(); }

// The capturing library lies beside this one.
bool path_of_capture(char (&path)[PATH_MAX]) {
  Dl_info here;
  if (dladdr(reinterpret_cast<void*>(&path_of_capture), &here) == 0) return false;
  const char* slash = strrchr(here.dli_fname, '/');
  const int folder = slash == nullptr ? 0 : static_cast<int>(slash + 1 - here.dli_fname);
  snprintf(path, sizeof path, "%.*slibflashlight_capture.so", folder, here.dli_fname);
  return true;
}

void load_capture(const char* settings, const char* torch) {
  char path[PATH_MAX], why[PATH_MAX + 200];
  if (!path_of_capture(path)) return refuse("cannot tell where its library is");
  void* library = dlopen(path, RTLD_NOW | RTLD_LOCAL);
  void* attach = library == nullptr ? nullptr : dlsym(library, "flashlight_attach");
  if (attach == nullptr) {
    snprintf(why, sizeof why, "cannot load %s: %s", path, dlerror());
    return refuse(why);
  }
  finish = reinterpret_cast<Finish>(dlsym(library, "flashlight_finish"));
  attached_process = getpid();
  reinterpret_cast<Attach>(attach)(path, settings, torch);
  state = State::attached;
}

void attach_to(void* libtorch, const char* settings) {
  link_map* map = nullptr;
  dlinfo(libtorch, RTLD_DI_LINKMAP, &map);
  const char* path = map == nullptr ? kLibTorch : map->l_name;
  const Version version = version_of(libtorch, path);
  char why[PATH_MAX + 200];
  if (strcmp(version.text, FLASHLIGHT_TORCH_VERSION) != 0) {
    snprintf(why, sizeof why,
             "this program has LibTorch %s (%s), and Flashlight was built for LibTorch %s",
             version.text, path, FLASHLIGHT_TORCH_VERSION);
    return refuse(why);
  }
  if (!on_main_thread())
    return refuse(
        "LibTorch was loaded by another thread than the main one, which alone is captured");
  load_capture(settings, version.text);
}

// Whenever libraries may have been loaded.
void look_for_libtorch() {
  if (state != State::waiting) return;
  const char* settings = getenv("FLASHLIGHT_CAPTURE");
  if (settings == nullptr) return;
  static auto real_dlopen = next<void* (*)(const char*, int)>("dlopen");
  void* libtorch = real_dlopen(kLibTorch, RTLD_LAZY | RTLD_NOLOAD);
  if (libtorch == nullptr) {
    dlerror();  // not the program's
    return;
  }
  state = State::attaching;
  attach_to(libtorch, settings);
}

void finish_capture() {
  if (state == State::attached && getpid() == attached_process) finish();
}

// ---- dlopen as the caller meant it --------------------------------------------------------------

bool has_own_path(const link_map* map) {
  for (const ElfW(Dyn)* entry = map->l_ld; entry->d_tag != DT_NULL; ++entry)
    if (entry->d_tag == DT_RUNPATH || entry->d_tag == DT_RPATH) return true;
  return false;
}

// The C library looks up a bare name in the RUNPATH of the caller of dlopen, which now is this
// library. So that search is done here, in the folders that it would have been done in.
void* open_by_path_of(const void* caller, const char* name, int flags,
                      void* (*real_dlopen)(const char*, int)) {
  Dl_info info;
  link_map* map = nullptr;
  if (dladdr1(caller, &info, reinterpret_cast<void**>(&map), RTLD_DL_LINKMAP) == 0 ||
      map == nullptr || !has_own_path(map))
    return nullptr;
  if (void* there = real_dlopen(name, RTLD_LAZY | RTLD_NOLOAD)) {
    dlclose(there);
    return nullptr;
  }
  Dl_serinfo size;
  if (dlinfo(map, RTLD_DI_SERINFOSIZE, &size) != 0) return nullptr;
  auto* folders = static_cast<Dl_serinfo*>(malloc(size.dls_size));
  if (folders == nullptr) return nullptr;
  void* opened = nullptr;
  *folders = size;
  if (dlinfo(map, RTLD_DI_SERINFOSIZE, folders) == 0 && dlinfo(map, RTLD_DI_SERINFO, folders) == 0)
    for (unsigned i = 0; opened == nullptr && i < folders->dls_cnt; ++i) {
      // The system's own folders come after a cache, which the C library knows.
      if ((folders->dls_serpath[i].dls_flags & LA_SER_DEFAULT) != 0) continue;
      char path[PATH_MAX];
      const int length =
          snprintf(path, sizeof path, "%s/%s", folders->dls_serpath[i].dls_name, name);
      if (length < PATH_MAX && access(path, R_OK) == 0) opened = real_dlopen(path, flags);
    }
  free(folders);
  return opened;
}

// `$ORIGIN` in a name is the folder of the caller, too.
const char* without_origin(const void* caller, const char* name, char (&path)[PATH_MAX]) {
  constexpr const char* kNames[] = {"$ORIGIN", "${ORIGIN}"};
  for (const char* origin : kNames) {
    Dl_info info;
    if (strncmp(name, origin, strlen(origin)) != 0 || dladdr(caller, &info) == 0) continue;
    const char* slash = strrchr(info.dli_fname, '/');
    if (slash == nullptr) return name;
    snprintf(path, sizeof path, "%.*s%s", static_cast<int>(slash - info.dli_fname), info.dli_fname,
             name + strlen(origin));
    return path;
  }
  return name;
}

// ---- main ---------------------------------------------------------------------------------------

using Main = int (*)(int, char**, char**);
Main real_main = nullptr;

int main_of_program(int argc, char** argv, char** environment) {
  look_for_libtorch();
  const int code = real_main(argc, argv, environment);
  finish_capture();
  return code;
}

}  // namespace

EXPORTED int __libc_start_main(Main main, int argc, char** argv, void (*init)(), void (*fini)(),
                               void (*rtld_fini)(), void* stack_end) {
  using Start = int (*)(Main, int, char**, void (*)(), void (*)(), void (*)(), void*);
  real_main = main;
  return next<Start>("__libc_start_main")(main_of_program, argc, argv, init, fini, rtld_fini,
                                          stack_end);
}

EXPORTED void* dlopen(const char* name, int flags) noexcept {
  const void* caller = __builtin_return_address(0);
  static auto real_dlopen = next<void* (*)(const char*, int)>("dlopen");
  void* opened = nullptr;
  char path[PATH_MAX];
  if (name != nullptr) name = without_origin(caller, name, path);
  if (name != nullptr && *name != 0 && strchr(name, '/') == nullptr)
    opened = open_by_path_of(caller, name, flags, real_dlopen);
  if (opened == nullptr) opened = real_dlopen(name, flags);
  if (opened != nullptr) look_for_libtorch();
  return opened;
}

// Not by atexit: what is made after LibTorch is loaded would be gone by then.
EXPORTED void exit(int code) noexcept {
  finish_capture();
  next<void (*)(int)>("exit")(code);
  __builtin_unreachable();
}

EXPORTED void _exit(int code) {
  finish_capture();
  next<void (*)(int)>("_exit")(code);
  __builtin_unreachable();
}

EXPORTED void _Exit(int code) noexcept { _exit(code); }

EXPORTED void quick_exit(int code) noexcept {
  finish_capture();
  next<void (*)(int)>("quick_exit")(code);
  __builtin_unreachable();
}
