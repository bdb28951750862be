// Keeps a few elements of each value that a run of the program made, to find later where a replay
// began to differ; and digests memory that no operator should have changed.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "tracer/recorder.h"

namespace flashlight {

// Up to 64 elements of each value of a program, by record and output; small values whole. All are
// in one block: with an allocation for each, the allocator could not give back the memory that the
// program frees between them, which is most of its memory.
class ValueSamples {
 public:
  void add(tracer::RecordId id, c10::ArrayRef<at::Tensor> values);
  // "output 1: element 3 is 0.5 in the program and 0.25 in the replay"; nothing if `values` have
  // the same bits in the elements that were kept.
  std::optional<std::string> difference(tracer::RecordId id,
                                        const std::vector<at::Tensor>& values) const;

 private:
  // A sample of a value. For a value without memory it keeps nothing, and `numel` is -1.
  struct Sample {
    size_t begin;  // in `elements_`
    int64_t numel;
    c10::ScalarType dtype;
  };
  std::optional<std::string> difference(const Sample& sample, const at::Tensor& tensor) const;

  std::vector<char> elements_;
  std::vector<Sample> samples_;
  std::vector<std::pair<uint32_t, uint32_t>> of_record_;  // first sample and their number
};

// A digest of the bytes between the first and the last element; if there are more than `whole`
// bytes, of pieces spread over them.
constexpr int64_t kWholeMemory = 4 << 20;
uint64_t digest_of_memory(const at::Tensor& tensor, int64_t whole = kWholeMemory);

// True if both have the same type, strides and bits.
bool same_bits(const at::Tensor& a, const at::Tensor& b);

// Says which element differs first, as ValueSamples::difference does.
std::string first_difference(const at::Tensor& program, const at::Tensor& replay);

}  // namespace flashlight
