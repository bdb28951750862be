#include "tracer/recorder.h"

#include <ATen/Context.h>
#include <ATen/core/enum_tag.h>
#include <execinfo.h>

#include <algorithm>

#include "composit/ir/error.h"
#include "composit/ir/print.h"
#include "composit/ops/operations.h"
#include "tracer/autograd_refusal.h"
#include "tracer/convert.h"
#include "tracer/custom_gradient.h"
#include "tracer/memory_view.h"
#include "tracer/publish.h"

namespace flashlight::tracer {
namespace {

// Calls `visit` with every tensor of a result, undefined ones included, and `other` with everything
// else.
template <class Visit, class Other>
void flatten(const c10::IValue& value, const c10::TypePtr& type, Visit visit, Other other) {
  if (value.isTensor()) return visit(value.toTensor());
  if (value.isTensorList()) {
    for (const at::Tensor& tensor : value.toTensorVector()) visit(tensor);
    return;
  }
  if (value.isNone() && type->isSubtypeOf(*c10::OptionalType::ofTensor()))
    return visit(at::Tensor());
  if (value.isTuple()) {
    for (const c10::IValue& element : value.toTupleRef().elements())
      flatten(element, type, visit, other);
    return;
  }
  other(value);
}

// A foreign operator may do more than compute what it returns, but where a row defines it.
bool has_effect(const OpInfo& info) {
  return info.foreign && composit::find_operation(info.name) == nullptr &&
         !info.handle.hasTag(at::Tag::pointwise);
}

}  // namespace

c10::SmallVector<at::Tensor, 4> tensors_of(const c10::IValue& value) {
  c10::SmallVector<at::Tensor, 4> tensors;
  if (value.isTensor()) {
    tensors.push_back(value.toTensor());
  } else if (value.isList()) {
    for (const c10::IValue& item : value.toListRef())
      tensors.push_back(item.isTensor() ? item.toTensor() : at::Tensor());
  }
  return tensors;
}

Recorder::Recorder(RecorderOptions options, std::shared_ptr<AllocationWatch> allocations)
    : options_(options),
      allocations_(std::move(allocations)),
      recording_(std::make_unique<Recording>()),
      aliasing_(*recording_, options.chains,
                [this](const at::Tensor& tensor) { return from_outside(tensor); }),
      owner_(std::this_thread::get_id()) {
  generator_watch(at::globalContext().defaultGenerator(c10::kCPU), true);
}

// ---- what comes in ------------------------------------------------------------------------------

void Recorder::add_input(const at::Tensor& tensor, const std::string& name,
                         composit::InputKind kind) {
  std::lock_guard lock(mutex_);
  const auto index = static_cast<uint32_t>(recording_->inputs.size());
  if (kind != composit::InputKind::user_input) {
    const auto [known, fresh] = named_.try_emplace(tensor.unsafeGetTensorImpl(), index);
    if (!fresh) {
      recording_->inputs[known->second].tied.push_back(name);
      return;
    }
  }
  recording_->inputs.push_back({name, kind, tensor, kNone, tensor.requires_grad(), {}});
  recording_->inputs[index].value = add_source(RecordKind::input, index, tensor);
}

ValueId Recorder::add_source(RecordKind kind, uint32_t index, const at::Tensor& tensor) {
  Record record;
  record.kind = kind;
  record.index = index;
  const uint32_t composite = std::exchange(recording_->current_composite, kNone);
  const ValueId value = recording_->push(record, {}, recording_->geometries.intern(tensor), 0);
  recording_->current_composite = composite;
  if (keeps_originals() && is_readable(tensor))
    came_in_.emplace(value, view_memory(tensor, tensor.scalar_type(), tensor.sizes(),
                                        tensor.strides(), 0, tensor.is_conj(), tensor.is_neg()));
  const ValueId first = aliasing_.bind_outside(tensor, value);
  if (kind == RecordKind::constant) recording_->constants[index].shares = first;
  if (kind == RecordKind::input) note_shared_memory(index, first);
  return value;
}

// Replay expects inputs that lie in one storage to do so again.
void Recorder::note_shared_memory(uint32_t index, ValueId first) {
  if (first == kNone) return;
  const Record& record = recording_->records[recording_->values[first].record];
  if (record.kind != RecordKind::input) return;
  RecordedInput& input = recording_->inputs[index];
  input.shares = record.index;
  input.shift = address_of(input.tensor) - address_of(recording_->inputs[record.index].tensor);
}

ValueId Recorder::from_outside(const at::Tensor& tensor) {
  expect_not_foreign(tensor);
  using Origin = AllocationWatch::Origin;
  const Origin origin =
      tensor.has_storage() ? allocations_->origin(tensor.storage().data()) : Origin::outside;
  // A number the program wrote becomes a tensor without a call of the dispatcher (`x[0] = 5.`).
  const bool number = origin == Origin::between_operators && tensor.dim() == 0;
  if (origin == Origin::between_operators)
    if (const auto state = from_generator(tensor)) return *state;
  if (origin == Origin::inside_operator)
    if (const auto result = from_stopped(tensor)) return *result;
  if (origin != Origin::outside && !number)
    throw composit::UserError(
        "[trace] " + *current_op_ + ": an argument of sizes " + c10::str(tensor.sizes()) +
        " was made inside the scope by code that no dispatcher sees; it would be a false "
        "constant" +
        (current_place_.line == kNone ? "" : " (" + recording_->lines[current_place_.line] + ")"));
  if (tensor.is_leaf() && tensor.requires_grad()) {
    const auto index = static_cast<uint32_t>(recording_->inputs.size());
    const std::string name = "parameter_" + std::to_string(unnamed_parameters_++);
    named_.emplace(tensor.unsafeGetTensorImpl(), index);
    recording_->inputs.push_back({name, composit::InputKind::parameter, tensor, kNone, true, {}});
    return recording_->inputs[index].value = add_source(RecordKind::input, index, tensor);
  }
  const auto index = static_cast<uint32_t>(recording_->constants.size());
  recording_->constants.push_back({tensor, number, current_place_});
  return add_source(RecordKind::constant, index, tensor);
}

composit::LazyTensor Recorder::lazy(const at::Tensor& tensor) {
  std::lock_guard lock(mutex_);
  if (finished()) throw composit::UserError("[trace] this scope was finished before");
  static const std::string here = "TraceScope::lazy";
  current_op_ = &here;
  current_place_ = {};
  const ValueId value = aliasing_.read(tensor);
  std::vector<bool> unwritten;
  for (const RecordedInput& input : recording_->inputs)
    unwritten.push_back(has_memory(input.tensor) &&
                        aliasing_.read(input.tensor, false) == input.value);
  return publish_value(*recording_, value, std::move(unwritten));
}

std::optional<ValueId> Recorder::held_value(const at::Tensor& tensor) {
  std::lock_guard lock(mutex_);
  if (finished() || !aliasing_.knows(tensor) || aliasing_.is_unwritten(tensor)) return std::nullopt;
  return aliasing_.read(tensor, false);
}

void Recorder::remark(const std::string& text) {
  std::lock_guard lock(mutex_);
  if (!finished()) recording_->remark(text);
}

// ---- before a call ------------------------------------------------------------------------------

Recorder::Pending Recorder::before(const OpInfo& info, c10::ArrayRef<c10::IValue> arguments) {
  const Place place = place_here();
  std::lock_guard lock(mutex_);
  Pending pending;
  if (finished()) return pending;
  const OwnThread thread(*this);
  pending.info = &info;
  pending.place = current_place_ = place;
  pending.grad = c10::GradMode::is_enabled();
  current_op_ = &info.name.str();
  if (foreign_->has_news()) expect_no_foreign_work();
  if (!info.refused.empty())
    throw composit::UserError("[trace] " + *current_op_ + ": " + info.refused);
  const bool outermost = thread.own && recording_->current_composite == kNone;
  read_arguments(pending, arguments);
  if (info.metadata || info.as_strided) return pending;
  if (outermost) settle_generators();
  if (info.composite) {
    if (!thread.own)
      pending.info = nullptr;
    else {
      if (outermost && info.may_draw) watch_generator(pending, arguments);
      begin_composite(pending);
    }
    return pending;
  }
  if (info.writes_any) {
    pending.requires_grad = pending.grad && any_requires_grad(arguments);
    if (pending.grad) pending.arguments = arguments.vec();
  }
  if (info.writes_any || info.reads_storage) join_shared(pending, arguments);
  if (keeps_originals())
    for (const at::Tensor& written : pending.written) keep_original(written);
  if (info.may_draw) watch_generator(pending, arguments);
  if (pending.grad && has_saved_tensor_hooks()) note_hooks(pending, arguments);
  if (info.foreign) keep_contents(pending, arguments);
  return pending;
}

void Recorder::read_arguments(Pending& pending, c10::ArrayRef<c10::IValue> arguments) {
  const OpInfo& info = *pending.info;
  for (size_t i = 0; i < arguments.size(); ++i) {
    const c10::IValue& argument = arguments[i];
    if (info.arguments[i] == ArgumentKind::other) continue;
    if (info.arguments[i] == ArgumentKind::tensor) {
      pending.operands.push_back(argument.isTensor() ? read(argument.toTensor(), info.reads[i])
                                                     : kNone);
      continue;
    }
    const auto tensors = tensors_of(argument);
    // An optional list that is none differs from an empty one.
    pending.operands.push_back(
        argument.isNone() ? kAbsentList : kListMark | static_cast<uint32_t>(tensors.size()));
    for (const at::Tensor& tensor : tensors)
      pending.operands.push_back(read(tensor, info.reads[i]));
  }
  pending.attributes = recording_->attributes.size();
  for (size_t i = 0; i < arguments.size(); ++i)
    if (info.arguments[i] == ArgumentKind::other)
      recording_->attributes.push(attribute(arguments[i]));
  pending.attribute_count = recording_->attributes.size() - pending.attributes;
}

ValueId Recorder::read(const at::Tensor& tensor, bool content) {
  const ValueId value = aliasing_.read(tensor, content);
  if (recording_->grad && c10::GradMode::is_enabled() && tensor.requires_grad())
    if (auto name = custom_gradient(*recording_, value, tensor))
      recording_->custom_gradients.emplace(value, std::move(*name));
  return value;
}

// A generator by its role: the recording must not keep it alive. Lists and strings as one copy for
// all calls: the program may change its own, and small pieces that stay between the large blocks of
// activations would cost much more memory than they take.
c10::IValue Recorder::attribute(const c10::IValue& argument) {
  if (argument.isIntList()) {
    c10::IValue& known = int_lists_[argument.toIntVector()];
    if (known.isNone()) known = argument.toIntVector();
    return known;
  }
  if (argument.isString()) {
    c10::IValue& known = strings_[argument.toStringRef()];
    if (known.isNone()) known = argument.toStringRef();
    return known;
  }
  if (!argument.isGenerator()) return argument;
  generator_watch(argument.toGenerator());
  return generator_role(argument.toGenerator());
}

void Recorder::begin_composite(Pending& pending) {
  Composite composite;
  composite.info = pending.info;
  composite.parent = recording_->current_composite;
  composite.begin = recording_->records.size();
  composite.attributes = pending.attributes;
  composite.attribute_count = pending.attribute_count;
  composite.grad = pending.grad;
  composite.place = pending.place;
  composite.operands = recording_->operands.size();
  composite.operand_count = static_cast<uint32_t>(pending.operands.size());
  for (uint32_t operand : pending.operands) recording_->operands.push(operand);
  pending.parent = composite.parent;
  pending.composite = static_cast<uint32_t>(recording_->composites.size());
  recording_->composites.push_back(std::move(composite));
  recording_->current_composite = pending.composite;
}

// ---- after a call -------------------------------------------------------------------------------

Record Recorder::make_record(const Pending& pending) {
  Record record;
  record.info = pending.info;
  record.grad = pending.grad;
  record.operands = recording_->operands.size();
  record.operand_count = static_cast<uint32_t>(pending.operands.size());
  for (uint32_t operand : pending.operands) recording_->operands.push(operand);
  record.attributes = pending.attributes;
  record.attribute_count = pending.attribute_count;
  record.composite = recording_->current_composite;
  record.values = recording_->values.size();
  record.place = pending.place;
  if (!pending.joint.empty()) {
    record.joint = static_cast<uint32_t>(recording_->joints.size());
    recording_->joints.emplace_back(pending.joint.begin(), pending.joint.end());
  }
  if (pending.generator != nullptr &&
      (pending.info->always_draws || (*pending.generator)->moved())) {
    record.effect = true;
    (*pending.generator)->follow();
    unsettled_.push_back(&**pending.generator);
  }
  return record;
}

void Recorder::after(Pending& pending, c10::ArrayRef<c10::IValue> results) {
  std::lock_guard lock(mutex_);
  if (pending.info == nullptr || finished()) return;
  const OwnThread thread(*this);
  current_op_ = &pending.info->name.str();
  current_place_ = pending.place;
  const OpInfo& info = *pending.info;
  if (info.inplace_view) return moved(results);
  if (info.metadata || info.as_strided) return;
  if (pending.composite != kNone) return end_composite(pending, results);
  if (info.foreign) note_observed_writes(pending);
  record_leaf(pending, results);
}

// `x.set_()` leaves a tensor in memory that is not allocated yet.
void Recorder::moved(c10::ArrayRef<c10::IValue> results) {
  for (const c10::IValue& result : results) {
    if (!result.isTensor() || !result.toTensor().has_storage() ||
        aliasing_.knows(result.toTensor()))
      continue;
    if (result.toTensor().storage().nbytes() == 0) aliasing_.bind_unwritten(result.toTensor());
  }
}

void Recorder::record_leaf(Pending& pending, c10::ArrayRef<c10::IValue> results) {
  const OpInfo& info = *pending.info;
  // `torch::tensor({1, 2, 3})` fills its elements one by one.
  if (info.fills && aliasing_.fill_on_host(pending.written[0])) return;
  Record record = make_record(pending);
  Results fresh;
  std::vector<c10::IValue> numbers;
  for (size_t i = 0; i < results.size(); ++i) {
    if (info.returns_written[i]) continue;
    flatten(
        results[i], info.schema->returns()[i].type(),
        [&](const at::Tensor& tensor) { fresh.push_back(tensor); },
        [&](const c10::IValue& number) { numbers.push_back(number); });
  }
  if (info.value_query) {
    record.expected = static_cast<uint32_t>(recording_->expected.size());
    recording_->expected.push_back(std::move(numbers));
  }
  record.effect = record.effect || info.value_query || info.dynamic_shape || has_effect(info) ||
                  (fresh.empty() && !info.writes_any);
  push_leaf(pending, record, fresh);
  if (info.unwritten) aliasing_.mark_unwritten(fresh[0]);
}

void Recorder::failed(Pending& pending) {
  std::lock_guard lock(mutex_);
  if (pending.info == nullptr || finished()) return;
  const OwnThread thread(*this);
  if (pending.composite != kNone) {
    recording_->composites[pending.composite].ended = true;
    recording_->current_composite = pending.parent;
    return;
  }
  if (pending.info->metadata || pending.info->composite || pending.info->as_strided) return;
  if (pending.info->foreign) note_observed_writes(pending);
  if (pending.hooks && record_stopped(pending)) return;
  if (!pending.arguments.empty() && autograd_refused(*pending.info, pending.arguments)) return;
  // It may have written or drawn before it threw, and the program may go another way than it would
  // have otherwise. Replay lets it throw again, on copies of the same values.
  Record record = make_record(pending);
  if (!pending.info->writes_any && !record.effect && pending.grad) {
    recording_->remark(pending.info->name.str() +
                       " threw, and the program went on; a replay goes on in the same way");
    return;
  }
  for (size_t i = 0; i < pending.written.size(); ++i)
    if (pending.written[i].numel() != pending.written_sizes[i])
      recording_->remark("reads memory that no operator wrote: " + pending.info->name.str() +
                         " threw after it resized its output");
  record.throws = record.effect = true;
  push_leaf(pending, record, {});
}

void Recorder::push_leaf(Pending& pending, Record record, const Results& fresh) {
  const RecordId id = recording_->records.size();
  const auto add_value = [&](GeometryId geometry) {
    recording_->values.push({id, geometry, record.value_count++, 0});
  };
  for (const at::Tensor& tensor : fresh)
    add_value(tensor.defined() ? aliasing_.geometry(tensor) : kNone);
  const auto written = outputs_written(pending);
  for (const auto& [tensor, joined] : written)
    add_value(joined ? aliasing_.base_geometry(tensor) : aliasing_.geometry(tensor));
  recording_->records.push(record);

  ValueId value = record.values;
  const ValueId operand = pending.operands.empty() ? kNone : pending.operands.front();
  for (const at::Tensor& tensor : fresh) {
    if (tensor.defined() && pending.info->detach && aliasing_.knows(tensor))
      aliasing_.bind_detached(tensor, value);
    else if (tensor.defined())
      aliasing_.bind(tensor, value, operand);
    ++value;
  }
  for (const auto& [tensor, joined] : written) {
    if (joined)
      aliasing_.write_base(tensor, value++);
    else
      aliasing_.write(tensor, value++);
  }
  if (!observer_) return;
  Results seen = fresh;
  for (const auto& [tensor, joined] : written) seen.push_back(tensor);
  observer_(id, seen);
}

// One output per written argument; arguments that were executed as views of one storage have one
// together.
std::vector<std::pair<at::Tensor, bool>> Recorder::outputs_written(const Pending& pending) const {
  std::vector<std::pair<at::Tensor, bool>> outputs;
  for (size_t i = 0; i < pending.written.size(); ++i) {
    const at::Tensor& tensor = pending.written[i];
    const bool joined = pending.written_joined[i];
    const bool repeated =
        joined && std::any_of(outputs.begin(), outputs.end(), [&](const auto& output) {
          return output.second && aliasing_.same_storage(output.first, tensor);
        });
    if (!repeated) outputs.emplace_back(tensor, joined);
  }
  return outputs;
}

void Recorder::end_composite(Pending& pending, c10::ArrayRef<c10::IValue> results) {
  Results tensors;
  for (size_t i = 0; i < results.size(); ++i)
    flatten(
        results[i], pending.info->schema->returns()[i].type(),
        [&](const at::Tensor& tensor) { tensors.push_back(tensor); }, [](const c10::IValue&) {});
  const bool known = std::all_of(tensors.begin(), tensors.end(), [&](const at::Tensor& tensor) {
    return !tensor.defined() || aliasing_.knows(tensor);
  });
  if (known) {
    c10::SmallVector<ValueId, 2> values;
    for (const at::Tensor& tensor : tensors) values.push_back(aliasing_.read(tensor, false));
    recording_->composites[pending.composite].results = std::move(values);
  }
  recording_->composites[pending.composite].end = recording_->records.size();
  recording_->composites[pending.composite].ended = true;
  recording_->current_composite = pending.parent;
  // Its kernel made a result without calling an operator: then it is a leaf after all.
  if (!known) push_leaf(pending, make_record(pending), tensors);
}

// ---- where it is
// ---------------------------------------------------------------------------------

uint32_t Recorder::intern(std::vector<std::string>& texts,
                          std::unordered_map<std::string, uint32_t>& known,
                          const std::string& text) {
  const auto [entry, fresh] = known.try_emplace(text, static_cast<uint32_t>(texts.size()));
  if (fresh) texts.push_back(text);
  return entry->second;
}

void Recorder::enter_module(const std::string& path) {
  std::lock_guard lock(mutex_);
  if (!finished()) modules_.push_back(intern(recording_->modules, known_modules_, path));
}

void Recorder::leave_module() {
  std::lock_guard lock(mutex_);
  if (!modules_.empty()) modules_.pop_back();
}

// The host language may have a lock of its own, which a thread that waits for ours must not hold.
Place Recorder::place_here() {
  const bool own = std::this_thread::get_id() == owner_;
  const std::string line = own && options_.host_line ? options_.host_line() : std::string();
  std::lock_guard lock(mutex_);
  Place place;
  if (finished()) return place;
  if (!modules_.empty()) place.module = modules_.back();
  if (!line.empty()) place.line = intern(recording_->lines, known_lines_, line);
  if (!options_.source_lines) return place;
  Backtrace frames{};
  ::backtrace(frames.data(), static_cast<int>(frames.size()));
  recording_->backtraces.push_back(frames);
  place.frames = static_cast<uint32_t>(recording_->backtraces.size() - 1);
  return place;
}

}  // namespace flashlight::tracer
