// Functions that call themselves; LibTorch's compiler refuses them, so a loop is what they are
// compared with.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "composit/eval/evaluate.h"
#include "composit/ops/native.h"
#include "flashlight/cpp/backend.h"
#include "tests/frontends/torchscript/compare.h"
#include "tests/user_error.h"
#include "tracer/convert.h"

namespace flashlight::test {
namespace {

using composit::user_error;
using testing::HasSubstr;

const char* kPower = R"(
def power(x: Tensor, n: int) -> Tensor:
    if n == 0:
        return torch.ones_like(x)
    half = power(x, n // 2)
    return half * half if n % 2 == 0 else x * half * half
)";

TEST(Recursion, ends_by_what_is_known) {
  check({{.text = kPower,
          .arguments = {random({3}), 13},
          .eager = "def f(x: Tensor, n: int):\n    return x ** n\n"}});
  EXPECT_FALSE(
      holds(torchscript::compile(kPower).graph("power", {random({3}), 13}), "composit::cond"));
}

TEST(Recursion, through_others) {
  check({{.text = R"(
def even(x: Tensor, n: int) -> Tensor:
    return x if n == 0 else odd(x, n - 1) * 2

def odd(x: Tensor, n: int) -> Tensor:
    return even(x, n - 1) + 1

def f(x: Tensor):
    return even(x, 4) * x
)",
          .arguments = {random({3})},
          .eager = "def f(x: Tensor):\n    return ((x + 1) * 2 + 1) * 2 * x\n"}});
}

const char* kReduce = R"(
def reduce(x: float, n: int) -> float:
    if x < 1.0 or n == 0:
        return x * x
    return reduce(x / 2, n - 1) * 3
)";

TEST(Recursion, ends_by_what_is_computed) {
  const char* loop = R"(
def f(x: float, n: int) -> float:
    y = 1.0
    while x >= 1.0 and n != 0:
        x = x / 2
        y = y * 3
        n -= 1
    return x * x * y
)";
  for (double x : {0.5, 3.0, 30.0})
    check({{.text = kReduce,
            .arguments = {number(x), at::scalar_tensor(7, at::kLong)},
            .limits = {.depth = 8},
            .eager = loop,
            .uses = "composit::cond"}});
}

// Deeper than the bound: an error where it is known, an error when it happens where not.
TEST(Recursion, has_a_bound) {
  const auto script = torchscript::compile(kPower, "power.py", {.depth = 3});
  EXPECT_THAT(user_error([&] {
                script.graph("power", {random({3}), 100});
              }).value_or(""),
              testing::AllOf(HasSubstr("power.py:5:12: 'power' calls itself more than 3 times"),
                             HasSubstr("raise `depth`"),
                             HasSubstr("    half = power(x, n // 2)\n           ^~~~~")));
  const auto graph =
      torchscript::compile(kReduce, "<text>", {.depth = 4}).graph("reduce", {number(0), 100});
  const auto value = [&](double x, const composit::Backend& backend) {
    return composit::elements<double>(
        composit::evaluate(graph, {tracer::to_array(number(x))}, backend)[0])[0];
  };
  for (const composit::Backend* backend : {&composit::reference(), &cpp::backend()}) {
    EXPECT_DOUBLE_EQ(value(6, *backend), 27 * 0.75 * 0.75);
    EXPECT_THAT(user_error([&] { value(60, *backend); }).value_or(""), HasSubstr("goes on"));
  }
}

TEST(Recursion, needs_a_declared_result) {
  EXPECT_THAT(user_error([] {
                torchscript::compile("def f(n: int):\n    return f(n - 1)\n");
              }).value_or(""),
              HasSubstr("[torchscript] <text>:1:5: 'f' calls itself, so it has to say what it "
                        "returns"));
}

}  // namespace
}  // namespace flashlight::test
