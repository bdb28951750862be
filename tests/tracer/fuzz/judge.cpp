#include "tests/tracer/fuzz/judge.h"

#include <ATen/ATen.h>
#include <malloc.h>

#include "composit/ir/error.h"
#include "tests/tracer/capture_helpers.h"

namespace flashlight::fuzz {
namespace {

constexpr uint64_t kCaptureSeed = 1, kReplaySeed = 2, kDrawSeed = 7;

// What a run leaves behind: every tensor of the program and every input.
struct Outcome {
  std::vector<at::Tensor> tensors;
  std::vector<at::Tensor> inputs;
  std::vector<bool> threw;
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
  outcome.threw = std::move(run.threw);
  return outcome;
}

struct Recorded {
  testing::Captured captured;
  std::vector<bool> threw;
  size_t tensors = 0;
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
  return {testing::captured_from(*recording), run.threw, run.defined().size()};
}

std::string compare(const Outcome& expected, const Outcome& received) {
  if (const std::string text = testing::difference(received.tensors, expected.tensors); !text.empty())
    return "result: " + text;
  if (const std::string text = testing::difference(received.inputs, expected.inputs); !text.empty())
    return "input afterwards: " + text;
  return "";
}

bool deterministic(const Program& program) {
  const Outcome once = run_eagerly(program, 0x11), again = run_eagerly(program, 0x77);
  return compare(once, again).empty();
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

Verdict judge_recorded(const Program& program, const Recorded& recorded) {
  const Outcome expected = run_eagerly(program, 0x5a);
  if (expected.threw != recorded.threw) return {Verdict::Kind::set_aside, "another call throws on the other inputs"};
  try {
    const std::string text = compare(expected, replay(program, recorded.captured));
    if (text.empty()) return {};
    if (!deterministic(program)) return {Verdict::Kind::set_aside, "eager mode is not deterministic"};
    return {Verdict::Kind::wrong, text};
  } catch (const std::exception& error) {
    if (!deterministic(program)) return {Verdict::Kind::set_aside, "eager mode is not deterministic"};
    return {Verdict::Kind::wrong, std::string("replay threw: ") + error.what()};
  }
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
    return {Verdict::Kind::wrong, std::string("capture threw: ") + error.what()};
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
