#include "tracer/foreign_threads.h"

#include <ATen/Parallel.h>
#include <c10/util/ParallelGuard.h>
#include <pthread.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <array>

#include "tracer/allocation_watch.h"
#include "tracer/each_tensor.h"

namespace flashlight::tracer {
namespace {

const std::string& name_of_this_thread() {
  thread_local const std::string name = [] {
    std::array<char, 16> given{};
    pthread_getname_np(pthread_self(), given.data(), given.size());
    return std::to_string(::syscall(SYS_gettid)) + " '" + given.data() + "'";
  }();
  return name;
}

const void* address_of_memory(const at::Tensor& tensor) {
  if (!tensor.has_storage()) return tensor.unsafeGetTensorImpl();
  return tensor.unsafeGetTensorImpl()->unsafe_storage().unsafeGetStorageImpl();
}

// ---- the scopes that live -----------------------------------------------------------------------

struct Watched {
  std::mutex mutex;
  ForeignCall::Scopes scopes;
  std::atomic<size_t> count = 0;
  at::CallbackHandle callback = at::INVALID_CALLBACK_HANDLE;
  bool others_observe = false;  // other callbacks existed before
};
Watched& watched() {
  static auto* all = new Watched;
  return *all;
}

ForeignCall::Scopes scopes_but(const ForeignCall::Scopes& own) {
  ForeignCall::Scopes others;
  Watched& all = watched();
  std::lock_guard lock(all.mutex);
  for (const auto& scope : all.scopes)
    if (std::find(own.begin(), own.end(), scope) == own.end()) others.push_back(scope);
  return others;
}

// ---- LibTorch's observers -----------------------------------------------------------------------

// The data of the observed operator; nullptr if the call is no operator. The names belong to its
// schema.
const OpInfo* op_of(const at::RecordFunction& call) {
  struct Entry {
    const char *name, *overload;
    const OpInfo* op;
  };
  thread_local std::array<Entry, 64> cache{};
  const char* name = call.name();
  const char* overload = call.overload_name();
  Entry& entry = cache[(reinterpret_cast<uintptr_t>(name) >> 4) % cache.size()];
  if (entry.op != nullptr && entry.name == name && entry.overload == overload) return entry.op;
  const auto full_name = call.operator_name();
  if (!full_name) return nullptr;
  const auto handle = c10::Dispatcher::singleton().findSchema(*full_name);
  if (!handle) return nullptr;
  entry = {name, overload, &op_info(*handle)};
  return entry.op;
}

// The workers of a kernel's parallel loop call operators on behalf of the kernel.
bool works_for_a_kernel() {
  return (c10::ParallelGuard::is_enabled() || at::in_parallel_region()) &&
         InsideOperator::may_have_workers();
}

struct ObservedCall : at::ObserverContext {
  ObservedCall(const OpInfo& op, c10::ArrayRef<c10::IValue> arguments) : call(op, arguments, {}) {}
  ForeignCall call;
};

std::unique_ptr<at::ObserverContext> begin(const at::RecordFunction& observed) {
  if (watched().count.load(std::memory_order_acquire) == 0 || belongs_to_a_scope() ||
      works_for_a_kernel())
    return nullptr;
  const OpInfo* op = op_of(observed);
  const auto inputs = observed.inputs();
  if (op == nullptr || op->metadata || inputs.size() != op->number_of_arguments()) return nullptr;
  return std::make_unique<ObservedCall>(*op,
                                        c10::ArrayRef<c10::IValue>(inputs.data(), inputs.size()));
}

void end(const at::RecordFunction& observed, at::ObserverContext* context) {
  if (context != nullptr)
    static_cast<ObservedCall*>(context)->call.finish(
        c10::ArrayRef<c10::IValue>(observed.outputs()));
}

}  // namespace

// ---- memory -------------------------------------------------------------------------------------

WeakMemory::WeakMemory(const at::Tensor& of) {
  if (of.has_storage())
    storage.emplace(of.unsafeGetTensorImpl()->unsafe_storage().getWeakStorageImpl());
  else
    tensor.emplace(of.getIntrusivePtr());
}

bool WeakMemory::expired() const { return storage ? storage->expired() : tensor->expired(); }

void ForeignThreads::Seen::made_by(const OpInfo& op) {
  maker = &op;
  thread = name_of_this_thread();
}

ForeignThreads::Seen& ForeignThreads::seen(const at::Tensor& tensor) {
  const void* address = address_of_memory(tensor);
  const auto found = table_.find(address);
  if (found != table_.end()) return found->second;
  return table_.emplace(address, Seen{WeakMemory(tensor)}).first->second;
}

void ForeignThreads::tell(const OpInfo& op, const at::Tensor& tensor, bool writes) {
  if (!tensor.has_storage()) return;
  const auto* storage = tensor.unsafeGetTensorImpl()->unsafe_storage().unsafeGetStorageImpl();
  fresh_.push_back({&op, name_of_this_thread(), writes, storage});
  news_.store(true, std::memory_order_release);
}

// To be destroyed without the lock.
ForeignThreads::Table ForeignThreads::take_expired() {
  Table expired;
  if (table_.size() < sweep_at_ || has_news()) return expired;  // news name memory by its address
  for (auto it = table_.begin(); it != table_.end();) {
    const auto next = std::next(it);
    if (it->second.memory.expired()) expired.insert(table_.extract(it));
    it = next;
  }
  sweep_at_ = std::max<size_t>(1024, 2 * table_.size());
  return expired;
}

ForeignThreads::Addresses ForeignThreads::note_arguments(const OpInfo& op,
                                                         c10::ArrayRef<c10::IValue> arguments) {
  Addresses addresses;
  Table expired;
  std::lock_guard lock(mutex_);
  expired = take_expired();
  const auto note = [&](const at::Tensor& tensor, bool writes) {
    Seen& memory = seen(tensor);
    if (memory.maker != nullptr) return;
    if (!writes && std::exchange(memory.was_read, true)) return;
    if (writes) memory.made_by(op);
    tell(op, tensor, writes);
  };
  for (const bool writes : {true, false})  // what it writes, it may read, too
    for (size_t i = 0; i < arguments.size(); ++i)
      for_each_tensor(arguments[i], [&](const at::Tensor& tensor) {
        if (writes) addresses.push_back(address_of_memory(tensor));
        if (!op.metadata && (writes ? op.writes[i] : op.reads[i])) note(tensor, writes);
      });
  return addresses;
}

void ForeignThreads::note_results(const OpInfo& op, c10::ArrayRef<c10::IValue> results,
                                  const Addresses& arguments) {
  std::lock_guard lock(mutex_);
  for (const c10::IValue& result : results)
    for_each_tensor(result, [&](const at::Tensor& tensor) {
      const void* address = address_of_memory(tensor);
      if (std::find(arguments.begin(), arguments.end(), address) != arguments.end()) return;
      seen(tensor).made_by(op);  // the outermost operator comes last
    });
}

std::vector<ForeignThreads::Access> ForeignThreads::take_news() {
  std::lock_guard lock(mutex_);
  news_.store(false, std::memory_order_release);
  return std::exchange(fresh_, {});
}

std::optional<ForeignThreads::Access> ForeignThreads::maker_of(const at::Tensor& tensor) const {
  std::lock_guard lock(mutex_);
  const auto found = table_.find(address_of_memory(tensor));
  if (found == table_.end() || found->second.maker == nullptr) return std::nullopt;
  return Access{found->second.maker, found->second.thread};
}

// ---- watching -----------------------------------------------------------------------------------

WatchThreads::WatchThreads(std::shared_ptr<ForeignThreads> threads) : threads_(std::move(threads)) {
  Watched& all = watched();
  std::lock_guard lock(all.mutex);
  if (all.scopes.empty()) all.others_observe = at::hasGlobalCallbacks();
  // A profiler on this thread goes on.
  if (!all.others_observe && !at::hasThreadLocalCallbacks()) unobserved_.emplace(false);
  all.scopes.push_back(threads_);
  all.count.store(all.scopes.size(), std::memory_order_release);
  if (all.scopes.size() == 1)
    all.callback = at::addGlobalCallback(at::RecordFunctionCallback(&begin, &end)
                                             .needsInputs(true)
                                             .needsOutputs(true)
                                             .scopes({at::RecordScope::FUNCTION}));
}

WatchThreads::~WatchThreads() {
  Watched& all = watched();
  std::lock_guard lock(all.mutex);
  all.scopes.erase(std::find(all.scopes.begin(), all.scopes.end(), threads_));
  all.count.store(all.scopes.size(), std::memory_order_release);
  if (all.scopes.empty()) at::removeCallback(all.callback);
}

bool ForeignCall::is_one(size_t own_scopes) {
  return watched().count.load(std::memory_order_acquire) > own_scopes;
}

ForeignCall::ForeignCall(const OpInfo& op, c10::ArrayRef<c10::IValue> arguments, const Scopes& own)
    : op_(op), others_(scopes_but(own)) {
  for (const auto& scope : others_) arguments_.push_back(scope->note_arguments(op, arguments));
}

void ForeignCall::finish(c10::ArrayRef<c10::IValue> results) {
  for (size_t i = 0; i < others_.size(); ++i) others_[i]->note_results(op_, results, arguments_[i]);
}

}  // namespace flashlight::tracer
