// Records every operator that runs on this thread while the scope lives.
//
//   flashlight::TraceScope scope;
//   at::Tensor y = model->forward(x);
//   composit::LazyTensor lazy = scope.lazy(y);
//
// Scopes nest (each records), restore the dispatcher on exceptions, and follow work that LibTorch
// hands to its own pool threads. A thread the scope does not cover is not recorded. Destroy a scope
// on the thread that made it.
#pragma once

#include <ATen/core/Generator.h>
#include <ATen/core/Tensor.h>
#include <c10/core/impl/LocalDispatchKeySet.h>

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "composit/ir/graph.h"

namespace flashlight {

namespace tracer {
class Recorder;            // tracer/recorder.h
struct Recording;          // tracer/recording.h
class StorageLock;         // tracer/storage_lock.h
using ValueId = uint32_t;  // a value of a recording
}  // namespace tracer

// Options of recording.
struct TraceOptions {
  bool chains =
      true;  // show writes through views as view operators (`select_scatter`) where possible
  bool source_lines = false;  // note the user's source line for each node: some 5 µs per operator
  // An access to a tensor's memory that no operator makes is an error, also on other threads
  // (storage_lock.h): some 0.3 µs per operator.
  bool strict = false;
  // See tracer::RecorderOptions.
  std::function<std::string()> host_line = nullptr;
  // The scope is a piece cut out of a program that goes on: tensors from outside are inputs instead
  // of constants, and inputs keep the values they came with (RecordedInput::original).
  bool excerpt = false;
  // Inputs keep the values they came with (RecordedInput::original): what is written is copied
  // right before the first write.
  bool keep_originals = false;
  // A host language is asked to follow the numbers that the program reads of tensors
  // (tracer/given_numbers.h).
  bool follow_numbers = false;
  // Told what went wrong in recording, instead of the program; nothing is recorded from then on.
  std::function<void(const std::string&)> on_error = nullptr;
};

class TraceScope {
 public:
  // Records from here on, on this thread.
  explicit TraceScope(const TraceOptions& options = {});
  ~TraceScope();
  TraceScope(const TraceScope&) = delete;
  TraceScope& operator=(const TraceScope&) = delete;

  // Names a tensor from outside; before the first operator reads it. `kind` as in torch.export.
  void name(const at::Tensor& tensor, const std::string& name, composit::InputKind kind);
  // The value `tensor` holds now, as a graph. The scope goes on recording.
  composit::LazyTensor lazy(const at::Tensor& tensor);
  // Ends the recording, and lets `lazy` go on answering for recorded tensors that were not
  // written since. Call it on the thread that made the scope.
  void stop();
  // Ends the recording: nothing after this is seen.
  std::unique_ptr<tracer::Recording> finish(const std::vector<at::Tensor>& outputs);

  // The recorder of the scope, for code that includes tracer/recorder.h.
  tracer::Recorder& recorder() { return *recorder_; }

 private:
  void unlock();

  struct Guards;
  std::shared_ptr<tracer::Recorder> recorder_;
  std::shared_ptr<tracer::StorageLock> lock_;  // set for a strict scope
  std::unique_ptr<Guards> guards_;
};

// True if a scope records the operators of this thread.
bool is_recording();
// The recorder of the innermost scope around the running code; nullptr where there is none.
tracer::Recorder* innermost_recorder();

// The innermost scope, and the number of the value that `tensor` holds in it. Nothing if
// no scope records this thread (inside of an operator's kernel, for example), or if the memory
// belongs to the host so far.
std::optional<std::pair<uintptr_t, tracer::ValueId>> recorded_value(const at::Tensor& tensor);

// Nothing that this thread runs while it stands is recorded, and strict scopes let it read: for
// looking at values, like printing.
class Unrecorded {
 public:
  Unrecorded();
  ~Unrecorded();
  Unrecorded(const Unrecorded&) = delete;
  Unrecorded& operator=(const Unrecorded&) = delete;

 private:
  struct Guards;
  std::unique_ptr<Guards> guards_;
};

// Stands while the handler of a mode runs that took an operator's place (a TorchDispatchMode of
// Python). LibTorch hides what it calls from everything above Python's key; with this, scopes
// record it. A mode without it is an error in a scope.
class InsideMode {
 public:
  InsideMode();

 private:
  std::optional<c10::impl::ForceDispatchKeyGuard> seen_;
};

// In every scope around the running code; see tracer::Recorder.
void remark(const std::string& text);
// The module that runs from here on, in every scope around the running code; its end.
void enter_module(const std::string& path);
void leave_module();
// A generator of the caller's, before the first operator: what the program does to it before it
// draws first is seen, too.
void watch_generator(const at::Generator& generator);

}  // namespace flashlight
