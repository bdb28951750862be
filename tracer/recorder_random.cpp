// Random numbers: which generators a program uses, and when it seeds one, or sets it to a state
// that it read before, without a call of the dispatcher.
//
// A state that was read is a value: the one of the *place* in the run, between two draws, where the
// generator had it. At each place stands a record `generator_state`, which is dropped unless the
// program sets that state again or hands it to an operator.
#include <ATen/Context.h>

#include "composit/ir/error.h"
#include "tracer/recorder.h"

namespace flashlight::tracer {

void Recorder::watch(const at::Generator& generator) {
  std::lock_guard lock(mutex_);
  if (!finished()) generator_watch(generator, true);
}

std::optional<GeneratorWatch>& Recorder::generator_watch(const at::Generator& generator,
                                                         bool from_begin) {
  auto& watch = generators_[generator.unsafeGetGeneratorImpl()];
  if (watch) return watch;
  settle_generators();  // its state may be one that another generator is in
  const auto index = static_cast<uint32_t>(recording_->generators.size());
  watch.emplace(generator, index);
  const std::string role = index == 0 ? "default" : "generator_" + std::to_string(index - 1);
  recording_->generators.push_back(
      {role, c10::weak_intrusive_ptr<c10::GeneratorImpl>(generator.getIntrusivePtr()), kNone});
  // The state at the begin of the scope is the caller's business, as in eager mode.
  if (!from_begin) {
    // A state that the program read before it drew first had no mark yet.
    const composit::Hash first = watch->first();
    const auto known = generator_places_.find(first);
    const bool was_read = known == generator_places_.end() && allocations_->holds(first);
    recording_->generators[index].first_state = set_generator_state(*watch, first);
    if (was_read) unmarked_places_.emplace(first, &*watch);
  }
  unsettled_.push_back(&*watch);
  return watch;
}

std::string Recorder::generator_role(const at::Generator& generator) const {
  for (const RecordedGenerator& known : recording_->generators)
    if (known.live.lock().get() == generator.unsafeGetGeneratorImpl()) return known.role;
  return "default";
}

void Recorder::watch_generator(Pending& pending, c10::ArrayRef<c10::IValue> arguments) {
  at::Generator generator = at::globalContext().defaultGenerator(c10::kCPU);
  for (const c10::IValue& argument : arguments)
    if (argument.isGenerator()) generator = argument.toGenerator();
  auto& watch = generator_watch(generator);
  // The draws of a composite operator are recorded for the operators inside of it.
  if (!pending.info->composite) pending.generator = &watch;
  if (watch->moved()) set_moved_generator(*watch);
}

void Recorder::set_moved_generator(GeneratorWatch& watch) {
  settle_generators();
  set_generator_state(watch, watch.now());
  watch.follow();
  unsettled_.push_back(&watch);
}

// To the state the generator is in now: to one that it had at a place of the run, or to one that
// the program made, by a seed.
RecordId Recorder::set_generator_state(const GeneratorWatch& watch, const composit::Hash& state) {
  Record record;
  if (const auto place = generator_places_.find(state); place != generator_places_.end()) {
    record.kind = RecordKind::restore_generator;
    record.index = watch.index();
    recording_->push_effect(record, {read_place(place->second)});
    return recording_->records.size() - 1;
  }
  record.kind = RecordKind::set_generator;
  record.index = static_cast<uint32_t>(recording_->generator_states.size());
  recording_->generator_states.push_back(
      {recording_->generators[watch.index()].role, unmarked_state(watch.generator())});
  recording_->push_effect(record);
  return recording_->records.size() - 1;
}

// Puts a record to each place that the run came to since: while no composite operator runs, since
// the program can read states only there, and before the next draw.
void Recorder::settle_generators() {
  if (unsettled_.empty()) return;
  Geometry bytes;
  bytes.sizes = {generator_state_size()};
  bytes.strides = {1};
  bytes.dtype = c10::ScalarType::Byte;
  for (const GeneratorWatch* watch : unsettled_) {
    if (generator_places_.contains(watch->place())) continue;
    Record record;
    record.kind = RecordKind::generator_state;
    record.index = watch->index();
    const ValueId value = recording_->push(record, {}, recording_->geometries.intern(bytes),
                                           recording_->records.size());
    generator_places_.emplace(watch->place(), value);
    for (auto known = unmarked_places_.begin(); known != unmarked_places_.end();) {
      if (known->second != watch) {
        ++known;
        continue;
      }
      generator_places_.emplace(known->first, value);
      known = unmarked_places_.erase(known);
    }
  }
  unsettled_.clear();
}

// The record keeps its place among the draws from now on.
ValueId Recorder::read_place(ValueId value) {
  recording_->records[recording_->values[value].record].effect = true;
  return value;
}

// A tensor that no operator made and that holds a state of the run: what `get_state` gave.
std::optional<ValueId> Recorder::from_generator(const at::Tensor& tensor) {
  if (tensor.scalar_type() != c10::kByte || tensor.numel() != generator_state_size())
    return std::nullopt;
  const auto state = state_in(tensor);
  settle_generators();
  const auto place = state ? generator_places_.find(*state) : generator_places_.end();
  if (place == generator_places_.end()) return std::nullopt;
  const ValueId value = read_place(place->second);
  aliasing_.bind(tensor, value, kNone);
  return value;
}

// Replays leave generators in the state in which the program leaves them.
void Recorder::end_generators(const std::vector<at::Tensor>& outputs) {
  std::map<uint32_t, GeneratorWatch*> watches;  // in the order of their roles
  for (auto& [impl, watch] : generators_)
    if (watch && watch->moved()) watches.emplace(watch->index(), &*watch);
  for (auto& [index, watch] : watches) {
    const bool known = generator_places_.contains(watch->now());
    if (!known && watch->goes_on())
      recording_->remark("something that the tracer does not see drew from the random generator '" +
                         recording_->generators[index].role +
                         "' or set it, after the program's last draw");
    else
      set_moved_generator(*watch);
  }
  for (const at::Tensor& output : outputs)
    if (output.defined() && !recording_->generators.empty()) unmark(output);
  forget_generators();
}

void Recorder::forget_generators() {
  std::lock_guard lock(mutex_);
  unsettled_.clear();
  unmarked_places_.clear();
  generators_.clear();
}

}  // namespace flashlight::tracer
