#include "flashlight/bound_inputs.h"

#include <algorithm>

namespace flashlight {

BoundInputs::BoundInputs(const std::shared_ptr<const CaptureBase::State>& capture)
    : capture_(capture),
      kept_capture_(capture->borrows_memory ? capture : nullptr),
      arguments_(capture->arguments),
      count_(static_cast<size_t>(std::count_if(
          capture->inputs.begin(), capture->inputs.end(),
          [](const auto& input) { return input.kind == composit::InputKind::user_input; }))) {}

std::shared_ptr<BoundInputs> BoundInputs::of(
    const std::shared_ptr<const CaptureBase::State>& capture) {
  const std::shared_ptr<BoundInputs> inputs(new BoundInputs(capture));
  capture->heirs.add(inputs);
  return inputs;
}

std::vector<at::Tensor> BoundInputs::bind(const std::vector<at::Tensor>& arguments) const {
  if (const auto capture = capture_.lock()) return capture->bind(arguments);
  std::unique_lock lock(mutex_);
  arrived_.wait(lock, [&] { return is_heir_; });  // another thread may be at the capture's end
  std::vector<at::Tensor> bound = bind_inputs(inputs_, arguments, arguments_);
  for (const auto& [input, tensor] : weak_)
    if (auto held = tensor.lock()) bound[input] = at::Tensor(std::move(held));
  return bound;
}

std::vector<at::Tensor> BoundInputs::tensors() const {
  return bind(std::vector<at::Tensor>(count_));
}

void BoundInputs::let_go(const std::vector<bool>& packed) {
  if (has_let_go_.exchange(true)) return;
  const std::lock_guard lock(mutex_);
  packed_ = packed;
  weaken();
}

void BoundInputs::inherit(std::vector<NamedTensor> inputs) {
  const std::lock_guard lock(mutex_);
  inputs_ = std::move(inputs);
  is_heir_ = true;
  weaken();
  arrived_.notify_all();
}

void BoundInputs::weaken() {
  if (!is_heir_) return;
  for (size_t i = 0; i < packed_.size(); ++i) {
    if (!packed_[i] || !inputs_[i].tensor.defined()) continue;
    weak_.emplace_back(i, Weak(inputs_[i].tensor.getIntrusivePtr()));
    inputs_[i].tensor.reset();
  }
}

void Heirs::add(const std::shared_ptr<BoundInputs>& heir) {
  const std::lock_guard lock(mutex_);
  std::erase_if(heirs_, [](const auto& other) { return other.expired(); });
  heirs_.push_back(heir);
}

void Heirs::leave(const std::vector<NamedTensor>& inputs) {
  for (const auto& one : heirs_)
    if (const auto heir = one.lock()) heir->inherit(inputs);
}

CaptureBase::State::~State() { heirs.leave(inputs); }

}  // namespace flashlight
