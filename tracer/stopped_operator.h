// Operators that did their work and threw nevertheless: a hook on saved tensors stopped them.
//
// torch.utils.checkpoint computes a block again in the backward pass, and stops by an exception as
// soon as its hook was given the last tensor that is needed. That may be a result of the operator
// which runs: the program goes on with it, although the operator has returned nothing.
#pragma once

#include <ATen/core/Tensor.h>

#include <optional>
#include <vector>

#include "composit/ir/hash.h"

namespace flashlight::tracer {

// Do hooks see what autograd saves on this thread?
bool has_saved_tensor_hooks();

// Results of stopped operators that the program may hold.
class StoppedResults {
 public:
  // `value` is a result of a call during which the allocations after `begin` up to `end` were made
  // (AllocationWatch::count).
  void add(const at::Tensor& result, uint32_t value, uint64_t begin, uint64_t end);
  // The one that lies in memory of this allocation, with the same type, strides and bits; nothing
  // where none does, or two do.
  std::optional<uint32_t> find(const at::Tensor& tensor, uint64_t allocation) const;

 private:
  struct Result {
    composit::Hash content;
    uint32_t value;
    uint64_t begin, end;
  };
  std::vector<Result> results_;
};

}  // namespace flashlight::tracer
