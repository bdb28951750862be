#include "flashlight/lent_generator.h"

#include <ATen/CPUGeneratorImpl.h>

namespace flashlight {
namespace {

using State = fl::Generator::State;

at::CPUGeneratorImpl& cpu(const at::Generator& generator) {
  return *at::check_generator<at::CPUGeneratorImpl>(generator);
}

}  // namespace

State state_of(const at::Generator& owner) {
  at::CPUGeneratorImpl& generator = cpu(owner);
  const at::mt19937_data_pod data = generator.engine().data();
  State state;
  std::copy(data.state_.begin(), data.state_.end(), state.words);
  state.next = data.left_ == 1 ? State::kWords : static_cast<int>(data.next_);
  // Reading it takes it out of the generator, so it is put back.
  if (const std::optional<double> second = generator.next_double_normal_sample()) {
    state.second_normal = *second;
    state.has_second_normal = true;
    generator.set_next_double_normal_sample(second);
  }
  return state;
}

void set_state(const at::Generator& owner, const State& state) {
  at::CPUGeneratorImpl& generator = cpu(owner);
  at::mt19937 engine = generator.engine();
  at::mt19937_data_pod data = engine.data();
  std::copy(std::begin(state.words), std::end(state.words), data.state_.begin());
  data.next_ = static_cast<uint32_t>(state.next);
  data.left_ = State::kWords + 1 - state.next;
  engine.set_data(data);
  generator.set_engine(engine);
  generator.set_next_double_normal_sample(
      state.has_second_normal ? std::optional(state.second_normal) : std::nullopt);
}

LentGenerator::LentGenerator()
    : owner_(at::detail::getDefaultCPUGenerator()),
      lock_(owner_.mutex()),
      generator_(state_of(owner_)) {}

LentGenerator::~LentGenerator() { set_state(owner_, generator_.state()); }

}  // namespace flashlight
