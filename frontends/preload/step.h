// One step of a program that runs on: recorded from here until `finish`, then written as a capture.
//
//   Step step({.lines = true}, folder / "step_000");     // on the main thread
//   ...  the program runs  ...
//   const std::string line = step.finish(results);       // "120 nodes, …", or why it is not
//   captured
//
// The results of a step, if they are unknown, are the tensors that it made and that no operator
// read: a loss, what a model gave, the state that an optimizer made. The program may have let go of
// them; a step holds them until they are read. Gradients in `.grad` are none.
#pragma once

#include <filesystem>
#include <optional>
#include <set>
#include <string>
#include <unordered_map>
#include <vector>

#include "flashlight/capture.h"
#include "tracer/recording.h"
#include "tracer/trace_scope.h"

namespace flashlight::preload {

// The line of the program that runs now, "train.py:12 in main"; empty where it is not known.
using HostLine = std::string (*)();

class Step {
 public:
  // `whole`: a whole run, of which only those results are held that the program holds.
  Step(bool lines, bool whole, HostLine host_line, std::filesystem::path folder);

  // Has an operator been recorded?
  bool started();
  // Gives a tensor from outside its name, unless it has been seen.
  void name(const at::Tensor& tensor, const std::string& name, composit::InputKind kind);
  // The operators from here to the next call belong to the step; what comes after the last such
  // call may belong to what is around it: guards in there are dropped, and its tensors are no
  // results.
  void extend();
  // Ends the recording and writes it. `results`: those that are known, else none; `kept`: tensors
  // that are results as well, where the step made them. `before`: the step before, which may
  // confirm this one.
  std::string finish(const std::optional<std::vector<at::Tensor>>& results,
                     const std::vector<at::Tensor>& kept = {},
                     const std::optional<CaptureBase>& before = std::nullopt);
  // The capture that was written; nothing if writing failed.
  const std::optional<CaptureBase>& captured() const { return captured_; }

 private:
  using WeakTensor = c10::weak_intrusive_ptr<c10::TensorImpl, c10::UndefinedTensorImpl>;
  struct Unread {
    WeakTensor tensor;
    at::Tensor held;
  };
  void watch(tracer::RecordId record, c10::ArrayRef<at::Tensor> tensors);
  std::vector<at::Tensor> held_results(const std::vector<at::Tensor>& kept);
  std::string write(tracer::Recording& recording, const std::vector<at::Tensor>& results,
                    const std::optional<CaptureBase>& before);
  void failed(const std::string& why);

  const std::filesystem::path folder_;
  const HostLine host_line_;
  const bool whole_;
  std::set<std::string> names_;
  std::unordered_map<tracer::ValueId, Unread> unread_;
  size_t sweep_at_ = 1024;
  // Records before it belong to the step; nothing: all do.
  std::optional<tracer::RecordId> end_;
  at::Tensor generator_;  // the state of the default generator at the begin
  std::string error_;
  std::optional<CaptureBase> captured_;
  std::optional<TraceScope> scope_;
};

}  // namespace flashlight::preload
