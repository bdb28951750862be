#include "flashlight/adaptive_keys.h"

#include <ATen/autocast_mode.h>
#include <c10/core/DefaultDtype.h>
#include <c10/core/GradMode.h>
#include <c10/core/InferenceMode.h>

#include "composit/ir/print.h"
#include "tracer/geometry.h"

namespace flashlight {

using composit::Hash;
using composit::Hasher;

namespace {

void add_modes(Hasher& hasher) {
  const bool autocast = at::autocast::is_autocast_enabled(at::kCPU);
  hasher.add(uint64_t{c10::GradMode::is_enabled()});
  hasher.add(uint64_t{c10::InferenceMode::is_enabled()});
  hasher.add(autocast ? 1 + static_cast<uint64_t>(at::autocast::get_autocast_dtype(at::kCPU)) : 0);
  hasher.add(static_cast<uint64_t>(c10::get_default_dtype_as_scalartype()));
}

}  // namespace

Hash kind_key_of(const TracedProgram& program, const FlatValues& arguments,
                 const std::string& signature) {
  Hasher hasher;
  hasher.add(signature);
  hasher.add(str(arguments.structure));
  add_modes(hasher);
  for (const at::Tensor& tensor : arguments.tensors) {
    hasher.add(uint64_t{tensor.defined()});
    if (!tensor.defined()) continue;
    hasher.add(static_cast<uint64_t>(tensor.scalar_type()));
    hasher.add(static_cast<uint64_t>(tensor.device().type()));
    hasher.add(static_cast<uint64_t>(tensor.layout()));
    hasher.add(static_cast<uint64_t>(tensor.dim()));
    hasher.add(uint64_t{tensor.requires_grad()});
  }
  if (program.modules) {
    const ModuleView view = program.modules();
    for (const bool training : view.training) hasher.add(uint64_t{training});
    for (const void* part : view.parts) hasher.add(reinterpret_cast<uintptr_t>(part));
  }
  return hasher.finish();
}

Hash key_of(const Hash& kind, const FlatValues& arguments) {
  Hasher hasher;
  hasher.add(kind);
  for (const at::Tensor& tensor : arguments.tensors) {
    if (!tensor.defined()) continue;
    for (const int64_t size : tensor.sizes()) hasher.add(static_cast<uint64_t>(size));
    if (tensor.layout() == at::kStrided)
      for (const int64_t stride : tensor.strides()) hasher.add(static_cast<uint64_t>(stride));
  }
  return hasher.finish();
}

std::string text_of(const FlatValues& arguments) {
  std::string text;
  for (const at::Tensor& tensor : arguments.tensors) {
    text += text.empty() ? "" : ", ";
    text += tensor.defined() ? print(tracer::type_of(tensor)) : "undefined";
  }
  return text.empty() ? "no tensors" : text;
}

}  // namespace flashlight
