// The inputs of a call of compiled code: arguments, and the tensors of the model.
//
//   const auto inputs = BoundInputs::of(capture);        // a CaptureBase::State
//   results = compiled(inputs->bind(arguments));
//   inputs->let_go(compiled.frozen());                   // packed by now
//
// As long as the capture is there, it holds the tensors, and nothing here does: captures count the
// references to them to see whether a program still has them. A capture that goes leaves them to
// its compiled code, which holds on to those that calls read. Of those that are packed it keeps
// weak references: while the model has them a write to one is seen, and memory nobody can write any
// more is free. Where tensors have memory that they do not own (from_blob), which the
// program may own, its capture stays.
#pragma once

#include <atomic>
#include <condition_variable>
#include <mutex>

#include "flashlight/capture_state.h"

namespace flashlight {

class BoundInputs {
 public:
  static std::shared_ptr<BoundInputs> of(const std::shared_ptr<const CaptureBase::State>& capture);

  // A tensor per input of the graph; an undefined one for what was let go and nobody holds any
  // more. UserError for another number of arguments.
  std::vector<at::Tensor> bind(const std::vector<at::Tensor>& arguments) const;
  // The same without arguments, for which there are undefined tensors.
  std::vector<at::Tensor> tensors() const;
  // From now on these inputs are held by others alone. By input; the first call counts.
  void let_go(const std::vector<bool>& packed);
  // The tensors of a capture that is gone.
  void inherit(std::vector<NamedTensor> inputs);

 private:
  using Weak = c10::weak_intrusive_ptr<c10::TensorImpl, c10::UndefinedTensorImpl>;

  explicit BoundInputs(const std::shared_ptr<const CaptureBase::State>& capture);
  void weaken();

  std::weak_ptr<const CaptureBase::State> capture_;
  std::shared_ptr<const CaptureBase::State> kept_capture_;  // where it has to stay
  Structure arguments_;
  size_t count_;  // of tensors among these, numbers of a family included
  std::atomic<bool> has_let_go_{false};
  mutable std::mutex mutex_;  // of all below
  mutable std::condition_variable arrived_;
  bool is_heir_ = false;
  std::vector<bool> packed_;
  std::vector<NamedTensor> inputs_;            // without the tensors that are not held
  std::vector<std::pair<size_t, Weak>> weak_;  // those, by input
};

}  // namespace flashlight
