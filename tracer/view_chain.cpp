#include "tracer/view_chain.h"

#include <algorithm>

#include "composit/ops/views.h"

namespace flashlight::tracer {

std::optional<Inverse> inverse_of(const Recording& recording, const Record& record, uint32_t output,
                                  const Geometry& parent) {
  const auto attribute = [&](size_t i) -> const c10::IValue& {
    return recording.attributes[record.attributes + static_cast<uint32_t>(i)];
  };
  const auto numbers = [&](size_t i) {
    return attribute(i).isInt() ? composit::Ints{attribute(i).toInt()} : attribute(i).toIntVector();
  };
  const std::optional<composit::ViewInverse> found =
      composit::inverse_of({record.info->name.str(), parent.sizes, output, numbers});
  if (!found) return std::nullopt;
  Inverse inverse{found->op.empty() ? nullptr : find_op(found->op), found->takes_parent, {}};
  if (found->same_arguments)
    for (uint32_t i = 0; i < record.attribute_count; ++i)
      inverse.attributes.push_back(attribute(i));
  for (const auto& argument : found->arguments)
    inverse.attributes.push_back(
        std::visit([](const auto& value) { return c10::IValue(value); }, argument));
  return inverse;
}

bool is_view_operator(const OpInfo& info) {
  const auto count = [&](ArgumentKind kind) {
    return std::count(info.arguments.begin(), info.arguments.end(), kind);
  };
  return !info.writes_any && !info.as_strided && count(ArgumentKind::tensor) == 1 &&
         info.arguments.front() == ArgumentKind::tensor && count(ArgumentKind::tensor_list) == 0;
}

}  // namespace flashlight::tracer
