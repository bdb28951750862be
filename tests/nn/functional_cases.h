// The functions that torch_cases.py calls, by the same names, as composit has them.
//
//   LazyTensors results = functional_cases().at("conv2d")(inputs);
#pragma once

#include <functional>
#include <map>
#include <string>

#include "composit/ir/node.h"

namespace composit::test {

using Case = std::function<LazyTensors(const LazyTensors& inputs)>;
const std::map<std::string, Case>& functional_cases();

}  // namespace composit::test
