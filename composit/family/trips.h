// What trips of a loop take from each other: for roll_loops.h and roll_scans.h.
#pragma once

#include <optional>
#include <utility>

#include "composit/ir/flat_map.h"
#include "composit/ir/node.h"

namespace composit {

// What an operand is in each trip but the first.
struct TripOperand {
  // `inner`: a value of the same trip; `carried`: of one before; `outside`: the same in all;
  // `slot`: another output of the same node in each trip, or a read of the same at another index.
  enum class Kind : uint8_t { inner, carried, outside, slot };
  Kind kind = Kind::outside;  // of this operand
  size_t node = 0;            // inner and carried: the place in the trip of the node that makes it
  uint32_t output = 0;        // which output of that node
  int64_t step = 0;           // slot: how far on from one trip to the next
  size_t back = 1;            // carried: how many trips before
  bool operator==(const TripOperand&) const = default;
};

// Where nodes are: trip and place in the trip.
using TripPlaces = FlatMap<const Node*, std::pair<size_t, size_t>>;

// The operand `value` of a node of a trip, `outside` where it is of no trip; nothing for a value of
// more than `most_back` trips before.
std::optional<TripOperand> operand_in(const TripPlaces& places, size_t trip,
                                      const LazyTensor& value, size_t most_back = 1);

// True for equal dtypes and sizes.
bool same_values(const Type& a, const Type& b);

// True where `node` views the memory of a value of no trip that is not dense: a region takes dense
// values.
bool views_others(const TripPlaces& places, const Node& node);

}  // namespace composit
