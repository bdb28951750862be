// A 128-bit structural hash: equal hash stands for equal value, so collisions must not happen by
// chance.
//
//   Hasher hasher;
//   hasher.add(uint64_t{3});
//   hasher.add(std::string_view("aten::add.Tensor"));
//   Hash id = hasher.finish();
//
// Two independently mixed 64-bit lanes; each step is the finaliser of SplitMix64 (Steele, Lea,
// Flood 2014). Not cryptographic: a hostile file can collide only with itself.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <string>
#include <string_view>

namespace composit {

struct Hash {
  uint64_t low = 0;   // 64 of its bits
  uint64_t high = 0;  // the others
  bool operator==(const Hash&) const = default;
  std::string str() const;  // 32 hexadecimal digits
};

// Makes a hash of a sequence of words and texts; other sequences have other hashes.
class Hasher {
 public:
  // Adds what comes next in the sequence.
  void add(uint64_t word) {
    low_ = mix(low_ ^ (word + 0x9e3779b97f4a7c15ULL));
    high_ = mix(high_ + (word ^ 0xc2b2ae3d27d4eb4fULL) * 0xff51afd7ed558ccdULL);
  }
  void add(const Hash& hash) {
    add(hash.low);
    add(hash.high);
  }
  void add(std::string_view text);  // length included, so that ("ab","c") differs from ("a","bc")
  // `size` bytes at `data`, without their number.
  void add_bytes(const void* data, size_t size);
  // The hash of what was added so far.
  Hash finish() const { return {mix(low_), mix(high_)}; }

 private:
  static constexpr uint64_t mix(uint64_t x) {
    x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9ULL;
    x = (x ^ (x >> 27)) * 0x94d049bb133111ebULL;
    return x ^ (x >> 31);
  }
  uint64_t low_ = 0x243f6a8885a308d3ULL;
  uint64_t high_ = 0x13198a2e03707344ULL;
};

}  // namespace composit

template <>
struct std::hash<composit::Hash> {
  size_t operator()(const composit::Hash& hash) const noexcept { return hash.low; }
};
