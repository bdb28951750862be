// Writes a function on the host: launches of kernels, calls of other functions, branches and loops,
// and calls of LibTorch.
//
//   FunctionWriter writer(program, function, /*linked=*/false, views, file, arenas);
//   text::Code body = writer.steps();
//
// Values of a function are pointers. A linked function has a `fl::Session` and throws; others have
// a `cudaStream_t` and return a `cudaError_t`. Numbers that decide are read on the host, which
// waits for them.
#pragma once

#include <memory>
#include <set>
#include <string>
#include <vector>

#include "flashlight/cuda/kernels.h"
#include "flashlight/cuda/views.h"

namespace flashlight::cuda {

// Bytes of the arena that a function needs, with those that it calls.
using ArenaBytes = Table<FunctionId, int64_t>;

class FunctionWriter {
 public:
  // `arenas`: of the functions before this one. The last function is the program's own: it owns
  // what LibTorch makes for its results.
  FunctionWriter(const Program& program, FunctionId function, bool linked, const Views& views,
                 File& file, ArenaBytes& arenas);

  text::Code steps();
  // A function of the program that others call, whole.
  text::Code definition();

  Kernels& kernels() { return kernels_; }
  // True for a value that LibTorch makes, in memory of its own.
  bool is_made_by_libtorch(ValueId value) const { return made_.count(value) > 0; }
  // The tensor that owns the memory of a value.
  const std::string& memory(ValueId value);
  // Declares the pointer to it.
  text::Code pointer(ValueId value);
  // "{2, 3}", as the model has them.
  std::string sizes(ValueId value) const;

 private:
  text::Code step(StepId number);
  text::Code launch(const Nest& nest);
  text::Code invocation(const Invocation& invocation);
  text::Code branch(const Control& control);
  text::Code loop(const Control& control);
  text::Code aten_call(const RuntimeCall& call, StepId step);
  text::Code guard(const RuntimeCall& guard) const;
  text::Code released(StepId step);

  text::Code checked(const std::string& function, const std::vector<std::string>& arguments) const;
  text::Code call_of(FunctionId function, std::vector<std::string> arguments);
  // Adds pointers for inputs or results of a function from number `first` on. `slot`: of a
  // sequence, the number of the element that is passed; empty: all.
  void pass(const ValueIds& values, FunctionId function, size_t first, bool is_const,
            const std::string& slot, std::vector<std::string>& arguments) const;
  std::string passed(ValueId value) const;
  std::string count(ValueId value) const;
  std::string bytes(ValueId value) const;
  // Declares a number and reads it from the device.
  text::Code read(ValueId value, const std::string& name) const;
  text::Code copy(ValueId to, ValueId from) const;
  bool is_result(ValueId value) const;

  const Program& program_;
  const FunctionId number_;
  const Routine& routine_;
  const bool linked_;
  const Views& views_;
  const bool is_main_;
  File& file_;
  ArenaBytes& arenas_;
  std::set<ValueId> made_;
  Kernels kernels_;
  Table<ValueId, StepId> last_uses_;
  Table<ValueId, std::string> memories_;
  int64_t deepest_ = 0;  // bytes of the arena that callees need
};

// All functions of a program. Callees and kernels are whole in `hidden`, of the program's own there
// are the steps. It stays where it is: writers refer to its members.
struct Functions {
  File file;
  Table<FunctionId, Views> views;
  ArenaBytes arenas;
  std::unique_ptr<FunctionWriter> main;
  text::Code steps;
  std::string hidden;
  int64_t arena_bytes = 0;
};
// Nests that calls of LibTorch don't need leave the program.
std::unique_ptr<Functions> write_functions(Program& program, bool linked);

struct Target {
  bool linked = false;  // functions of LibTorch's tensors
  bool graph = false;   // captured in a CUDA graph: the host cannot wait for a number
};
// "[compile] no code for …": steps that functions for the target cannot have.
void check(const Program& program, Target target);

}  // namespace flashlight::cuda
