// Watches the threads that a scope does not record, while it lives. The recorder asks before a
// tensor becomes a constant, and is told of accesses to the scope's own values: both are errors,
// since no replay would repeat that work.
//
//   auto foreign = std::make_shared<ForeignThreads>();      // one per recorder
//   const WatchThreads watching(foreign);                   // until it goes
//   if (foreign->has_news()) for (const auto& access : foreign->take_news()) ...
//   if (auto made = foreign->maker_of(tensor)) ...
//
// Other threads are seen by LibTorch's observers (at::RecordFunction), which are off on the thread
// of the scope: it pays nothing for them. Threads that record for scopes of their own are seen by
// the tracer's fallback. Threads that LibTorch lends the scope to (its pools, autograd's engine)
// and the workers of a kernel's parallel loop belong to the scope.
#pragma once

#include <ATen/core/Tensor.h>
#include <ATen/record_function.h>

#include <atomic>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <unordered_map>
#include <vector>

#include "tracer/op_info.h"

namespace flashlight::tracer {

// Keeps the address of a tensor's memory from being used again, not the memory.
struct WeakMemory {
  explicit WeakMemory(const at::Tensor& tensor);
  bool expired() const;

  std::optional<c10::weak_intrusive_ptr<c10::StorageImpl>> storage;
  // Set for a tensor without storage.
  std::optional<c10::weak_intrusive_ptr<c10::TensorImpl, c10::UndefinedTensorImpl>> tensor;
};

class ForeignThreads {
 public:
  // By an operator of another thread.
  struct Access {
    const OpInfo* op = nullptr;
    std::string thread;  // "1234 'worker'"
    bool writes = false;
    const c10::StorageImpl* storage = nullptr;
  };
  using Addresses = c10::SmallVector<const void*, 8>;

  // Called before and after an operator on another thread; the first returns the addresses of its
  // arguments.
  Addresses note_arguments(const OpInfo& op, c10::ArrayRef<c10::IValue> arguments);
  void note_results(const OpInfo& op, c10::ArrayRef<c10::IValue> results,
                    const Addresses& arguments);

  // Is there what `take_news` gives: reads of memory that no other thread made, and writes, each
  // memory once?
  bool has_news() const { return news_.load(std::memory_order_acquire); }
  std::vector<Access> take_news();
  // The operator of another thread that made this memory or wrote it; nothing where none did.
  std::optional<Access> maker_of(const at::Tensor& tensor) const;

 private:
  struct Seen {
    WeakMemory memory;
    const OpInfo* maker = nullptr;
    std::string thread = {};
    bool was_read = false;
    void made_by(const OpInfo& op);
  };
  using Table = std::unordered_map<const void*, Seen>;
  Seen& seen(const at::Tensor& tensor);
  void tell(const OpInfo& op, const at::Tensor& tensor, bool writes);
  Table take_expired();

  // Nothing else is waited for while it is held: threads may hold the lock of a host language.
  mutable std::mutex mutex_;
  Table table_;
  std::vector<Access> fresh_;
  size_t sweep_at_ = 1024;
  std::atomic<bool> news_ = false;
};

class WatchThreads {
 public:
  explicit WatchThreads(std::shared_ptr<ForeignThreads> threads);
  ~WatchThreads();
  WatchThreads(const WatchThreads&) = delete;
  WatchThreads& operator=(const WatchThreads&) = delete;

 private:
  std::shared_ptr<ForeignThreads> threads_;
  std::optional<at::RecordFunctionGuard> unobserved_;
};

// A call on a thread that records for scopes of its own is a foreign one for those of other
// threads.
class ForeignCall {
 public:
  using Scopes = std::vector<std::shared_ptr<ForeignThreads>>;
  static bool is_one(size_t own_scopes);
  ForeignCall(const OpInfo& op, c10::ArrayRef<c10::IValue> arguments, const Scopes& own);
  void finish(c10::ArrayRef<c10::IValue> results);

 private:
  const OpInfo& op_;
  Scopes others_;
  std::vector<ForeignThreads::Addresses> arguments_;  // per scope
};

// True if a scope records this thread or lends itself to it (trace_scope.cpp).
bool belongs_to_a_scope();

}  // namespace flashlight::tracer
