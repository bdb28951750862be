// Functions of scalars (composit/op/scalar_function.h) on whole tensors, in StableHLO's operators.
#pragma once

#include "composit/interchange/stablehlo/ops.h"
#include "composit/op/scalar_function.h"

namespace composit::stablehlo {

// Of operands of one dtype, which broadcast; gives `dtype`. UserError where StableHLO has no
// operator for the function.
LazyTensor apply(Function function, const LazyTensors& arguments, DType dtype);

}  // namespace composit::stablehlo
