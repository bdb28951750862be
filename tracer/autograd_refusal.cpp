#include "tracer/autograd_refusal.h"

#include <ATen/Context.h>
#include <ATen/core/LegacyTypeDispatch.h>
#include <ATen/core/stack.h>
#include <c10/core/GradMode.h>
#include <torch/csrc/autograd/VariableTypeUtils.h>

#include <unordered_map>

#include "tracer/memory_view.h"

namespace flashlight::tracer {
namespace {

// Copies that lie on each other as the originals do: a kernel may turn down an overlap half way.
class Copies {
 public:
  c10::IValue operator()(const c10::IValue& argument) {
    if (argument.isTensor()) return copy(argument.toTensor());
    if (argument.isGenerator()) return argument.toGenerator().clone();
    if (argument.isTensorList()) {
      c10::List<at::Tensor> list;
      for (const at::Tensor& tensor : argument.toTensorVector()) list.push_back(copy(tensor));
      return list;
    }
    if (argument.isOptionalTensorList()) {
      c10::List<std::optional<at::Tensor>> list;
      for (const auto& tensor : argument.toOptionalTensorVector())
        list.push_back(tensor ? std::optional(copy(*tensor)) : std::nullopt);
      return list;
    }
    return argument;
  }

 private:
  at::Tensor copy(const at::Tensor& tensor) {
    if (!tensor.defined() || !tensor.has_storage()) return tensor;
    at::Tensor& known = copies_[tensor.unsafeGetTensorImpl()];
    if (known.defined()) return known;
    at::Tensor& bytes = bytes_[tensor.storage().unsafeGetStorageImpl()];
    if (!bytes.defined()) bytes = copy_keeping_strides(all_bytes(tensor));
    return known = view_memory(bytes, tensor.scalar_type(), tensor.sizes(), tensor.strides(),
                               tensor.storage_offset(), tensor.is_conj(), tensor.is_neg());
  }

  std::unordered_map<const c10::TensorImpl*, at::Tensor> copies_;
  std::unordered_map<const c10::StorageImpl*, at::Tensor> bytes_;
};

template <class Check>
bool throws(Check check) {
  try {
    check();
    return false;
  } catch (const std::exception&) {
    return true;
  }
}

template <class Visit>
void visit_tensors(const c10::IValue& argument, Visit visit) {
  if (argument.isTensor()) return visit(argument.toTensor());
  if (!argument.isTensorList() && !argument.isOptionalTensorList()) return;
  for (const c10::IValue& item : argument.toListRef())
    if (item.isTensor()) visit(item.toTensor());
}

// Autograd looks at the arguments before it calls the kernel.
bool autograd_checks_fail(const OpInfo& info, c10::ArrayRef<c10::IValue> arguments) {
  const bool any = any_requires_grad(arguments);
  bool fail = false;
  for (size_t i = 0; i < arguments.size(); ++i) {
    if (any && info.out[i]) return true;
    visit_tensors(arguments[i], [&](const at::Tensor& tensor) {
      if (!tensor.defined()) return;
      // A view whose base was written in a way autograd does not allow is turned down when it is
      // read.
      fail = fail || throws([&] { (void)tensor.grad_fn(); });
      fail =
          fail || (info.writes[i] && throws([&] { torch::autograd::check_inplace(tensor, any); }));
    });
  }
  return fail;
}

// Draws of a trial must not be seen.
class KeepGenerator {
 public:
  KeepGenerator()
      : generator_(at::globalContext().defaultGenerator(c10::kCPU)),
        state_(generator_.get_state()) {}
  ~KeepGenerator() { generator_.set_state(state_); }
  KeepGenerator(const KeepGenerator&) = delete;
  KeepGenerator& operator=(const KeepGenerator&) = delete;

 private:
  at::Generator generator_;
  at::Tensor state_;
};

}  // namespace

bool any_requires_grad(c10::ArrayRef<c10::IValue> arguments) {
  bool any = false;
  for (const c10::IValue& argument : arguments)
    visit_tensors(argument, [&](const at::Tensor& tensor) { any = any || tensor.requires_grad(); });
  return any;
}

std::optional<std::vector<c10::IValue>> results_on_copies(const OpInfo& info,
                                                          c10::ArrayRef<c10::IValue> arguments) {
  const at::AutoDispatchBelowADInplaceOrView below_autograd;
  const c10::AutoGradMode no_grad(false);
  const KeepGenerator keep;
  try {
    torch::jit::Stack stack;
    Copies copy;
    for (const c10::IValue& argument : arguments) stack.push_back(copy(argument));
    info.handle.callBoxed(&stack);
    return stack;
  } catch (const std::exception&) {
    return std::nullopt;
  }
}

bool autograd_refused(const OpInfo& info, c10::ArrayRef<c10::IValue> arguments) {
  return autograd_checks_fail(info, arguments) || results_on_copies(info, arguments).has_value();
}

}  // namespace flashlight::tracer
