// if, elif, else; what both ways give and write.
#include <gtest/gtest.h>

#include "tests/frontends/torchscript/compare.h"

namespace flashlight::test {
namespace {

constexpr const char* kCond = "composit::cond";

void check_at(const char* text, const std::vector<double>& values, const char* uses = kCond) {
  std::vector<Case> cases;
  for (double x : values) cases.push_back({.text = text, .arguments = {number(x)}, .uses = uses});
  check(cases);
}

TEST(Branches, early_returns) {
  check_at(R"(
def f(x: float) -> float:
    if x < 0.0:
        return 0.5 * x
    y = x * x
    if y > 2.0:
        return y + 1
    return y * x
)",
           {-1.5, 0.25, 2.5});
}

TEST(Branches, within_branches) {
  check_at(R"(
def f(x: float):
    y, n = x, 1
    if x > 0.0:
        if x > 1.0:
            y = x * x * 0.5
            n = 2
        elif x > 0.5:
            y = 2 * x
    else:
        n = 3
    return y * n, n
)",
           {-1.5, 0.25, 0.75, 2.5});
}

TEST(Branches, bools) {
  check_at(R"(
def f(x: float) -> float:
    within_one = x > 0.0 and x < 1.0
    y = 2 * x if within_one or x > 2.0 else x
    if not within_one:
        y = y * y
    return y + (1 if within_one else 3)
)",
           {-1.5, 0.25, 2.5});
}

TEST(Branches, known_conditions_are_decided) {
  const char* text = R"(
def f(x: Tensor, squared: bool) -> Tensor:
    if squared and x.dim() == 1:
        return x * x
    return x
)";
  check({{.text = text, .arguments = {random({3}), true}},
         {.text = text, .arguments = {random({3}), false}},
         {.text = text, .arguments = {random({3, 1}), true}}});
  EXPECT_FALSE(holds(torchscript::compile(text).graph("f", {random({3}), true}), kCond));
}

TEST(Branches, of_tensors) {
  const char* text = R"(
def f(x: Tensor, y: Tensor) -> Tensor:
    if bool(x.sum() > y.sum()):
        z = torch.exp(x) * y
    else:
        z = x - y
    return z * 2
)";
  check({{.text = text, .arguments = {random({3}), random({3}, 5)}, .uses = kCond},
         {.text = text, .arguments = {random({3}, 5), random({3})}, .uses = kCond}});
}

TEST(Branches, tuples_and_lists) {
  const char* text = R"(
def f(x: Tensor, positive: bool):
    if positive:
        pair = (x, x.sum())
        parts = [x, 2 * x]
    else:
        pair = (-x, x.prod())
        parts = [x * x, x]
    return pair, parts[0] * parts[1] * pair[0]
)";
  for (bool way : {true, false})
    check({{.text = text,
            .arguments = {random({3}), at::scalar_tensor(way, at::kBool)},
            .uses = kCond}});
}

TEST(Branches, writes) {
  const char* text = R"(
def f(x: Tensor, y: Tensor):
    z = x.clone()
    row = z[0]
    parts = [x]
    if bool(x.sum() > y.sum()):
        z[1] = y[0] * 2
        row.mul_(3)
        parts.append(y)
    else:
        z += 1
        parts.append(x * x)
    return z, row, parts[1]
)";
  check({{.text = text, .arguments = {random({2, 3}), random({2, 3}, 5)}, .uses = kCond},
         {.text = text, .arguments = {random({2, 3}, 5), random({2, 3})}, .uses = kCond}});
}

TEST(Branches, what_is_not_taken_is_not_computed) {
  check_at(R"(
def f(x: float) -> float:
    if x == 0.0:
        return x
    return x * math.log(abs(x))
)",
           {-0.5, 2.0});
}

}  // namespace
}  // namespace flashlight::test
