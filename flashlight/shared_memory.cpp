#include "flashlight/shared_memory.h"

#include <ATen/ops/zeros.h>

#include <algorithm>
#include <map>
#include <optional>
#include <string>
#include <unordered_set>

#include "composit/ir/error.h"
#include "tracer/convert.h"
#include "tracer/geometry.h"
#include "tracer/memory_view.h"
#include "tracer/plan.h"

namespace flashlight {
namespace {

struct Member {
  size_t input;
  int64_t begin;  // bytes from the first element of the input that the group is named after
};
using Groups = std::map<std::string, std::vector<Member>>;

Groups groups_of(const composit::Graph& graph) {
  Groups groups;
  std::map<std::string, std::pair<std::string, int64_t>> places;  // by input: its group and begin
  for (size_t i = 0; i < graph.inputs().size(); ++i) {
    const composit::Node& node = *graph.inputs()[i].node;
    const std::string& name = input_name(node);
    std::pair<std::string, int64_t> place(name, 0);
    if (const composit::Attribute* shares = node.find_attribute("shares")) {
      // The graph may have dropped the input that the group is named after; others still share it.
      const auto& with = shares->as<std::string>();
      place = places.try_emplace(with, with, 0).first->second;
      place.second += node.attribute("shift").as_int();
    }
    groups[place.first].push_back({i, place.second});
    places.insert_or_assign(name, std::move(place));
  }
  return groups;
}

// The offset of the group's begin from an aligned address that makes every element aligned. Nothing
// if there is no such offset.
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

// Writes each element once if axes repeat it.
void write_elements(at::Tensor view, at::Tensor value) {
  for (int64_t axis = 0; axis < view.dim(); ++axis) {
    if (view.stride(axis) != 0 || view.size(axis) < 2) continue;
    view = view.narrow(axis, 0, 1);
    value = value.narrow(axis, 0, 1);
  }
  tracer::copy_bits(view, value);
}

void lay_together(std::vector<Member> group, const composit::Graph& graph,
                  const std::vector<tracer::UsedStorage>& storages,
                  std::vector<at::Tensor>& tensors) {
  int64_t first = group.front().begin, end = first;
  for (const Member& member : group) {
    first = std::min(first, member.begin);
    end = std::max(end, member.begin + tracer::span_of(tensors[member.input]));
    for (const tracer::UsedStorage& use : storages)
      if (use.input == member.input) {
        first = std::min(first, member.begin - use.begin);
        end = std::max(end, member.begin - use.begin + use.count);
      }
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
  const std::vector<tracer::UsedStorage> storages = tracer::used_storages(graph);
  for (auto& [name, group] : groups_of(graph)) {
    std::erase_if(group, [&](const Member& member) { return !tensors[member.input].defined(); });
    const bool beyond = std::any_of(group.begin(), group.end(), [&](const Member& member) {
      return std::any_of(storages.begin(), storages.end(),
                         [&](const tracer::UsedStorage& use) { return use.input == member.input; });
    });
    if (group.size() > 1 || (beyond && !group.empty()))
      lay_together(std::move(group), graph, storages, tensors);
  }
}

namespace {

// Marks the bytes of a storage that belong to an element.
class Bytes {
 public:
  explicit Bytes(int64_t count) : marked_(static_cast<size_t>(count)) {}

  // `first`: the byte of the first element.
  void mark(const tracer::Geometry& geometry, int64_t first) {
    if (geometry.numel() > 0) visit(geometry, 0, first, [&](size_t byte) { marked_[byte] = true; });
  }
  bool holds(const tracer::Geometry& geometry, int64_t first) {
    bool all = true;
    if (geometry.numel() > 0)
      visit(geometry, 0, first, [&](size_t byte) { all = all && marked_[byte]; });
    return all;
  }

  bool all() const { return std::count(marked_.begin(), marked_.end(), false) == 0; }

 private:
  template <class F>
  void visit(const tracer::Geometry& geometry, size_t axis, int64_t at, const F& touch) {
    const int64_t item = geometry.item_size();
    if (axis == geometry.sizes.size()) {
      for (int64_t byte = at; byte < at + item; ++byte)
        if (byte >= 0 && byte < static_cast<int64_t>(marked_.size()))
          touch(static_cast<size_t>(byte));
      return;
    }
    for (int64_t i = 0; i < geometry.sizes[axis]; ++i)
      visit(geometry, axis + 1, at + i * geometry.strides[axis] * item, touch);
  }

  std::vector<bool> marked_;
};

tracer::Geometry geometry_of(const composit::Type& type, const composit::Node* view = nullptr) {
  tracer::Geometry geometry;
  const auto ints = [&](const char* name) { return composit::to_ints(view->attribute(name)); };
  const auto sizes = view ? ints("size") : type.sizes;
  const auto strides = view ? ints("stride") : type.strides;
  geometry.sizes.assign(sizes.begin(), sizes.end());
  geometry.strides.assign(strides.begin(), strides.end());
  geometry.dtype = tracer::to_c10(type.dtype);
  return geometry;
}

// True if the graph reads only bytes of the storage that are in `shown`, or that it wrote before.
bool reads_only(const composit::Graph& graph, const tracer::UsedStorage& use, Bytes shown) {
  std::unordered_set<const composit::Node*> storages = {use.node};
  for (const composit::NodePtr& node : graph.nodes()) {
    const auto is_storage = [&](const composit::LazyTensor& operand) {
      return operand && storages.count(operand.node.get()) > 0;
    };
    if (std::none_of(node->operands().begin(), node->operands().end(), is_storage)) continue;
    const std::string& op = node->op().str();
    const bool reads = op == "composit::storage_view" || op == "aten::as_strided";
    const bool writes = op == "composit::storage_scatter" || op == "aten::as_strided_scatter";
    if (!reads && !writes) return false;  // an operator that takes views of it, which are unknown
    const composit::Type& type = reads ? node->outputs()[0] : node->operands()[1].type();
    const tracer::Geometry geometry = geometry_of(type, node.get());
    const int64_t first = node->attribute("storage_offset").as_int() * geometry.item_size();
    if (reads && !shown.holds(geometry, first)) return false;
    if (!writes) continue;
    shown.mark(geometry, first);
    storages.insert(node.get());
  }
  return true;
}

}  // namespace

void expect_memory_is_shown(const composit::Graph& graph) {
  const Groups groups = groups_of(graph);
  for (const tracer::UsedStorage& use : tracer::used_storages(graph)) {
    if (input_kind(*use.node->operands()[0].node) == composit::InputKind::user_input) continue;
    Bytes shown(use.count);
    for (const auto& [name, group] : groups) {
      const auto self = std::find_if(group.begin(), group.end(), [&](const Member& member) {
        return member.input == use.input;
      });
      if (self == group.end()) continue;
      for (const Member& member : group) {
        const composit::LazyTensor& input = graph.inputs()[member.input];
        if (input_kind(*input.node) != composit::InputKind::user_input)
          shown.mark(geometry_of(input.type()), member.begin - self->begin + use.begin);
      }
    }
    if (!shown.all() && !reads_only(graph, use, shown))
      throw composit::UserError(
          "[save] the program uses memory around '" + input_name(*use.node->operands()[0].node) +
          "' that no parameter or buffer shows; name the tensor that it is a view of, too");
  }
}

}  // namespace flashlight
