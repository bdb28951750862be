// Between c10 and composit: enumerations, attributes, arrays.
//
//   composit::Attribute alpha = to_attribute(ivalue, argument.type());
//   c10::IValue back = to_ivalue(alpha, argument.type(), generator_of);
#pragma once

#include <ATen/core/Tensor.h>
#include <ATen/core/ivalue.h>
#include <ATen/core/jit_type.h>

#include <functional>

#include "composit/ir/array.h"
#include "composit/ir/attribute.h"

namespace flashlight::tracer {

// Enumerations have the same numbers on both sides.
composit::DType to_composit(c10::ScalarType dtype);
composit::Layout to_composit(c10::Layout layout);
composit::Device to_composit(c10::Device device);
c10::ScalarType to_c10(composit::DType dtype);
c10::Layout to_c10(composit::Layout layout);
c10::Device to_c10(composit::Device device);

// Strided, on the CPU, with elements to read: not sparse, on meta, or one of Python's that stands
// for others (FakeTensor).
bool has_memory(const at::Tensor& tensor);
// True if the host can read the elements, if need be from a copy: strided, in memory of any device.
bool is_readable(const at::Tensor& tensor);
// A tensor whose elements the host can read: itself, or a copy of one on another device, which no
// scope records. Undefined if it is not readable.
at::Tensor on_host(const at::Tensor& tensor);

// Zero-copy both ways; the result keeps the other alive. UserError of a tensor without memory.
composit::Array to_array(const at::Tensor& tensor);
// Memory is written to when the tensor is: an Array over a read-only mapping must not be written.
at::Tensor to_tensor(const composit::Array& array);

// The generator of that role.
using GeneratorOf = std::function<at::Generator(const std::string& role)>;

// A non-tensor argument of type `type` (as in the schema). `value` holds no tensor, and the role in
// place of a generator.
composit::Attribute to_attribute(const c10::IValue& value, const c10::TypePtr& type);
// Numbers, each with its kind; a tensor as the value of a constant.
composit::Attribute numbers_attribute(const std::vector<c10::IValue>& numbers);
composit::Attribute constant_attribute(const at::Tensor& tensor);
c10::IValue to_ivalue(const composit::Attribute& attribute, const c10::TypePtr& type,
                      const GeneratorOf& generator);

// Numbers with their kind.
composit::Scalar to_composit(const c10::Scalar& scalar);
c10::Scalar to_c10(const composit::Scalar& scalar);

}  // namespace flashlight::tracer
