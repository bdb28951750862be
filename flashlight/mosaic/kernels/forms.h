// All forms of kernels.
#pragma once

#include "flashlight/mosaic/kernels/form.h"

namespace flashlight::mosaic {

extern const KernelForm kLoops;           // nests that share their outermost loop
extern const KernelForm kPack;            // the packed side of a product
extern const KernelForm kProduct;         // a sum of products by register tiles
extern const KernelForm kCompressed;      // a product whose packed side is integers with scales
extern const KernelForm kCompressedPack;  // that side
extern const KernelForm kDepthwise;       // a convolution whose channels do not mix
extern const KernelForm kWinograd;        // a 3x3 convolution by Winograd's algorithm
extern const KernelForm kStrassen;        // a product of matrices by Strassen's algorithm
extern const KernelForm kAttention;
extern const KernelForm kBorder;  // zeros around a value
extern const KernelForm kCalls;   // calls of the runtime for many lines or matrices

// A call of the runtime that threads can divide, as a kernel of kCalls; nothing for other steps.
std::optional<Kernel> divided_call(const loops::Routine& routine, StepId step);

}  // namespace flashlight::mosaic
