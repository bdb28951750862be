#include "composit/ir/hash.h"

#include <cstdio>
#include <cstring>

namespace composit {

std::string Hash::str() const {
  char text[33];
  std::snprintf(text, sizeof text, "%016llx%016llx", static_cast<unsigned long long>(high),
                static_cast<unsigned long long>(low));
  return text;
}

void Hasher::add(std::string_view text) {
  add(static_cast<uint64_t>(text.size()));
  add_bytes(text.data(), text.size());
}

void Hasher::add_bytes(const void* data, size_t size) {
  const auto* bytes = static_cast<const unsigned char*>(data);
  for (; size >= 8; bytes += 8, size -= 8) {
    uint64_t word;
    std::memcpy(&word, bytes, 8);
    add(word);
  }
  if (size == 0) return;
  uint64_t word = 0;
  std::memcpy(&word, bytes, size);
  add(word);
}

}  // namespace composit
