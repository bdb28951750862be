#include "flashlight/c/handles.h"

#include <string_view>
#include <utility>

namespace flashlight::c {
namespace {

using composit::UserError;

// Far from small numbers, which are mistakes, and exact as a double, which is what some languages
// have for pointers.
constexpr uintptr_t kFirst = uintptr_t{0xf1} << 32;
constexpr uintptr_t kStep = 16;

}  // namespace

Handles::Handles() : next_(kFirst) {}

uintptr_t Handles::add(std::shared_ptr<void> object, const char* kind) {
  const std::lock_guard lock(mutex_);
  entries_.emplace(next_, Entry{std::move(object), kind});
  return std::exchange(next_, next_ + kStep);
}

bool Handles::was_given(uintptr_t number) const {
  return number >= kFirst && number < next_ && (number - kFirst) % kStep == 0;
}

bool Handles::is_gone(const void* handle) const {
  const std::lock_guard lock(mutex_);
  const auto number = reinterpret_cast<uintptr_t>(handle);
  return was_given(number) && !entries_.contains(number);
}

const Handles::Entry& Handles::entry(const void* handle, const char* kind) const {
  const auto number = reinterpret_cast<uintptr_t>(handle);
  const auto found = entries_.find(number);
  if (found != entries_.end() && std::string_view(found->second.kind) == kind) return found->second;
  const std::string received = handle == nullptr         ? "NULL"
                               : found != entries_.end() ? found->second.kind
                               : was_given(number)       ? "a handle that was freed or has ended"
                                                         : "a pointer that is no handle";
  throw UserError("expected " + std::string(kind) + ", received " + received);
}

std::shared_ptr<void> Handles::get(const void* handle, const char* kind) const {
  const std::lock_guard lock(mutex_);
  return entry(handle, kind).object;
}

std::shared_ptr<void> Handles::remove(const void* handle, const char* kind) {
  const std::lock_guard lock(mutex_);
  std::shared_ptr<void> object = entry(handle, kind).object;
  entries_.erase(reinterpret_cast<uintptr_t>(handle));
  return object;
}

Handles& handles() {
  static auto* const all = new Handles;  // threads may use it while the process ends
  return *all;
}

}  // namespace flashlight::c
