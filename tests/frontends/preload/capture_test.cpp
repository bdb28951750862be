// `flashlight capture` on programs that nobody touched. What a step captured is compared with what
// the program made of it: a replay of step k leaves the weights that step k + 1 was captured with.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/wait.h>

#include "tests/frontends/preload/run.h"

namespace flashlight::testing {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Not;

Command program(const std::string& what) { return {FLASHLIGHT_PROGRAM, what}; }
Command script(const std::string& what) { return {FLASHLIGHT_PYTHON, FLASHLIGHT_PROGRAM_PY, what}; }

void expect_same_outcome(const Outcome& captured, const Outcome& plain) {
  EXPECT_EQ(captured.status, plain.status);
  EXPECT_EQ(captured.out, plain.out);
  EXPECT_EQ(captured.err, plain.err);
}

void expect_replays(const Replayed& replayed) {
  const auto& expected = replayed.capture.example_results();
  ASSERT_EQ(replayed.results.size(), expected.size());
  for (size_t i = 0; i < expected.size(); ++i) EXPECT_TRUE(same(replayed.results[i], expected[i]));
}

// The replay of one step has written the values that the next one found.
void expect_follows(const Replayed& step, const Replayed& next, size_t at_least) {
  size_t changed = 0;
  for (const auto& [name, value] : step.after) {
    const auto found = next.before.find(name);
    if (found == next.before.end()) continue;
    EXPECT_TRUE(same(value, found->second)) << name;
    changed += !same(value, step.before.at(name));
  }
  EXPECT_GE(changed, at_least);
}

void expect_training(const std::filesystem::path& folder, const std::string& weight,
                     size_t written) {
  ASSERT_THAT(steps_in(folder), ElementsAre("step_000", "step_001", "step_002", "step_003"));
  std::optional<Replayed> before;
  for (const std::string& name : steps_in(folder)) {
    SCOPED_TRACE(name);
    Replayed step = replay(folder / name);
    expect_replays(step);
    if (before)
      EXPECT_EQ(step.results.size(), 1U);  // the loss; at first the optimizer's state, too
    EXPECT_EQ(step.capture.example_arguments().size(), 2U);  // the batch
    EXPECT_EQ(step.before.count(weight), 1U);
    if (before) expect_follows(*before, step, written);
    before.emplace(std::move(step));
  }
}

// ---- C++ ----------------------------------------------------------------------------------------

TEST(CapturesAProgram, training_loop) {
  const Captured captured = capture({}, program("train"));
  expect_same_outcome(captured.outcome, run(program("train")));
  expect_training(captured.folder, "parameter_0", 4);
  EXPECT_THAT(captured.log, HasSubstr("captured 4 of 4 steps, cut by optimizer"));
}

std::vector<Trust> trusts_in(const std::filesystem::path& folder) {
  std::vector<Trust> trusts;
  for (const std::string& step : steps_in(folder))
    trusts.push_back(CaptureBase::load(folder / step).trust());
  return trusts;
}

// The first step makes the momentum, the second is the first that has it.
TEST(CapturesAProgram, steps_are_each_others_looks) {
  using enum Trust;
  const Captured alike = capture({}, program("train"));
  EXPECT_THAT(trusts_in(alike.folder), ElementsAre(seen_once, seen_once, confirmed, confirmed));
  EXPECT_THAT(alike.log, HasSubstr("confirmed by the step before"));
  const Captured schedule = capture({}, program("schedule"));  // a number of its own in each step
  EXPECT_THAT(trusts_in(schedule.folder), ElementsAre(seen_once, seen_once, seen_once, seen_once));
  const Captured pointer = capture({}, program("pointer"));  // memory that no operator writes
  EXPECT_THAT(trusts_in(pointer.folder), ElementsAre(seen_once, seen_once, seen_once));
}

TEST(CapturesAProgram, one_step_of_it) {
  const Captured all = capture({}, program("train"));
  const Captured one = capture({"--step", "2"}, program("train"));
  expect_same_outcome(one.outcome, all.outcome);
  ASSERT_THAT(steps_in(one.folder), ElementsAre("step_002"));
  const Replayed step = replay(one.folder / "step_002");
  expect_replays(step);
  EXPECT_EQ(step.capture.graph(), CaptureBase::load(all.folder / "step_002").graph());
  for (const auto& [name, value] : replay(all.folder / "step_002").before)
    EXPECT_TRUE(same(value, step.before.at(name))) << name;
}

TEST(CapturesAProgram, so_many_steps_of_it) {
  const Captured captured = capture({"--steps", "2"}, program("train"));
  EXPECT_THAT(steps_in(captured.folder), ElementsAre("step_000", "step_001"));
  EXPECT_THAT(captured.log, HasSubstr("the rest ran without being looked at"));
}

// A step that stayed in memory would be 100 kB.
TEST(CapturesAProgram, in_flat_memory) {
  for (const Command& options : {Command{"--steps", "0"}, Command{"--step", "1000"}}) {
    const Captured captured = capture(options, program("long"));
    EXPECT_EQ(steps_in(captured.folder).size(), options[0] == "--steps" ? 600U : 0U);
    EXPECT_LT(std::stol(captured.outcome.out), 10'000'000) << captured.log;
  }
}

TEST(CapturesAProgram, forward_calls) {
  const Captured captured = capture({}, program("infer"));
  expect_same_outcome(captured.outcome, run(program("infer")));
  ASSERT_THAT(steps_in(captured.folder), ElementsAre("step_000", "step_001", "step_002"));
  for (const std::string& name : steps_in(captured.folder)) {
    const Replayed step = replay(captured.folder / name);
    expect_replays(step);
    EXPECT_EQ(step.capture.example_arguments().size(), 1U);
  }
}

TEST(CapturesAProgram, the_whole_run) {
  const Captured captured = capture({"--cut", "run"}, program("train"));
  expect_same_outcome(captured.outcome, run(program("train")));
  ASSERT_THAT(steps_in(captured.folder), ElementsAre("step_000"));
  const Replayed run = replay(captured.folder / "step_000");
  expect_replays(run);
  EXPECT_EQ(run.capture.example_arguments().size(), 0U);
  EXPECT_GE(run.results.size(), 4U);  // the parameters
}

TEST(CapturesAProgram, source_lines) {
  const Captured captured = capture({"--step", "0"}, program("train"));
  const composit::Graph graph = CaptureBase::load(captured.folder / "step_000").graph();
  bool found = false;
  for (const composit::NodePtr& node : graph.nodes())
    found = found || node->annotation("source").find("program.cpp:") != std::string::npos;
  EXPECT_TRUE(found);
}

// ---- ends that are none -------------------------------------------------------------------------

class Ends : public ::testing::TestWithParam<std::string> {};

TEST_P(Ends, leave_what_was_captured) {
  const Captured captured = capture({}, program(GetParam()));
  expect_same_outcome(captured.outcome, run(program(GetParam())));
  ASSERT_THAT(steps_in(captured.folder),
              ElementsAre("step_000", "step_001", "step_002", "step_003"))
      << captured.log;
  EXPECT_THAT(captured.log, HasSubstr("; unfinished: "));
  for (const std::string& name : steps_in(captured.folder))
    expect_replays(replay(captured.folder / name));
  EXPECT_EQ(CaptureBase::load(captured.folder / "step_003").example_results().size(), 1U);
}

INSTANTIATE_TEST_SUITE_P(Of, Ends,
                         ::testing::Values("fault", "null", "throw", "interrupt", "_exit", "exit"),
                         [](const auto& info) { return "by_" + info.param; });

// ---- Python -------------------------------------------------------------------------------------

TEST(CapturesAScript, training_loop) {
  const Captured captured = capture({}, script("train"));
  expect_same_outcome(captured.outcome, run(script("train")));
  expect_training(captured.folder, "block.hidden.weight", 6);
  const composit::Graph graph = CaptureBase::load(captured.folder / "step_001").graph();
  bool scope = false, line = false;
  for (const composit::NodePtr& node : graph.nodes()) {
    scope = scope || node->annotation("scope") == "block.norm";
    line = line || node->annotation("source").find("program.py:") == 0;
  }
  EXPECT_TRUE(scope);
  EXPECT_TRUE(line);
}

TEST(CapturesAScript, forward_calls_with_names) {
  const Captured captured = capture({}, script("infer"));
  expect_same_outcome(captured.outcome, run(script("infer")));
  ASSERT_THAT(steps_in(captured.folder), ElementsAre("step_000", "step_001", "step_002"));
  for (const std::string& name : steps_in(captured.folder)) {
    const Replayed step = replay(captured.folder / name);
    expect_replays(step);
    std::vector<std::string> arguments;
    for (const composit::LazyTensor& input : step.capture.graph().inputs())
      if (composit::input_kind(*input.node) == composit::InputKind::user_input)
        arguments.push_back(composit::input_name(*input.node));
    EXPECT_THAT(arguments, ElementsAre("image", "scale"));
    // Called with other inputs, as any capture.
    EXPECT_EQ(load<at::Tensor(at::Tensor, at::Tensor)>(captured.folder / name)(at::zeros({5, 8}),
                                                                               at::zeros({}))
                  .abs()
                  .max()
                  .item<float>(),
              0);
  }
}

TEST(CapturesAScript, that_raises) {
  const Captured captured = capture({}, script("raise"));
  expect_same_outcome(captured.outcome, run(script("raise")));  // the traceback, too
  EXPECT_THAT(steps_in(captured.folder),
              ::testing::IsSupersetOf({"step_000", "step_001", "step_002"}));
  expect_replays(replay(captured.folder / "step_002"));
}

TEST(CapturesAScript, that_skips_exit) {
  const Captured captured = capture({}, script("_exit"));
  expect_same_outcome(captured.outcome, run(script("_exit")));
  EXPECT_THAT(steps_in(captured.folder), ElementsAre("step_000", "step_001", "step_002"));
  expect_replays(replay(captured.folder / "step_002"));
}

// ---- whom it leaves alone -----------------------------------------------------------------------

TEST(Capture, leaves_programs_without_libtorch_alone) {
  const Captured captured = capture({}, {"sh", "-c", "echo hello; echo there >&2; exit 5"});
  expect_same_outcome(captured.outcome, run({"sh", "-c", "echo hello; echo there >&2; exit 5"}));
  EXPECT_THAT(captured.log, HasSubstr("nothing captured"));
  EXPECT_FALSE(std::filesystem::exists(captured.folder));
}

TEST(Capture, refuses_another_libtorch_and_names_both) {
  const Captured captured = capture({}, {FLASHLIGHT_OTHER_LIBTORCH});
  expect_same_outcome(captured.outcome, run({FLASHLIGHT_OTHER_LIBTORCH}));
  EXPECT_THAT(captured.log, HasSubstr("this program has LibTorch 2.9.1 ("));
  EXPECT_THAT(captured.log,
              HasSubstr("Flashlight was built for LibTorch " FLASHLIGHT_TORCH_VERSION));
  EXPECT_THAT(steps_in(captured.folder), ElementsAre());
}

TEST(Capture, lets_programs_find_their_plugins) {
  const Captured captured = capture({}, {FLASHLIGHT_USES_PLUGIN});
  EXPECT_EQ(captured.outcome.out, "answer 42\n");
  expect_same_outcome(captured.outcome, run({FLASHLIGHT_USES_PLUGIN}));
}

TEST(Capture, gives_processes_folders_of_their_own) {
  const std::string twice =
      std::string(FLASHLIGHT_PROGRAM) + " infer; " + FLASHLIGHT_PROGRAM + " infer";
  const Captured captured = capture({"--step", "1"}, {"sh", "-c", twice});
  const auto processes = steps_in(captured.folder);
  ASSERT_EQ(processes.size(), 2U) << captured.log;
  for (const std::string& process : processes) {
    EXPECT_THAT(process, HasSubstr("process_"));
    EXPECT_THAT(steps_in(captured.folder / process), ElementsAre("step_001"));
  }
}

// ---- what it says -------------------------------------------------------------------------------

TEST(Capture, names_operator_and_line_of_what_it_cannot_capture) {
  const Captured captured = capture({}, program("unseen"));
  expect_same_outcome(captured.outcome, run(program("unseen")));
  EXPECT_THAT(captured.log,
              HasSubstr("step_000  not captured: [trace] aten::add.Tensor: an argument"));
  EXPECT_THAT(captured.log, HasSubstr("program.cpp:"));
  EXPECT_THAT(steps_in(captured.folder), ElementsAre());
}

TEST(Capture, refuses_what_it_cannot_run) {
  const Captured none = capture({}, {"/no/such/program"});
  EXPECT_EQ(WEXITSTATUS(none.outcome.status), 2);
  EXPECT_THAT(none.log, HasSubstr("[capture] cannot run '/no/such/program': No such file"));
  const Outcome nothing = run({FLASHLIGHT_CLI, "capture"});
  EXPECT_THAT(nothing.err, HasSubstr("[capture] expected a command"));
  const Outcome cut = run({FLASHLIGHT_CLI, "capture", "--cut", "epoch", "--", "true"});
  EXPECT_THAT(cut.err, HasSubstr("[capture] --cut: expected automatic, forward, optimizer or run"));
  const Outcome full = run({FLASHLIGHT_CLI, "capture", "-o", "/usr", "--", "true"});
  EXPECT_THAT(full.err, HasSubstr("[capture] /usr exists and is not an empty folder"));
}

}  // namespace
}  // namespace flashlight::testing
