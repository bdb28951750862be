// Arrays in and out of other libraries without a copy, as DLPack 0.8 tensors
// (https://github.com/dmlc/dlpack).
//
//   Array array = from_dlpack(managed_tensor);     // of another library: at::toDLPack(tensor)
//   DLManagedTensor* managed = to_dlpack(array);   // the receiver calls managed->deleter(managed)
//
// The declarations are DLPack's, in a namespace of ours, so that they do not clash with another
// copy of DLPack.
#pragma once

#include <cstdint>

#include "composit/ir/array.h"

namespace composit::dlpack {

// The device types that composit accepts: the CPU.
enum DLDeviceType : int32_t { kDLCPU = 1 };

// The device that has the memory.
struct DLDevice {
  DLDeviceType device_type;  // kDLCPU
  int32_t device_id;         // 0
};

// The kinds of number.
enum DLDataTypeCode : uint8_t {
  kDLInt = 0,
  kDLUInt = 1,
  kDLFloat = 2,
  kDLBfloat = 4,
  kDLComplex = 5,
  kDLBool = 6
};

// The type of an element.
struct DLDataType {
  uint8_t code;    // DLDataTypeCode
  uint8_t bits;    // the type of an element
  uint16_t lanes;  // 1
};

// A tensor in memory that it does not own.
struct DLTensor {
  void* data;            // element 0, but for `byte_offset`
  DLDevice device;       // where `data` is
  int32_t ndim;          // number of axes
  DLDataType dtype;      // the type of an element
  int64_t* shape;        // a size per axis
  int64_t* strides;      // in elements; null: row-major
  uint64_t byte_offset;  // from `data` to element 0
};

// A tensor and its owner.
struct DLManagedTensor {
  DLTensor dl_tensor;                      // the tensor
  void* manager_ctx;                       // the owner's own
  void (*deleter)(DLManagedTensor* self);  // lets the memory go; null: nothing to do
};

// Takes ownership of `managed`; its memory lives as long as the Array. UserError, and `managed`
// stays the caller's, when it is null, not on the CPU, of a dtype composit does not have, or
// malformed.
Array from_dlpack(DLManagedTensor* managed);

// A view that keeps the Array alive until its deleter is called. Receivers must not write to it.
// UserError for dtypes DLPack does not have, and for lazily conjugated or negated arrays.
DLManagedTensor* to_dlpack(const Array& array);

}  // namespace composit::dlpack
