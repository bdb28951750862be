// Integers that wrap, and floats that become integers, as CUDA C++: nothing is left to what nvcc
// makes of undefined arithmetic.
#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "composit/eval/evaluate.h"
#include "composit/ops/functions.h"
#include "tests/flashlight/cuda/compare.h"

namespace flashlight::cuda {
namespace {

using namespace composit;  // NOLINT
using test::Case;

Case case_of(const std::string& name, const LazyTensors& inputs, const LazyTensor& output,
             const std::vector<Array>& values) {
  return {name, Graph({.inputs = inputs, .outputs = {output}}), values};
}

template <class T>
Array extremes(DType dtype) {
  constexpr T kLeast = std::numeric_limits<T>::min(), kMost = std::numeric_limits<T>::max();
  const T numbers[] = {kLeast, kLeast + 1, kMost, kMost - 1, kMost / 2 + 1, T{-1}, T{0}, T{7}};
  return Array::copy_of(tensor_type(dtype, {8}), numbers);
}

template <class T>
void add_integers(DType dtype, std::vector<Case>& cases) {
  const LazyTensor x = input("x", tensor_type(dtype, {8})), y = input("y", tensor_type(dtype, {8}));
  const Array values = extremes<T>(dtype);
  const T divisors[] = {-1, 2, -1, -1, 2, -1, 5, -3};
  const Array others = Array::copy_of(tensor_type(dtype, {8}), divisors);
  const std::string of = " of " + std::string(name(dtype));
  const auto add = [&](const std::string& name, const LazyTensor& result) {
    cases.push_back(case_of(name + of, {x, y}, result, {values, others}));
  };
  const auto divided = [&](const std::string& how) {
    return apply_one("aten::div.Tensor_mode", {x, y, how});
  };
  add("x + 1 > x", x + 1 > x);
  add("2 x // 2", apply_one("aten::div.Tensor_mode", {x * 2, y * 0 + 2, std::string("floor")}));
  add("x x", x * x);
  add("x x >= 0", x * x >= 0);
  add("-x", -x);
  add("x - y", x - y * 3);
  add("|-x|", apply_one("aten::abs", {-x}));
  add("x^7", apply_one("aten::pow.Tensor_Scalar", {x, int64_t{7}}));
  add("quotient", divided("trunc"));
  add("floor of a quotient", divided("floor"));
  add("running product", apply_one("aten::cumprod", {x + 3, int64_t{0}}));
  add("product", apply_one("aten::prod", {x + 3}));
  const LazyTensor many = apply_one("aten::expand", {x, Ints{100, 8}, false});
  add("sum of warps", to(sum(many), dtype));
  add("sums", sum(apply_one("aten::expand", {x, Ints{10, 8}, false}), {0}));
  const LazyTensor same = to(x * 0, DType::int64);
  add("sum in one place", apply_one("aten::index_add", {y, int64_t{0}, same, x}));
}

TEST(CudaIntegers, Wrap) {
  std::vector<Case> cases;
  add_integers<int64_t>(DType::int64, cases);
  add_integers<int32_t>(DType::int32, cases);
  add_integers<int16_t>(DType::int16, cases);
  EXPECT_EQ(test::differences(cases), "");
  const Array larger = evaluate(cases[0].graph, cases[0].values)[0];
  EXPECT_FALSE(
      reinterpret_cast<const bool*>(larger.data())[2]);  // the largest number + 1 is the least
}

// The bits of a negative number, as in torch, not the nearest number of the type.
TEST(CudaIntegers, AreOfFloats) {
  const std::vector<double> values = {-1, -1.9, 300.7, -300, 7.5, 3e9, -3e9, 1e19, -1e19, NAN};
  std::vector<Case> cases;
  for (const DType from : {DType::float32, DType::float64}) {
    const LazyTensor x = input("x", tensor_type(from, {static_cast<int64_t>(values.size())}));
    for (const DType dtype : {DType::uint8, DType::int8, DType::int16, DType::int32, DType::int64})
      cases.push_back(case_of(std::string(name(dtype)) + " of " + std::string(name(from)), {x},
                              to(x, dtype), {array_of(x.type(), values)}));
  }
  EXPECT_EQ(test::differences(cases), "");
  const Array bytes = evaluate(cases[0].graph, cases[0].values)[0];
  EXPECT_EQ(reinterpret_cast<const uint8_t*>(bytes.data())[0], 255);
  EXPECT_EQ(reinterpret_cast<const uint8_t*>(bytes.data())[3], 212);
}

TEST(CudaIntegers, SignOfNaNIsZero) {
  const LazyTensor x = input("x", tensor_type(DType::float32, {4}));
  const std::vector<Case> cases = {
      case_of("sign", {x}, apply_one("aten::sign", {x}),
              {array_of(x.type(), std::vector<double>{NAN, -0.0, -2, INFINITY})})};
  EXPECT_EQ(test::differences(cases), "");
  const Array signs = evaluate(cases[0].graph, cases[0].values)[0];
  EXPECT_EQ(reinterpret_cast<const float*>(signs.data())[0], 0);
}

}  // namespace
}  // namespace flashlight::cuda
