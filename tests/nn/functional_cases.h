// The functions that torch_cases.py calls, by the same names, as composit has them.
//
//   Tensors results = functional_cases().at("conv2d")(inputs);
#pragma once

#include <functional>
#include <map>
#include <string>

#include "composit/op/tensor.h"

namespace composit::test {

using Case = std::function<Tensors(const Tensors& inputs)>;
const std::map<std::string, Case>& functional_cases();

}  // namespace composit::test
