#include "composit/interchange/indices.h"

namespace composit::interchange {

bool is_integer(const LazyTensor& x) {
  return !is_floating_point(x.dtype()) && !is_complex(x.dtype()) && x.dtype() != DType::bool_;
}

std::optional<int64_t> chosen_by_values(const LazyTensors& indices, const LazyTensor& values,
                                        int64_t rank) {
  for (const LazyTensor& index : indices)
    if (index && !is_integer(index)) rank += 1 - index.rank();  // one axis for those of the mask
  const auto chosen = values.rank() == rank ? chosen_by(indices, values.type()) : std::nullopt;
  return chosen == 1 ? std::nullopt : chosen;
}

std::optional<int64_t> chosen_by(const LazyTensors& indices, const Type& result) {
  size_t kept = 0, masks = 0, others = 0;
  for (const LazyTensor& index : indices) {
    if (index) (is_integer(index) ? others : masks) += 1;
    if (!index && masks == 0) ++kept;
  }
  if (masks == 0) return -1;
  if (masks > 1 || others > 0) return std::nullopt;
  return result.sizes.at(kept);
}

}  // namespace composit::interchange
