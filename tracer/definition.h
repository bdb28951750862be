// Operations that LibTorch does not have, run by composit's definitions.
#pragma once

#include <ATen/core/Tensor.h>

#include <vector>

#include "composit/ir/node.h"

namespace flashlight::tracer {

// The outputs of `node`, whose operation has a row; one tensor per operand, undefined where it is
// absent.
std::vector<at::Tensor> run_definition(const composit::Node& node,
                                       const std::vector<at::Tensor>& operands);

}  // namespace flashlight::tracer
