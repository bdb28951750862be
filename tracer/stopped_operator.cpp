#include "tracer/stopped_operator.h"

#include <ATen/SavedTensorHooks.h>
#include <ATen/core/LegacyTypeDispatch.h>
#include <ATen/core/stack.h>
#include <c10/core/GradMode.h>

#include "composit/ir/error.h"
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

}  // namespace

bool has_saved_tensor_hooks() { return !at::SavedTensorDefaultHooks::get_tls_state().stack.empty(); }

std::optional<std::vector<at::Tensor>> results_below_autograd(
    const OpInfo& info, c10::ArrayRef<c10::IValue> arguments) {
  const at::AutoDispatchBelowADInplaceOrView below_autograd;
  const c10::AutoGradMode no_grad(false);
  torch::jit::Stack stack(arguments.begin(), arguments.end());
  try {
    info.handle.callBoxed(&stack);
  } catch (const std::exception&) {
    return std::nullopt;
  }
  std::vector<at::Tensor> results;
  for (const c10::IValue& result : stack) {
    if (!result.isTensor()) return std::nullopt;
    results.push_back(result.toTensor());
  }
  return results;
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
    pending.versions.push_back(written.is_inference() ? 0 : written._version());
}

// Was the operator done when it threw? Then it is recorded like one that returns.
bool Recorder::record_stopped(Pending& pending) {
  const OpInfo& info = *pending.info;
  std::vector<c10::IValue> results(info.schema->returns().size());
  if (info.writes_any) {
    // Autograd counts a write when the kernel is done.
    if (pending.versions.size() != pending.written.size()) return false;  // it writes more than it says
    for (size_t i = 0; i < pending.written.size(); ++i)
      if (pending.written[i].is_inference() ||
          pending.written[i]._version() == pending.versions[i])
        return false;
    for (bool written : info.returns_written)
      if (!written)
        throw composit::UserError("[trace] " + info.name.str() +
                                  ": a hook on saved tensors stopped it after it had written and "
                                  "before it returned; expected an operator that does one of both");
    record_leaf(pending, results);
    return true;
  }
  if (pending.generator != nullptr &&
      (info.always_draws || (*pending.generator)->moved()))
    return false;
  const uint64_t end = allocations_->count();
  const auto tensors = results_below_autograd(info, pending.arguments);
  if (!tensors || tensors->size() != results.size()) return false;
  std::copy(tensors->begin(), tensors->end(), results.begin());
  record_leaf(pending, results);
  const ValueId first = recording_->records[recording_->records.size() - 1].values;
  for (size_t i = 0; i < tensors->size(); ++i)
    stopped_.add((*tensors)[i], first + static_cast<ValueId>(i), pending.allocations, end);
  return true;
}

std::optional<ValueId> Recorder::from_stopped(const at::Tensor& tensor) {
  const auto value =
      stopped_.find(tensor, allocations_->number(tensor.storage().data()));
  if (value) aliasing_.bind(tensor, *value, kNone);
  return value;
}

}  // namespace flashlight::tracer
