#include "tracer/generator_watch.h"

#include "composit/ir/error.h"

namespace flashlight::tracer {

GeneratorWatch::GeneratorWatch(const at::Generator& generator)
    : impl_(generator.unsafeGetGeneratorImpl()), state_(state_of(impl_)) {}

GeneratorWatch::State GeneratorWatch::state_of(const c10::GeneratorImpl* impl) {
  if (!impl->device().is_cpu())
    throw composit::UserError("[trace] expected a CPU generator, received one on " +
                              impl->device().str());
  // The accessors are not const; they do not change the generator.
  auto* cpu = static_cast<at::CPUGeneratorImpl*>(const_cast<c10::GeneratorImpl*>(impl));
  return {cpu->engine().data(), cpu->next_float_normal_sample(), cpu->next_double_normal_sample()};
}

bool GeneratorWatch::moved() const {
  const State now = state_of(impl_);
  return now.engine.left_ != state_.engine.left_ || now.engine.next_ != state_.engine.next_ ||
         now.engine.seed_ != state_.engine.seed_ || now.float_normal != state_.float_normal ||
         now.double_normal != state_.double_normal || now.engine.state_ != state_.engine.state_;
}

void GeneratorWatch::follow() { state_ = state_of(impl_); }

}  // namespace flashlight::tracer
