// Writes one function of a program as C++: its loops in the order of the schedule, temporaries in
// the arena.
#pragma once

#include <map>
#include <set>
#include <string>
#include <vector>

#include "flashlight/loops/program.h"
#include "flashlight/loops/scheduled.h"
#include "flashlight/text/code.h"
#include "flashlight/text/nest_writer.h"
#include "flashlight/text/weights.h"

namespace flashlight::text {

using namespace loops;
using loops::Program;

// How the text refers to a value's elements: as an array; where only the first of its sizes is no
// constant, as a pointer to what that indexes; elsewhere as fl::View, for C++ has no type for
// arrays of other sizes. Where all numbers are open: as a pointer to the first element, with one
// index.
enum class Form { array, rows, view, flat };

// The form of an array of this type where names of sizes are set (open_numbers.h).
Form form_of(const Type& type);
// "float (*x)[768]" for a `declarator` "x" of form `rows`, "fl::View<float, 2> x" for a view.
std::string declared(const Type& type, const std::string& declarator);
// The type of a parameter that is no array: "const float (*)[768]".
std::string parameter_type(const Type& type, bool is_const);
std::string view_of(const std::string& pointer, const Type& type);
// The memory of rows or of a view as one of another type.
std::string moved(const std::string& text, const Type& type, const Type& as, bool is_const);

// The properties of a function that its callers need to know.
struct Signature : Needs {
  std::string name;
  bool has_weights = false;
};

// Code of a function that belongs together, and the steps that it runs, in order.
struct WrittenPiece {
  Code code;
  StepIds steps;
};

// The steps in an item.
std::set<StepId> steps_of(const Item& item);

// True for a temporary on the stack.
bool is_local(const Routine& function, const ScheduledRoutine& scheduled, ValueId value);

class RoutineWriter {
 public:
  // `scheduled` has the function and its callees. All arguments must outlive this.
  RoutineWriter(const Program& program, FunctionId number, const std::vector<WeightStruct>& structs,
                const Table<FunctionId, ScheduledRoutine>& scheduled);
  Function write();
  const Signature& signature() const { return signature_; }
  // Call after write(): the pieces in the order in which they are written.
  const std::vector<WrittenPiece>& pieces() const { return pieces_; }
  // "const float (&x)[3]", per argument and result. Call after write(), which finds unused ones.
  std::vector<std::string> parameters() const;

 private:
  void name_values();
  void name_runs();
  bool is_local(ValueId value) const {
    return text::is_local(function_, scheduled_[number_], value);
  }
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
  Form form(ValueId value) const;
  Element flat_element(ValueId value, const std::vector<std::string>& indices) const;
  Code flat_declaration(ValueId value) const;
  // Memory that a value takes while the function runs; sized_values.cpp.
  struct Taken {
    std::string name;  // of the value that took it
    Type type;
    size_t last_item;  // that needs it
  };
  void find_last_items();
  Taken* free_memory(const Type& type);
  Code taken_declaration(ValueId value, bool takes_turns);
  // The name of a value, which is thereby mentioned in the body.
  const std::string& use(ValueId value) const;
  bool declares(ValueId value) const;
  Code heading() const;
  std::string loop_name(const std::vector<std::string>& loops);

  // call_writer.cpp
  Code invocation(StepId number, const Invocation& call, const std::string& index = "");
  // Calls in a loop; two halves of an array take turns as results of one and arguments of the next.
  Code rolled(const Run& run);
  Code runtime_call(const RuntimeCall& call) const;
  Code aten_call(const RuntimeCall& call) const;
  // The texts of the call's arguments (`is_const`) or results.
  std::vector<std::string> rows(const RuntimeCall& call, bool is_const) const;
  // A call of `function` with `arguments`, and with arena and generator if it needs them.
  Code call_of(FunctionId function, std::vector<std::string> arguments) const;
  // Appends texts that pass `values` as inputs (`is_const`) or results of `function`, from number
  // `first` on; if `index` is given, only that element along their first dimension.
  void pass(const ValueIds& values, FunctionId function, size_t first, bool is_const,
            const std::string& index, std::vector<std::string>& arguments) const;
  std::string whole(ValueId value, const Type& as, bool is_const) const;
  std::string slot_of(ValueId value, const Type& as, const std::string& index, bool is_const) const;
  // Where its elements begin, and the bytes that they take.
  std::string first_byte(ValueId value) const;
  std::string byte_count(ValueId value) const;

  const Program& program_;
  const FunctionId number_;
  const Routine& function_;
  const std::vector<WeightStruct>& structs_;
  const Table<FunctionId, ScheduledRoutine>& scheduled_;
  const Schedule& schedule_;
  std::vector<WrittenPiece> pieces_;
  std::map<ValueId, std::string> arrays_;  // by result of a run: the array's name
  Signature signature_;
  std::set<std::string> taken_;          // names
  mutable std::set<ValueId> mentioned_;  // in the body
  std::vector<std::string> names_;       // by value
  Table<ValueId, StepIds> writers_;
  std::set<ValueId> declared_;
  // Where sizes are data: memory that was taken, the item that is written, and the last one that
  // needs each value.
  bool takes_memory_ = false;
  std::vector<Taken> taken_memory_;
  size_t item_ = 0;
  Table<ValueId, size_t> last_item_;
};

}  // namespace flashlight::text
