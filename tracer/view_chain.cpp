#include "tracer/view_chain.h"

#include <algorithm>
#include <functional>
#include <unordered_map>

namespace flashlight::tracer {
namespace {

struct View {
  const Recording& recording;
  const Record& record;
  uint32_t output;
  const Geometry& parent;

  const c10::IValue& attribute(uint32_t i) const {
    return recording.attributes[record.attributes + i];
  }
  int64_t axis(uint32_t i) const {
    const int64_t dim = attribute(i).toInt();
    return dim < 0 ? dim + static_cast<int64_t>(parent.sizes.size()) : dim;
  }
};

using Rule = std::function<Inverse(const View&)>;

Inverse scatter(const char* op, std::initializer_list<c10::IValue> attributes) {
  return {find_op(op), true, attributes};
}

Inverse scatter_with_same_attributes(const char* op, const View& view) {
  Inverse inverse{find_op(op), true, {}};
  for (uint32_t i = 0; i < view.record.attribute_count; ++i)
    inverse.attributes.push_back(view.attribute(i));
  return inverse;
}

Inverse slice_scatter(int64_t dim, int64_t begin, int64_t end) {
  return scatter("aten::slice_scatter", {dim, begin, end, int64_t{1}});
}

Inverse reshape_to_parent(const View& view) {
  const std::vector<int64_t> sizes(view.parent.sizes.begin(), view.parent.sizes.end());
  return {find_op("aten::view"), false, {c10::IValue(sizes)}};
}

Inverse inverse_permutation(const View& view) {
  const std::vector<int64_t> dims = view.attribute(0).toIntVector();
  std::vector<int64_t> inverse(dims.size());
  for (size_t i = 0; i < dims.size(); ++i)
    inverse[static_cast<size_t>(dims[i] < 0 ? dims[i] + static_cast<int64_t>(dims.size())
                                            : dims[i])] = static_cast<int64_t>(i);
  return {find_op("aten::permute"), false, {c10::IValue(inverse)}};
}

Inverse of_split(const View& view) {
  const int64_t size = view.attribute(0).toInt(), dim = view.axis(1);
  const int64_t begin = size * view.output, extent = view.parent.sizes[static_cast<size_t>(dim)];
  return slice_scatter(dim, begin, std::min(begin + size, extent));
}

Inverse of_split_with_sizes(const View& view) {
  const std::vector<int64_t> sizes = view.attribute(0).toIntVector();
  int64_t begin = 0;
  for (uint32_t i = 0; i < view.output; ++i) begin += sizes[i];
  return slice_scatter(view.axis(1), begin, begin + sizes[view.output]);
}

Inverse of_unsqueeze(const View& view) {
  const int64_t dim = view.attribute(0).toInt();
  const int64_t rank = static_cast<int64_t>(view.parent.sizes.size()) + 1;
  return {find_op("aten::squeeze.dim"), false, {dim < 0 ? dim + rank : dim}};
}

const std::unordered_map<std::string_view, Rule>& rules() {
  static const std::unordered_map<std::string_view, Rule> table = {
      {"aten::select.int",
       [](const View& v) { return scatter_with_same_attributes("aten::select_scatter", v); }},
      {"aten::slice.Tensor",
       [](const View& v) { return scatter_with_same_attributes("aten::slice_scatter", v); }},
      {"aten::diagonal",
       [](const View& v) { return scatter_with_same_attributes("aten::diagonal_scatter", v); }},
      {"aten::unbind.int",
       [](const View& v) {
         return scatter("aten::select_scatter", {v.axis(0), int64_t{v.output}});
       }},
      {"aten::split.Tensor", of_split},
      {"aten::split_with_sizes", of_split_with_sizes},
      {"aten::transpose.int",
       [](const View& v) {
         return Inverse{find_op("aten::transpose.int"), false, {v.attribute(0), v.attribute(1)}};
       }},
      {"aten::t",
       [](const View&) {
         return Inverse{find_op("aten::t"), false, {}};
       }},
      {"aten::permute", inverse_permutation},
      {"aten::unsqueeze", of_unsqueeze},
      {"aten::squeeze", reshape_to_parent},
      {"aten::squeeze.dim", reshape_to_parent},
      {"aten::squeeze.dims", reshape_to_parent},
      {"aten::view", reshape_to_parent},
      {"aten::alias",
       [](const View&) {
         return Inverse{nullptr, false, {}};
       }},
      {"aten::detach",
       [](const View&) {
         return Inverse{nullptr, false, {}};
       }},
  };
  return table;
}

}  // namespace

std::optional<Inverse> inverse_of(const Recording& recording, const Record& record, uint32_t output,
                                  const Geometry& parent) {
  const auto rule = rules().find(record.info->name.str());
  if (rule == rules().end()) return std::nullopt;
  return rule->second({recording, record, output, parent});
}

bool is_view_operator(const OpInfo& info) {
  const auto count = [&](ArgumentKind kind) {
    return std::count(info.arguments.begin(), info.arguments.end(), kind);
  };
  return !info.writes_any && !info.as_strided && count(ArgumentKind::tensor) == 1 &&
         info.arguments.front() == ArgumentKind::tensor && count(ArgumentKind::tensor_list) == 0;
}

}  // namespace flashlight::tracer
