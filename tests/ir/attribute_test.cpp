#include "composit/ir/attribute.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <limits>
#include <thread>

#include "composit/ir/error.h"
#include "composit/ir/graph.h"

namespace composit {
namespace {

using ::testing::HasSubstr;
using ::testing::ThrowsMessage;

// One attribute of each kind, and the values that are easily confused; no two are equal.
std::vector<Attribute> distinct_attributes() {
  const double nan = std::numeric_limits<double>::quiet_NaN();
  const Type vector = tensor_type(DType::float32, {2});
  const std::array<float, 2> values{1, 2}, others{1, 3};
  Type repeated = vector;
  repeated.strides = {0};
  const LazyTensor x = input("x", vector, InputKind::block);
  const auto region = std::make_shared<const Graph>(Graph::Parts{.inputs = {x}, .outputs = {x}});
  const auto empty = std::make_shared<const Graph>();
  return {
      {},
      true,
      false,
      0,
      1,
      -1,
      0.0,
      -0.0,
      1.0,
      nan,
      -nan,
      std::bit_cast<double>(std::bit_cast<uint64_t>(nan) + 1),
      std::complex<double>(1, 0),
      std::complex<double>(1, -0.0),
      "",
      "1",
      DType::uint8,
      DType::int8,
      Device{0, -1},
      Device{0, 0},
      Device{1, -1},
      Layout::strided,
      MemoryFormat::contiguous,
      Generator{"default"},
      Generator{""},
      Scalar(false),
      Scalar(int64_t{0}),
      Scalar(0.0),
      Scalar(-0.0),
      Scalar(0.0, true),
      Scalar(std::complex<double>(0, 0)),
      List{AttributeKind::dim, {}},
      List{AttributeKind::float_, {}},
      List{AttributeKind::none, {}},
      List{AttributeKind::dim, {Attribute()}},
      int_list({0}),
      int_list({0, 0}),
      float_list({0.0}),
      List{AttributeKind::list, {int_list({1}), int_list({2, 3})}},
      List{AttributeKind::list, {int_list({1, 2}), int_list({3})}},
      Array::copy_of(vector, values.data()),
      Array::copy_of(vector, others.data()),
      Array::copy_of(tensor_type(DType::float32, {2, 1}), values.data()),
      Array::copy_of(tensor_type(DType::int32, {2}), values.data()),
      Array::copy_of(tensor_type(DType::float32, {1}), values.data()),
      Array(repeated, nullptr, values.data()),
      region,
      empty,
      Opaque{"one", std::make_shared<int>(1)},
      Opaque{"one", std::make_shared<int>(1)},
  };
}

TEST(Attribute, EqualsItselfAndNoOther) {
  const auto attributes = distinct_attributes();
  for (size_t i = 0; i < attributes.size(); ++i)
    for (size_t j = 0; j < attributes.size(); ++j)
      EXPECT_EQ(attributes[i] == attributes[j], i == j) << i << " and " << j;
}

TEST(Attribute, DistinguishesNodes) {
  const LazyTensor x = input("x", tensor_type(DType::float32, {2}));
  std::vector<Hash> hashes;
  for (const Attribute& attribute : distinct_attributes()) {
    NodeSpec spec("aten::op");
    spec.tensor(x).attribute("value", attribute).output(x.type());
    hashes.push_back(std::move(spec).make_node()->hash());
  }
  for (size_t i = 0; i < hashes.size(); ++i)
    for (size_t j = 0; j < i; ++j) EXPECT_NE(hashes[i].low, hashes[j].low) << i << " and " << j;
}

TEST(Attribute, WrongKindNamesBoth) {
  const Attribute attribute = 1.5;
  EXPECT_THAT([&] { attribute.as_int(); },
              ThrowsMessage<UserError>(HasSubstr("expected int, received float")));
  EXPECT_THAT([&] { to_ints(float_list({1.5})); },
              ThrowsMessage<UserError>(HasSubstr("expected int, received float")));
}

TEST(Attribute, CommonKindOfListElements) {
  EXPECT_EQ(common_kind(int_list({1, 2})), AttributeKind::dim);
  EXPECT_EQ(common_kind({AttributeKind::dim, {Attribute(), 1}}), AttributeKind::dim);
  EXPECT_EQ(common_kind({AttributeKind::dim, {1, 1.5}}), AttributeKind::none);
  EXPECT_EQ(common_kind({AttributeKind::dim, {1, 1.5, 1}}), AttributeKind::none);
  EXPECT_EQ(common_kind({AttributeKind::dim, {}}), AttributeKind::none);
}

// ---- arrays -------------------------------------------------------------------------------------

Array numbers(Dims sizes) {
  const Type type = tensor_type(DType::int32, std::move(sizes));
  std::vector<int32_t> values(static_cast<size_t>(type.numel()));
  for (size_t i = 0; i < values.size(); ++i) values[i] = static_cast<int32_t>(i);
  return Array::copy_of(type, values.data());
}

int32_t element(const Array& array, std::vector<int64_t> index) {
  int64_t offset = 0;
  for (size_t axis = 0; axis < index.size(); ++axis)
    offset += index[axis] * array.type().strides[axis];
  return reinterpret_cast<const int32_t*>(array.data())[offset];
}

TEST(Array, OtherStridesKeepValues) {
  const Array rows = numbers({3, 4});
  const Array columns = rows.with_strides({1, 3});
  const Array gaps = columns.with_strides({100, 7});
  for (int64_t i = 0; i < 3; ++i)
    for (int64_t j = 0; j < 4; ++j) {
      EXPECT_EQ(element(columns, {i, j}), 4 * i + j);
      EXPECT_EQ(element(gaps, {i, j}), 4 * i + j);
    }
  EXPECT_EQ(gaps.contiguous(), rows);
  EXPECT_EQ(rows.contiguous().data(), rows.data());
  EXPECT_FALSE(columns == rows);
}

TEST(Array, EqualsByContentAndStrides) {
  EXPECT_EQ(numbers({2, 3}), numbers({2, 3}));
  EXPECT_FALSE(numbers({2, 3}) == numbers({3, 2}));
  EXPECT_EQ(numbers({40, 50}).with_strides({1, 40}), numbers({40, 50}).with_strides({1, 40}));
  std::vector<int32_t> values(2000, 1), other = values;
  other.back() = 2;
  const Type type = tensor_type(DType::int32, {40, 50});
  EXPECT_FALSE(Array::copy_of(type, values.data()).with_strides({1, 40}) ==
               Array::copy_of(type, other.data()).with_strides({1, 40}));
}

// Gaps between elements hold anything, and are no content.
TEST(Array, GapsAreNoContent) {
  const std::array<int32_t, 5> a{1, 7, 2, 7, 3}, b{1, 8, 2, 8, 3};
  Type type = tensor_type(DType::int32, {3});
  type.strides = {2};
  EXPECT_EQ(Array(type, nullptr, a.data()), Array(type, nullptr, b.data()));
}

TEST(Array, RepeatsCostNothing) {
  const float value = 1.5;
  Type type = tensor_type(DType::float32, {int64_t{1} << 40, int64_t{1} << 10});
  type.strides = {0, 0};
  const Array huge(type, nullptr, &value);
  EXPECT_EQ(huge, Array(type, std::make_shared<int>(), &value));
  EXPECT_EQ(type.extent(), 1);
}

TEST(Array, WithoutValueIsAnInternalError) { EXPECT_THROW(Array().type(), InternalError); }

TEST(Array, HashedByTwoThreads) {
  const Array array = numbers({1000, 100});
  const Hash expected = numbers({1000, 100}).content_hash();
  Hash first, second;
  std::thread one([&] { first = array.content_hash(); });
  std::thread two([&] { second = array.content_hash(); });
  one.join();
  two.join();
  EXPECT_EQ(first, expected);
  EXPECT_EQ(second, expected);
}

}  // namespace
}  // namespace composit
