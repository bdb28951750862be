// One run of a program for a look: what it gave, what it left, and whether a replay does the same.
#pragma once

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "flashlight/capture_state.h"
#include "flashlight/saved_state.h"
#include "flashlight/value_samples.h"

namespace flashlight {

// The content of memory that only operators should write.
class WatchedMemory {
 public:
  // `whole`: see digest_of_memory.
  void add(const at::Tensor& tensor, const std::string& name, int64_t whole = kWholeMemory);
  // The name of the first tensor whose content changed, though the recording knows no write to it;
  // empty where there is none.
  std::string written_unseen(const tracer::Recording& recording) const;

 private:
  struct Watched {
    at::Tensor tensor;
    const c10::StorageImpl* storage;
    std::string name;
    int64_t whole;
    uint64_t digest;
  };
  std::vector<Watched> watched_;
};

struct LookRun {
  using Tensors = std::vector<at::Tensor>;

  explicit LookRun(const GeneratorStates& generators) : before(generators), after(generators) {}

  ProgramRun program;                     // its results own their memory
  std::vector<tracer::RecordId> records;  // by step of a plan of the state's graph
  std::shared_ptr<CaptureBase::State> state;
  ValueSamples samples;
  WatchedMemory memory;
  GeneratorStates before, after;
};

// Replays `run.state` on its inputs as they were before the run. `difference` says what the replay
// gave or wrote that the program did not; empty where all is equal, bit for bit.
struct Verification {
  std::string difference;
  std::vector<at::Tensor> results;
};
Verification verify(const LookRun& run, const std::vector<at::Tensor>& arguments, int64_t call);

// A line for each value that a run made and that lives on, besides results and gradients.
std::vector<std::string> living_values(const tracer::Recording& recording,
                                       const std::vector<at::Tensor>& results);

}  // namespace flashlight
