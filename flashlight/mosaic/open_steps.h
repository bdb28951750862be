// A plan as steps that programs of other sizes may share: which text each step runs, on which
// memory, with which numbers.
//
//   const OpenProgram program = open_steps(plan);
//   program.run[0].kernel.text;       // C++ with a mark for each number that depends on sizes
//   program.run[0].kernel.numbers;    // what stands there at these sizes
//
// emit.h writes a program as one text, whose function `run` calls the kernels in order. Here that
// order is data (steps_code.h), and each step has a text of its own (step_texts.h), of which only
// numbers, open ones (text/open_numbers.h), depend on the sizes.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "composit/ir/hash.h"
#include "flashlight/mosaic/emit.h"
#include "flashlight/mosaic/kernels/form.h"
#include "flashlight/mosaic/plan.h"
#include "flashlight/runtime/steps.hpp"
#include "flashlight/text/open_numbers.h"

namespace flashlight::mosaic {

// Memory that a step gets.
struct Place {
  using In = fl::StepMemory;
  In in = In::nothing;
  // Among Source::arguments, the results, Source::weights, OpenProgram::prepared.
  size_t index = 0;
  int64_t offset = 0;  // bytes in the arena
};

struct OpenStep {
  std::string name = {};       // "product_gelu_128x3072x768"
  text::OpenText kernel = {};  // a function `kernel`, after the functions that it calls; or empty
  text::OpenText entry = {};   // what calls it, or the runtime: all of its numbers are data
  composit::Hash key = {};     // of both texts, but for the numbers
  std::string site = {};       // the same step at other sizes has the same; it is the only one here
  Units tiles = {};            // instantiations of the runtime
  std::vector<Place> places = {};     // `at` of the entry
  std::vector<size_t> prepares = {};  // among OpenProgram::prepared, those that it writes
  bool is_kernel = true;              // false: a border, which is not timed
  bool is_waited_for = true;          // the next step needs what it writes
};

// Memory that is filled once.
struct PreparedValue {
  int64_t bytes = 0;
  bool stays = false;  // `run` reads it; else only preparation does
  // Equal values have equal keys, if the weights are the same ones: how it is computed of them.
  composit::Hash key = {};
};

struct OpenProgram {
  Source source;  // without text
  std::vector<OpenStep> prepare, run;
  std::vector<PreparedValue> prepared;
};
OpenProgram open_steps(const Plan& plan);

// In the text of a kernel, the line in front of which its numbers may be declared.
inline constexpr char kDeclarationsMark = '\x02';

}  // namespace flashlight::mosaic
