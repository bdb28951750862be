// A compiler behind PJRT's C interface, loaded from a shared library.
//
//   const auto library = library_at("libpjrt_cpu.so");
//   const LoadedProgram program(library, module.text, /*device=*/0);
//   program.run({program.to_device(x, x_type)}, results, result_types);
#pragma once

#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include "composit/ir/type.h"
#include "flashlight/pjrt/api.h"

namespace flashlight::pjrt {

// A library and its devices. Several threads may use one.
class Library {
 public:
  // UserError for a file that is no such library, or of another version of the interface, and where
  // it finds no device.
  explicit Library(const std::filesystem::path& path);
  ~Library();
  Library(const Library&) = delete;
  Library& operator=(const Library&) = delete;

  // Calls a function of the table. UserError with what the library says.
  template <class Arguments>
  void call(Function function, Arguments& arguments) const {
    arguments.head.size = sizeof(Arguments);
    using Pointer = pjrt::Error* (*)(Arguments*);
    expect_none(reinterpret_cast<Pointer>(address(function))(&arguments));
  }
  // The same for functions that give no error, as those that free what there is no more use for.
  template <class Arguments>
  void release(Function function, Arguments arguments) const noexcept {
    arguments.head.size = sizeof(Arguments);
    using Pointer = pjrt::Error* (*)(Arguments*);
    drop(reinterpret_cast<Pointer>(address(function))(&arguments));
  }
  // Waits, and frees the event. UserError with what went wrong.
  void await(Event* event) const;

  Client* client() const { return client_; }
  // UserError for a number that no device has.
  Device* device(int64_t number) const;
  const std::string& platform() const { return platform_; }  // "cpu", "cuda"

 private:
  void* address(Function function) const;
  void expect_none(pjrt::Error* error) const;
  void drop(pjrt::Error* error) const noexcept;

  std::string path_, platform_;
  const Api* api_ = nullptr;
  Client* client_ = nullptr;
  std::vector<Device*> devices_;
};

// The library at this path; loaded once in a process, and never unloaded.
std::shared_ptr<const Library> library_at(const std::filesystem::path& path);

// Elements in the memory of a device, which nothing writes. Several calls may read them.
class DeviceArray {
 public:
  // Copies row-major elements from the host. UserError with what the library says.
  DeviceArray(std::shared_ptr<const Library> library, Device* device, const void* data,
              const composit::Type& type);
  // Takes over what a program gave.
  DeviceArray(std::shared_ptr<const Library> library, DeviceBuffer* buffer)
      : library_(std::move(library)), buffer_(buffer) {}
  ~DeviceArray();
  DeviceArray(const DeviceArray&) = delete;
  DeviceArray& operator=(const DeviceArray&) = delete;

  DeviceBuffer* buffer() const { return buffer_; }
  // Copies row-major elements of this type to the host.
  void to_host(void* data, const composit::Type& type) const;

 private:
  std::shared_ptr<const Library> library_;
  DeviceBuffer* buffer_ = nullptr;
};
using DeviceArrays = std::vector<std::shared_ptr<const DeviceArray>>;

// A module of StableHLO, compiled for one device.
class LoadedProgram {
 public:
  // UserError with what the compiler says.
  LoadedProgram(std::shared_ptr<const Library> library, const std::string& module, int64_t device);
  ~LoadedProgram();
  LoadedProgram(const LoadedProgram&) = delete;
  LoadedProgram& operator=(const LoadedProgram&) = delete;

  // Where the program runs: what is there, programs for the same one can share.
  Device* device() const { return device_; }
  // Copies row-major elements on the host to where the program runs.
  std::shared_ptr<const DeviceArray> to_device(const void* data, const composit::Type& type) const;
  // Gives row-major elements of these types to the host. UserError with what the library says.
  void run(const DeviceArrays& arguments, const std::vector<void*>& results,
           const std::vector<composit::Type>& result_types) const;

 private:
  std::shared_ptr<const Library> library_;
  Device* device_;
  Executable* executable_ = nullptr;
};

}  // namespace flashlight::pjrt
