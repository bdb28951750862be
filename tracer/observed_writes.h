// Finds the undeclared writes of operators that are not LibTorch's own: arguments are compared
// before and after a call.
//
//   const ArgumentContents before(info, arguments);
//   ... the call ...
//   const OpInfo& really = info.writing(before.changed());
//
// Compared are version counters, places in memory, and contents: all bytes of small arguments, a
// sample of large ones.
#pragma once

#include <ATen/core/Tensor.h>
#include <ATen/core/ivalue.h>

#include <cstddef>
#include <vector>

#include "tracer/op_info.h"

namespace flashlight::tracer {

class ArgumentContents {
 public:
  ArgumentContents(const OpInfo& info, c10::ArrayRef<c10::IValue> arguments);

  // Numbers of the schema's arguments that differ now. UserError where one has other sizes now.
  std::vector<int64_t> changed() const;
  // The arguments of the call, with their content before it.
  c10::ArrayRef<c10::IValue> arguments() const { return arguments_; }

 private:
  struct Content {
    size_t argument;
    at::Tensor tensor;
    std::vector<int64_t> sizes, strides;
    const void* storage;
    int64_t address;
    uint32_t version;
    std::vector<std::byte> bytes;
  };
  static bool differs(const Content& before, const OpInfo& info);

  const OpInfo& info_;
  std::vector<c10::IValue> arguments_;
  std::vector<Content> contents_;
};

}  // namespace flashlight::tracer
