// Objects that C knows by a number that looks like a pointer. It is never followed and never given
// twice, so that a handle that was freed, or is of another kind, is an error. For the files of this
// folder only.
//
//   flashlight_capture handle = handles().add<flashlight_capture>(std::make_shared<Captured>(…));
//   std::shared_ptr<Captured> captured = handles().find<Captured>(handle);   // lives while it is
//   used handles().take<Captured>(handle);
#pragma once

#include <cstdint>
#include <memory>
#include <mutex>
#include <string>
#include <unordered_map>

#include "composit/ir/error.h"

namespace flashlight::c {

class Handles {
 public:
  Handles();
  // `T::kName` is what an error calls it: "a capture".
  template <class Handle, class T>
  Handle add(std::shared_ptr<T> object) {
    return reinterpret_cast<Handle>(add(std::move(object), T::kName));
  }
  // UserError for what is no handle of a T.
  template <class T>
  std::shared_ptr<T> find(const void* handle) const {
    return std::static_pointer_cast<T>(get(handle, T::kName));
  }
  // The same, and the handle is none any more.
  template <class T>
  std::shared_ptr<T> take(const void* handle) {
    return std::static_pointer_cast<T>(remove(handle, T::kName));
  }
  // True for a handle that there was, and is no more.
  bool is_gone(const void* handle) const;

 private:
  struct Entry {
    std::shared_ptr<void> object;
    const char* kind;
  };
  uintptr_t add(std::shared_ptr<void> object, const char* kind);
  std::shared_ptr<void> get(const void* handle, const char* kind) const;
  std::shared_ptr<void> remove(const void* handle, const char* kind);
  const Entry& entry(const void* handle, const char* kind) const;
  bool was_given(uintptr_t number) const;

  mutable std::mutex mutex_;
  std::unordered_map<uintptr_t, Entry> entries_;
  uintptr_t next_;
};

// Those of this process.
Handles& handles();

}  // namespace flashlight::c
