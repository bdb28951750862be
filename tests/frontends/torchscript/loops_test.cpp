// for and while: unrolled, as scan, as while_loop; lists that loops make.
#include <gtest/gtest.h>

#include "composit/ad/chain_rule.h"
#include "tests/frontends/torchscript/compare.h"

namespace flashlight::test {
namespace {

constexpr const char *kScan = "composit::scan", *kMap = "composit::map",
                     *kWhile = "composit::while_loop";

TEST(Loops, of_known_length) {
  const char* text = R"(
def f(x: Tensor, n: int) -> Tensor:
    y = x
    for i in range(n):
        y = y * x + i
    return y
)";
  check({{.text = text, .arguments = {random({3}), 0}},
         {.text = text, .arguments = {random({3}), 4}},
         {.text = text, .arguments = {random({3}) * 0.5, 20}, .uses = kScan},
         {.text = text, .arguments = {random({3}), 4}, .limits = {.unroll = 0}, .uses = kScan}});
}

TEST(Loops, carry_numbers_that_were_known) {
  const char* text = R"(
def f(x: Tensor, n: int):
    total = 0.0
    count = 0
    last = x[0]
    for row in x:
        total += float(row.sum())
        last = row * last
        if bool(row[0] > 0):
            count += 1
    return total, count, last, n
)";
  check({{.text = text, .arguments = {random({3, 2}), 2}, .autograd = false},
         {.text = text,
          .arguments = {random({3, 2}), 2},
          .limits = {.unroll = 0},
          .autograd = false,
          .uses = kScan}});
}

TEST(Loops, comprehensions) {
  const char* text = R"(
def f(x: Tensor, y: Tensor) -> Tensor:
    return torch.stack([torch.exp(row) * y for row in x])
)";
  check({{.text = text, .arguments = {random({3, 2}), random({2}, 3)}},
         {.text = text, .arguments = {random({20, 2}), random({2}, 3)}, .uses = kMap}});
  const char* floats = R"(
def f(xs: List[float], k: float):
    ys = [v * k + 1 for v in xs]
    return ys[0] * ys[1], len(ys), ys
)";
  const c10::List<at::Tensor> xs({number(1.5), number(-2), number(0.5)});
  check({{.text = floats, .arguments = {xs, number(0.75)}},
         {.text = floats, .arguments = {xs, number(0.75)}, .limits = {.unroll = 1}, .uses = kMap}});
}

// Graphs of loops, and of their derivatives, do not grow with the number of trips, and what a trip
// takes of a tensor is a slot of a sequence: no trip touches the whole.
TEST(Loops, are_one_node) {
  const char* text = R"(
def f(x: Tensor, h: Tensor) -> Tensor:
    states = []
    for t in range(1, x.size(0)):
        h = torch.tanh(x[t] + h * 0.5)
        states.append(h)
    return torch.stack(states).sum()
)";
  const auto sizes = [&](int64_t length) {
    const auto graph = torchscript::compile(text).graph("f", {random({length, 3}), random({3})});
    const auto gradients = composit::grad(graph.outputs()[0], graph.inputs());
    EXPECT_FALSE(holds(graph, "aten::index_select"));
    return std::pair(graph.size(), composit::Graph({.outputs = gradients}).size());
  };
  EXPECT_EQ(sizes(40), sizes(400));
}

TEST(Loops, append) {
  const char* text = R"(
def f(x: Tensor, h: Tensor):
    states = [h]
    for t in range(x.size(0)):
        h = torch.tanh(x[t] + h * 0.5)
        states.append(h)
        states.append(h * h)
    return torch.stack(states), h
)";
  check({{.text = text, .arguments = {random({4, 3}), random({3}, 2)}},
         {.text = text, .arguments = {random({18, 3}), random({3}, 2)}, .uses = kScan}});
}

TEST(Loops, write_tensors) {
  const char* text = R"(
def f(x: Tensor) -> Tensor:
    out = torch.zeros_like(x)
    out[0] = x[0]
    for i in range(1, x.size(0)):
        out[i] = out[i - 1] * 0.5 + x[i]
    return out
)";
  check({{.text = text, .arguments = {random({4})}},
         {.text = text, .arguments = {random({4})}, .limits = {.unroll = 1}, .uses = kScan}});
}

TEST(Loops, end_by_what_they_compute) {
  const char* newton = R"(
def f(x: float) -> float:
    y = 1.0
    while abs(y * y - x) > 1e-10:
        y = (y + x / y) / 2
    return y
)";
  const char* halvings = R"(
def f(x: Tensor):
    n = 0
    while bool(x.abs().sum() > 1):
        x = x * 0.7
        n += 1
    return x, n
)";
  check({{.text = newton, .arguments = {number(2)}, .uses = kWhile},
         {.text = newton, .arguments = {number(40)}, .uses = kWhile},
         {.text = halvings, .arguments = {random({3}) * 0.01}, .uses = kWhile},
         {.text = halvings, .arguments = {random({3})}, .uses = kWhile},
         {.text = halvings, .arguments = {random({3}) * 100}, .uses = kWhile}});
}

TEST(Loops, break_continue_return) {
  const char* text = R"(
def f(x: Tensor, bound: float):
    total = torch.zeros(2, dtype=torch.float64)
    for i in range(x.size(0)):
        if bool(x[i].sum() < 0):
            continue
        total = total + x[i] * (i + 1)
        if bool(total.sum() > bound):
            break
    return total
)";
  const char* found = R"(
def f(x: Tensor, bound: float):
    for i in range(x.size(0)):
        if bool(x[i] > bound):
            return x[i] * i
    return x.sum()
)";
  check({{.text = text, .arguments = {random({6, 2}), number(3)}, .uses = kWhile},
         {.text = text, .arguments = {random({6, 2}), number(100)}, .uses = kWhile},
         {.text = found, .arguments = {random({6}), number(0.5)}, .uses = kWhile},
         {.text = found, .arguments = {random({6}), number(50)}, .uses = kWhile}});
}

TEST(Loops, of_computed_length) {
  const char* text = R"(
def f(x: float, n: int) -> float:
    y = x
    for i in range(n):
        y = y * x + i
    return y
)";
  for (int64_t n : {0, 1, 5})
    check({{.text = text,
            .arguments = {number(0.75), at::scalar_tensor(n, at::kLong)},
            .uses = kWhile}});
}

TEST(Loops, within_loops) {
  const char* text = R"(
def f(x: Tensor) -> Tensor:
    total = x[0, 0]
    for i in range(x.size(0)):
        for j in range(x.size(1)):
            if i != j:
                total = total + x[i, j] * (i + 2 * j)
    return total
)";
  const char* matrix = R"(
def f(x: Tensor) -> Tensor:
    return torch.stack([torch.stack([a * b + a for a in x]) for b in x])
)";
  for (int64_t unroll : {16, 0}) {
    check({{.text = text, .arguments = {random({2, 3})}, .limits = {.unroll = unroll}},
           {.text = matrix, .arguments = {random({3})}, .limits = {.unroll = unroll}}});
  }
}

// Loops over known numbers leave no trace in the graph.
TEST(Loops, of_known_numbers_are_run) {
  const char* text = R"(
def f(x: Tensor, n: int) -> Tensor:
    steps = 0
    while n != 1:
        n = n // 2 if n % 2 == 0 else 3 * n + 1
        steps += 1
    return x * steps
)";
  check({{.text = text, .arguments = {random({3}), 27}}});
  EXPECT_EQ(torchscript::compile(text).graph("f", {random({3}), 27}).size(), 2);
}

TEST(Loops, over_lists_and_pairs) {
  const char* text = R"(
def f(xs: List[Tensor], scale: Tuple[float, float]):
    total = xs[0] * 0
    for i, x in enumerate(xs):
        total = total + x * i * scale[0]
    for x, y in zip(xs, xs[1:]):
        total = total + x * y * scale[1]
    return total, xs[-1]
)";
  const c10::List<at::Tensor> xs({random({2}), random({2}, 3), random({2}, 6)});
  const auto scale = c10::ivalue::Tuple::create({number(0.5), number(-1.5)});
  check({{.text = text, .arguments = {xs, scale}},
         {.text = text, .arguments = {xs, scale}, .limits = {.unroll = 0}, .uses = kScan}});
}

}  // namespace
}  // namespace flashlight::test
