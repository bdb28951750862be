// Makes one scan of the trips of a loop. For roll_scans.cpp only.
#pragma once

#include <optional>

#include "composit/family/scan_shape.h"

namespace composit {

// The graph with a scan in place of `trips`, which are of this shape. Nothing where a value of a
// trip is read behind the loop in a way that no scan gives.
std::optional<Graph> with_scan(const Graph& graph, const TripSequence& sequence, const Trips& trips,
                               const ScanShape& shape);

}  // namespace composit
