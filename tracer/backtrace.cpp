#include "tracer/backtrace.h"

#include <cxxabi.h>
#include <dlfcn.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <map>
#include <memory>
#include <mutex>
#include <sstream>
#include <string_view>
#include <utility>

namespace flashlight::tracer {
namespace {

std::string demangle(const char* symbol) {
  int status = 0;
  const std::unique_ptr<char, void (*)(void*)> name(
      abi::__cxa_demangle(symbol, nullptr, nullptr, &status), std::free);
  return status == 0 ? name.get() : symbol;
}

bool is_library(std::string_view object) {
  for (const char* part : {"libtorch", "libc10", "libc.so", "libstdc++", "libgomp", "libpthread",
                           "libpython", "libflashlight_"})
    if (object.find(part) != std::string_view::npos) return true;
  return false;
}

bool is_library_function(std::string_view name) {
  for (const char* scope : {"flashlight::", "c10::", "at::", "torch::", "std::", "boost::"})
    if (name.starts_with(scope)) return true;
  return false;
}

// A file of LibTorch, of the standard library or of the tracer, inlined into the user's function or
// linked into the program. By its last folders: compiler caches share objects among checkouts. Not
// by the function, which debug information leaves out where it is inlined and has no linkage.
bool is_library_file(std::string_view file) {
  for (const char* part : {"/include/ATen/", "/include/torch/", "/include/c10/", "/include/c++/"})
    if (file.find(part) != std::string_view::npos) return true;
  for (const std::string_view ours : {"tracer/recorder.cpp", "tracer/trace_scope.cpp"})
    if (file == ours || file.ends_with("/" + std::string(ours))) return true;
  return false;
}

std::string output_of(const std::string& command) {
  const std::unique_ptr<FILE, int (*)(FILE*)> pipe(popen(command.c_str(), "r"), pclose);
  std::string text;
  char part[4096];
  while (pipe && std::fgets(part, sizeof part, pipe.get()) != nullptr) text += part;
  return text;
}

// "model.cpp:42" of the innermost frame of the user's at this offset of a file, where several may
// be inlined, as `addr2line` of binutils says; nothing when it is not installed or knows no line.
std::string line_from_debug_information(const std::string& file_name, size_t address) {
  std::string quoted = "'";
  for (const char c : file_name) quoted += c == '\'' ? std::string("'\\''") : std::string(1, c);
  char offset[64];
  std::snprintf(offset, sizeof offset, "' 0x%zx 2>/dev/null", address);
  std::istringstream frames(output_of("addr2line -i -e " + quoted + offset));
  for (std::string line; std::getline(frames, line);) {
    line.resize(std::min(line.find(" (discriminator"), line.size()));
    const std::string file = line.substr(0, line.rfind(':'));
    if (line.find('?') != std::string::npos || is_library_file(file)) continue;
    return line.substr(line.rfind('/') + 1);
  }
  return {};
}

// The same, asked once in a process: it takes some tenths of a second.
std::string known_line(const Dl_info& object, const void* address) {
  static std::mutex mutex;
  static std::map<std::pair<std::string, size_t>, std::string> lines;
  const size_t offset =
      reinterpret_cast<size_t>(address) - reinterpret_cast<size_t>(object.dli_fbase);
  const std::pair<std::string, size_t> key(object.dli_fname, offset);
  {
    const std::lock_guard lock(mutex);
    if (const auto known = lines.find(key); known != lines.end()) return known->second;
  }
  std::string line = line_from_debug_information(key.first, offset);
  const std::lock_guard lock(mutex);
  return lines.emplace(key, std::move(line)).first->second;
}

}  // namespace

const std::string& SourceLines::symbolize(void* address) {
  const auto [it, is_new] = lines_.emplace(address, std::string());
  Dl_info info;
  // The address is the one to return to: the call is before it.
  if (!is_new || dladdr(static_cast<char*>(address) - 1, &info) == 0 || info.dli_fname == nullptr)
    return it->second;
  if (is_library(info.dli_fname)) return it->second;
  const std::string function = info.dli_sname != nullptr ? demangle(info.dli_sname) : std::string();
  std::string line = known_line(info, static_cast<char*>(address) - 1);
  if (line.empty() && is_library_function(function)) return it->second;
  if (!line.empty() && !function.empty()) line += " in ";
  it->second = line + function;
  return it->second;
}

std::string SourceLines::user_line(uint32_t backtrace) {
  for (void* frame : backtraces_[backtrace]) {
    if (frame == nullptr) break;
    if (const std::string& line = symbolize(frame); !line.empty()) return line;
  }
  return {};
}

}  // namespace flashlight::tracer
