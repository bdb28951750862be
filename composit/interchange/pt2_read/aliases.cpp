#include "composit/interchange/pt2_read/aliases.h"

#include <algorithm>
#include <set>

namespace composit::pt2_read {

std::vector<std::string> Aliases::same_as(const std::string& name) const {
  const auto wanted = places_.find(name);
  std::vector<std::string> names;
  for (const auto& [other, place] : places_)
    if (wanted != places_.end() && place == wanted->second) names.push_back(other);
  return names;
}

std::vector<std::string> Aliases::views_beside(const std::string& name) const {
  const auto wanted = places_.find(name);
  std::vector<std::string> names;
  for (const auto& [other, place] : places_)
    if (wanted != places_.end() && place.memory == wanted->second.memory &&
        place.value != wanted->second.value)
      names.push_back(other);
  return names;
}

void Aliases::join(const std::string& name, const std::string& of) {
  const int from = places_[name].memory, to = places_[of].memory;
  for (auto& [other, place] : places_)
    if (place.memory == from) place.memory = to;
}

Shares shared_arguments(const Schema& schema) {
  // Found by running torch's operator database: results in memory of arguments.
  // clang-format off
  static const std::set<std::string_view> kUnsaid = {
      "_neg_view", "alpha_dropout", "atleast_1d", "atleast_2d", "atleast_3d", "broadcast_tensors",
      "cartesian_prod", "chain_matmul", "conj", "conj_physical", "dropout", "einsum",
      "feature_alpha_dropout", "feature_dropout", "histogramdd", "meshgrid", "pad", "sum_to_size",
      "type_as", "unsafe_chunk", "unsafe_split", "unsafe_split_with_sizes"};
  // clang-format on
  const auto is_alias = [](const SchemaArgument& result) {
    return !result.alias.empty() || !result.list_alias.empty();
  };
  if (kUnsaid.contains(schema.name.base_name())) return Shares::any;
  const bool said = std::any_of(schema.results.begin(), schema.results.end(), is_alias);
  return said ? Shares::first : Shares::none;
}

}  // namespace composit::pt2_read
