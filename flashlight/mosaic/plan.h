// The plan for a graph: its kernels in their order, the memory of each value, the work that is done
// once beforehand.
//
//   const Plan plan = plan_of(graph);
//   std::cout << print(plan);            // each kernel, and what is fused in it
//
// A plan is data between the program of loops (flashlight/loops/program.h) and the text (emit.h).
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "composit/ir/graph.h"
#include "composit/op/ports.h"
#include "flashlight/loops/program.h"
#include "flashlight/loops/scheduled.h"
#include "flashlight/mosaic/choices.h"
#include "flashlight/mosaic/ids.h"
#include "flashlight/mosaic/layout.h"
#include "flashlight/mosaic/layout_cost.h"

namespace flashlight::mosaic {

// The data that a form of kernels keeps of one kernel.
struct KernelData {
  virtual ~KernelData() = default;
};
struct KernelForm;

// The work that the threads of a kernel divide.
struct Split {
  enum class Of : uint8_t {
    nothing,   // one thread does all
    rows,      // of a product; of loops, the rounds of the outermost one
    columns,   // of a product, or of what is packed
    products,  // of a batch
    queries,   // of attention, of all heads
  };
  Of of = Of::nothing;
  int64_t parts = 0;  // how many of these there are
};

struct Kernel {
  const KernelForm* form = nullptr;  // kernels/forms.h
  StepIds steps = {};                // of the routine
  std::shared_ptr<const KernelData> data = nullptr;
  Split split = {};
  std::optional<ValueId> scratch = {};  // a value that is memory for what one thread does alone
  std::string ends = {};                // of loops: why the next step is not in them
};

// The memory that a value lies in.
enum class Home : uint8_t {
  caller,    // arguments, weights, results
  arena,     // from the kernel that writes it to the last one that reads it
  prepared,  // from preparation on
  kernel,    // inside of one kernel
};

struct Plan {
  std::string name;  // of the program
  composit::Ports ports;
  loops::Routine routine;  // in terms of memory: see layout.h
  // The functions that branches, loops and calls of the routine call, callees first. All their
  // inputs are arguments.
  Table<loops::FunctionId, loops::Routine> functions;
  Table<loops::FunctionId, loops::ScheduledRoutine> schedules;  // of the functions
  std::map<ValueId, Layout> layouts;
  // The cost of these layouts, and the cost if all values were row-major: layout_cost.h.
  Relayouts relayouts, row_major_relayouts;
  std::map<ValueId, Choice> choices;  // by value
  std::vector<Kernel> prepare, run;
  std::vector<bool> frozen;  // by value: known at preparation, packed weights included
  Table<ValueId, Home> homes;
  Table<ValueId, int64_t> offsets;  // bytes, in the arena or in what is prepared
  // By value that is written over another one, in its memory: which.
  std::map<ValueId, ValueId> in_place;
  // By result that is an input's new value and may be written in its memory: that input. If
  // the writing kernel also reads that input (see `in_place`), writing in place is required.
  std::map<ValueId, ValueId> updates;
  // What is prepared for `run` comes first; behind it lies what preparation alone needs, up to
  // `preparation_bytes`.
  int64_t arena_bytes = 0, prepared_bytes = 0, preparation_bytes = 0;
  // The bytes of all values in the arena together, and the most bytes that live at the same time; a
  // value that is written in place of another one counts once.
  int64_t sum_bytes = 0, least_bytes = 0;
};

struct PlanOptions {
  std::string name = "program";
  std::vector<std::string> results = {};
  // If true, parameters and buffers that the graph does not write keep the values that they have at
  // preparation.
  bool freeze = true;
  // If true, convolutions may be computed by Winograd's algorithm. It adds in another order, so its
  // rounding errors differ.
  bool winograd = true;
  // If true, products of matrices may be computed by Strassen's algorithm, whose rounding errors
  // differ as well.
  bool strassen = true;
  // What products of float32 are computed of: float32, or bfloat16, to which both sides are
  // rounded. A product that another algorithm computes as fast in float32 stays one of float32.
  composit::DType products = composit::DType::float32;
  // What values of float32 that a kernel leaves for others are stored as: float32 or bfloat16.
  composit::DType values = composit::DType::float32;
  // True if the processor has a unit for matrices, of bfloat16 among others
  // (runtime/matrix_unit.hpp). Then no algorithm saves time that multiplies fewer numbers without
  // it.
  bool has_matrix_unit = false;
  // Weights of one convolution, transformed beforehand, take so much at most. Larger ones are
  // transformed in each call, 4/9 (F(2x2)) to 1/4 (F(4x4)) as large: Stable Diffusion's UNet
  // has 3.6 GB of packed weights instead of 4.3, and takes 1 % longer.
  int64_t winograd_bytes = int64_t{64} << 20;
  // If true, the new value of an input is written in the input's memory where no kernel reads the
  // input after the one that writes its new value, and no call is refused from there on.
  bool update_inputs = false;
  bool update_weights = true;  // of these inputs: parameters and buffers as well
  Choices choices = {};
};

// UserError that lists all operations there is no code for; and for a choice that cannot be: which,
// and why not.
Plan plan_of(const composit::Graph& graph, const PlanOptions& options = {});

std::string print(const Plan& plan);

// The choice for a value; empty if there is none.
const Choice& choice_of(const Plan& plan, ValueId value);
// UserError: "[mosaic] 'relu_3' " and why its choice cannot be.
[[noreturn]] void refuse_choice(const Plan& plan, ValueId value, const std::string& why);

}  // namespace flashlight::mosaic
