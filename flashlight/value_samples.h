// A few elements of each value that a run of the program made, to say later where a replay began to
// differ; and digests of memory that no operator should have changed.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <optional>
#include <string>
#include <unordered_map>
#include <vector>

#include "tracer/recorder.h"

namespace flashlight {

// Up to 64 elements of a tensor, spread over all of it; small ones whole.
class Sample {
 public:
  explicit Sample(const at::Tensor& tensor);
  // "element 3 is 0.5 in the program and 0.25 in the replay"; nothing where `tensor` has the same
  // bits in the elements that were kept.
  std::optional<std::string> difference(const at::Tensor& tensor) const;

 private:
  at::Tensor elements_;  // of the dtype; undefined for what has no memory
  int64_t numel_ = 0;
};

// Of the program's values, by record and output.
class ValueSamples {
 public:
  void add(tracer::RecordId id, c10::ArrayRef<at::Tensor> values);
  const std::vector<Sample>* find(tracer::RecordId id) const;

 private:
  std::unordered_map<tracer::RecordId, std::vector<Sample>> samples_;
};

// Of the bytes from the first element to the last one; of more than `whole` bytes, of pieces spread
// over all of them.
constexpr int64_t kWholeMemory = 4 << 20;
uint64_t digest_of_memory(const at::Tensor& tensor, int64_t whole = kWholeMemory);

// Same type, strides and bits?
bool same_bits(const at::Tensor& a, const at::Tensor& b);

// The first element whose bits differ, as Sample::difference says it.
std::string first_difference(const at::Tensor& program, const at::Tensor& replay);

}  // namespace flashlight
