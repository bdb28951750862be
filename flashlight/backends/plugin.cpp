#include "composit/op/plugin.h"

#include <dlfcn.h>

#include "composit/io/file.h"
#include "composit/ir/error.h"
#include "flashlight/backends/registry.h"

namespace flashlight {
namespace {

using composit::UserError;

[[noreturn]] void refuse(const std::filesystem::path& path, const std::string& expected,
                         const std::string& received) {
  throw UserError("[plugin] " + path.string() + ": expected " + expected + ", received " +
                  received);
}

// Checks the file before its code is loaded, as symbols that the code needs may be gone.
void expect_interface(const std::filesystem::path& path) {
  const auto file = composit::io::MappedFile::open(path);
  const std::string_view head = COMPOSIT_PLUGIN_HEAD;
  const size_t begin = file->text().find(head);
  if (begin == std::string_view::npos)
    refuse(path, "a library with COMPOSIT_BACKEND_PLUGIN (composit/op/plugin.h)",
           "a file without it");
  const std::string_view rest = file->text().substr(begin + head.size());
  const std::string received(rest.substr(0, rest.find('\0')));
  if (received != COMPOSIT_PLUGIN_INTERFACE)
    refuse(path, "a plugin for interface " COMPOSIT_PLUGIN_INTERFACE,
           "one for interface " + received);
}

// Makes the symbols that a plugin needs visible. They are in the program, or in the library that
// contains this code: Python loads an extension module with local symbols.
void share_symbols() {
  Dl_info here;
  if (::dladdr(reinterpret_cast<const void*>(&share_symbols), &here) != 0)
    ::dlopen(here.dli_fname, RTLD_NOW | RTLD_NOLOAD | RTLD_GLOBAL);
}

}  // namespace

const composit::Backend& load_plugin(const std::filesystem::path& path) {
  const std::filesystem::path full = std::filesystem::absolute(path);
  expect_interface(full);
  share_symbols();
  void* const library = ::dlopen(full.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (library == nullptr)
    refuse(full, "a library that this program can load",
           std::string("one it cannot: ") + ::dlerror());
  auto* const entry =
      reinterpret_cast<void (*)(composit::Plugin&)>(::dlsym(library, "composit_plugin"));
  if (entry == nullptr)
    refuse(full, "a library with COMPOSIT_BACKEND_PLUGIN (composit/op/plugin.h)",
           "one that does not export composit_plugin");
  composit::Plugin plugin = {};
  entry(plugin);
  if (plugin.empty_name != &composit::Symbol().str())
    refuse(full, "a plugin that uses the composit of the program that loads it",
           "one with a copy of its own; link it with composit::plugin alone, and the program with "
           "its symbols exported (ENABLE_EXPORTS)");
  register_backend(*plugin.backend);
  return *plugin.backend;
}

}  // namespace flashlight
