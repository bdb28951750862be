// A family as a graph of ONNX's operators that works out its sizes when it runs.
//
//   const Unified model = lower_family(family);
//
// The family is lowered at several of its sizes, and what comes out is unified: a constant that
// follows from sizes, as the shape that Reshape takes, becomes nodes that compute it.
#pragma once

#include "composit/family/family.h"
#include "composit/family/unify.h"
#include "composit/interchange/onnx/unify.h"

namespace composit::onnx {

// UserError as of `lower` and `unify`, and where the program takes other operators at some sizes.
// `within`: sizes at which the family holds, of those in its ranges; absent: all.
Unified lower_family(const Family& family, int opset = OnnxOptions().opset,
                     const Within& within = {});

}  // namespace composit::onnx
