// A vector that never moves its elements: growing it costs one allocation per chunk, no copies.
//
//   ChunkedVector<Value> values;  uint32_t id = values.push(v);  values[id]
#pragma once

#include <cstdint>
#include <memory>
#include <utility>
#include <vector>

namespace flashlight::tracer {

template <class T, uint32_t kLogChunk = 10>
class ChunkedVector {
 public:
  uint32_t push(T value) {
    if ((size_ & kMask) == 0 && (size_ >> kLogChunk) == chunks_.size())
      chunks_.emplace_back(new T[kMask + 1]);
    (*this)[size_] = std::move(value);
    return size_++;
  }
  T& operator[](uint32_t i) { return chunks_[i >> kLogChunk][i & kMask]; }
  const T& operator[](uint32_t i) const { return chunks_[i >> kLogChunk][i & kMask]; }
  T& back() { return (*this)[size_ - 1]; }
  uint32_t size() const { return size_; }

 private:
  static constexpr uint32_t kMask = (1u << kLogChunk) - 1;
  std::vector<std::unique_ptr<T[]>> chunks_;
  uint32_t size_ = 0;
};

}  // namespace flashlight::tracer
