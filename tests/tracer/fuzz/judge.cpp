#include "tests/tracer/fuzz/judge.h"

#include <ATen/ATen.h>
#include <malloc.h>

#include "composit/ir/error.h"
#include "composit/ir/parse.h"
#include "composit/ir/print.h"
#include "composit/ir/verify.h"
#include "tests/tracer/capture_helpers.h"
#include "tracer/memory_view.h"

namespace flashlight::fuzz {
namespace {

constexpr uint64_t kCaptureSeed = 1, kReplaySeed = 2, kDrawSeed = 7;

// The values after a run: every tensor of the program and every input.
struct Outcome {
  std::vector<at::Tensor> tensors;
  std::vector<at::Tensor> inputs;
  std::vector<bool> threw;
  Run::Sizes sizes;
};

// Memory nobody wrote reads as `garbage`.
Outcome run_eagerly(const Program& program, int garbage) {
  mallopt(M_PERTURB, garbage);
  Outcome outcome;
  const std::vector<at::Tensor> inputs = make_inputs(program, kReplaySeed);
  outcome.inputs = inputs;
  at::manual_seed(kDrawSeed);
  Run run = execute(program, inputs);
  outcome.tensors = run.defined();
  outcome.sizes = std::move(run.sizes);
  outcome.threw = std::move(run.threw);
  return outcome;
}

struct Recorded {
  testing::Captured captured;
  std::vector<bool> threw;
  Run::Sizes sizes;
};

Recorded record(const Program& program) {
  std::vector<at::Tensor> inputs = make_inputs(program, kCaptureSeed);
  at::manual_seed(kDrawSeed);
  TraceOptions options;
  options.chains = program.chains;
  const at::AutoGradMode mode(program.grad);
  TraceScope scope(options);
  for (size_t i = 0; i < inputs.size(); ++i)
    scope.name(inputs[i], std::to_string(i), composit::InputKind::user_input);
  const Run run = execute(program, inputs);
  const auto recording = scope.finish(run.defined());
  return {testing::captured_from(*recording), run.threw, run.sizes};
}

std::string compare(const Outcome& expected, const Outcome& received) {
  if (const std::string text = testing::difference(received.tensors, expected.tensors);
      !text.empty())
    return "result: " + text;
  if (const std::string text = testing::difference(received.inputs, expected.inputs); !text.empty())
    return "input afterwards: " + text;
  return "";
}

// Other memory read as bool may hold bytes that are neither 0 nor 1: C++ says nothing about them.
bool has_odd_bools(const std::vector<at::Tensor>& tensors) {
  return std::any_of(tensors.begin(), tensors.end(), [](const at::Tensor& tensor) {
    if (tensor.scalar_type() != at::kBool) return false;
    const at::Tensor bytes =
        tracer::view_memory(tensor, at::kByte, tensor.sizes(), tensor.strides(), 0);
    return bytes.gt(1).any().item<bool>();
  });
}

// The reason why a difference between eager mode and replay means nothing; empty if it means a
// fault.
std::string excuse(const Program& program) {
  const Outcome once = run_eagerly(program, 0x11), again = run_eagerly(program, 0x77);
  if (!compare(once, again).empty()) return "eager mode is not deterministic";
  if (has_odd_bools(once.tensors) || has_odd_bools(once.inputs)) return "a bool is neither 0 nor 1";
  return "";
}

Outcome replay(const Program& program, const testing::Captured& captured) {
  mallopt(M_PERTURB, 0x3c);
  Outcome outcome;
  outcome.inputs = make_inputs(program, kReplaySeed);
  for (at::Tensor& input : outcome.inputs) input = input.detach();
  at::manual_seed(kDrawSeed);
  outcome.tensors = captured.replay(outcome.inputs);
  return outcome;
}

// Legal, and the same when read back from its text.
std::string fault_of_graph(const composit::Graph& graph) {
  composit::verify(graph);
  const std::string text = composit::print(graph);
  return composit::parse(text) == graph ? "" : "the graph is another one when read back:\n" + text;
}

Verdict judge_recorded(const Program& program, const Recorded& recorded) {
  const Outcome expected = run_eagerly(program, 0x5a);
  for (const std::string& remark : recorded.captured.published.remarks)
    if (remark.find("memory that no operator wrote") != std::string::npos)
      return {Verdict::Kind::set_aside, remark};
  if (expected.threw != recorded.threw)
    return {Verdict::Kind::set_aside, "another call throws on the other inputs"};
  if (expected.sizes != recorded.sizes) return {Verdict::Kind::set_aside, "sizes depend on values"};
  std::string fault;
  try {
    fault = fault_of_graph(recorded.captured.published.graph);
    if (fault.empty()) fault = compare(expected, replay(program, recorded.captured));
  } catch (const std::exception& error) {
    fault = std::string("replay threw: ") + error.what();
  }
  if (fault.empty()) return {};
  // Sizes inside of a backward pass may depend on values, too.
  const bool grad = std::any_of(program.calls.begin(), program.calls.end(),
                                [](const Call& call) { return call.op == "cpp::grad"; });
  if (grad && fault.find("guard: output") != std::string::npos)
    return {Verdict::Kind::set_aside, "sizes depend on values"};
  if (const std::string reason = excuse(program); !reason.empty())
    return {Verdict::Kind::set_aside, reason};
  return {Verdict::Kind::wrong,
          fault + "\nreplayed:\n" + composit::print(recorded.captured.published.graph)};
}

Program without(const Program& program, size_t call) {
  Program shorter = program;
  shorter.calls.erase(shorter.calls.begin() + static_cast<std::ptrdiff_t>(call));
  return shorter;
}

}  // namespace

Verdict judge(const Program& program) {
  std::optional<Recorded> recorded;
  try {
    recorded.emplace(record(program));
  } catch (const std::exception& error) {
    const std::string message = error.what();
    if (message.find("a captured program cannot change") != std::string::npos)
      return {Verdict::Kind::set_aside, "an input gets other sizes, another dtype or other memory"};
    return {Verdict::Kind::wrong, "capture threw: " + message};
  }
  return judge_recorded(program, *recorded);
}

Program minimised(Program program) {
  for (bool shrunk = true; shrunk;) {
    shrunk = false;
    for (size_t i = program.calls.size(); i > 0; --i) {
      Program shorter = without(program, i - 1);
      if (judge(shorter).kind != Verdict::Kind::wrong) continue;
      program = std::move(shorter);
      shrunk = true;
    }
  }
  return program;
}

}  // namespace flashlight::fuzz
