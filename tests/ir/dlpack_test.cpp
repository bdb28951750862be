#include "composit/ir/dlpack.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstddef>

#include "composit/ir/error.h"

namespace composit::dlpack {
namespace {

using ::testing::HasSubstr;
using ::testing::ThrowsMessage;

// The layout of dlpack.h 0.8 on 64-bit systems.
static_assert(sizeof(DLDevice) == 8 && sizeof(DLDataType) == 4);
static_assert(offsetof(DLDataType, bits) == 1 && offsetof(DLDataType, lanes) == 2);
static_assert(sizeof(DLTensor) == 48 && sizeof(DLManagedTensor) == 64);
static_assert(offsetof(DLTensor, device) == 8 && offsetof(DLTensor, ndim) == 16);
static_assert(offsetof(DLTensor, dtype) == 20 && offsetof(DLTensor, shape) == 24);
static_assert(offsetof(DLTensor, strides) == 32 && offsetof(DLTensor, byte_offset) == 40);
static_assert(offsetof(DLManagedTensor, manager_ctx) == 48 &&
              offsetof(DLManagedTensor, deleter) == 56);

// A tensor of somebody else's.
struct Foreign {
  float data[6] = {0, 1, 2, 3, 4, 5};
  int64_t shape[2] = {2, 3};
  int64_t strides[2] = {3, 1};
  int deleted = 0;
  DLManagedTensor managed{
      {data, {kDLCPU, 0}, 2, {kDLFloat, 32, 1}, shape, strides, 0},
      this,
      [](DLManagedTensor* self) { ++static_cast<Foreign*>(self->manager_ctx)->deleted; }};
};

TEST(FromDlpack, ViewsMemoryUntilTheLastArrayDies) {
  Foreign foreign;
  {
    const Array array = from_dlpack(&foreign.managed);
    EXPECT_EQ(array.type(), tensor_type(DType::float32, {2, 3}));
    EXPECT_EQ(array.data(), reinterpret_cast<std::byte*>(foreign.data));
    const Array copy = array;
    EXPECT_EQ(foreign.deleted, 0);
  }
  EXPECT_EQ(foreign.deleted, 1);
}

TEST(FromDlpack, StridesAndOffset) {
  Foreign foreign;
  foreign.managed.dl_tensor.byte_offset = 4;
  foreign.strides[0] = 1;
  foreign.strides[1] = 2;
  foreign.shape[1] = 2;
  const Array array = from_dlpack(&foreign.managed);
  EXPECT_EQ(array.data(), reinterpret_cast<std::byte*>(foreign.data + 1));
  EXPECT_EQ(array.type().strides, (std::vector<int64_t>{1, 2}));
  Foreign packed;
  packed.managed.dl_tensor.strides = nullptr;
  EXPECT_TRUE(is_contiguous(from_dlpack(&packed.managed).type()));
}

TEST(FromDlpack, RefusesAndLeavesTheTensorToItsOwner) {
  const auto expect_error = [](auto change, const std::string& message) {
    Foreign foreign;
    change(foreign.managed.dl_tensor);
    EXPECT_THAT([&] { from_dlpack(&foreign.managed); },
                ThrowsMessage<UserError>(HasSubstr(message)));
    EXPECT_EQ(foreign.deleted, 0);
  };
  expect_error([](DLTensor& t) { t.device.device_type = static_cast<DLDeviceType>(2); },
               "expected memory on the CPU, received device type 2");
  expect_error([](DLTensor& t) { t.dtype.lanes = 4; }, "code 2 with 32 bits and 4 lanes");
  expect_error([](DLTensor& t) { t.dtype.bits = 8; }, "code 2 with 8 bits");
  expect_error([](DLTensor& t) { t.dtype.code = 3; }, "code 3");
  expect_error([](DLTensor& t) { t.shape[0] = -1; }, "negative size");
  expect_error([](DLTensor& t) { t.strides[0] = -1; }, "negative size or stride");
  expect_error([](DLTensor& t) { t.shape[0] = INT64_MAX; }, "too many elements");
  expect_error([](DLTensor& t) { t.shape = nullptr; }, "2 axes without sizes");
  expect_error([](DLTensor& t) { t.ndim = -1; }, "-1 axes");
  expect_error([](DLTensor& t) { t.data = nullptr; }, "expected elements, received a null pointer");
  EXPECT_THROW(from_dlpack(nullptr), UserError);
}

TEST(ToDlpack, KeepsTheArrayAlive) {
  auto owner = std::make_shared<std::vector<int16_t>>(std::vector<int16_t>{1, 2, 3, 4});
  const std::weak_ptr<std::vector<int16_t>> alive = owner;
  Type type = tensor_type(DType::int16, {2, 2});
  type.strides = {1, 2};
  const void* data = owner->data();
  DLManagedTensor* managed = to_dlpack(Array(type, std::move(owner), data));
  const DLTensor& tensor = managed->dl_tensor;
  EXPECT_EQ(tensor.data, data);
  EXPECT_EQ(tensor.device.device_type, kDLCPU);
  EXPECT_EQ(tensor.ndim, 2);
  EXPECT_EQ(tensor.shape[1], 2);
  EXPECT_EQ(tensor.strides[1], 2);
  EXPECT_EQ(tensor.dtype.code, kDLInt);
  EXPECT_EQ(tensor.dtype.bits, 16);
  EXPECT_FALSE(alive.expired());
  managed->deleter(managed);
  EXPECT_TRUE(alive.expired());
}

TEST(ToDlpack, EveryDTypeGoesRoundOrIsRefused) {
  const std::vector<std::byte> bytes(64, std::byte{1});
  size_t supported = 0;
  for (int i = 0; i < static_cast<int>(DType::count_); ++i) {
    const auto dtype = static_cast<DType>(i);
    const Array array = Array::copy_of(tensor_type(dtype, {2, 2}), bytes.data());
    if (!is_computable(dtype)) {
      EXPECT_THAT([&] { to_dlpack(array); },
                  ThrowsMessage<UserError>(HasSubstr(std::string(name(dtype)))));
      continue;
    }
    ++supported;
    const Array back = from_dlpack(to_dlpack(array));
    EXPECT_EQ(back, array) << name(dtype);
    EXPECT_EQ(back.data(), array.data());
  }
  EXPECT_EQ(supported, 16U);
}

TEST(ToDlpack, ScalarsEmptyArraysAndLazyBits) {
  const float one = 1;
  const Array scalar = Array::copy_of(tensor_type(DType::float32, {}), &one);
  EXPECT_EQ(from_dlpack(to_dlpack(scalar)), scalar);
  const Array empty(tensor_type(DType::float32, {0, 3}), nullptr, nullptr);
  EXPECT_EQ(from_dlpack(to_dlpack(empty)), empty);
  Type lazy = tensor_type(DType::complex64, {0});
  lazy.conj = true;
  EXPECT_THROW(to_dlpack(Array(lazy, nullptr, nullptr)), UserError);
}

}  // namespace
}  // namespace composit::dlpack
