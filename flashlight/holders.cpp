#include "flashlight/holders.h"

#include <c10/core/impl/PyObjectSlot.h>

namespace flashlight {
namespace {

// True if the object lives for the sake of C++ alone. With one reference C++ has none of its own.
bool is_unheld(const c10::impl::PyObjectSlot& object, size_t references) {
  return references > 1 && object.has_unique_reference();
}

bool is_held(const c10::TensorImpl& impl, size_t references) {
  const c10::impl::PyObjectSlot& object = *impl.pyobj_slot();
  return object.load_pyobj() != nullptr && !is_unheld(object, references);
}

}  // namespace

size_t references_to(const at::Tensor& tensor) {
  const c10::TensorImpl& impl = *tensor.unsafeGetTensorImpl();
  const size_t references = tensor.use_count();
  return references - (is_unheld(*impl.pyobj_slot(), references) ? 1 : 0);
}

size_t references_to(const c10::Storage& storage) {
  const c10::StorageImpl& impl = *storage.unsafeGetStorageImpl();
  const size_t references = storage.use_count();
  return references - (is_unheld(*impl.pyobj_slot(), references) ? 1 : 0);
}

bool is_held_by_python(const at::Tensor& tensor) {
  return tensor.defined() && is_held(*tensor.unsafeGetTensorImpl(), tensor.use_count());
}

bool is_held_by_python(const tracer::WeakTensor& tensor) {
  return !tensor.expired() && is_held(*tensor._unsafe_get_target(), tensor.use_count());
}

}  // namespace flashlight
