// Who holds a tensor beside captures? For files of flashlight only.
//
// A tensor that Python has seen has an object there, which PyTorch keeps as long as C++ refers to
// the tensor, and which refers to it: a reference that says nothing of the program.
#pragma once

#include <ATen/core/Tensor.h>

#include "tracer/recording.h"

namespace flashlight {

// References to the tensor, or to the memory, without that of an object of Python which nobody
// there holds.
size_t references_to(const at::Tensor& tensor);
size_t references_to(const c10::Storage& storage);

// True if Python has an object for this tensor, and somebody holds it there.
bool is_held_by_python(const at::Tensor& tensor);
bool is_held_by_python(const tracer::WeakTensor& tensor);

}  // namespace flashlight
