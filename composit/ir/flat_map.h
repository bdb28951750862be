// A hash map that only grows, for tables with an entry per node: several times faster than
// std::unordered_map on a million of them, because entries lie side by side in order of insertion.
//
//   FlatMap<const Node*, size_t> place;
//   if (place.insert(node, 3)) ...       // false: it was there already
//   if (const size_t* found = place.find(node)) ...
//
// Pointers to values last until the next insertion. At most 2^32 - 1 entries.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <utility>
#include <vector>

namespace composit {

template <class Key, class Value, class Hash = std::hash<Key>>
class FlatMap {
 public:
  size_t size() const { return entries_.size(); }
  void reserve(size_t count) {
    entries_.reserve(count);
    if (2 * count > slots_.size()) resize(2 * count);
  }

  const Value* find(const Key& key) const {
    const Entry* entry = slots_.empty() ? nullptr : entry_at(slot_of(key));
    return entry == nullptr ? nullptr : &entry->second;
  }
  Value* find(const Key& key) { return const_cast<Value*>(std::as_const(*this).find(key)); }
  bool contains(const Key& key) const { return find(key) != nullptr; }

  // False, and nothing changes, where there is an entry for `key`.
  bool insert(const Key& key, Value value) {
    if (2 * (entries_.size() + 1) > slots_.size()) resize(2 * slots_.size());
    Slot& slot = slots_[slot_of(key)];
    if (slot.entry != 0) return false;
    entries_.emplace_back(key, std::move(value));
    slot = {fingerprint(hash(key)), static_cast<uint32_t>(entries_.size())};
    return true;
  }
  // The value for `key`, made where there is none.
  Value& operator[](const Key& key) {
    insert(key, Value());
    return *find(key);
  }

 private:
  using Entry = std::pair<Key, Value>;
  struct Slot {
    uint32_t fingerprint = 0;  // spares looking at most entries with other keys
    uint32_t entry = 0;        // its number from 1 on; 0: free
  };

  // Fibonacci hashing: the high bits depend on all bits, also of pointers, which hash to
  // themselves.
  static uint64_t hash(const Key& key) { return Hash()(key) * 0x9e3779b97f4a7c15ULL; }
  static uint32_t fingerprint(uint64_t hash) { return static_cast<uint32_t>(hash >> 16); }

  // The slot that holds `key`, or the free one where it belongs.
  size_t slot_of(const Key& key) const {
    const uint64_t code = hash(key);
    for (size_t i = code >> shift_;; ++i) {
      const Slot& slot = slots_[i &= slots_.size() - 1];
      if (slot.entry == 0) return i;
      if (slot.fingerprint == fingerprint(code) && entry_at(i)->first == key) return i;
    }
  }
  const Entry* entry_at(size_t slot) const {
    return slots_[slot].entry == 0 ? nullptr : &entries_[slots_[slot].entry - 1];
  }

  void resize(size_t wanted) {
    size_t size = 16;
    for (shift_ = 60; size < wanted; size *= 2) --shift_;
    slots_.assign(size, {});
    for (size_t i = 0; i < entries_.size(); ++i)
      slots_[slot_of(entries_[i].first)] = {fingerprint(hash(entries_[i].first)),
                                            static_cast<uint32_t>(i + 1)};
  }

  std::vector<Entry> entries_;
  std::vector<Slot> slots_;  // a power of two, at most half of them taken
  int shift_ = 60;
};

}  // namespace composit
