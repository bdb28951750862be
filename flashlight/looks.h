// Confirms a capture: runs its program again, records it, and compares.
//
//   Looks looks(program, state, recording);
//   looks.call(arguments);         // a look, until the capture is confirmed; then a replay
//
// A look runs the program on the caller's own arguments and state, so nothing happens that the
// program would not have done. It finds:
//
//   the same graph      the capture is replayed on copies of the inputs as they were, and compared
//                       bit for bit: confirmed, or refused from the next call on
//   other numbers       they are tried as forms over a count of calls (counting.h); the third run
//                       in a row shows one or refuses it
//   a guard differs     no look: a replay of the same inputs would be refused by that guard. In
//                       Python the next runs are followed from that number to what it is given to
//                       (followed_numbers.h), which may show that it is none
//   another graph       replaces the older one, and waits for one more look (the first step of an
//                       optimizer makes its state), or for two if no state explains the change;
//                       four looks at most
//
// A value that one run leaves alive and the next run reads is state (state_links.h).
#pragma once

#include <atomic>
#include <deque>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "flashlight/capture_state.h"
#include "flashlight/followed_numbers.h"
#include "flashlight/number_differences.h"
#include "flashlight/state_links.h"

namespace flashlight {

struct LookRun;

class Looks {
 public:
  using Tensors = std::vector<at::Tensor>;
  using StatePtr = std::shared_ptr<CaptureBase::State>;

  Looks(TracedProgram program, StatePtr first, std::unique_ptr<tracer::Recording> recording);
  ~Looks();

  FlatValues call(const Tensors& arguments);
  // The state that is replayed, saved and compiled now. References to older states stay valid.
  const StatePtr& current() const { return *current_.load(std::memory_order_acquire); }
  std::string refusal() const;
  // For who replays the program without a call here. UserError where calls would be refused: in
  // another autocast or default dtype, and after a change of modules that the capture owns.
  void expect_unchanged() const;
  // Takes the modules as they are now for those of the capture: the program ran once more.
  void renew() {
    if (!program_.borrowed) note_flags();
  }

 private:
  // The modes that decide what a program computes, besides its arguments.
  struct Modes {
    bool grad, inference, autocast;
    c10::ScalarType autocast_dtype, default_dtype;
    static Modes now();
    bool operator==(const Modes&) const = default;
  };

  FlatValues look(const Tensors& arguments);
  FlatValues judge(LookRun& run, const Tensors& arguments);
  FlatValues same_graph(LookRun& run, const Tensors& arguments);
  FlatValues compare_replay(LookRun& run, const Tensors& arguments, int64_t call);
  FlatValues other_numbers(LookRun& run, const std::vector<NumberPlace>& places,
                           const std::vector<composit::Difference>& differences,
                           const Tensors& arguments);
  FlatValues other_graph(LookRun& run, const std::vector<composit::Difference>& differences);
  static FlatValues keep(LookRun& run);

  StatePtr publish_run(LookRun& run);
  void follow_state(LookRun& run);
  void follow_numbers(LookRun& run);
  std::string another_tensor(const LookRun& run) const;
  bool note_content(const LookRun& run);
  void adopt(LookRun& run);
  void confirm(Trust trust);
  void settle();
  void refuse(const std::string& why);
  void expect_modes() const;
  void expect_dtype_modes() const;
  [[noreturn]] void refuse_modes(const Modes& now) const;
  void note_flags();
  void expect_flags() const;
  std::string replaced() const;
  bool program_lives() const;
  std::vector<size_t> count_own_references() const;
  std::string number_refusal(const NumberPlace& place) const;

  const TracedProgram program_;
  const Modes modes_;
  std::mutex mutex_;                  // held by a look
  mutable std::mutex refusal_mutex_;  // of `refusal_` and `versions_`, for readers
  std::atomic<std::thread::id> runner_{};
  std::atomic<bool> settled_{false};
  std::string refusal_;
  // After the last run: the modules, which inputs require a gradient, and which inputs the program
  // holds under their names.
  mutable std::mutex flags_mutex_;  // of these
  ModuleView modules_;
  std::vector<bool> trained_, named_;
  std::vector<size_t> own_references_;  // by input: references that captures hold, once settled
  std::deque<StatePtr> versions_;
  std::atomic<const StatePtr*> current_;
  std::unique_ptr<tracer::Recording> last_;
  std::vector<StateLink> links_;
  // Numbers that follow from values of a run; looked for once a guard had another one.
  std::vector<FollowedNumber> followed_;
  bool follows_numbers_ = false;
  std::vector<composit::Graph> streak_;  // consecutive runs whose graphs differ in numbers only
  std::vector<NumberPlace> counted_;     // numbers that differ within the streak
  std::vector<std::string> structural_;  // the first difference of each pair of graphs
  std::vector<uint64_t> contents_;       // digests of the first run's arguments
  std::vector<bool> varied_;             // arguments that had another content in some run
  // No state of the run before explains the last change of the graph; equal looks since then.
  bool unexplained_ = false;
  size_t equal_after_change_ = 0;
  size_t looks_ = 0, equal_looks_ = 0;
};

}  // namespace flashlight
