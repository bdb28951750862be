#include "composit/ir/dtype.h"

#include <gtest/gtest.h>

#include "composit/ir/error.h"
#include "composit/ir/type.h"

namespace composit {
namespace {

TEST(DType, NamesReadBack) {
  for (int i = 0; i < static_cast<int>(DType::count_); ++i) {
    const auto dtype = static_cast<DType>(i);
    EXPECT_EQ(dtype_from_name(name(dtype)), dtype) << i;
  }
  EXPECT_EQ(dtype_from_name("float"), std::nullopt);
  EXPECT_THROW(name(DType::count_), InternalError);
}

// c10/core/ScalarType.h, in its order.
TEST(DType, NumbersAndSizesAreTorchs) {
  EXPECT_EQ(static_cast<int>(DType::float32), 6);
  EXPECT_EQ(static_cast<int>(DType::bool_), 11);
  EXPECT_EQ(static_cast<int>(DType::bfloat16), 15);
  EXPECT_EQ(static_cast<int>(DType::uint16), 27);
  EXPECT_EQ(item_size(DType::complex32), 4U);
  EXPECT_EQ(item_size(DType::complex128), 16U);
  EXPECT_EQ(item_size(DType::qint32), 4U);
  EXPECT_EQ(item_size(DType::bits16), 2U);
}

TEST(DType, Categories) {
  EXPECT_TRUE(is_computable(DType::uint64));
  EXPECT_TRUE(is_computable(DType::bool_));
  EXPECT_FALSE(is_computable(DType::qint8));
  EXPECT_FALSE(is_computable(DType::int4));
  EXPECT_TRUE(is_floating_point(DType::bfloat16));
  EXPECT_FALSE(is_floating_point(DType::complex64));
  EXPECT_TRUE(is_complex(DType::complex32));
}

TEST(Device, NamesReadBack) {
  for (int type = 0; type <= 20; ++type)
    for (int index : {-1, 0, 9, 127}) {
      const Device device{static_cast<int8_t>(type), static_cast<int8_t>(index)};
      EXPECT_EQ(device_from_name(name(device)), device);
    }
  for (const char* wrong : {"", "gpu", "cuda:", "cuda:128", "cuda:-1", "cuda:1x", "cuda:1:2"})
    EXPECT_EQ(device_from_name(wrong), std::nullopt) << wrong;
}

TEST(Layout, NamesReadBack) {
  for (int i = 0; i < static_cast<int>(Layout::count_); ++i)
    EXPECT_EQ(layout_from_name(name(static_cast<Layout>(i))), static_cast<Layout>(i));
  for (int i = 0; i < static_cast<int>(MemoryFormat::count_); ++i)
    EXPECT_EQ(memory_format_from_name(name(static_cast<MemoryFormat>(i))),
              static_cast<MemoryFormat>(i));
  EXPECT_THROW(name(Layout::count_), InternalError);
}

TEST(Type, SizesAndStrides) {
  const Type type = tensor_type(DType::float64, {2, 3, 4});
  EXPECT_EQ(type.strides, (std::vector<int64_t>{12, 4, 1}));
  EXPECT_EQ(type.numel(), 24);
  EXPECT_EQ(type.nbytes(), 192);
  EXPECT_EQ(type.extent(), 24);
  EXPECT_TRUE(is_contiguous(type));
  Type transposed = type;
  transposed.strides = {1, 2, 6};
  EXPECT_FALSE(is_contiguous(transposed));
  EXPECT_EQ(transposed.extent(), 24);
}

TEST(Type, EmptyAndScalar) {
  EXPECT_EQ(tensor_type(DType::float32, {}).numel(), 1);
  EXPECT_EQ(tensor_type(DType::float32, {}).extent(), 1);
  const Type empty = tensor_type(DType::float32, {3, 0, 2});
  EXPECT_EQ(empty.strides, (std::vector<int64_t>{2, 2, 1}));
  EXPECT_EQ(empty.numel(), 0);
  EXPECT_EQ(empty.extent(), 0);
  EXPECT_TRUE(is_contiguous(empty));
}

}  // namespace
}  // namespace composit
