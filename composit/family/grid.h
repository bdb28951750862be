// Points of the ranges of sizes, at which conditions are looked at. For case_finder.cpp only.
#pragma once

#include <optional>
#include <vector>

#include "composit/family/family.h"

namespace composit {

// The point that is farthest from those known, if these are too few, or show too few numbers of
// some size.
std::optional<SizeValues> farthest_wanted(const std::vector<SizeValues>& known,
                                          const std::vector<SizeValues>& points,
                                          const std::vector<FreeSize>& sizes);

// As many of the points as may be bound up to a graph's size; another part of them for each size.
std::vector<SizeValues> some_of(const std::vector<SizeValues>& points, size_t nodes);

// True if one of the sizes is 1 or 0.
bool has_one(const SizeValues& sizes);

}  // namespace composit
