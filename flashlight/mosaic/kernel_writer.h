// Kernels as functions of C++.
//
//   const KernelText text = write_kernel(plan, kernel);
//   text.code;                   // "void KERNEL(const fl::Team& team, const float* x, ..."
//   text.values                  // what a call passes
//
// Equal kernels have equal text, whatever layers they are for.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "flashlight/mosaic/ids.h"
#include "flashlight/mosaic/plan.h"
#include "flashlight/text/code.h"

namespace flashlight::mosaic {

// Stands for the function's name in its text.
inline constexpr const char* kKernelName = "KERNEL";

// The packed weights that a kernel reads: fl::first_panel.
struct Panels {
  ValueId value;
  std::string split;  // "fl::Split::rows"
  int64_t columns, terms;
};

struct KernelText {
  std::string name;                    // what it may be called: "product_gelu_128x3072x768"
  text::Code code;                     // without the comment on top: describe.h
  ValueIds values;                     // of the plan, as arguments
  bool by_pointer = false;             // they are passed as pointers to their first elements
  std::string first;                   // argument before them: "team", "team.part(128)"
  std::vector<std::string> last = {};  // arguments behind them: "arena + 4096", "*generator"
  std::optional<Panels> panels = {};
  bool takes_next = false;  // the last argument is what the next kernel reads first: fl::Upcoming
};

KernelText write_kernel(const Plan& plan, const Kernel& kernel);

// By form.
KernelText write_product(const Plan& plan, const Kernel& kernel);  // product_writer.cpp
KernelText write_pack(const Plan& plan, const Kernel& kernel);
KernelText write_attention(const Plan& plan, const Kernel& kernel);  // attention_writer.cpp
KernelText write_loops(const Plan& plan, const Kernel& kernel);      // loops_writer.cpp

// "gelu": the operation that a step is for, as an identifier.
std::string operation_name(const Plan& plan, StepId step);

}  // namespace flashlight::mosaic
