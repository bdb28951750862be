// Describes a kernel in words.
//
//   describe(plan, kernel, names).loops      // "128 rows x 3072 columns x 768 terms, ..."
//   comment_of(plan, kernel)                 // on top of the function
//   std::cout << print(plan);                // plan.h
#pragma once

#include <string>
#include <vector>

#include "flashlight/mosaic/plan.h"
#include "flashlight/text/code.h"

namespace flashlight::mosaic {

struct Description {
  // Operations of the model that it computes, in their order, what was fused included.
  std::vector<loops::Origin> operations;
  // The nest from the outside in, how threads divide it, and tiles.
  std::string loops;
  int64_t flops = 0;  // additions, multiplications and functions
  int64_t bytes = 0;  // of memory that is read or written, each once
};

// `names`: value_names(plan.routine).
Description describe(const Plan& plan, const Kernel& kernel, const std::vector<std::string>& names);

// "604.4 MFLOP, 11.0 MB, 55 FLOP per byte".
std::string work_of(const Description& one);
// "linear, gelu".
std::string names_of(const std::vector<loops::Origin>& operations);

// Its operations, its loops, its arithmetic intensity. Nothing in it depends on the layer.
text::Code comment_of(const Plan& plan, const Kernel& kernel);

// "relu_3": by value, distinct names; edits go by them.
std::vector<std::string> value_names(const loops::Routine& routine);

}  // namespace flashlight::mosaic
