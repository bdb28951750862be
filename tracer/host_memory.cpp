#include "tracer/host_memory.h"

#include <algorithm>
#include <utility>

#include "composit/ir/error.h"

namespace flashlight::tracer {
namespace {

thread_local HostMemory* innermost = nullptr;

struct Range {
  uintptr_t begin = 0, end = 0;
  bool meets(uintptr_t other, size_t bytes) const { return other < end && begin < other + bytes; }
};

// Also where a guard on the storage forbids to ask.
Range range_of(c10::StorageImpl& storage) {
  const auto begin = reinterpret_cast<uintptr_t>(storage._mutable_data_ptr_no_checks().get());
  return {begin, begin + storage.nbytes()};
}

c10::StorageImpl* storage_of(const at::Tensor& tensor) {
  if (!tensor.defined() || !tensor.has_storage()) return nullptr;
  return tensor.unsafeGetTensorImpl()->unsafe_storage().unsafeGetStorageImpl();
}

composit::Hash digest(uintptr_t begin, size_t bytes) {
  composit::Hasher hasher;
  hasher.add_bytes(reinterpret_cast<const void*>(begin), bytes);
  return hasher.finish();
}

template <class Visit>
void for_each_storage(const c10::IValue& value, Visit visit) {
  if (value.isTensor()) {
    if (c10::StorageImpl* storage = storage_of(value.toTensor())) visit(*storage);
  } else if (value.isList()) {
    for (const c10::IValue& item : value.toListRef()) for_each_storage(item, visit);
  }
}

}  // namespace

HostMemory::HostMemory() : outer_(std::exchange(innermost, this)) {}

void HostMemory::stop() {
  if (!std::exchange(stopped_, true)) innermost = outer_;
}

uint64_t HostMemory::hand_out(const at::Tensor& tensor, uintptr_t begin, size_t bytes,
                              std::string place) {
  std::lock_guard lock(mutex_);
  const uint64_t id = add(tensor, begin, bytes, std::move(place));
  if (id != 0) pieces_.back().digest = digest(pieces_.back().begin, pieces_.back().bytes);
  return id;
}

void HostMemory::take_in(const at::Tensor& tensor, std::string place) {
  std::lock_guard lock(mutex_);
  add(tensor, 0, 0, std::move(place));
}

uint64_t HostMemory::add(const at::Tensor& tensor, uintptr_t begin, size_t bytes,
                         std::string place) {
  c10::StorageImpl* storage = storage_of(tensor);
  if (storage == nullptr || !tensor.device().is_cpu()) return 0;
  const Range range = range_of(*storage);
  if (begin == 0) {
    begin = range.begin;
    bytes = range.end - range.begin;
  }
  if (begin == 0 || bytes == 0 || begin < range.begin || begin + bytes > range.end) return 0;
  pieces_.push_back({++last_, tensor.storage().getWeakStorageImpl(), begin, bytes, std::move(place),
                     std::nullopt});
  return last_;
}

// The last moment in which a write of the host shows. No place for an error: it may be the
// collector that lets go.
void HostMemory::release(uint64_t id) {
  std::lock_guard lock(mutex_);
  const auto piece = std::find_if(pieces_.begin(), pieces_.end(),
                                  [id](const Piece& known) { return known.id == id; });
  if (piece == pieces_.end()) return;
  compare(*piece);
  pieces_.erase(piece);
}

void HostMemory::compare(const Piece& piece) {
  if (!piece.digest || written_) return;
  const auto alive = piece.storage.lock();
  if (alive != nullptr && digest(piece.begin, piece.bytes) != piece.digest) written_ = piece.place;
}

void HostMemory::refuse() {
  if (!written_) return;
  throw composit::UserError(
      "[trace] " + *written_ +
      ": the program wrote into the memory of this tensor without an operator, so a replay would "
      "not write it; write by an operator (copy_, index_put_, x[i] = …)");
}

void HostMemory::expect_unwritten() {
  std::lock_guard lock(mutex_);
  for (const Piece& piece : pieces_) compare(piece);
  refuse();
}

std::vector<std::string> HostMemory::rewritten() {
  std::lock_guard lock(mutex_);
  return rewritten_;
}

template <class Visit>
void HostMemory::for_each_touched(c10::ArrayRef<c10::IValue> arguments, Visit visit) {
  if (pieces_.empty()) return;
  c10::SmallVector<Range, 8> ranges;
  for (const c10::IValue& argument : arguments)
    for_each_storage(argument,
                     [&](c10::StorageImpl& storage) { ranges.push_back(range_of(storage)); });
  std::erase_if(pieces_, [](const Piece& piece) { return piece.storage.expired(); });
  for (Piece& piece : pieces_) {
    const auto alive = piece.storage.lock();
    if (alive != nullptr && std::any_of(ranges.begin(), ranges.end(), [&](const Range& range) {
          return range.meets(piece.begin, piece.bytes);
        }))
      visit(piece);
  }
}

bool HostMemory::compare_touched(c10::ArrayRef<c10::IValue> arguments) {
  std::lock_guard lock(mutex_);
  bool touches = false;
  for_each_touched(arguments, [&](Piece& piece) {
    if (!piece.digest) piece.digest = digest(piece.begin, piece.bytes);
    compare(piece);
    touches = true;
  });
  refuse();
  return touches;
}

void HostMemory::follow_touched(c10::ArrayRef<c10::IValue> arguments) {
  std::lock_guard lock(mutex_);
  for_each_touched(arguments, [this](Piece& piece) {
    const composit::Hash now = digest(piece.begin, piece.bytes);
    if (std::exchange(piece.digest, now) == now) return;
    if (std::find(rewritten_.begin(), rewritten_.end(), piece.place) == rewritten_.end())
      rewritten_.push_back(piece.place);
  });
}

// LibTorch's own operators write what they say.
std::vector<c10::IValue> HostMemory::before_operator(const OpInfo& info,
                                                     c10::ArrayRef<c10::IValue> arguments) {
  bool touches = false;
  for (HostMemory* memory = innermost; memory != nullptr; memory = memory->outer_)
    touches = memory->compare_touched(arguments) || touches;
  const bool may_write = info.writes_any || info.name.domain() != "aten";
  return touches && may_write ? arguments.vec() : std::vector<c10::IValue>();
}

void HostMemory::after_operator(c10::ArrayRef<c10::IValue> written) {
  if (written.empty()) return;
  for (HostMemory* memory = innermost; memory != nullptr; memory = memory->outer_)
    memory->follow_touched(written);
}

}  // namespace flashlight::tracer
