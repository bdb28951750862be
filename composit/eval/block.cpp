#include "composit/eval/block.h"

#include <algorithm>
#include <cstring>

#include "composit/op/compute_type.h"
#include "composit/op/scalar_templates.h"

namespace composit::eval {
namespace {

// f(i, offset) for every element.
template <class F>
void for_each(size_t count, const Elements& elements, F f) {
  if (elements.offsets != nullptr) {
    for (size_t i = 0; i < count; ++i) f(i, elements.offsets[i]);
  } else {
    int64_t offset = elements.first;
    for (size_t i = 0; i < count; ++i, offset += elements.step) f(i, offset);
  }
}

}  // namespace

void read(DType dtype, size_t count, const std::byte* data, const Elements& from, void* block) {
  with_storage(dtype, [&]<class S>(std::type_identity<S>) {
    // A bool in memory may be any byte.
    using Stored = std::conditional_t<std::is_same_v<S, bool>, uint8_t, S>;
    const auto* source = reinterpret_cast<const Stored*>(data);
    auto* to = static_cast<Compute<S>*>(block);
    for_each(count, from, [=](size_t i, int64_t offset) {
      to[i] = offset == kNowhere ? Compute<S>() : Compute<S>(to_compute(source[offset]));
    });
  });
}

const std::byte* view(DType dtype, const std::byte* data, const Elements& from) {
  return with_storage(dtype, [&]<class S>(std::type_identity<S>) -> const std::byte* {
    if (from.offsets != nullptr || from.step != 1 || std::is_same_v<S, bool>) return nullptr;
    if (!std::is_same_v<S, Compute<S>>) return nullptr;
    return data + from.first * static_cast<int64_t>(sizeof(S));
  });
}

void write(DType dtype, size_t count, const void* block, std::byte* data, const Elements& to,
           bool add) {
  with_storage(dtype, [&]<class S>(std::type_identity<S>) {
    auto* target = reinterpret_cast<S*>(data);
    const auto* from = static_cast<const Compute<S>*>(block);
    if (add) {
      for_each(count, to, [=](size_t i, int64_t offset) {
        target[offset] = convert<S>(scalar::add(to_compute(target[offset]), from[i]));
      });
    } else {
      for_each(count, to, [=](size_t i, int64_t offset) { target[offset] = convert<S>(from[i]); });
    }
  });
}

void take(DType dtype, size_t count, const void* from, const int64_t* positions, void* block) {
  with_compute(dtype, [&]<class T>(std::type_identity<T>) {
    for (size_t i = 0; i < count; ++i)
      static_cast<T*>(block)[i] = static_cast<const T*>(from)[positions[i]];
  });
}

void put(DType dtype, size_t count, const void* from, const int64_t* positions, void* block) {
  with_compute(dtype, [&]<class T>(std::type_identity<T>) {
    for (size_t i = 0; i < count; ++i)
      static_cast<T*>(block)[positions[i]] = static_cast<const T*>(from)[i];
  });
}

void repeat(DType dtype, size_t count, void* block) {
  auto* bytes = static_cast<std::byte*>(block);
  const size_t size = compute_size(dtype), total = count * size;
  for (size_t done = size; done < total; done *= 2)
    std::memcpy(bytes + done, bytes, std::min(done, total - done));
}

void split(DType dtype, size_t count, const void* from, void* left, void* right) {
  with_compute(dtype, [&]<class T>(std::type_identity<T>) {
    const T* pairs = static_cast<const T*>(from);
    for (size_t i = 0; i < count; ++i) {
      static_cast<T*>(left)[i] = pairs[2 * i];
      static_cast<T*>(right)[i] = pairs[2 * i + 1];
    }
  });
}

}  // namespace composit::eval
