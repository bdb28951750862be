// Compiled code together with its weights, prepared from LibTorch's tensors; for CompiledGraph.
//
//   const PreparedCode code(backend.compile(graph, {.may_prepare = true}));
//   code.with(inputs, row_major)->run(...);
#pragma once

#include <ATen/core/Tensor.h>

#include <memory>
#include <mutex>
#include <vector>

#include "composit/op/backend.h"

namespace flashlight {

class PreparedCode {
 public:
  explicit PreparedCode(composit::Compiled code);

  const composit::Code& code() const { return *code_; }
  // Code with the weights as they are now, prepared again if one was written since the last call.
  // Both lists have a tensor per input: as the caller has it, and with row-major elements.
  std::shared_ptr<const composit::Code> with(const std::vector<at::Tensor>& given,
                                             const std::vector<at::Tensor>& row_major) const;

 private:
  // Identifies the values of a tensor: by its memory, and by how often it had been written.
  class Version {
   public:
    explicit Version(const at::Tensor& tensor);
    // False for tensors made in inference mode, since LibTorch does not count writes to them.
    bool is_of(const at::Tensor& tensor) const;

   private:
    c10::weak_intrusive_ptr<c10::StorageImpl> storage_;  // so that its address is not reused
    const void* data_;
    std::vector<int64_t> strides_;
    bool is_counted_;
    int64_t writes_;
  };
  bool is_known(const std::vector<at::Tensor>& given) const;

  composit::Compiled code_;
  std::vector<size_t> frozen_;  // inputs whose values are taken at preparation
  mutable std::mutex mutex_;
  mutable std::vector<Version> versions_;  // of frozen_, at the last preparation
  mutable std::shared_ptr<const composit::Code> prepared_;
};

}  // namespace flashlight
