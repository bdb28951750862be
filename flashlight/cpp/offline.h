// A graph as a folder of C++ to build and ship: it needs a compiler, and neither Flashlight nor
// LibTorch.
//
//   write_program(composit::load("bert_base"), "bert_cpp", {.name = "bert_base"});
//   // cd bert_cpp && cmake -S . -B build && cmake --build build && ./build/bert_base_example
//
// The folder holds
//   model.hpp, model.cpp     the model as a function of C++, its structs of weights, load_weights()
//   model.h, model_c.cpp     the same for C: checks all it is given, and returns a status
//   main.cpp                 runs the saved example and compares with the saved results
//   weights.safetensors      what the code reads, under the model's names; mapped, never copied
//   example.safetensors      the example's inputs and results
//   CMakeLists.txt, flashlight.hpp, safetensors.hpp
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "composit/io/saved_capture.h"
#include "flashlight/cpp/aten_call.h"

namespace flashlight::cpp {

struct ProgramOptions {
  std::string name = "program";  // of the namespace, the function, and what model.h declares
  // Of the graph's outputs, from the first on: "loss", "grad_fc.weight"; "output.N" without.
  std::vector<std::string> output_names = {};
  // Operations that become calls of LibTorch where there is no definition of them; the folder is
  // built where LibTorch is, then.
  AtenSchemas aten = {};
};

// Results beyond those of the example are printed by main.cpp, and not compared. Replaces what an
// earlier call wrote. UserError for operations there is no code for, a graph without an example of
// its inputs, a weight without a value, and a folder that holds somebody else's files.
void write_program(const composit::SavedCapture& capture, const std::filesystem::path& folder,
                   const ProgramOptions& options);

}  // namespace flashlight::cpp
