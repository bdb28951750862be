// Graphs that no recording gives (branches, loops, derivatives), as files that torch runs: its
// values are those of the definitions.
#include "composit/interchange/pt2.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "composit/eval/evaluate.h"
#include "composit/io/safetensors.h"
#include "composit/op/loops.h"
#include "composit/ops/control_flow.h"
#include "composit/ops/functions.h"
#include "composit/ops/native.h"
#include "composit/ops/operations.h"
#include "tests/agreement.h"
#include "tests/io/command.h"
#include "tests/io/temporary_folder.h"

namespace composit::test {
namespace {

using ::testing::HasSubstr;

Array floats(const Dims& sizes, std::vector<double> values) {
  return array_of(tensor_type(DType::float32, sizes), values);
}

LazyTensor argument(const std::string& name, const Array& value) {
  return input(name, value.type());
}

bool python_has_torch() {
  return run({FLASHLIGHT_PYTHON, "-c", "import torch, safetensors"}).status == 0;
}

// Programs, written into a folder and run there by one process of Python.
class Programs {
 public:
  using Function = std::function<LazyTensors(const LazyTensors&)>;

  void add(const std::string& name, const std::vector<Array>& arguments, const Function& function) {
    LazyTensors inputs;
    for (size_t i = 0; i < arguments.size(); ++i)
      inputs.push_back(argument("x" + std::to_string(i), arguments[i]));
    add(name, arguments, Graph({.inputs = inputs, .outputs = function(inputs)}));
  }
  void add(const std::string& name, const std::vector<Array>& arguments, const Graph& graph) {
    save_pt2({.graph = graph, .example_inputs = arguments}, folder_ / (name + ".pt2"));
    expected_[name] = evaluate(graph, arguments);
  }

  void expect_agreement() const {
    const CommandResult result = run(
        {FLASHLIGHT_PYTHON, FLASHLIGHT_SOURCE_DIR "/tests/interchange/run_pt2.py", folder_.path()});
    ASSERT_EQ(result.status, 0) << result.output;
    for (const auto& [name, expected] : expected_) {
      SCOPED_TRACE(name);
      const auto error = folder_ / (name + ".error");
      if (std::filesystem::exists(error)) {
        ADD_FAILURE() << read_file(error);
        continue;
      }
      std::vector<Array> first, second;
      for (const auto& [key, array] : read_safetensors(folder_ / (name + ".safetensors")).tensors)
        (key[0] == '0' ? first : second).push_back(array);
      EXPECT_EQ(differences(first, expected), "");
      EXPECT_EQ(differences(second, expected), "");
    }
  }

 private:
  TemporaryFolder folder_;
  std::map<std::string, std::vector<Array>> expected_;
};

void add_branches(Programs& programs) {
  const auto function = [](const LazyTensors& x) {
    const LazyTensor table = constant(floats({3}, {1, 10, 100}));
    return cond(
        sum(x[0]) > 0,
        [&](const LazyTensors&) {
          return LazyTensors{exp(x[0]) * table, x[1]};
        },
        [&](const LazyTensors&) {
          return LazyTensors{x[0] - 2, x[1] + x[1]};
        });
  };
  programs.add("cond_true", {floats({3}, {1, 2, 3}), floats({2}, {4, 5})}, function);
  programs.add("cond_false", {floats({3}, {-1, -2, -3}), floats({2}, {4, 5})}, function);
  programs.add("cond_in_cond", {floats({3}, {1, 2, 3})}, [](const LazyTensors& x) {
    return cond(
        sum(x[0]) > 0,
        [&](const LazyTensors&) {
          return cond(
              sum(x[0]) > 100, [&](const LazyTensors&) { return LazyTensors{x[0]}; },
              [&](const LazyTensors&) {
                return LazyTensors{x[0] * constant(floats({3}, {1, 2, 3}))};
              });
        },
        [&](const LazyTensors&) { return LazyTensors{-x[0]}; });
  });
}

void add_loops(Programs& programs) {
  const Array rows = floats({4, 2}, {1, 2, 3, 4, 5, 6, 7, 8});
  const auto running = [](bool reverse) {
    return [reverse](const LazyTensors& x) {
      const ScanStep step = scan(
          [&](const LazyTensors& carried, const LazyTensors& slots) {
            const LazyTensor next = carried[0] * 0.5 + slots[0] * x[1];
            return ScanStep{{next}, {next, carried[0]}};
          },
          {x[1]}, {x[0]}, {.reverse = reverse});
      LazyTensors results = step.carried;
      results.insert(results.end(), step.outputs.begin(), step.outputs.end());
      return results;
    };
  };
  programs.add("scan", {rows, floats({2}, {1, -1})}, running(false));
  programs.add("scan_back", {rows, floats({2}, {1, -1})}, running(true));
  programs.add("map", {rows, floats({2}, {3, 4})}, [](const LazyTensors& x) {
    return map(
        [&](const LazyTensors& slots) {
          return LazyTensors{slots[0] * x[1], sum(slots[0])};
        },
        {x[0]});
  });
  const auto root = [](std::optional<int64_t> limit) {
    return [limit](const LazyTensors& x) {
      return while_loop([&](const LazyTensors& v) { return abs(v[0] * v[0] - x[0]) > 1e-4; },
                        [&](const LazyTensors& v) { return LazyTensors{(v[0] + x[0] / v[0]) / 2}; },
                        {x[0]}, {.limit = limit});
    };
  };
  programs.add("while", {floats({}, {2})}, root(std::nullopt));
  programs.add("while_of_at_most_50", {floats({}, {2})}, root(50));
}

TEST(pt2, torch_gives_what_definitions_give) {
  if (!python_has_torch()) GTEST_SKIP() << FLASHLIGHT_PYTHON << " has no torch";
  Programs programs;
  add_branches(programs);
  add_loops(programs);
  programs.add("twice", {floats({2}, {1, 2})}, [](const LazyTensors& x) {
    const LazyTensor y = x[0] + 1;
    return LazyTensors{y, y, x[0]};
  });
  programs.add("loops", {floats({2, 3}, {1, 2, 3, 4, 5, 6})}, [](const LazyTensors& x) {
    const Loops loops = parse_loops(
        "loops(x0: float32[2, 3]) -> (y0: float32[3, 4]) {\n"
        "  for i < 2, j < 3 {\n    y0[j, i + 1] = exp(x0[i, j]) * x0[i, 2]\n  }\n}");
    return apply("composit::loops", {x, print(loops)});
  });
  programs.expect_agreement();
}

TEST(pt2, a_loop_that_goes_on_raises) {
  if (!python_has_torch()) GTEST_SKIP() << FLASHLIGHT_PYTHON << " has no torch";
  const TemporaryFolder folder;
  const LazyTensor x = input("x", tensor_type(DType::float32, {}));
  const LazyTensors loop =
      while_loop([](const LazyTensors& v) { return v[0] < 100; },
                 [](const LazyTensors& v) { return LazyTensors{v[0] + 1}; }, {x}, {.limit = 5});
  save_pt2(
      {.graph = Graph({.inputs = {x}, .outputs = {loop[0]}}), .example_inputs = {floats({}, {0})}},
      folder / "loop.pt2");
  const CommandResult result = run(
      {FLASHLIGHT_PYTHON, FLASHLIGHT_SOURCE_DIR "/tests/interchange/run_pt2.py", folder.path()});
  ASSERT_EQ(result.status, 0) << result.output;
  EXPECT_THAT(read_file(folder / "loop.error"), HasSubstr("goes on after 5 trips"));
}

TEST(pt2, refuses_all_that_has_no_form_and_leaves_the_file) {
  const TemporaryFolder folder;
  const LazyTensor x = input("x", tensor_type(DType::float32, {3}));
  const auto unknown = [&](const char* op) {
    return NodeSpec(op).tensor(x).output(x.type()).annotate("source", "a.cpp:3").make();
  };
  const Graph graph({.inputs = {x}, .outputs = {unknown("mine::one"), unknown("mine::two")}});
  write_file(folder / "a.pt2", "old");
  const std::string message = message_of([&] { save_pt2({.graph = graph}, folder / "a.pt2"); });
  EXPECT_THAT(message, HasSubstr("[pt2] " + (folder / "a.pt2").string()));
  EXPECT_THAT(message, HasSubstr("mine::one at a.cpp:3"));
  EXPECT_THAT(message, HasSubstr("mine::two at a.cpp:3"));
  EXPECT_EQ(read_file(folder / "a.pt2"), "old");
  EXPECT_EQ(folder.list(), std::vector<std::string>{"a.pt2"});
}

}  // namespace
}  // namespace composit::test
