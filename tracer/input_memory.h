// Which inputs of a graph lie in the same memory, and whether those of a call do.
//
//   const InputMemory memory(graph);
//   memory.expect_as_captured("[replay] ", inputs);
//
// The values of a graph know no memory: what a program wrote through one input and read through
// another one holds for inputs that lie as they did when it was captured.
#pragma once

#include <ATen/core/Tensor.h>

#include <string>
#include <vector>

#include "composit/ir/graph.h"

namespace flashlight::tracer {

class InputMemory {
 public:
  InputMemory() = default;
  explicit InputMemory(const composit::Graph& graph);

  // UserError that begins with `who` where inputs share memory as they did not when they were
  // captured: those that lay in one storage lie elsewhere, or a written one overlaps with another
  // one. An input that is undefined is left out.
  void expect_as_captured(const std::string& who, const std::vector<at::Tensor>& inputs) const;
  // True if another input lay in the memory of this one.
  bool is_shared(size_t input) const;

 private:
  void expect_shared(const std::string& who, const std::vector<at::Tensor>& inputs) const;
  void expect_apart(const std::string& who, const std::vector<at::Tensor>& inputs) const;

  // Inputs in one storage, and the distance of the first elements in bytes.
  struct Shared {
    size_t input, with;
    int64_t shift;
  };
  std::vector<std::string> names_;
  std::vector<Shared> shared_;
  std::vector<size_t> group_;  // per input: the first one of those it shares memory with; itself
  std::vector<bool> written_;
  bool writes_ = false;
};

}  // namespace flashlight::tracer
