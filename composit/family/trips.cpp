#include "composit/family/trips.h"

#include <algorithm>

#include "composit/family/local_hash.h"

namespace composit {

std::optional<TripOperand> operand_in(const TripPlaces& places, size_t trip,
                                      const LazyTensor& value, size_t most_back) {
  using Kind = TripOperand::Kind;
  const auto* place = value ? places.find(value.node.get()) : nullptr;
  if (place == nullptr) return TripOperand{};
  if (place->first == trip) return TripOperand{Kind::inner, place->second, value.index};
  if (place->first < trip && trip - place->first <= most_back)
    return TripOperand{Kind::carried, place->second, value.index, 0, trip - place->first};
  return std::nullopt;
}

bool same_values(const Type& a, const Type& b) { return a.dtype == b.dtype && a.sizes == b.sizes; }

bool views_others(const TripPlaces& places, const Node& node) {
  if (!views_memory(node)) return false;
  return std::any_of(node.operands().begin(), node.operands().end(), [&](const LazyTensor& x) {
    return x && !places.contains(x.node.get()) && !is_contiguous(x.type());
  });
}

}  // namespace composit
