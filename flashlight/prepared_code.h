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

class SharedPreparations;

class PreparedCode {
 public:
  // `shared`: what code of the same program at other sizes has prepared is taken from there, if the
  // weights are the same.
  explicit PreparedCode(composit::Compiled code,
                        std::shared_ptr<SharedPreparations> shared = nullptr);

  const composit::Code& code() const { return *code_; }
  // By input: true if its value is taken at preparation.
  const std::vector<bool>& frozen() const { return is_frozen_; }
  // Code with the weights as they are now, prepared again where one was written since the last
  // call. A tensor per input of the graph, as the caller has it, and with row-major elements. Of a
  // frozen one nothing has to be given after the first call: then nobody may have written it since.
  // UserError where that is not so, or where another one was written.
  std::shared_ptr<const composit::Code> with(const std::vector<at::Tensor>& given,
                                             const std::vector<at::Tensor>& row_major) const;

 private:
  // Which values a tensor had: where they were, and how often they had been written. It holds none
  // of them.
  class Version {
   public:
    explicit Version(const at::Tensor& tensor);
    // False for tensors made in inference mode, since LibTorch does not count writes to them.
    bool is_of(const at::Tensor& tensor) const;
    // The same, of a tensor that is gone: others may have its memory and write to it.
    bool is_last() const;
    bool is_counted() const { return counter_.enabled(); }

   private:
    c10::weak_intrusive_ptr<c10::StorageImpl> storage_;  // so that its address is not reused
    const void* data_;
    std::vector<int64_t> strides_;
    c10::VariableVersion counter_;  // of writes, shared by all that have this memory
    uint32_t writes_;
  };
  using Versions = std::vector<Version>;
  Versions versions_of(const std::vector<at::Tensor>& given) const;
  bool is_known(const std::vector<at::Tensor>& given, size_t place) const;
  void expect_all(const std::vector<at::Tensor>& given, size_t changed) const;
  void prepare(const std::vector<at::Tensor>& given,
               const std::vector<at::Tensor>& row_major) const;

  friend class SharedPreparations;

  composit::Compiled code_;
  std::shared_ptr<SharedPreparations> shared_;
  std::vector<bool> is_frozen_;
  std::vector<size_t> frozen_;  // those inputs
  mutable std::mutex mutex_;
  mutable std::shared_ptr<const Versions> versions_;  // of frozen_, at the last preparation
  mutable std::shared_ptr<const composit::Code> prepared_;
};

// What code of one program has prepared at its sizes, as long as a size has it.
class SharedPreparations {
 private:
  friend class PreparedCode;
  using Versions = std::shared_ptr<const PreparedCode::Versions>;
  struct Group {
    Versions versions;
    std::vector<std::weak_ptr<const composit::Code>> codes;
  };
  // What was prepared from tensors of the same versions.
  struct Known {
    Versions versions;  // nullptr: nothing
    composit::Code::Codes codes;
  };
  // By input, of which the `frozen` ones matter.
  Known of(const std::vector<size_t>& frozen, const std::vector<at::Tensor>& given);
  void add(std::shared_ptr<const composit::Code> code, const Versions& versions);

  std::mutex mutex_;
  std::vector<Group> groups_;
};

}  // namespace flashlight
