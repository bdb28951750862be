// One run of a program for a look: its results, the memory it wrote, and how a replay compares.
#pragma once

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "flashlight/capture_state.h"
#include "flashlight/saved_state.h"
#include "flashlight/value_samples.h"

namespace flashlight {

// Notices writes to memory that only operators should write.
class WatchedMemory {
 public:
  // `whole`: see digest_of_memory.
  void add(const at::Tensor& tensor, const std::string& name, int64_t whole = kWholeMemory);
  // The name of the first tensor whose content changed although the recording knows no write to it;
  // empty if there is none.
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

// Replays `run.state` on its inputs as they were before the run. `difference` names the first
// result or write of the replay that differs from the program's; empty if all bits are equal.
struct Verification {
  std::string difference;
  std::vector<at::Tensor> results;
};
Verification verify(const LookRun& run, const std::vector<at::Tensor>& arguments, int64_t call);

// A line for each value that a run made and that outlives it, besides results and gradients.
std::vector<std::string> living_values(const tracer::Recording& recording,
                                       const std::vector<at::Tensor>& results);

}  // namespace flashlight
