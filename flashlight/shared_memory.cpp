#include "flashlight/shared_memory.h"

#include <ATen/ops/zeros.h>

#include <algorithm>
#include <map>
#include <optional>
#include <string>

#include "tracer/memory_view.h"

namespace flashlight {
namespace {

struct Member {
  size_t input;
  int64_t begin;  // bytes from the first element of the input that the group is named after
};
using Groups = std::map<std::string, std::vector<Member>>;

Groups groups_of(const composit::Graph& graph) {
  Groups groups;
  std::map<std::string, std::pair<std::string, int64_t>> places;  // group and begin by input
  for (size_t i = 0; i < graph.inputs().size(); ++i) {
    const composit::Node& node = *graph.inputs()[i].node;
    const std::string& name = input_name(node);
    std::pair<std::string, int64_t> place(name, 0);
    if (const composit::Attribute* shares = node.find_attribute("shares")) {
      // The graph may have dropped the one it is named after; others still share its memory.
      const auto& with = shares->as<std::string>();
      place = places.try_emplace(with, with, 0).first->second;
      place.second += node.attribute("shift").as_int();
    }
    groups[place.first].push_back({i, place.second});
    places.insert_or_assign(name, std::move(place));
  }
  return groups;
}

// How far behind an aligned address the group begins, so that every element is aligned. Nothing
// where there is no such place.
std::optional<int64_t> padding(const std::vector<Member>& group, int64_t first,
                               const std::vector<at::Tensor>& tensors) {
  constexpr int64_t kLargestElement = 16;
  for (int64_t bytes = 0; bytes < kLargestElement; ++bytes)
    if (std::all_of(group.begin(), group.end(), [&](const Member& member) {
          const auto size = static_cast<int64_t>(tensors[member.input].itemsize());
          return (member.begin - first + bytes) % size == 0;
        }))
      return bytes;
  return std::nullopt;
}

// Writes each element once where axes repeat it.
void write_elements(at::Tensor view, at::Tensor value) {
  for (int64_t axis = 0; axis < view.dim(); ++axis) {
    if (view.stride(axis) != 0 || view.size(axis) < 2) continue;
    view = view.narrow(axis, 0, 1);
    value = value.narrow(axis, 0, 1);
  }
  tracer::copy_bits(view, value);
}

void lay_together(std::vector<Member> group, const composit::Graph& graph,
                  std::vector<at::Tensor>& tensors) {
  int64_t first = group.front().begin, end = first;
  for (const Member& member : group) {
    first = std::min(first, member.begin);
    end = std::max(end, member.begin + tracer::span_of(tensors[member.input]));
  }
  const std::optional<int64_t> pad = padding(group, first, tensors);
  if (!pad) return;
  const auto is_argument = [&](const Member& member) {
    return input_kind(*graph.inputs()[member.input].node) == composit::InputKind::user_input;
  };
  std::stable_partition(group.begin(), group.end(), is_argument);
  const at::Tensor memory = at::zeros({*pad + end - first}, at::kByte);
  for (const Member& member : group) {
    at::Tensor& tensor = tensors[member.input];
    const int64_t offset = (member.begin - first + *pad) / static_cast<int64_t>(tensor.itemsize());
    const at::Tensor view =
        tracer::view_memory(memory, tensor.scalar_type(), tensor.sizes(), tensor.strides(), offset,
                            tensor.is_conj(), tensor.is_neg());
    write_elements(view, tensor);
    tensor = view;
  }
}

}  // namespace

void share_memory(const composit::Graph& graph, std::vector<at::Tensor>& tensors) {
  for (auto& [name, group] : groups_of(graph)) {
    std::erase_if(group, [&](const Member& member) { return !tensors[member.input].defined(); });
    if (group.size() > 1) lay_together(std::move(group), graph, tensors);
  }
}

}  // namespace flashlight
