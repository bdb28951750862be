#include "composit/ops/views.h"

#include <algorithm>
#include <numeric>
#include <unordered_map>

#include "composit/ops/axes.h"

namespace composit {
namespace {

using Rule = std::function<std::optional<ViewInverse>(const ViewCall&)>;

int64_t rank(const ViewCall& view) { return static_cast<int64_t>(view.parent.size()); }
int64_t number(const ViewCall& view, size_t i) { return view.argument(i).at(0); }
int64_t axis(const ViewCall& view, size_t i) { return wrap_axis(number(view, i), rank(view)); }
int64_t extent(const ViewCall& view, int64_t axis) {
  return view.parent[static_cast<size_t>(axis)];
}

Rule with_same_arguments(std::string_view op, bool takes_parent) {
  return [=](const ViewCall&) { return ViewInverse{op, takes_parent, true}; };
}

ViewInverse slice_scatter(int64_t axis, int64_t begin, int64_t end) {
  return {"aten::slice_scatter", true, false, {axis, begin, end, int64_t{1}}};
}

ViewInverse of_unbind(const ViewCall& view) {
  const auto index = static_cast<int64_t>(view.output);
  return {"aten::select_scatter", true, false, {axis(view, 0), index}};
}

ViewInverse of_narrow(const ViewCall& view) {
  const int64_t dim = axis(view, 0), start = number(view, 1);
  const int64_t begin = start < 0 ? start + extent(view, dim) : start;
  return slice_scatter(dim, begin, begin + number(view, 2));
}

ViewInverse part_of_size(const ViewCall& view, int64_t dim, int64_t size) {
  const int64_t begin = size * static_cast<int64_t>(view.output);
  return slice_scatter(dim, begin, std::min(begin + size, extent(view, dim)));
}
ViewInverse of_split(const ViewCall& view) {
  return part_of_size(view, axis(view, 1), number(view, 0));
}
ViewInverse of_chunk(const ViewCall& view) {
  const int64_t dim = axis(view, 1), chunks = number(view, 0);
  return part_of_size(view, dim, (extent(view, dim) + chunks - 1) / chunks);
}
ViewInverse of_split_with_sizes(const ViewCall& view) {
  const Ints sizes = view.argument(0);
  const auto part = sizes.begin() + static_cast<std::ptrdiff_t>(view.output);
  const int64_t begin = std::accumulate(sizes.begin(), part, int64_t{0});
  return slice_scatter(axis(view, 1), begin, begin + *part);
}

ViewInverse of_permute(const ViewCall& view) {
  const Ints dims = view.argument(0);
  Ints inverse(dims.size());
  for (size_t i = 0; i < dims.size(); ++i)
    inverse[static_cast<size_t>(wrap_axis(dims[i], rank(view)))] = static_cast<int64_t>(i);
  return {"aten::permute", false, false, {inverse}};
}
ViewInverse by_itself(const ViewCall& view) { return {view.op, false, true}; }
std::optional<ViewInverse> of_matrix_transpose(const ViewCall& view) {
  if (rank(view) != 2) return std::nullopt;
  return by_itself(view);
}

ViewInverse of_unsqueeze(const ViewCall& view) {
  return {"aten::squeeze.dim", false, false, {wrap_axis(number(view, 0), rank(view) + 1)}};
}
ViewInverse reshape_to_parent(const ViewCall& view) {
  return {"aten::view", false, false, {Ints(view.parent.begin(), view.parent.end())}};
}
ViewInverse unchanged(const ViewCall&) { return {}; }

std::unordered_map<std::string_view, Rule> rules_by_operator() {
  const std::pair<std::vector<std::string_view>, Rule> rows[] = {
      {{"aten::select.int"}, with_same_arguments("aten::select_scatter", true)},
      {{"aten::slice.Tensor"}, with_same_arguments("aten::slice_scatter", true)},
      {{"aten::diagonal"}, with_same_arguments("aten::diagonal_scatter", true)},
      {{"aten::unbind.int"}, of_unbind},
      {{"aten::narrow"}, of_narrow},
      {{"aten::split.Tensor"}, of_split},
      {{"aten::split.sizes", "aten::split_with_sizes"}, of_split_with_sizes},
      {{"aten::chunk"}, of_chunk},
      {{"aten::transpose.int", "aten::swapaxes", "aten::swapdims", "aten::t"}, by_itself},
      {{"aten::numpy_T", "aten::mT"}, of_matrix_transpose},
      {{"aten::permute"}, of_permute},
      {{"aten::unsqueeze"}, of_unsqueeze},
      {{"aten::squeeze", "aten::squeeze.dim", "aten::squeeze.dims", "aten::view", "aten::view_as",
        "aten::reshape", "aten::flatten.using_ints", "aten::unflatten.int"},
       reshape_to_parent},
      {{"aten::alias", "aten::detach"}, unchanged}};
  std::unordered_map<std::string_view, Rule> rules;
  for (const auto& [ops, rule] : rows)
    for (const std::string_view op : ops) rules.emplace(op, rule);
  return rules;
}

}  // namespace

std::optional<ViewInverse> inverse_of(const ViewCall& view) {
  static const auto rules = rules_by_operator();
  const auto rule = rules.find(view.op);
  return rule == rules.end() ? std::nullopt : rule->second(view);
}

}  // namespace composit
