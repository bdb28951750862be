#include "tracer/stopped_operator.h"

#include <ATen/SavedTensorHooks.h>

#include <algorithm>

#include "composit/ir/error.h"
#include "tracer/autograd_refusal.h"
#include "tracer/memory_view.h"
#include "tracer/recorder.h"

namespace flashlight::tracer {
namespace {

composit::Hash content_of(const at::Tensor& tensor) {
  composit::Hasher hasher;
  hasher.add(static_cast<uint64_t>(tensor.scalar_type()));
  for (int64_t size : tensor.sizes()) hasher.add(static_cast<uint64_t>(size));
  for (int64_t stride : tensor.strides()) hasher.add(static_cast<uint64_t>(stride));
  const at::Tensor bytes = all_bytes(tensor);
  hasher.add_bytes(bytes.const_data_ptr(), bytes.nbytes());
  return hasher.finish();
}

bool has_own_memory(const at::Tensor& tensor) {
  return tensor.defined() && tensor.has_storage() && tensor.device().is_cpu() &&
         tensor.is_non_overlapping_and_dense() && tensor.storage_offset() == 0 &&
         tensor.storage().nbytes() == tensor.nbytes() && tensor.nbytes() > 0;
}

// Batch norm writes its statistics without the schema's saying so, and autograd does not count it.
bool says_what_it_writes(const OpInfo& info) {
  const auto& arguments = info.schema->arguments();
  return std::any_of(arguments.begin(), arguments.end(), [](const c10::Argument& argument) {
    return argument.alias_info() != nullptr && argument.alias_info()->isWrite();
  });
}

// Changes when the tensor is written.
uint64_t write_mark(const OpInfo& info, const at::Tensor& written) {
  const bool readable = written.has_storage() && written.device().is_cpu();
  if (readable && (written.is_inference() || !says_what_it_writes(info)))
    return content_of(written).low;
  return written.is_inference() ? 0 : written._version();
}

}  // namespace

bool has_saved_tensor_hooks() {
  return !at::SavedTensorDefaultHooks::get_tls_state().stack.empty();
}

void StoppedResults::add(const at::Tensor& result, uint32_t value, uint64_t begin, uint64_t end) {
  if (has_own_memory(result)) results_.push_back({content_of(result), value, begin, end});
}

std::optional<uint32_t> StoppedResults::find(const at::Tensor& tensor, uint64_t allocation) const {
  if (results_.empty() || !has_own_memory(tensor)) return std::nullopt;
  std::optional<uint32_t> found;
  std::optional<composit::Hash> content;
  for (const Result& result : results_) {
    if (allocation <= result.begin || allocation > result.end) continue;
    if (!content) content = content_of(tensor);
    if (!(result.content == *content)) continue;
    if (found) return std::nullopt;
    found = result.value;
  }
  return found;
}

void Recorder::note_hooks(Pending& pending, c10::ArrayRef<c10::IValue> arguments) {
  pending.hooks = true;
  pending.arguments = arguments.vec();
  pending.allocations = allocations_->count();
  for (const at::Tensor& written : pending.written)
    pending.write_marks.push_back(write_mark(*pending.info, written));
}

// Was the operator done when it threw? Then it is recorded like one that returns.
bool Recorder::record_stopped(Pending& pending) {
  const OpInfo& info = *pending.info;
  const auto& written = pending.written;
  if (written.size() != pending.write_marks.size()) return false;  // it writes more than it says
  size_t changed = 0;
  for (size_t i = 0; i < written.size(); ++i)
    changed += write_mark(info, written[i]) != pending.write_marks[i] ? 1 : 0;
  if (!written.empty() && changed == 0) return false;
  const bool drew =
      pending.generator != nullptr && (info.always_draws || (*pending.generator)->moved());
  if (drew && changed == 0) return false;
  // Kernels write all at once, and what they give beside does not need what was there: if it did,
  // the results of the copies were not found in the program's hands.
  const uint64_t end = allocations_->count();
  const auto results = drew ? std::nullopt : results_on_copies(info, pending.arguments);
  const bool tensors = results && std::all_of(results->begin(), results->end(),
                                              [](const auto& one) { return one.isTensor(); });
  if (!tensors) {
    if (changed == 0) return false;
    throw composit::UserError("[trace] " + info.name.str() +
                              " wrote its arguments, and was stopped by a hook on saved tensors "
                              "before it returned; expected such a hook to let it return");
  }
  record_leaf(pending, *results);
  ValueId value = recording_->records[recording_->records.size() - 1].values;
  for (size_t i = 0; i < results->size(); ++i)
    if (!info.returns_written[i])
      stopped_.add((*results)[i].toTensor(), value++, pending.allocations, end);
  return true;
}

std::optional<ValueId> Recorder::from_stopped(const at::Tensor& tensor) {
  const auto value = stopped_.find(tensor, allocations_->number(tensor.storage().data()));
  if (value) aliasing_.bind(tensor, *value, kNone);
  return value;
}

}  // namespace flashlight::tracer
