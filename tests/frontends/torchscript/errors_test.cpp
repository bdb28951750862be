// Messages to users: the place in their text, what is wrong with it, and what there is.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>

#include "tests/frontends/torchscript/compare.h"
#include "tests/user_error.h"

namespace flashlight::test {
namespace {

using composit::user_error;
using testing::AllOf;
using testing::HasSubstr;
using testing::StartsWith;

// The error of the last function of `text` for these arguments.
std::string error(const std::string& text, const std::vector<c10::IValue>& arguments = {},
                  const torchscript::Limits& limits = {}) {
  return user_error([&] {
           torchscript::compile(text, "model.py", limits).graph(last_function(text), arguments);
         })
      .value_or("no error");
}

TEST(Errors, of_the_compiler) {
  EXPECT_EQ(error("def f(x: Tensor):\n    y = x + 1\n    return torch.foo(y)\n"),
            std::string("[torchscript] model.py:3:12: Unknown builtin op: aten::foo\n"
                        "    return torch.foo(y)\n"
                        "           ^~~~~~~~~\n") +
                torchscript::supported());
  EXPECT_THAT(error("def f(x: Tensor):\n    y = x +\n    return y\n"),
              StartsWith("[torchscript] model.py:2:12: expected ident but found 'newline'\n    y = "
                         "x +\n           ^\n"));
  EXPECT_THAT(error("def f(x: Tensor):\n    with open('a') as f:\n        pass\n    return x\n"),
              AllOf(StartsWith("[torchscript] model.py:"), HasSubstr("open")));
  EXPECT_THAT(error("x = 1\n"), StartsWith("[torchscript] model.py:1:1"));
  EXPECT_THAT(error("def f(x: float) -> int:\n    return x\n"),
              AllOf(StartsWith("[torchscript] model.py:2:5"), HasSubstr("int")));
}

TEST(Errors, of_what_is_no_graph) {
  EXPECT_EQ(
      error("def f(x: Tensor):\n    print(x)\n    return x\n", {random({2})}),
      std::string(
          "[torchscript] model.py:2:5: not supported: print: a graph computes, it shows nothing\n"
          "    print(x)\n"
          "    ^~~~~\n") +
          torchscript::supported());
  EXPECT_THAT(
      error("def f(x: Tensor):\n    return torch.rand(2) * x\n", {random({2})}),
      StartsWith("[torchscript] model.py:2:12: aten::rand is none of composit's operations"));
  EXPECT_THAT(
      error("def f(x: Tensor):\n    return x if torch.equal(x, x * 2) else x + 1\n", {random({2})}),
      StartsWith("[torchscript] model.py:2:17: aten::equal reads the values of a tensor"));
  EXPECT_THAT(error("def f(x: Tensor):\n    if bool(x.sum() > 0):\n"
                    "        raise ValueError(\"negative\")\n    return x\n",
                    {random({2})}),
              AllOf(StartsWith("[torchscript] model.py:3:9: an exception"), HasSubstr("negative")));
}

TEST(Errors, of_the_program) {
  EXPECT_THAT(error("def f(x: Tensor):\n    assert x.dim() == 2, \"expected rows\"\n    return x\n",
                    {random({2})}),
              AllOf(StartsWith("[torchscript] model.py:2:5: the program raises: "),
                    HasSubstr("expected rows")));
  EXPECT_THAT(
      error("def f(x: Tensor, y: Tensor):\n    return x @ y\n", {random({2, 3}), random({2, 3})}),
      StartsWith("[torchscript] model.py:2:12: [aten::matmul] "));
  EXPECT_THAT(
      error("def f(xs: List[Tensor]):\n    return xs[3]\n", {c10::List<at::Tensor>({random({2})})}),
      AllOf(StartsWith("[torchscript] model.py:2:12: "), HasSubstr("out of range")));
}

TEST(Errors, of_values_that_must_be_known) {
  EXPECT_THAT(error("def f(x: Tensor, n: int):\n    return x.sum(dim=n)\n",
                    {random({2}), at::scalar_tensor(0, at::kLong)}),
              AllOf(StartsWith("[torchscript] model.py:2:12: "),
                    HasSubstr("has to be known while the graph is made")));
  EXPECT_THAT(
      error("def f(n: int):\n    return torch.zeros([n, 2])\n", {at::scalar_tensor(2, at::kLong)}),
      AllOf(StartsWith("[torchscript] model.py:2:12: argument 'size' of aten::zeros"),
            HasSubstr("has to be known")));
  EXPECT_THAT(error("def f(x: Tensor):\n    for i in range(40):\n        x = x.sum(i - i)\n"
                    "    return x\n",
                    {random({2})}),
              AllOf(StartsWith("[torchscript] model.py:3:13: "), HasSubstr("`unroll`")));
}

TEST(Errors, of_branches_and_loops) {
  EXPECT_THAT(
      error("def f(x: Tensor):\n    if bool(x.sum() > 0):\n        return x\n"
            "    return x.sum()\n",
            {random({2})}),
      AllOf(StartsWith("[torchscript] model.py:2:5: "), HasSubstr("float64[2] and float64[]")));
  EXPECT_THAT(error("def f(x: Tensor):\n    for i in range(20):\n        x = torch.cat([x, x])\n"
                    "    return x\n",
                    {random({2})}),
              AllOf(StartsWith("[torchscript] model.py:2:5: "), HasSubstr("float64[4]")));
  EXPECT_THAT(error("def f(x: Tensor):\n    xs = [x]\n    for i in range(20):\n"
                    "        xs.append(xs[-1] * 2)\n    return xs\n",
                    {random({2})}),
              AllOf(StartsWith("[torchscript] model.py:3:5: a list"), HasSubstr("`unroll`")));
  EXPECT_THAT(error("def f(x: Tensor):\n    xs = [x]\n    while bool(x.sum() < 9):\n"
                    "        x = x * 2\n        xs.append(x)\n    return xs\n",
                    {random({2})}),
              StartsWith("[torchscript] model.py:3:5: a list that is changed in a loop"));
}

TEST(Errors, of_loops_without_end) {
  EXPECT_THAT(
      error("def f(x: Tensor):\n    while True:\n        x = x * 2\n    return x\n", {random({2})}),
      StartsWith("[torchscript] model.py:2:5: a loop that does not end"));
}

// Which tensor is written must be known, or a choice of those from before.
TEST(Errors, of_writes) {
  EXPECT_THAT(error("def f(x: Tensor):\n    y, z = x, x\n    if bool(x.sum() > 0):\n"
                    "        y = x * 2\n        z = y.view(2)\n    y += 1\n    return y, z\n",
                    {random({2})}),
              StartsWith("[torchscript] model.py:6:5: a write to a tensor that is one or another"));
  EXPECT_THAT(
      error("def f(x: Tensor):\n    y = x.clone()\n    for i in range(20):\n"
            "        y += 1\n        y = y * 2\n    return y\n",
            {random({2})}),
      StartsWith("[torchscript] model.py:3:5: a tensor that a loop both assigns and writes"));
  EXPECT_THAT(error("def f(x: Tensor):\n    y = x.clone()\n    z = y\n"
                    "    for i in range(20):\n        y += 1\n        z = z * 2\n    return z\n",
                    {random({2})}),
              AllOf(StartsWith("[torchscript] model.py:4:5: "), HasSubstr("another name of it")));
  // Two results of a trip or a way may be one tensor.
  const std::string twice = "            c = x * 3\n";
  for (const std::string& text :
       {"    a, c = x.clone(), x * 2\n    for i in range(20):\n        c = x * 0.5 - a\n"
        "        a = c\n        if bool(x.sum() > i):\n" +
            twice,
        "    a, c = x.clone(), x * 2\n    if bool(x.sum() > 0):\n        a = x * 2\n"
        "        c = a\n        if bool(x.sum() > 1):\n" +
            twice,
        "    xs, c = [x], x * 2\n    for i in range(20):\n        a = x * i\n        c = a\n"
        "        xs.append(a)\n        if bool(x.sum() > i):\n" +
            twice + "    a = xs[-1]\n"})
    EXPECT_THAT(
        error("def f(x: Tensor):\n" + text + "    a[1] = 1\n    return a, c\n", {random({2})}),
        HasSubstr("a write to a tensor that is one or another"));
  EXPECT_THAT(error("def f(x: Tensor):\n    return x.expand(2, 2).add_(1)\n", {random({2})}),
              StartsWith("[torchscript] model.py:2:12: writing through a view"));
}

TEST(Errors, of_arguments) {
  const auto script = torchscript::compile(
      "def f(x: Tensor, n: int, s: float = 2.0):\n    return x * n * s\n", "model.py");
  const auto of = [&](const std::vector<c10::IValue>& arguments) {
    return user_error([&] { script.graph("f", arguments); }).value_or("no error");
  };
  EXPECT_EQ(of({random({2}), 3}), "no error");
  EXPECT_EQ(of({random({2})}), "[torchscript] 'f': argument 'n' (int) is missing");
  EXPECT_EQ(of({random({2}), 3, 1.0, 2}), "[torchscript] 'f': expected 3 arguments, received 4");
  EXPECT_EQ(of({random({2}), "three"}),
            "[torchscript] argument 'n': expected int, received 'three'");
  EXPECT_EQ(of({random({2}), random({2})}),
            "[torchscript] argument 'n': expected int, received a tensor float64[2]");
  EXPECT_EQ(of({random({2}), number(2)}),
            "[torchscript] argument 'n': expected int, received a tensor float64[]");
  EXPECT_EQ(user_error([&] { script.graph("g", {}); }),
            "[torchscript] there is no function 'g'; there is 'f'");
  EXPECT_EQ(user_error([&] {
              script.function("f", {{"m", 2}});
            }),
            "[torchscript] 'f' has no parameter 'm'");
}

TEST(Errors, of_files) {
  const auto path = std::filesystem::temp_directory_path() / "flashlight_hostile.pt";
  for (const std::string& content :
       {std::string(), std::string("PK\3\4 and no archive"), std::string(5000, '\xff')}) {
    std::ofstream(path, std::ios::binary) << content;
    EXPECT_THAT(user_error([&] { torchscript::load(path); }).value_or("no error"),
                StartsWith("[torchscript] " + path.string() + ": "));
  }
  std::filesystem::remove(path);
  EXPECT_THAT(user_error([&] { torchscript::load(path); }).value_or("no error"),
              StartsWith("[torchscript] " + path.string() + ": "));
}

}  // namespace
}  // namespace flashlight::test
