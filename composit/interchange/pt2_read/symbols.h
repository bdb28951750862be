// The symbols of a program with dynamic shapes, and what they are in its example.
#pragma once

#include "composit/interchange/pt2_read/sizes.h"

namespace composit::pt2_read {

// Each symbol at the size that the file notes as its example's. Symbols without one have no value:
// they follow from values.
Sizes example_sizes(const Json& graph);

}  // namespace composit::pt2_read
