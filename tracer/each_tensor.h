// The tensors of an operator's argument or result.
//
//   for_each_tensor(argument, [&](const at::Tensor& tensor) { … });
#pragma once

#include <ATen/core/Tensor.h>
#include <ATen/core/ivalue.h>

namespace flashlight::tracer {

// Those in lists and tuples included; undefined ones are left out.
template <class Visit>
void for_each_tensor(const c10::IValue& value, Visit visit) {
  if (value.isTensor()) {
    if (value.toTensor().defined()) visit(value.toTensor());
  } else if (value.isList()) {
    for (const c10::IValue& item : value.toListRef()) for_each_tensor(item, visit);
  } else if (value.isTuple()) {
    for (const c10::IValue& item : value.toTupleRef().elements()) for_each_tensor(item, visit);
  }
}

}  // namespace flashlight::tracer
