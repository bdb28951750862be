#include "tracer/distributed.h"

#include <ATen/core/stack.h>
#include <torch/custom_class.h>

#if defined(USE_DISTRIBUTED)
#include <torch/csrc/distributed/c10d/Types.hpp>
#include <torch/csrc/distributed/c10d/Work.hpp>
#endif

#include <array>
#include <mutex>

namespace flashlight::tracer {

#if defined(USE_DISTRIBUTED)
namespace {

void wait_for_tensor(const at::Tensor& tensor) {
  static const auto wait =
      c10::Dispatcher::singleton().findSchemaOrThrow("_c10d_functional::wait_tensor", "");
  torch::jit::Stack stack = {tensor};
  wait.callBoxed(&stack);
}

template <class T>
c10::intrusive_ptr<T> object_of(const c10::IValue& value) {
  if (!value.isObject() || value.toObjectRef().slots().empty()) return {};
  const c10::IValue& held = value.toObjectRef().getSlot(0);
  if (!held.isCapsule()) return {};
  return c10::dynamic_intrusive_pointer_cast<T>(held.toCapsule());
}

}  // namespace

void wait_for_work(const OpInfo& op, c10::ArrayRef<c10::IValue> results) {
  if (!op.asynchronous) return;
  const bool functional = op.name.domain() != "c10d";
  for (const c10::IValue& result : results) {
    if (const auto work = object_of<c10d::Work>(result)) work->wait();
    if (!functional) continue;
    if (result.isTensor()) wait_for_tensor(result.toTensor());
    if (result.isTensorList())
      for (const at::Tensor& tensor : result.toTensorVector()) wait_for_tensor(tensor);
  }
}

c10::IValue same_object(const c10::IValue& value) {
  const auto reduce = object_of<c10d::ReduceOp>(value);
  if (!reduce || reduce->supplement_ != nullptr) return value;
  static auto* known = new std::array<std::optional<c10::IValue>, c10d::ReduceOp::UNUSED + 1>;
  static auto* mutex = new std::mutex;
  std::lock_guard lock(*mutex);
  std::optional<c10::IValue>& first = known->at(reduce->op_);
  if (!first) first.emplace(value);
  return *first;
}
#else
void wait_for_work(const OpInfo&, c10::ArrayRef<c10::IValue>) {}
c10::IValue same_object(const c10::IValue& value) { return value; }
#endif

}  // namespace flashlight::tracer
