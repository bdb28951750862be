#include "tracer/storage_lock.h"

#include <c10/core/StorageImpl.h>

#include <algorithm>
#include <mutex>
#include <unordered_map>
#include <utility>

#include "tracer/each_tensor.h"
#include "tracer/generator_watch.h"

namespace flashlight::tracer {

// Locked if a lock holds it and no code has it open.
struct GuardedStorage {
  explicit GuardedStorage(const c10::Storage& s) : storage(s.getWeakStorageImpl()) {}

  // Keeps the shell, so that it can be told without asking whether the storage lives, and its
  // address is not used again. The memory itself is freed at once.
  c10::weak_intrusive_ptr<c10::StorageImpl> storage;
  c10::SmallVector<const StorageLock*, 2> holders;
  int users = 0;         // that have it open
  bool host = false;     // the host may fill it
  bool foreign = false;  // guarded by another program part
  bool locked = false;

  c10::StorageImpl* shell() const { return storage._unsafe_get_target(); }
  bool should_be_locked() const { return users == 0 && !holders.empty() && !host && !foreign; }
  void lock(const std::string& message) {
    shell()->release_data_and_set_meta_custom_data_ptr_error_msg_(message);
    locked = true;
  }
  void unlock() {
    if (std::exchange(locked, false)) shell()->clear_data_ptr_access_error_msg_();
  }
};

namespace {

constexpr std::string_view kRefused = "[trace] strict mode: the memory of ";
constexpr std::string_view kAdvice =
    " was accessed without an operator (data_ptr, an accessor, memcpy, printing); such a read is "
    "baked into the capture, such a write is missing in it: use an operator (item, index, copy_), "
    "or turn strict mode off";

// All storages some lock holds; of the process, since the guards are.
struct GuardedStorages {
  std::mutex mutex;
  std::unordered_map<const c10::StorageImpl*, GuardedStorage> entries;
  size_t sweep_at = 1024;

  GuardedStorage& of(const at::Tensor& tensor) {
    const c10::Storage& storage = tensor.unsafeGetTensorImpl()->unsafe_storage();
    const c10::StorageImpl* key = storage.unsafeGetStorageImpl();
    if (const auto found = entries.find(key); found != entries.end()) return found->second;
    if (entries.size() >= sweep_at) sweep();
    GuardedStorage& entry = entries.try_emplace(key, storage).first->second;
    // set_state reads the bytes that get_state returned and that operators copied; these are
    // tracked elsewhere.
    entry.foreign = !is_readable(*key) || state_in(tensor).has_value();
    return entry;
  }

  static bool is_readable(const c10::StorageImpl& storage) {
    try {
      storage.data();
      return true;
    } catch (const c10::Error&) {
      return false;
    }
  }

  void sweep() {
    std::erase_if(entries, [](const auto& entry) {
      return entry.second.users == 0 && entry.second.storage.expired();
    });
    sweep_at = std::max<size_t>(1024, 2 * entries.size());
  }
};

GuardedStorages& guarded() {
  static auto* storages = new GuardedStorages;
  return *storages;
}

thread_local OpenStorages* innermost = nullptr;

// A kernel that is given it reaches memory beyond its storage: the parts of a sparse tensor, the
// scales of a quantized one, what a subclass in Python wraps.
bool has_parts(const at::Tensor& tensor) {
  return !tensor.has_storage() || tensor.is_quantized() ||
         tensor.key_set().has(c10::DispatchKey::Python);
}

}  // namespace

void StorageLock::release() {
  std::lock_guard guard(guarded().mutex);
  released_ = true;
  auto& entries = guarded().entries;
  for (auto it = entries.begin(); it != entries.end();) {
    GuardedStorage& entry = it->second;
    entry.holders.erase(std::remove(entry.holders.begin(), entry.holders.end(), this),
                        entry.holders.end());
    if (entry.holders.empty()) entry.unlock();
    it = entry.holders.empty() && entry.users == 0 ? entries.erase(it) : std::next(it);
  }
}

OpenStorages::OpenStorages(const StorageLocks& locks, const OpInfo& op,
                           c10::ArrayRef<c10::IValue> arguments)
    : locks_(locks), op_(&op), outer_(std::exchange(innermost, this)) {
  std::lock_guard guard(guarded().mutex);
  bool reaches_others = false;
  for (size_t i = 0; i < arguments.size(); ++i) {
    const c10::IValue& argument = arguments[i];
    if (op.arguments[i] == ArgumentKind::other) {
      reaches_others = reaches_others || argument.isObject() || argument.isStorage();
      continue;
    }
    for_each_tensor(argument, [&](const at::Tensor& tensor) {
      reaches_others = reaches_others || has_parts(tensor);
      GuardedStorage* storage = add(tensor);
      if (storage != nullptr && (op.reads[i] || op.writes[i])) storage->host = false;
    });
  }
  if (reaches_others) add_everything();
}

OpenStorages::OpenStorages(const StorageLocks& locks, const at::Tensor& tensor,
                           const std::string& input_name)
    : locks_(locks), input_name_(input_name), outer_(std::exchange(innermost, this)) {
  std::lock_guard guard(guarded().mutex);
  add(tensor);
}

OpenStorages::OpenStorages(const StorageLocks& locks)
    : locks_(locks), outer_(std::exchange(innermost, this)) {
  std::lock_guard guard(guarded().mutex);
  add_everything();
}

OpenStorages::~OpenStorages() {
  innermost = outer_;
  std::lock_guard guard(guarded().mutex);
  if (outer_ != nullptr) {
    outer_->opened_.append(opened_.begin(), opened_.end());
    return;
  }
  const std::string text = message();
  for (GuardedStorage* storage : opened_) {
    --storage->users;
    if (storage->should_be_locked()) storage->lock(text);
    if (storage->users == 0 && storage->holders.empty()) guarded().entries.erase(storage->shell());
  }
}

void OpenStorages::add_results(c10::ArrayRef<c10::IValue> results) {
  std::lock_guard guard(guarded().mutex);
  for (const c10::IValue& result : results)
    for_each_tensor(result, [&](const at::Tensor& tensor) {
      GuardedStorage* storage = add(tensor);
      if (storage != nullptr && op_->unwritten) storage->host = true;
    });
}

// nullptr for a tensor without a storage.
GuardedStorage* OpenStorages::add(const at::Tensor& tensor) {
  if (!tensor.has_storage()) return nullptr;
  GuardedStorage& storage = guarded().of(tensor);
  for (const auto& lock : locks_)
    if (!lock->released_ && (lock->holds_ == nullptr || lock->holds_(tensor)) &&
        std::find(storage.holders.begin(), storage.holders.end(), lock.get()) ==
            storage.holders.end())
      storage.holders.push_back(lock.get());
  ++storage.users;
  storage.unlock();
  opened_.push_back(&storage);
  return &storage;
}

void OpenStorages::add_everything() {
  for (auto& [address, storage] : guarded().entries) {
    ++storage.users;
    storage.unlock();
    opened_.push_back(&storage);
  }
}

std::string OpenStorages::message() const {
  std::string text(kRefused);
  if (op_ != nullptr)
    text.append("a tensor that ").append(op_->name.str()).append(" used last");
  else
    text.append("input '").append(input_name_).append("'");
  return text.append(kAdvice);
}

std::optional<std::string> refused_access(const std::exception& error) {
  const auto* of_torch = dynamic_cast<const c10::Error*>(&error);
  const std::string text = of_torch != nullptr ? of_torch->what_without_backtrace() : error.what();
  const size_t begin = text.find(kRefused);
  if (begin == std::string::npos) return std::nullopt;
  return text.substr(begin, text.find('\n', begin) - begin);
}

void blame_kernel(const OpInfo& op) {
  try {
    throw;
  } catch (c10::Error& error) {
    if (refused_access(error) && error.context().empty())
      error.add_context("in the kernel of " + op.name.str() +
                        (op.composite ? ", which is registered as a composition of operators"
                                      : ", which uses a tensor that is not its argument"));
  } catch (...) {
  }
}

}  // namespace flashlight::tracer
