// Strict mode: between operators no code may touch the memory of a tensor that the scope has met.
//
//   StorageLocks locks{std::make_shared<StorageLock>()};     // one per strict scope around
//   {
//     OpenStorages open(locks, op, arguments);               // the kernel may read and write them
//     ... the call ...
//     open.add_results(results);
//   }                                                        // now `x.data_ptr()` throws
//   c10::Error locks[0]->release();
//
// A dispatcher sees no `data_ptr`, accessor, memcpy or `cout << x`. What they read would become a
// constant of the capture, what they write would be missing in it, both in silence. LibTorch can
// guard a storage's data pointer; that guard belongs to the storage, not to a thread: while a
// strict scope lives, other threads may use the tensors it has met only inside strict scopes of
// their own. A pointer that the program took before the scope met the tensor escapes.
#pragma once

#include <ATen/core/Tensor.h>
#include <ATen/core/ivalue.h>
#include <c10/util/SmallVector.h>

#include <exception>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "tracer/op_info.h"

namespace flashlight::tracer {

// Holds the tensors its scope has met.
class StorageLock {
 public:
  // `holds`: what it is to hold; everything, where it is not given.
  explicit StorageLock(std::function<bool(const at::Tensor&)> holds = nullptr)
      : holds_(std::move(holds)) {}
  ~StorageLock() { release(); }
  StorageLock(const StorageLock&) = delete;
  StorageLock& operator=(const StorageLock&) = delete;

  // Everything can be read again that no other lock holds. It will hold nothing more.
  void release();

 private:
  friend class OpenStorages;
  const std::function<bool(const at::Tensor&)> holds_;
  bool released_ = false;
};
using StorageLocks = std::vector<std::shared_ptr<StorageLock>>;

struct GuardedStorage;

// While it stands, these tensors can be read and written; `locks` hold them from then on. What is
// opened inside of it on the same thread stays open as long as it does. A tensor made without
// content (`empty`) is the host's to fill, until an operator looks at it.
class OpenStorages {
 public:
  OpenStorages(const StorageLocks& locks, const OpInfo& op, c10::ArrayRef<c10::IValue> arguments);
  OpenStorages(const StorageLocks& locks, const at::Tensor& tensor, const std::string& input_name);
  // Everything; gives `locks` nothing more to hold.
  explicit OpenStorages(const StorageLocks& locks);
  ~OpenStorages();
  OpenStorages(const OpenStorages&) = delete;
  OpenStorages& operator=(const OpenStorages&) = delete;

  void add_results(c10::ArrayRef<c10::IValue> results);

 private:
  GuardedStorage* add(const at::Tensor& tensor);
  void add_everything();
  std::string message() const;

  const StorageLocks& locks_;
  const OpInfo* op_ = nullptr;
  std::string input_name_;  // where there is no operator
  OpenStorages* outer_;
  c10::SmallVector<GuardedStorage*, 8> opened_;  // with repetitions
};

// The message for the user, if `error` comes from a refused access.
std::optional<std::string> refused_access(const std::exception& error);
// In a catch block: names `op`, when its kernel was refused an access.
void blame_kernel(const OpInfo& op);

}  // namespace flashlight::tracer
