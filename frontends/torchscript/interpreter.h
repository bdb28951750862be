// Runs TorchScript's graphs with values that composit's graph computes, and so makes that graph.
//
//   Interpreter interpreter(functions, names, limits);
//   const at::Tensor x = interpreter.state().tensor(composit::input("x", type));
//   const IValue y = interpreter.call(*functions.find("f"), {x});
//   interpreter.state().value(y.toTensor());                       // what f computes
//
// An operator on tensors becomes the node of its schema. A condition that is known while the graph
// is made is decided then; one that is computed becomes composit::cond, composit::while_loop or
// composit::scan.
#pragma once

#include <torch/csrc/jit/ir/ir.h>

#include <map>
#include <string>
#include <unordered_map>
#include <vector>

#include "composit/ops/tracing.h"
#include "frontends/torchscript/limits.h"
#include "frontends/torchscript/place.h"
#include "frontends/torchscript/source.h"
#include "frontends/torchscript/state.h"
#include "frontends/torchscript/structure.h"

namespace flashlight::torchscript {

// The names of a module's parts, by the address of tensor or object.
struct NamedInput {
  std::string name;
  composit::InputKind kind = composit::InputKind::parameter;
};
struct ModuleNames {
  std::unordered_map<const void*, NamedInput> tensors;  // parameters and buffers
  std::unordered_map<const void*, std::string> modules;
};

// An interpreter whose call has thrown must not be used again.
class Interpreter {
 public:
  // `floats`: what a Python float is computed in.
  Interpreter(const Functions& functions, const ModuleNames& names, const Limits& limits,
              composit::DType floats = composit::DType::float64)
      : functions_(functions), names_(names), limits_(limits), floats_(floats) {}

  IValue call(torch::jit::Function& function, std::vector<IValue> arguments);
  State& state() { return state_; }
  composit::DType floats() const { return floats_; }
  // A tensor of a module that is an input of the graph; in the order of first use.
  struct Parameter {
    at::Tensor tensor;
    composit::LazyTensor input;
  };
  const std::vector<Parameter>& parameters() const { return parameters_; }

  // Tensors, and numbers as tensors of what `dtype_of` says.
  composit::LazyTensor tensor_of(const IValue& value);

 private:
  using Node = torch::jit::Node;
  using Block = torch::jit::Block;
  using Values = std::vector<IValue>;
  using LazyTensor = composit::LazyTensor;
  using LazyTensors = composit::LazyTensors;
  using Handler = void (Interpreter::*)(Node*);
  using Environment = std::unordered_map<const torch::jit::Value*, IValue>;

  // interpreter.cpp
  static const std::unordered_map<c10::Symbol, Handler>& handlers();
  Values run(Block* block, const Values& arguments);
  void run(Node* node);
  void run_operator(Node* node);
  void run_native(Node* node, Values inputs);
  const IValue& get(const torch::jit::Value* value) const { return environment_->at(value); }
  Values inputs_of(const Node* node) const;
  void set(Node* node, const Values& values);
  void set_output(Node* node, IValue value);
  IValue registered(const IValue& value);
  void register_tensor(const at::Tensor& tensor);

  // calls.cpp: nodes of TorchScript that are no operators
  void constant(Node* node);
  void call_function(Node* node);
  void call_method(Node* node);
  void call_recursive(Node* node);
  IValue beyond_depth(Node* node, const std::string& name);
  void get_attribute(Node* node);
  void set_attribute(Node* node);
  void create_object(Node* node);
  void make_list(Node* node);
  void make_tuple(Node* node);
  void make_dict(Node* node);
  void unpack(Node* node);
  void slice_tuple(Node* node);
  void not_assigned(Node* node);
  void pass_on(Node* node);
  void is_instance(Node* node);
  void raise(Node* node);
  void refuse(Node* node);
  void device(Node* node);

  // operators.cpp
  void run_tensor_operator(Node* node, const Values& inputs);
  bool run_special(Node* node, const Values& inputs);
  LazyTensors apply(Node* node, const std::string& name, const Values& inputs);
  void return_results(Node* node, const Values& inputs, const LazyTensors& results);
  void return_views(Node* node, const Values& inputs, const LazyTensors& results);
  void write_in_place(Node* node, const Values& inputs);
  void convert(Node* node, const Values& inputs);
  void make_tensor(Node* node, const Values& inputs);
  LazyTensor stacked(const IValue& data);
  void select(Node* node, const Values& inputs);
  ViewStep item_step(const LazyTensor& x, int64_t axis, const LazyTensor& index);
  LazyTensor item_at(const LazyTensor& x, const ViewStep& step);
  void item_of_list(Node* node, const Values& inputs);

  // numbers.cpp
  bool run_number_operator(Node* node, const Values& inputs);
  void derive_index(Node* node, const Values& inputs);
  void read_number(Node* node, const IValue& value);
  composit::ArgumentValue number_argument(const IValue& value, composit::DType dtype);
  composit::DType number_dtype(const IValue& value);
  std::optional<composit::DType> dtype_of(const c10::TypePtr& type) const;
  void set_number(Node* node, const LazyTensor& value);
  void check_numbers_known(Node* node, const Values& inputs);

  // branches.cpp The results of a block, and its writes.
  struct Ending {
    Values outputs;
    std::unordered_map<const void*, LazyTensor> values;  // of tensors among these, at the end
    Changes changes;
    Mark mark;                                    // where it began
    std::unordered_map<const void*, int> leaves;  // of results and lists, by the memory they show
  };
  void end(Values outputs, const Mark& mark, Ending& ending);
  LazyTensor value_in(const Ending& ending, const IValue& leaf);
  // Which tensors from before the block a leaf of its results may be, and when (always, where there
  // is no `selected`); nothing where that is not known.
  std::optional<std::vector<Alternative>> alternatives_in(const Ending& ending, const IValue& leaf);
  // Two leaves as tensors of one type; UserError where they have none.
  std::pair<LazyTensor, LazyTensor> alike(const Ending& ending_a, const IValue& a,
                                          const Ending& ending_b, const IValue& b);
  bool is_python_number(const IValue& value) const {
    return value.isScalar() || state_.is_number(value);
  }
  struct Arm;
  struct Joint;
  void branch(Node* node);
  void take_both(Node* node, const LazyTensor& predicate);
  Arm run_arm(Block* block);
  void join(Joint& joint, const IValue& a, const IValue& b);
  IValue joined(Joint& joint, const IValue& a, const IValue& b);

  // loops.cpp
  struct Loop;
  struct Trip;
  void loop(Node* node);
  bool unroll(Node* node, Loop& loop);
  void repeat(Node* node, Loop& loop);
  Trip trip(Node* node, Loop& loop);
  bool widen(Loop& loop, const Trip& trip);
  void check_names(const Loop& loop, const Trip& trip);
  void scan(Node* node, Loop& loop, Trip& trip);
  IValue appended_item(const Trip& trip, const IValue& item, const LazyTensor& all, int64_t i);
  void repeat_while(Node* node, Loop& loop, Trip& trip);
  void run_body(Block* body, const Loop& loop, Trip& trip, const Mark& mark,
                const LazyTensors& blocks);
  void finish(Node* node, const Loop& loop, const Trip& trip, const LazyTensors& results,
              const LazyTensor& never);
  LazyTensors next_values(const Loop& loop, const Trip& trip);

  // Tensors from which the body of a loop takes a slot along the first axis, at the counter or at
  // start + step * counter.
  struct Taken {
    LazyTensor slot, from;
    int64_t start = 0, step = 1;
  };
  struct Counter {
    LazyTensor index;
    int64_t start = 0, step = 1;
  };
  struct Slots {
    std::vector<Counter> counters;
    std::vector<Taken> taken;
  };
  const Counter* counter_of(const LazyTensor& index) const;
  static LazyTensors cut_at_slots(composit::Traced& body, const Slots& slots, int64_t length);

  // While something runs that may not be run.
  class Undecided {
   public:
    explicit Undecided(int64_t& branches) : branches_(branches) { ++branches_; }
    ~Undecided() { --branches_; }
    Undecided(const Undecided&) = delete;
    Undecided& operator=(const Undecided&) = delete;

   private:
    int64_t& branches_;
  };

  const Functions& functions_;
  const ModuleNames& names_;
  Limits limits_;
  composit::DType floats_;
  State state_;
  Environment* environment_ = nullptr;
  std::vector<Parameter> parameters_;
  std::map<std::string, int64_t> depth_;  // of recursive functions
  int64_t branches_ = 0;                  // that run although they may not be taken
  std::vector<Slots*> slots_;
  std::string scope_;  // the module whose method runs
};

}  // namespace flashlight::torchscript
