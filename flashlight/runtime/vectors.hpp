// The vectors of the instruction set that is compiled for, as g++ and clang++
// have them.
//
//   Vectors<float>::Vector x = Vectors<float>::load(from), y = x * 2.0f;
#pragma once

#include <cstring>

namespace fl::detail {

#if defined(__AVX512F__)
constexpr int kVectorBytes = 64;
#elif defined(__AVX__)
constexpr int kVectorBytes = 32;
#else
constexpr int kVectorBytes = 16;
#endif

template <class T, int kBytes = kVectorBytes>
struct Vectors {
  static constexpr int kLanes = kBytes / static_cast<int>(sizeof(T));
  typedef T Vector __attribute__((vector_size(kBytes)));

  static Vector load(const T* from) {
    Vector x;
    std::memcpy(&x, from, sizeof x);
    return x;
  }
  static Vector all(T x) { return x - Vector{}; }
};

}  // namespace fl::detail
