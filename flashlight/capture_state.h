// The state of a Capture. For the files of this folder only.
#pragma once

#include <atomic>
#include <deque>
#include <functional>
#include <map>
#include <mutex>
#include <optional>

#include "composit/family/numbers.h"
#include "flashlight/capture.h"
#include "flashlight/state_links.h"
#include "tracer/publish.h"
#include "tracer/recorder.h"
#include "tracer/replay.h"

namespace flashlight {

// A number of the replayed graph that differs from call to call: an attribute of node `node`,
// counted as for_each_node does (see tracer::ChangingNumber).
struct ChangingPlace {
  size_t node = 0;
  std::string key;
  composit::NumberFormula formula = {};  // over composit::kCalls, and what callers give
  std::map<std::string, composit::LazyTensor> reads = {};  // names that are numbers of the run
};

class BoundInputs;
struct FollowedNumber;  // followed_numbers.h

// Compiled code of a capture (bound_inputs.h), to which the capture leaves its tensors.
class Heirs {
 public:
  void add(const std::shared_ptr<BoundInputs>& heir);
  void leave(const std::vector<NamedTensor>& inputs);

 private:
  std::mutex mutex_;
  std::vector<std::weak_ptr<BoundInputs>> heirs_;
};

struct CaptureBase::State {
  State() = default;
  ~State();
  State(const State&) = delete;
  State& operator=(const State&) = delete;

  composit::Graph graph;
  bool grad = false;  // grad mode of nodes that do not say otherwise
  Structure arguments, results;
  // Those of a size that a family binds are made when somebody asks for them.
  mutable std::vector<at::Tensor> example_arguments;
  std::function<std::vector<at::Tensor>()> make_arguments;
  std::vector<at::Tensor> example_results;
  at::Tensor example_generator;
  std::vector<NamedTensor> inputs;  // one per graph input; tensors of user inputs are undefined
  // True if some of them, or a constant, have memory that they do not own (from_blob): the program
  // may own it.
  bool borrows_memory = false;
  // A family gave the graph: composites have no inside, and strides of axes of one element say
  // nothing.
  bool of_family = false;
  // The part that replays: the graph, in which the tensors left in `.grad` are further outputs.
  struct Replayed {
    composit::Graph graph;
    std::vector<NamedTensor> inputs;
    std::vector<size_t> gradients;  // per further output: index in `inputs` of its tensor
  };
  Replayed replayed;
  std::map<std::string, std::vector<std::string>> tied;  // further names of a parameter
  std::map<std::string, at::Generator> generators;
  std::vector<std::string> remarks;

  std::atomic<Trust> trust{Trust::seen_once};  // a check may raise it while others call
  bool by_name = false;                        // looks are switched off: no warning says so
  mutable std::atomic<bool> warned{false};
  // Findings of the looks: inputs of equal content, numbers that follow the calls, values that
  // outlive the run.
  std::vector<std::string> notes;
  std::vector<ChangingPlace> changing;
  mutable Heirs heirs;
  // Made when it is compiled: the same with a graph that computes numbers which follow from values.
  mutable std::once_flag made_inside;
  mutable std::shared_ptr<const State> with_numbers_inside;
  std::vector<StateLink> links;  // state that the program puts other tensors in place of
  mutable std::atomic<int64_t> next_call{0};  // for `changing`
  // Indices in `inputs` of state without a name that the program held when it was confirmed.
  struct Held {
    size_t input;
    size_t tensors, storages;  // numbers of references that captures hold
  };
  std::vector<Held> held;

  // Of a capture that never looks: an example of a family may need it (family_state.h).
  std::shared_ptr<tracer::Recording> recording;

  // Runs the program again; empty for a loaded capture.
  Program program;
  std::function<Program(const Structure&)> program_as;  // see TracedProgram::run_as
  NamesOf named;
  TraceOptions options;

  const std::vector<at::Tensor>& shown_arguments() const;

  // Takes graph, inputs, generators and remarks from a recording, and the places of numbers that
  // follow from its values. Returns the records that belong to the steps of a plan of `replayed`.
  std::vector<tracer::RecordId> take(tracer::Recording& recording,
                                     const std::vector<FollowedNumber>& numbers);
  void take(tracer::Published published);  // without `replayed`
  // The plan of `replayed`.
  const tracer::Plan& plan() const;
  // The tensors of graph.inputs() for these arguments, and of replayed.graph.inputs().
  std::vector<at::Tensor> bind(const std::vector<at::Tensor>& arguments) const;
  std::vector<at::Tensor> bind_replay(const std::vector<at::Tensor>& arguments) const;
  // Results of a replay. `numbers`: those that callers give. Unless the number of the call is among
  // them, the replay counts as the next one.
  std::vector<at::Tensor> replay(const std::vector<at::Tensor>& arguments,
                                 const composit::NumberValues& numbers = {}) const;
  // True if numbers that differ from call to call follow from what the graph reads of its values.
  bool follows_own_values() const;
  // UserError if numbers follow the calls, since `what` needs fixed ones.
  void expect_fixed_numbers(const char* what) const;
  void expect_state_is_held() const;
  // The number of references that this state holds to the tensor.
  size_t references(const at::Tensor& tensor) const;
  // Sets `held`. `versions`: all states that may refer to the same tensors, this one included.
  void note_held_state(const std::deque<std::shared_ptr<State>>& versions);

 private:
  std::vector<at::Tensor> run_plan(const std::vector<at::Tensor>& arguments,
                                   const composit::NumberValues& numbers) const;

  mutable std::once_flag made_arguments_;
  mutable std::once_flag planned_;
  mutable std::optional<tracer::Plan> plan_;
  mutable std::mutex counting_;
};

// A tensor per input: the arguments in their places, the others' own. UserError for another number
// of arguments than `structure` has.
std::vector<at::Tensor> bind_inputs(const std::vector<NamedTensor>& inputs,
                                    const std::vector<at::Tensor>& arguments,
                                    const Structure& structure);

// One run of `program` inside a scope, with all that is named.
struct ProgramRun {
  FlatValues results;
  std::unique_ptr<tracer::Recording> recording;
  std::vector<tracer::RecordId> records;  // by step of a plan of its state, set by state_of
};
ProgramRun run_recorded(const Program& program, const FlatValues& arguments,
                        const std::vector<NamedTensor>& named, const TraceOptions& options,
                        const tracer::Recorder::Observer& observer = nullptr);

// The state of the generator that programs draw from by default.
at::Tensor default_generator_state();

// The state of a capture of this run, which takes its results. `arguments`: as they were before the
// run, in memory of their own; `generator`: the state of the default generator then.
std::shared_ptr<CaptureBase::State> state_of(ProgramRun& run, FlatValues arguments,
                                             at::Tensor generator);

// True if the tracer gave this name: "parameter_0", "buffer_0", "state_0".
bool is_unnamed(const std::string& name);

// True if an operator of the run drew random numbers.
bool draws(const tracer::Recording& recording);

// Copies of an example, for readers and tests. They do not alias each other, as the originals may.
std::vector<at::Tensor> copies_of(const std::vector<at::Tensor>& tensors);

// Results of the program as a replay gives them: without an autograd graph, and in memory that
// neither the program nor anything it wrote shares.
std::vector<at::Tensor> own_results(const std::vector<at::Tensor>& results,
                                    const tracer::Recording& recording);

// Computes the outputs of `graph` for these inputs, without the graph's writes.
std::vector<at::Tensor> evaluate_by(const composit::Backend& backend, const composit::Graph& graph,
                                    const std::vector<at::Tensor>& inputs);

// The schemas of the operators that LibTorch is called with, in-place originals included; an empty
// text for one it does not have.
std::vector<std::string> schemas_of(const composit::Graph& graph);

// Calls `visit` with every node of the graph, those of regions included.
template <class Visit>
void for_each_node(const composit::Graph& graph, Visit visit) {
  for (const composit::NodePtr& node : graph.nodes()) {
    visit(*node);
    if (const composit::Attribute* body = node->find_run("body"))
      for_each_node(*body->as<composit::Region>(), visit);
  }
}

}  // namespace flashlight
