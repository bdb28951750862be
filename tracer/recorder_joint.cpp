// Arguments that share memory with a written one, but not its geometry: they are executed as views
// of one copy of the storage, and the operator sees the same overlap as it did when it was
// recorded.
#include <ATen/core/enum_tag.h>

#include <algorithm>

#include "tracer/recorder.h"

namespace flashlight::tracer {

struct Recorder::Operand {
  at::Tensor tensor;
  uint32_t position;
  bool written;
  bool out;
  GeometryId geometry;
  bool joined = false;
};

// The tensors among the arguments that lie in a storage; notes those that are written.
std::vector<Recorder::Operand> Recorder::operands_of(Pending& pending,
                                                     c10::ArrayRef<c10::IValue> arguments) {
  const OpInfo& info = *pending.info;
  std::vector<Operand> operands;
  uint32_t position = 0;
  for (size_t i = 0; i < arguments.size(); ++i) {
    if (info.arguments[i] == ArgumentKind::other) continue;
    if (info.arguments[i] == ArgumentKind::tensor_list) ++position;
    auto tensors = tensors_of(arguments[i]);
    if (info.arguments[i] == ArgumentKind::tensor && tensors.empty()) tensors.emplace_back();
    for (const at::Tensor& tensor : tensors) {
      if (tensor.defined() && info.writes[i]) {
        pending.written.push_back(tensor);
        pending.written_sizes.push_back(tensor.numel());
      }
      if (tensor.defined() && tensor.has_storage())
        operands.push_back(
            {tensor, position, info.writes[i], info.out[i], aliasing_.geometry(tensor)});
      ++position;
    }
  }
  return operands;
}

namespace {

// `maximum(a, b, out=a)` gives the elements that it gives in memory of their own, if what is
// written is as large as the result: no operand makes it larger.
template <class Operands>
bool is_element_by_element(const Recorder::Pending& pending, const Operands& operands) {
  if (!pending.info->handle.hasTag(at::Tag::pointwise) || pending.written.size() != 1) return false;
  const at::Tensor& out = pending.written[0];
  return std::all_of(operands.begin(), operands.end(), [&](const auto& operand) {
    const at::Tensor& one = operand.tensor;
    bool expands = one.dim() <= out.dim() && one.scalar_type() == out.scalar_type();
    for (int64_t i = 1; expands && i <= one.dim(); ++i)
      expands = one.size(-i) == 1 || one.size(-i) == out.size(-i);
    return expands;
  });
}

// Each element is of those at its place alone: operands that lie where the written one does are as
// that one. Python assigns a slice to itself: `x[1:] *= 2`.
bool is_of_places(const OpInfo& info) {
  return info.handle.hasTag(at::Tag::pointwise) ||
         info.handle.operator_name().name == "aten::copy_";
}

}  // namespace

// Must `written` be executed as a view for the sake of itself or of another operand?
bool Recorder::shares(const Pending& pending, const Operand& written,
                      const std::vector<Operand>& operands) const {
  const Geometry& geometry = recording_->geometries[written.geometry];
  const ByteRange range = byte_range(geometry);
  const bool complex = c10::isComplexType(geometry.dtype);
  return overlaps_itself(geometry) ||
         std::any_of(operands.begin(), operands.end(), [&](const Operand& other) {
           if (&other == &written || !aliasing_.same_storage(written.tensor, other.tensor))
             return false;
           const bool same = other.tensor.is_same(written.tensor);
           const bool same_place =
               same || (other.geometry == written.geometry && is_of_places(*pending.info));
           if (same_place && !other.written && !written.out && written.position < other.position)
             return false;
           if (same && !complex && !other.written && written.out &&
               is_element_by_element(pending, operands))
             return false;
           // Without elements they do not overlap, though they have one value.
           const bool one_value =
               pending.operands[other.position] == pending.operands[written.position];
           // An `out` argument may grow over the memory after it.
           return same || one_value || other.written || written.out || complex ||
                  range.intersects(byte_range(recording_->geometries[other.geometry]));
         });
}

void Recorder::join_shared(Pending& pending, c10::ArrayRef<c10::IValue> arguments) {
  std::vector<Operand> operands = operands_of(pending, arguments);
  for (const Operand& written : operands) {
    if (!written.written || !shares(pending, written, operands)) continue;
    for (Operand& other : operands)
      other.joined = other.joined || aliasing_.same_storage(written.tensor, other.tensor);
  }
  if (pending.info->reads_storage && !operands.empty()) operands.front().joined = true;
  for (const Operand& operand : operands) {
    if (!operand.joined) continue;
    pending.operands[operand.position] = aliasing_.base_of(operand.tensor);
    const auto first = std::find_if(operands.begin(), operands.end(), [&](const Operand& other) {
      return other.tensor.is_same(operand.tensor);
    });
    pending.joint.push_back({operand.position, operand.geometry, first->position});
  }
  for (const at::Tensor& tensor : pending.written)
    pending.written_joined.push_back(
        std::any_of(operands.begin(), operands.end(), [&](const Operand& operand) {
          return operand.joined && operand.written && operand.tensor.is_same(tensor);
        }));
}

}  // namespace flashlight::tracer
