#include "composit/ir/dlpack.h"

#include <array>
#include <memory>
#include <optional>
#include <string>

#include "composit/ir/error.h"
#include "composit/ir/print.h"
#include "composit/ir/verify.h"

namespace composit::dlpack {
namespace {

struct Entry {
  DType dtype;
  DLDataTypeCode code;
  uint8_t bits;
};
constexpr std::array kDTypes = {
    Entry{DType::uint8, kDLUInt, 8},           Entry{DType::int8, kDLInt, 8},
    Entry{DType::int16, kDLInt, 16},           Entry{DType::int32, kDLInt, 32},
    Entry{DType::int64, kDLInt, 64},           Entry{DType::uint16, kDLUInt, 16},
    Entry{DType::uint32, kDLUInt, 32},         Entry{DType::uint64, kDLUInt, 64},
    Entry{DType::float16, kDLFloat, 16},       Entry{DType::float32, kDLFloat, 32},
    Entry{DType::float64, kDLFloat, 64},       Entry{DType::bfloat16, kDLBfloat, 16},
    Entry{DType::complex32, kDLComplex, 32},   Entry{DType::complex64, kDLComplex, 64},
    Entry{DType::complex128, kDLComplex, 128}, Entry{DType::bool_, kDLBool, 8}};

[[noreturn]] void fail(const std::string& expected, const std::string& received) {
  throw UserError("[dlpack] expected " + expected + ", received " + received);
}

DType dtype_of(const DLDataType& type) {
  for (const Entry& entry : kDTypes)
    if (entry.code == type.code && entry.bits == type.bits && type.lanes == 1) return entry.dtype;
  fail("a dtype of composit", "code " + std::to_string(type.code) + " with " +
                                  std::to_string(type.bits) + " bits and " +
                                  std::to_string(type.lanes) + " lanes");
}

Type type_of(const DLTensor& tensor) {
  if (tensor.device.device_type != kDLCPU)
    fail("memory on the CPU", "device type " + std::to_string(tensor.device.device_type));
  if (tensor.ndim < 0 || (tensor.ndim > 0 && tensor.shape == nullptr))
    fail("a shape", std::to_string(tensor.ndim) + " axes without sizes");
  Dims sizes(tensor.shape, tensor.shape + tensor.ndim);
  Type type = tensor_type(dtype_of(tensor.dtype), std::move(sizes));
  if (tensor.strides != nullptr) type.strides.assign(tensor.strides, tensor.strides + tensor.ndim);
  if (const auto fault = fault_of(type)) fail("a legal tensor", print(type) + ": " + *fault);
  if (tensor.data == nullptr && type.numel() > 0) fail("elements", "a null pointer");
  return type;
}

// The memory that to_dlpack returns, in one allocation.
struct Export {
  Array array;
  std::vector<int64_t> shape, strides;
  DLManagedTensor managed{};
};

}  // namespace

Array from_dlpack(DLManagedTensor* managed) {
  if (managed == nullptr) fail("a tensor", "a null pointer");
  const DLTensor& tensor = managed->dl_tensor;
  Type type = type_of(tensor);
  const auto* begin = static_cast<const std::byte*>(tensor.data);
  if (begin != nullptr) begin += tensor.byte_offset;
  std::shared_ptr<const void> owner(managed, [](DLManagedTensor* self) {
    if (self->deleter != nullptr) self->deleter(self);
  });
  return Array(std::move(type), std::move(owner), begin);
}

DLManagedTensor* to_dlpack(const Array& array) {
  const Type& type = array.type();
  if (type.conj || type.neg) fail("an array without conj and neg bits", print(type));
  DLTensor tensor{};
  for (const Entry& entry : kDTypes)
    if (entry.dtype == type.dtype) tensor.dtype = {entry.code, entry.bits, 1};
  if (tensor.dtype.lanes == 0) fail("a dtype that DLPack has", std::string(name(type.dtype)));

  auto kept = std::make_unique<Export>();
  kept->array = array;
  kept->shape = type.sizes;
  kept->strides = type.strides;
  tensor.data = const_cast<std::byte*>(array.data());  // DLPack has no const form
  tensor.device = {kDLCPU, 0};
  tensor.ndim = static_cast<int32_t>(type.rank());
  tensor.shape = kept->shape.data();
  tensor.strides = kept->strides.data();
  kept->managed = {tensor, kept.get(),
                   [](DLManagedTensor* self) { delete static_cast<Export*>(self->manager_ctx); }};
  return &kept.release()->managed;
}

}  // namespace composit::dlpack
