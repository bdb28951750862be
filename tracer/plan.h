// The steps a graph is replayed by. Made by plan.cpp, run by replay.cpp.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "tracer/input_memory.h"
#include "tracer/memory_view.h"
#include "tracer/op_info.h"
#include "tracer/replay.h"

namespace flashlight::tracer {

using Slot = uint32_t;
constexpr Slot kNoSlot = ~0u;

class ControlFlow;

enum class StepKind : uint8_t {
  op,
  memory_view,
  memory_scatter,
  scatter,
  storage,
  storage_zeros,
  storage_resize,
  set_generator,
  generator_state,
  restore_generator,
  definition,  // an operation LibTorch does not have, by composit's definition
  control      // a branch or a loop, whose regions are plans
};

// The source of an argument of the operator.
struct StepArgument {
  enum class Kind : uint8_t { value, tensor, list, out };
  Kind kind = Kind::value;
  bool written = false;
  bool optional_list = false;
  c10::IValue value;        // Kind::value: the argument itself
  std::vector<Slot> slots;  // Kind::tensor: one (kNoSlot: absent); Kind::list: the elements
  uint32_t position = 0;    // of the first slot among the node's operands
};

// An operand that the operator sees as a view of another one's storage.
struct StepView {
  uint32_t position = 0;
  uint32_t object = 0;  // position of the first operand that was the same tensor object
  c10::ScalarType dtype = c10::kFloat;
  std::vector<int64_t> sizes, strides;
  int64_t offset = 0;
  bool conj = false, neg = false;
};

struct Step {
  StepKind kind = StepKind::op;
  bool grad = false;
  bool throws = false;
  const OpInfo* op = nullptr;
  composit::NodePtr node;
  std::vector<StepArgument> arguments;
  std::vector<StepView> views;
  std::vector<Slot> outputs;
  std::vector<Slot> last_uses;  // operands that are not read later
  std::vector<Slot> unused;     // outputs that are not read
  std::vector<c10::Scalar> expected;
  // Arguments that differ from call to call: position on the operator's stack, index into
  // Impl::numbers; of a list, which element.
  struct Changing {
    size_t position, number;
    std::optional<size_t> element = {};
  };
  std::vector<Changing> numbers = {};
  // Operands that are constants whose number is read in the run.
  std::vector<std::pair<Slot, size_t>> constants_read = {};  // index into Impl::numbers
  std::vector<Slot> reads = {};                              // what both of them read
  bool guards = false;                                       // compare numbers with `expected`
  at::Generator generator;              // set_generator, generator_state, restore_generator
  at::Tensor state;                     // set_generator
  StepView view;                        // memory_view, memory_scatter
  std::vector<c10::IValue> attributes;  // scatter: the view operator's further arguments
  std::shared_ptr<const ControlFlow> control_flow = {};
};

// A node that reads the storage of an input beyond what the input shows: `count` bytes, of which
// `begin` lie before the first element.
struct UsedStorage {
  const composit::Node* node;
  size_t input;  // index into graph.inputs()
  int64_t begin, count;
};
// Captures of former versions do not say where in the storage an input lies: none of theirs.
std::vector<UsedStorage> used_storages(const composit::Graph& graph);

struct Plan::Impl {
  composit::Graph graph;
  bool pin_strides = true;
  bool autograd = false;
  bool as_program = false;
  bool pin_types = true;
  bool region = false;
  std::vector<Step> steps;
  std::vector<at::Tensor> initial;  // slots at the begin: constants
  std::vector<Slot> inputs, outputs;
  std::vector<ChangingNumber> numbers;
  std::vector<std::map<std::string, Slot>> reads;           // by number
  std::vector<std::pair<Slot, size_t>> changing_constants;  // index into `numbers`
  InputMemory memory;
  std::vector<UsedStorage> storages;
  struct Mutation {
    size_t input;  // index into graph.inputs()
    Slot value;
    bool alone;  // no other input lies in its memory
  };
  std::vector<Mutation> mutations;
  // From this step on no call can fail, whatever the values: inputs may be written in place.
  size_t steady_from = 0;
  std::vector<Plan::Source> made_by;  // per slot; a step beyond the last for inputs and constants
};

}  // namespace flashlight::tracer
