// Random Python functions: branches, loops that break and continue, early returns, tensors under
// several names that are written in place, lists.
//
//   const std::string text = random_text(seed);     // def f(x: Tensor, y: Tensor, u: float, n:
//   int)
#pragma once

#include <cstdint>
#include <string>

namespace flashlight::test {

// Tensors of 3 elements, values that stay small. It returns a tuple of tensors, numbers and a list.
std::string random_text(uint64_t seed);

}  // namespace flashlight::test
