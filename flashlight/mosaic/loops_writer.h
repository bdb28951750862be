// Kernels of loops, and what one thread does alone: functions of the cpp backend.
//
//   std::vector<text::Code> functions = CalledFunctions(plan).write();
//   const KernelRoutine routine = routine_of(plan, kernel);
//   scratch_bytes(plan, kernel);             // what it needs beside its arguments
#pragma once

#include <string>
#include <vector>

#include "flashlight/mosaic/kernel_routine.h"
#include "flashlight/mosaic/kernel_writer.h"
#include "flashlight/text/routine_writer.h"

namespace flashlight::mosaic {

// The functions that kernels call, in their order.
class CalledFunctions {
 public:
  explicit CalledFunctions(const Plan& plan);
  std::vector<text::Code> write();
  const std::vector<text::Signature>& signatures() const { return signatures_; }

 private:
  loops::Program program_;
  std::vector<text::WeightStruct> structs_;  // none has any
  std::vector<text::Signature> signatures_;
};

// A kernel of loops of a plan whose values have their homes.
KernelRoutine routine_of(const Plan& plan, const Kernel& kernel);

// Bytes for temporaries of a kernel of loops: in all, or, where threads divide it, of each of them.
int64_t scratch_bytes(const Plan& plan, const Kernel& kernel);

// Names of headers that runtime calls need.
std::vector<std::string> headers_of(const Plan& plan);
// Whether something draws random numbers.
bool draws(const Plan& plan);

}  // namespace flashlight::mosaic
