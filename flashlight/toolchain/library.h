// A shared library made of sources, in this process.
//
//   const Library library = Library::load(sources);
//   auto* relu3 = library.symbol<float(float)>("relu3");       // extern "C" float relu3(float)
//   relu3(-1.0F);
//
// Copies share it. The last copy unloads it, which ends pointers into it, unless the C++ runtime
// does not unload it yet, for instance for variables of threads that still run.
#pragma once

#include <filesystem>
#include <memory>
#include <string>

#include "flashlight/toolchain/build.h"

namespace flashlight::toolchain {

class Library {
 public:
  // Builds what the cache does not hold; errors are those of build() and open().
  static Library load(const Sources& sources, const CompileOptions& options = {});
  // Throws UserError if the file cannot be loaded, for instance because it needs a symbol that is
  // not defined.
  static Library open(const std::filesystem::path& path);

  // A function or variable by its linker name. Throws UserError if there is none. Does not check
  // that it has this type.
  template <class T>
  T* symbol(const std::string& name) const {
    return reinterpret_cast<T*>(address(name));
  }

  const std::filesystem::path& path() const { return path_; }  // path of the file, in the cache

 private:
  Library(std::shared_ptr<void> handle, std::filesystem::path path)
      : handle_(std::move(handle)), path_(std::move(path)) {}
  void* address(const std::string& name) const;

  std::shared_ptr<void> handle_;
  std::filesystem::path path_;
};

}  // namespace flashlight::toolchain
