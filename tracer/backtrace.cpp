#include "tracer/backtrace.h"

#include <cxxabi.h>
#include <dlfcn.h>

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <string_view>

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

bool is_tracer(std::string_view function) {
  for (const char* part : {"flashlight::", "c10::", "at::", "torch::", "std::", "boost::"})
    if (function.substr(0, std::strlen(part)) == part) return true;
  return function.find("flashlight::tracer") != std::string_view::npos ||
         function.find("(anonymous namespace)::record_operator") != std::string_view::npos;
}

// "file:line" of the frames that lie at `address`, inlined ones first, as `addr2line` of binutils
// says; nothing when it is not installed or knows no line.
std::vector<std::string> lines_at(const Dl_info& object, const void* address) {
  std::string quoted = "'";
  for (const char* c = object.dli_fname; *c != 0; ++c)
    quoted += *c == '\'' ? std::string("'\\''") : std::string(1, *c);
  char command[64];
  std::snprintf(command, sizeof command, "' 0x%zx 2>/dev/null",
                reinterpret_cast<size_t>(address) - reinterpret_cast<size_t>(object.dli_fbase));
  const std::unique_ptr<FILE, int (*)(FILE*)> pipe(
      popen(("addr2line -i -e " + quoted + command).c_str(), "r"), pclose);
  std::vector<std::string> lines;
  char line[1024] = {};
  while (pipe && std::fgets(line, sizeof line, pipe.get()) != nullptr) {
    line[std::strcspn(line, " \n")] = 0;
    if (std::strchr(line, '?') == nullptr) lines.emplace_back(line);
  }
  return lines;
}

// The folder of our sources as debug information names it; empty where there is none.
const std::string& our_root() {
  static const std::string root = [] {
    const auto* here = reinterpret_cast<const void*>(&demangle);
    Dl_info info;
    if (dladdr(here, &info) == 0 || info.dli_fname == nullptr) return std::string();
    const auto lines = lines_at(info, here);
    const size_t end = lines.empty() ? std::string::npos : lines[0].rfind("tracer/backtrace.cpp");
    return end == std::string::npos ? std::string() : lines[0].substr(0, end);
  }();
  return root;
}

// A header of LibTorch or of the standard library, inlined into the user's function.
bool is_library_header(std::string_view file) {
  for (const char* part : {"/include/ATen/", "/include/torch/", "/include/c10/", "/include/c++/"})
    if (file.find(part) != std::string_view::npos) return true;
  // Our own sources, in a program that links them statically and exports no symbols.
  const std::string& root = our_root();
  if (root.empty() || file.substr(0, root.size()) != root) return false;
  const std::string_view rest = file.substr(root.size());
  return rest.rfind("tracer/", 0) == 0 || rest.rfind("flashlight/", 0) == 0;
}

// The innermost inlined frame of the user's.
std::string line_from_debug_information(const Dl_info& object, const void* address) {
  for (const std::string& line : lines_at(object, address))
    if (!is_library_header(line)) return line.substr(line.rfind('/') + 1);
  return {};
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
  if (is_tracer(function)) return it->second;
  std::string line = line_from_debug_information(info, static_cast<char*>(address) - 1);
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
