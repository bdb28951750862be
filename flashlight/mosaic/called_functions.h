// The functions that kernels of loops call: bodies of branches and loops of the model.
#pragma once

#include <string>
#include <vector>

#include "flashlight/mosaic/plan.h"
#include "flashlight/text/routine_writer.h"

namespace flashlight::mosaic {

// What a kernel is called among them.
inline constexpr const char* kKernelName = "kernel";

// In their order.
class CalledFunctions {
 public:
  explicit CalledFunctions(const Plan& plan);
  std::vector<text::Function> write();
  const std::vector<text::Signature>& signatures() const { return signatures_; }

 private:
  loops::Program program_;
  std::vector<text::WeightStruct> structs_;  // none has any
  std::vector<text::Signature> signatures_;
};

// The plan's functions, and `kernel` as the last one.
loops::Program program_of(const Plan& plan, loops::Routine kernel);

// Names of headers that runtime calls need.
std::vector<std::string> headers_of(const Plan& plan);
// Whether something draws random numbers.
bool draws(const Plan& plan);

}  // namespace flashlight::mosaic
