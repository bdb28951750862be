// Functions of numbers, applied to the elements of tensors: the examples of Knossos.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>

#include "composit/ad/functional.h"
#include "composit/eval/evaluate.h"
#include "composit/ops/elementwise.h"
#include "composit/ops/functions.h"
#include "composit/ops/native.h"
#include "composit/ops/vmap.h"
#include "flashlight/cpp/backend.h"
#include "tests/frontends/torchscript/compare.h"
#include "tests/user_error.h"

namespace flashlight::test {
namespace {

using composit::DType;
using composit::LazyTensor;
using composit::LazyTensors;
using testing::AllOf;
using testing::HasSubstr;
using Values = std::vector<double>;

const char* kRelu3 = R"(
def relu3(x: float) -> float:
    """
    Like ReLu, but smoother
    Like GeLu, but cheaper
    """
    if x < 0.0:
        return 0.0
    elif x < 1.0:
        return 1 / 3 * x ** 3
    else:
        return x - 2 / 3
)";
const char* kGelu = R"(
def gelu(x: float) -> float:
    return 0.5 * x * (1.0 + math.erf(x / math.sqrt(2.0)))
)";
const char* kSqrl = R"(
def sqrl(x: Tensor):
    """
    sqrl: Squared Leaky Relu
    Like a capsule from /Stuck in a Rut/
    Typically x is a 4x4 tensor, possibly
    packed in a 4n x 4m array
    """
    y = torch.sum(x)
    if y < 0.0:
        t = -0.125 * x
    else:
        t = 1 / 2 * x ** 2
    return torch.mean(torch.sin(t) * t)
)";

LazyTensor held(const char* name, const composit::Dims& sizes, const Values& values,
                DType dtype = DType::float64) {
  return composit::held_input(name, composit::array_of(tensor_type(dtype, sizes), values));
}
Values values(const LazyTensor& tensor, const composit::Backend& backend = composit::reference()) {
  return composit::elements<double>(composit::evaluate({tensor}, {}, backend)[0]);
}

TEST(Scalar, knossos) {
  for (double x : {-1.5, 0.25, 2.5}) {
    check({{.text = kRelu3, .arguments = {number(x)}, .uses = "composit::cond"},
           {.text = kGelu, .arguments = {number(x)}}});
  }
  for (uint64_t seed : {0, 5})
    check({{.text = kSqrl, .arguments = {random({4, 4}, seed)}, .uses = "composit::cond"}});
}

TEST(Scalar, elementwise_is_one_loop) {
  const LazyTensor x = held("x", {2, 3}, {-2, -0.5, 0, 0.5, 0.75, 3}, DType::float32);
  const auto relu3 = composit::elementwise(torchscript::compile(kRelu3).function("relu3"));
  const LazyTensor y = relu3({x})[0];
  EXPECT_EQ(y.node->op().str(), "composit::loops");
  EXPECT_EQ(y.dtype(), DType::float32);
  const LazyTensor slope =
      composit::grad([&](const LazyTensors& in) { return composit::sum(relu3(in)[0]); })({x})[0];
  const Values expected = {0, 0, 0, 0.125 / 3, 0.421875 / 3, 3 - 2.0 / 3};
  const Values slopes = {0, 0, 0, 0.25, 0.5625, 1};
  for (const composit::Backend* backend : {&composit::reference(), &cpp::backend()})
    for (size_t i = 0; i < expected.size(); ++i) {
      EXPECT_NEAR(values(y, *backend)[i], expected[i], 1e-6);
      EXPECT_NEAR(values(slope, *backend)[i], slopes[i], 1e-6);
    }
  const std::string source =
      cpp::source_of(composit::Graph({.inputs = {x}, .outputs = {y}}), {.name = "relu3"}).text;
  EXPECT_THAT(source, AllOf(HasSubstr("      if (x[i][j] < 0.0f) {\n"),
                            HasSubstr("      } else if (x[i][j] < 1.0f) {\n"),
                            HasSubstr("0.33333334f * fl::pow(x[i][j], 3.0f);")));
}

TEST(Scalar, as_a_program) {
  const auto script = torchscript::compile(std::string(kRelu3) + R"(
def two(x: float, y: float):
    if x < y:
        return x * y, y
    return x, math.exp(y)

def loop(x: float) -> float:
    while x > 1.0:
        x = x / 2
    return x
)");
  const composit::ScalarProgram relu3 = script.scalar("relu3");
  EXPECT_EQ(print(relu3),
            "scalar(p0: float64) {\n"
            "  return p0 < 0 ? 0 : p0 < 1 ? 0.3333333333333333 * pow(p0, 3) : p0 - "
            "0.6666666666666666\n"
            "}\n");
  EXPECT_DOUBLE_EQ(composit::evaluate(relu3, {0.5})[0], 0.125 / 3);
  EXPECT_EQ(composit::evaluate(script.scalar("two"), {1, 3}), (Values{3, 3}));
  EXPECT_EQ(composit::evaluate(script.scalar("two"), {3, 1}), (Values{3, std::exp(1.0)}));
  EXPECT_THAT(composit::user_error([&] { script.scalar("loop"); }).value_or(""),
              HasSubstr("'loop': expected arithmetic and branches"));
}

TEST(Scalar, vmap) {
  const auto sqrl = torchscript::compile(kSqrl).function("sqrl");
  const LazyTensor x = held("x", {2, 2, 2}, {1, 2, 3, 4, -1, -2, -3, 0.5});
  const LazyTensor y = composit::vmap(sqrl)({x})[0];
  EXPECT_EQ(y.node->op().str(), "composit::map");
  const auto one = [](const Values& v) {
    double sum = 0, mean = 0;
    for (double e : v) sum += e;
    for (double e : v) {
      const double t = sum < 0 ? -0.125 * e : 0.5 * e * e;
      mean += std::sin(t) * t / 4;
    }
    return mean;
  };
  const Values expected = {one({1, 2, 3, 4}), one({-1, -2, -3, 0.5})};
  for (const composit::Backend* backend : {&composit::reference(), &cpp::backend()})
    for (size_t i = 0; i < 2; ++i) EXPECT_NEAR(values(y, *backend)[i], expected[i], 1e-14);
}

// A loop that ends by its element: composit::map over the elements.
TEST(Scalar, elementwise_with_a_loop) {
  const auto halved = composit::elementwise(torchscript::compile(R"(
def halved(x: float) -> float:
    while x > 1.0:
        x = x / 2
    return x * x
)")
                                                .function("halved"));
  const LazyTensor x = held("x", {4}, {0.5, 3, 5, 40}), y = halved({x})[0];
  EXPECT_EQ(values(y), (Values{0.25, 0.5625, 0.390625, 0.390625}));
  const LazyTensor slope =
      composit::grad([&](const LazyTensors& in) { return composit::sum(halved(in)[0]); })({x})[0];
  EXPECT_EQ(values(slope), (Values{1, 2 * 0.75 / 4, 2 * 0.625 / 8, 2 * 0.625 / 64}));
}

}  // namespace
}  // namespace flashlight::test
