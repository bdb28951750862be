// One function of a program as C++: its loops in the order of the schedule, temporaries in the
// arena.
#pragma once

#include <map>
#include <set>
#include <string>
#include <vector>

#include "flashlight/loops/program.h"
#include "flashlight/loops/runs.h"
#include "flashlight/loops/schedule.h"
#include "flashlight/text/code.h"
#include "flashlight/text/nest_writer.h"
#include "flashlight/text/weights.h"

namespace flashlight::text {

using namespace loops;
using loops::Program;

// What callers need to know of a function.
struct Signature {
  std::string name;
  bool has_weights = false, has_arena = false, has_generator = false;
  int64_t arena_bytes = 0;
};

// Code of a function that belongs together, and its steps that are written there, in order.
struct WrittenPiece {
  Code code;
  StepIds steps;
};

class RoutineWriter {
 public:
  RoutineWriter(const Program& program, FunctionId number, const std::vector<WeightStruct>& structs,
                const std::vector<Signature>& callees);
  Function write();
  const Signature& signature() const { return signature_; }
  // The steps in the order in which they are written.
  Table<StepId, Step> steps_in_order() const;
  bool is_in_order() const;
  // After write(), for steps in that order.
  const std::vector<WrittenPiece>& pieces() const { return pieces_; }
  // "const float (&x)[3]", per argument and result. After write(), which knows what is not used.
  std::vector<std::string> parameters() const;

 private:
  StepIds order_of_steps() const;
  void name_values();
  void name_runs();
  void plan_arena();
  bool is_local(ValueId value) const;
  bool in_arena(ValueId value) const;
  Code items(const std::vector<Item>& items, std::vector<std::string>& loops,
             std::vector<size_t>& path);
  Code declarations(const Item& item, const std::vector<size_t>& path);
  Code step(StepId number, const std::vector<std::string>& loops);
  Code branch(const Control& control);
  Code blocks(const Control& control);
  Code zeros(ValueId value) const;
  Code control(const Control& control,
               const std::vector<std::string>& loops);  // control_writer.cpp
  std::string number(ValueId value) const;
  Code constants() const;
  Element element(ValueId value, const std::vector<std::string>& indices) const;
  // The name of a value that is going to be written.
  const std::string& use(ValueId value) const;
  bool declares(ValueId value) const;
  Code heading() const;
  std::string loop_name(const std::vector<std::string>& loops);

  // call_writer.cpp
  Code invocation(StepId number, const Invocation& call, const std::string& index = "");
  // Calls in a loop; two places take turns for what one gives to the next.
  Code rolled(const Run& run);
  Code runtime_call(const RuntimeCall& call) const;
  Code aten_call(const RuntimeCall& call) const;
  // Its arguments or results.
  std::vector<std::string> rows(const RuntimeCall& call, bool is_const) const;
  // A call of function `function`: what stands for its inputs and results, the arena.
  Code call_of(FunctionId function, std::vector<std::string> arguments) const;
  // What stands for values as the inputs (`is_const`) or results of a function from `first` on; of
  // element `index` along their first dimension, if that is given.
  void pass(const ValueIds& values, FunctionId function, size_t first, bool is_const,
            const std::string& index, std::vector<std::string>& arguments) const;
  std::string whole(ValueId value, const Type& as, bool is_const) const;

  const Program& program_;
  const FunctionId number_;
  const Routine& function_;
  const std::vector<WeightStruct>& structs_;
  const std::vector<Signature>& callees_;
  Schedule schedule_;
  std::vector<Run> runs_;
  std::vector<WrittenPiece> pieces_;
  struct Turns {
    std::string name;
    ValueId array;
    StepId last_step;  // the value that has the array's place; how long it is needed
  };
  std::map<ValueId, Turns> turns_;  // by value
  Signature signature_;
  std::set<std::string> taken_;          // names
  mutable std::set<ValueId> mentioned_;  // in the body
  std::vector<std::string> names_;       // by value
  std::vector<int64_t> offsets_;         // by value
  Table<ValueId, StepIds> writers_;
  std::set<ValueId> declared_;
  int64_t own_bytes_ = 0;
};

}  // namespace flashlight::text
