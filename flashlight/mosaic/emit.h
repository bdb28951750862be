// A plan as the text of one C++17 file.
//
//   const Source source = emit(plan_of(graph));
//   source.text;       // kernels, each once, and the functions that call them in order
#pragma once

#include <string>
#include <vector>

#include "flashlight/mosaic/plan.h"
#include "flashlight/mosaic/profile.h"

namespace flashlight::mosaic {

struct Source {
  std::string name, text;
  // const char* NAME_prepare(const void* const* weights, void* prepared, int threads);
  // const char* NAME_run(const void* const* arguments, const void* const* weights,
  //                      void* const* results, void* prepared, void* arena, void* generator,
  //                      int64_t* times, int threads);
  // `generator`: a fl::Generator, of a program that draws.
  // `times`: nullptr, or room for a number per kernel of plan.run that is timed, and one more.
  // nullptr, or what is wrong.
  std::string prepare_name, run_name;
  // The same text as translation units that compile side by side, in so many that none takes long.
  std::vector<std::string> units;
  std::vector<size_t> arguments, weights;  // inputs of the routine that are passed, in this order
  std::vector<composit::Array> constants;  // by place among `weights`: those that are no inputs
  std::vector<std::string> headers;        // beside the backend's: those of its runtime calls
  Profile timed;  // kernels of plan.run in the order of their times, which are open
};

Source emit(const Plan& plan, const std::string& name);

}  // namespace flashlight::mosaic
