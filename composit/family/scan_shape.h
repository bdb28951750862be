// Finds nodes that a capture repeats as often as a size says. For roll_scans.cpp only.
#pragma once

#include <optional>
#include <vector>

#include "composit/family/roll_scans.h"

namespace composit {

// The nodes of a graph that trips consist of: all but inputs and constants.
struct TripSequence {
  explicit TripSequence(const Graph& graph);
  std::vector<NodePtr> nodes;
  std::vector<Hash> tokens;  // all of a node but its operands, and but where it reads
  std::vector<Hash> forms;   // the same without integers: equal in examples of other sizes
};

// Trips of one form, one behind the other.
struct Trips {
  size_t begin = 0, count = 0;  // the first node, and the number of trips
  TripPlaces places;
};

// A part of a value: some indices along one of its axes.
struct Piece {
  LazyTensor of;
  int64_t axis = 0, index = 0;
  std::optional<int64_t> width;  // nothing: one index, the axis is left out
  bool is_written = false;       // the node gives all of the value, with another piece there
};
// The piece of its first operand that `node` reads or writes; nothing for other nodes.
std::optional<Piece> access_of(const Node& node);
// The piece of another value that `value` is, also as one of several that a node gives.
std::optional<Piece> piece_of(const LazyTensor& value);

// How many indices `now` is further than `first`; nothing where they are no such pieces of one
// value.
std::optional<int64_t> distance_between(const LazyTensor& first, const LazyTensor& now);

// What repeats in this sequence, short trips first.
std::vector<ScanShape> repeated(const TripSequence& sequence);

// All loops of this form.
std::vector<Trips> trips_of(const TripSequence& sequence, const ScanShape& shape);

}  // namespace composit
