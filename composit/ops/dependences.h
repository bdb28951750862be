// What depends on what through values that carry gradients, for derivatives of regions.
//
//   dependences(body)[1][0]     // true: output 1 depends on input 0
#pragma once

#include <vector>

#include "composit/ir/graph.h"

namespace composit {

using Flags = std::vector<bool>;

// Floats and complex numbers do.
bool carries_gradient(const Type& type);

// Sets the flags that `more`, of as many, has.
void unite(Flags& flags, const Flags& more);

// Per output, the inputs that it depends on.
std::vector<Flags> dependences(const Graph& body);

}  // namespace composit
