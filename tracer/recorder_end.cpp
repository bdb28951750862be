// The end of a scope: what the outputs hold, which inputs were written.
#include <ATen/EmptyTensor.h>
#include <ATen/ops/clone.h>

#include <cstring>

#include "composit/ir/error.h"
#include "composit/ir/print.h"
#include "tracer/convert.h"
#include "tracer/dispatch_key.h"
#include "tracer/memory_view.h"
#include "tracer/recorder.h"

namespace flashlight::tracer {

std::unique_ptr<Recording> Recorder::finish(const std::vector<at::Tensor>& outputs) {
  std::lock_guard lock(mutex_);
  if (finished()) throw composit::UserError("[trace] this scope was finished before");
  static const std::string at_the_end = "the end of the scope";
  current_op_ = &at_the_end;
  current_place_ = {};
  expect_no_foreign_work();
  settle_generators();
  for (const at::Tensor& output : outputs) recording_->outputs.push_back(read(output));
  end_generators(outputs);
  promote_written_constants();
  if (options_.excerpt) promote_constants();
  if (keeps_originals()) note_originals();
  note_gradients();
  for (const RecordedGenerator& generator : recording_->generators)
    if (generator.first_state != kNone && generator.live.use_count() > 0)
      recording_->records[generator.first_state].effect = false;
  for (uint32_t i = 0; i < recording_->inputs.size(); ++i) {
    if (const RecordedInput& input = recording_->inputs[i];
        !aliasing_.was_changed(input.tensor, input.value))
      continue;
    const RecordedInput input = recording_->inputs[i];  // a copy: reading may add inputs
    const ValueId value = aliasing_.read(input.tensor);
    if (value == input.value) continue;
    expect_same_type(input, value);
    expect_own_memory(i);
    recording_->mutations.push_back({i, value});
  }
  if (!options_.excerpt) note_survivors();
  return std::move(recording_);
}

// Memory that was made inside and lives on may be state, which a later run reads.
void Recorder::note_survivors() {
  for (Survivor& survivor : aliasing_.survivors())
    recording_->survivors.push_back(std::move(survivor));
}

void Recorder::note_gradients() {
  for (uint32_t i = 0; i < recording_->inputs.size(); ++i) {
    const RecordedInput input = recording_->inputs[i];  // a copy: reading may add inputs
    if (!input.requires_grad || !input.tensor.is_leaf()) continue;
    const at::Tensor& grad = input.tensor.grad();
    if (!grad.defined() || !aliasing_.made_inside(grad)) continue;
    recording_->gradients.push_back({i, read(grad)});
  }
  if (recording_->gradients.empty()) return;
  recording_->remark("leaves gradients in `.grad` ('" +
                     recording_->inputs[recording_->gradients.front().input].name +
                     "'); compiled code and a loaded capture do not: return them");
}

void Recorder::expect_same_type(const RecordedInput& input, ValueId now) const {
  const auto type = [this](ValueId value) {
    const GeometryId geometry = recording_->values[value].geometry;
    return geometry == kNone ? composit::undefined_type()
                             : type_of(recording_->geometries[geometry]);
  };
  const composit::Type before = type(input.value), after = type(now);
  if (before.dtype == after.dtype && before.sizes == after.sizes && before.device == after.device)
    return;
  throw composit::UserError(
      "[trace] input '" + input.name + "' was " + print(before) + " and is " + print(after) +
      " at the end of the scope; a captured program cannot change what its inputs are: return "
      "the new tensor instead");
}

// Replay writes a moved input's new value into its old memory.
void Recorder::expect_own_memory(uint32_t index) const {
  const RecordedInput& input = recording_->inputs[index];
  if (!aliasing_.was_moved(input.tensor, input.value)) return;
  for (uint32_t i = 0; i < recording_->inputs.size(); ++i) {
    const RecordedInput& other = recording_->inputs[i];
    if (i == index ||
        (other.shares != index &&
         (input.shares == kNone || (input.shares != i && input.shares != other.shares))))
      continue;
    throw composit::UserError(
        "[trace] input '" + input.name +
        "' was given other memory (set_data, as_strided_), while '" + other.name +
        "' lies in its old one; a captured program cannot change what its inputs "
        "share");
  }
}

// A tensor from outside that the program writes is state: a buffer without a name.
void Recorder::promote_written_constants() {
  for (RecordId id = 0; id < recording_->records.size(); ++id) {
    Record& record = recording_->records[id];
    if (record.kind != RecordKind::constant) continue;
    const RecordedConstant& constant = recording_->constants[record.index];
    const at::Tensor tensor = constant.tensor;
    const ValueId shares = constant.shares;
    // A meta tensor has no values to keep. (functionalize writes to some that it alone sees.)
    if (constant.number || tensor.is_meta()) continue;
    if (!aliasing_.was_changed(tensor, record.values)) continue;
    promote(record, "buffer_" + std::to_string(unnamed_buffers_++), composit::InputKind::buffer);
    note_shared_memory(record.index, shares);
  }
}

RecordedInput& Recorder::promote(Record& record, std::string name, composit::InputKind kind) {
  const RecordedConstant& constant = recording_->constants[record.index];
  record.kind = RecordKind::input;
  record.index = static_cast<uint32_t>(recording_->inputs.size());
  RecordedInput& input = recording_->inputs.emplace_back();
  input.name = std::move(name);
  input.kind = kind;
  input.tensor = constant.tensor;
  input.value = record.values;
  return input;
}

// ---- excerpts and originals ---------------------------------------------------------------------

void Recorder::promote_constants() {
  int unnamed = 0;
  for (RecordId id = 0; id < recording_->records.size(); ++id) {
    Record& record = recording_->records[id];
    if (record.kind != RecordKind::constant) continue;
    const RecordedConstant constant = recording_->constants[record.index];
    if (constant.number || came_in_.count(record.values) == 0) continue;
    promote(record, "input_" + std::to_string(unnamed++), composit::InputKind::user_input)
        .discovered = true;
    note_shared_memory(record.index, constant.shares);
  }
}

// Before the first write into memory from outside.
void Recorder::keep_original(const at::Tensor& written) {
  if (!is_readable(written) || !aliasing_.is_untouched(written)) return;
  const at::Tensor bytes = all_bytes(written);
  at::Tensor copy;
  if (has_memory(written)) {
    copy = at::detail::empty_cpu({bytes.numel()}, at::kByte);  // asks no dispatcher
    std::memcpy(copy.mutable_data_ptr(), bytes.const_data_ptr(),
                static_cast<size_t>(bytes.numel()));
  } else {
    const Unseen unseen;
    copy = bytes.clone();
  }
  originals_.emplace(written.unsafeGetTensorImpl()->unsafe_storage().unsafeGetStorageImpl(), copy);
}

void Recorder::note_originals() {
  for (RecordedInput& input : recording_->inputs) {
    const auto came = came_in_.find(input.value);
    if (came == came_in_.end()) continue;
    const at::Tensor& tensor = input.came_in = input.original = came->second;
    const auto copied = originals_.find(tensor.storage().unsafeGetStorageImpl());
    if (copied == originals_.end()) continue;
    const int64_t begin = address_of(tensor) - address_of(all_bytes(tensor));
    input.original = view_memory(copied->second, tensor.scalar_type(), tensor.sizes(),
                                 tensor.strides(), begin / static_cast<int64_t>(tensor.itemsize()),
                                 tensor.is_conj(), tensor.is_neg());
  }
}

// Gives up: the recording so far has lost its meaning.
void Recorder::abandon(const std::string& why) {
  {
    std::lock_guard lock(mutex_);
    if (finished()) return;
    recording_.reset();
  }
  options_.on_error(why);
}

}  // namespace flashlight::tracer
