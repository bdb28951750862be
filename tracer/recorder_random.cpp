// Random numbers: which generators a program uses, and when it seeds one behind the dispatcher's
// back.
#include <ATen/Context.h>

#include "composit/ir/error.h"
#include "tracer/recorder.h"

namespace flashlight::tracer {

std::optional<GeneratorWatch>& Recorder::generator_watch(const at::Generator& generator) {
  auto& watch = generators_[generator.unsafeGetGeneratorImpl()];
  if (watch) return watch;
  watch.emplace(generator);
  const bool is_default = recording_->generators.empty();
  const std::string role =
      is_default ? "default" : "generator_" + std::to_string(recording_->generators.size() - 1);
  // The default generator's state at the begin of the scope is the caller's business, as in eager
  // mode.
  recording_->generators.push_back(
      {role, c10::weak_intrusive_ptr<c10::GeneratorImpl>(generator.getIntrusivePtr()),
       is_default ? kNone : set_generator_state(role, generator)});
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
  pending.generator = &watch;
  if (!watch->moved()) return;
  set_generator_state(generator_role(generator), generator);
  watch->follow();
}

RecordId Recorder::set_generator_state(const std::string& role, const at::Generator& generator) {
  Record record;
  record.kind = RecordKind::set_generator;
  record.index = static_cast<uint32_t>(recording_->generator_states.size());
  record.effect = true;
  recording_->generator_states.push_back({role, generator.get_state()});
  recording_->push_effect(record);
  return recording_->records.size() - 1;
}

}  // namespace flashlight::tracer
