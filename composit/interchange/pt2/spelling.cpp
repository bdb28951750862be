#include "composit/interchange/pt2/spelling.h"

#include <map>

namespace composit::pt2 {
namespace {

const std::map<std::string, Schema, std::less<>>& functional() {
  constexpr const char* kLegit =
      "aten::_native_batch_norm_legit_functional(Tensor input, Tensor? weight, Tensor? bias, "
      "Tensor "
      "running_mean, Tensor running_var, bool training, float momentum, float eps) -> (Tensor, "
      "Tensor, Tensor, Tensor running_mean_out, Tensor running_var_out)";
  constexpr const char* kUpdate =
      "aten::_batch_norm_with_update_functional(Tensor input, Tensor? weight, Tensor? bias, Tensor "
      "running_mean, Tensor running_var, float momentum, float eps) -> (Tensor, Tensor, Tensor, "
      "Tensor, Tensor running_mean_out, Tensor running_var_out)";
  // Outlives static destructors.
  static const auto* table = new std::map<std::string, Schema, std::less<>>{
      {"aten::native_batch_norm", parse_schema(kLegit)},
      {"aten::_native_batch_norm_legit", parse_schema(kLegit)},
      {"aten::_batch_norm_with_update", parse_schema(kUpdate)}};
  return *table;
}

}  // namespace

const Schema* functional_spelling(const Node& node) {
  const auto found = functional().find(node.op().str());
  if (found == functional().end()) return nullptr;
  const bool fits = found->second.results.size() == node.outputs().size();
  return fits ? &found->second : nullptr;
}

}  // namespace composit::pt2
