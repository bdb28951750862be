// What mosaic does with a graph: kernels in their order, where values lie, what is done beforehand.
//
//   const Plan plan = plan_of(graph);
//   std::cout << print(plan);            // each kernel, and what is fused in it
//
// A plan is data between the program of loops (flashlight/loops/program.h) and the text (emit.h).
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "composit/ir/graph.h"
#include "composit/op/ports.h"
#include "flashlight/loops/program.h"
#include "flashlight/mosaic/attention.h"
#include "flashlight/mosaic/choices.h"
#include "flashlight/mosaic/layout.h"
#include "flashlight/mosaic/layout_cost.h"
#include "flashlight/mosaic/product.h"

namespace flashlight::mosaic {

struct Kernel {
  enum class Form : uint8_t {
    loops,    // nests that share their outermost loop, which threads divide
    product,  // a sum of products by register tiles
    pack,     // the packed side of one
    attention,
    border,  // zeros around a value
  };
  Form form = Form::loops;
  std::vector<size_t> steps;            // of the routine: loops, product
  int64_t trips = 0;                    // of the loop that is divided; 0: one thread does all
  std::optional<Product> product = {};  // product, pack
  std::optional<Attention> attention = {};
  size_t packed = 0;  // the value that holds the panels: product, pack
  // product, pack: tiles of so many pixels are computed by Winograd's algorithm; 0: directly
  int winograd = 0;
  // product: its weights are packed as they are, and transformed in each call
  bool plain_weights = false;
  bool strassen = false;               // product: halves of its sides are, by Strassen's algorithm
  std::optional<size_t> factor = {};   // pack: the value that its columns are multiplied with
  size_t value = 0;                    // border
  std::optional<size_t> scratch = {};  // a value that is memory for what one thread does alone
  std::string ends = {};               // loops: why the next step is not in them
};

// Where a value lives.
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
  // What its branches, loops and calls call, callees first; their inputs are all arguments.
  std::vector<loops::Routine> functions;
  std::map<size_t, Layout> layouts;
  // What these layouts cost, and what it would be if all values were row-major: layout_cost.h.
  Relayouts relayouts, row_major_relayouts;
  std::map<size_t, Choice> choices;  // by value
  std::vector<Kernel> prepare, run;
  std::vector<bool> frozen;      // by value: known at preparation, packed weights included
  std::vector<Home> homes;       // by value
  std::vector<int64_t> offsets;  // by value: bytes, in the arena or in what is prepared
  // By value that is written over another one, in its memory: which.
  std::map<size_t, size_t> in_place;
  // By result that is an input's new value and may be written in its memory: that input. Where the
  // kernel that writes it reads the input as well, which `in_place` says then, it has to be.
  std::map<size_t, size_t> updates;
  int64_t arena_bytes = 0, prepared_bytes = 0;
  // What all values in the arena take together, and those that live at the same time at most, what
  // is written in place counted once.
  int64_t sum_bytes = 0, least_bytes = 0;
};

struct PlanOptions {
  std::string name = "program";
  std::vector<std::string> results = {};
  // Whether parameters and buffers that the graph does not write keep the values they have at
  // preparation.
  bool freeze = true;
  // Whether convolutions may be computed by Winograd's algorithm, whose rounding errors are those
  // of other sums.
  bool winograd = true;
  // Whether products of matrices may be computed by Strassen's algorithm; the same holds for it.
  bool strassen = true;
  // Weights of one convolution, transformed beforehand, take so much at most. Larger ones are
  // transformed in each call, 4/9 (F(2x2)) to 1/4 (F(4x4)) as large: Stable Diffusion's UNet
  // has 3.6 GB of packed weights instead of 4.3, and takes 1 % longer.
  int64_t winograd_bytes = int64_t{64} << 20;
  // Whether new values of inputs are written in the memory of those: where nobody reads an input
  // behind the kernel that writes its new value, and no call is refused from there on.
  bool update_inputs = false;
  Choices choices = {};
};

// UserError that lists all operations there is no code for; and for a choice that cannot be: which,
// and why not.
Plan plan_of(const composit::Graph& graph, const PlanOptions& options = {});

std::string print(const Plan& plan);

}  // namespace flashlight::mosaic
