#include "flashlight/toolchain/library.h"

#include <dlfcn.h>

#include "composit/ir/error.h"

namespace flashlight::toolchain {

using composit::UserError;

Library Library::load(const Sources& sources, const CompileOptions& options) {
  const std::filesystem::path path = build(sources, options);
  try {
    return open(path);
  } catch (const UserError&) {
    if (std::filesystem::exists(path)) throw;
    return open(build(sources, options));  // another process trimmed the cache between the two
  }
}

Library Library::open(const std::filesystem::path& path) {
  const std::filesystem::path full = std::filesystem::absolute(path);
  void* handle = ::dlopen(full.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (handle == nullptr) throw UserError(std::string("[load] ") + ::dlerror());
  return {std::shared_ptr<void>(handle, ::dlclose), full};
}

void* Library::address(const std::string& name) const {
  void* address = ::dlsym(handle_.get(), name.c_str());
  if (address == nullptr)
    throw UserError("[symbol] " + path_.string() + " has no symbol '" + name + "'");
  return address;
}

}  // namespace flashlight::toolchain
