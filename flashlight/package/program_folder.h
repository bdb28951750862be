// A program as a folder of C++ to build and ship: it needs a compiler, and neither Flashlight nor
// LibTorch. A backend gives the code; the files around it are the same for all.
//
//   write_program(capture, {.source = source, .functions = …}, "bert_cpp");
//   // cd bert_cpp && cmake -S . -B build && cmake --build build && ./build/bert_base_example
//
// The folder holds
//   model.hpp, model.cpp     the model as a function of C++, its structs of weights, load_weights()
//   model.h, model_c.cpp     the same for C: checks all it is given, and returns a status
//   main.cpp                 runs the saved example and compares with the saved results
//   weights.safetensors      what the code reads, under the model's names; mapped, never copied
//   example.safetensors      the example's inputs and results
//   CMakeLists.txt, flashlight.hpp, flashlight_arena.hpp, safetensors.hpp
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "composit/io/saved_capture.h"
#include "flashlight/package/source.h"
#include "flashlight/toolchain/sources.h"

namespace flashlight::package {

// The code of a program, by whoever wrote it.
struct ProgramCode {
  Source source;                 // but for its text
  std::string structs = {};      // of weights, in model.hpp
  std::string declaration = {};  // of the last function, in model.hpp
  std::string functions = {};    // in model.cpp
  std::string includes = {};     // of model.hpp, beside those of the source
  std::string opening = {};      // of model.cpp, between its #include and its namespace
  std::vector<toolchain::SourceFile> units = {}, headers = {};  // beside those of all programs
  std::vector<std::string> flags = {};                          // with one of -march
  std::string march = "native";                                 // where the user gives no other
  // Bytes for the file of weights and the struct's member `prepared`, undefined if there are none,
  // and what says how they are laid out: only a program that says the same reads them.
  composit::Array prepared = {};
  std::string prepared_by = {};
  bool profiles = false;  // main.cpp has --profile
};

// Outputs are called `output_names` from the first on ("loss", "grad_fc.weight"), and "output.N"
// where these end. Results beyond those of the example are printed by main.cpp, and not compared.
// Replaces what an earlier call wrote. UserError for a graph without an example of its inputs, a
// weight without a value, and a folder that holds somebody else's files.
void write_program(const composit::SavedCapture& capture, ProgramCode code,
                   const std::filesystem::path& folder,
                   const std::vector<std::string>& output_names = {});

// Whether `capture` has an example of its inputs and `folder` may be written: for who works long
// before write_program. UserError as there.
void check_program(const composit::SavedCapture& capture, const std::filesystem::path& folder);

// The value of a parameter or buffer, by its input. UserError where there is none.
composit::Array weight_of(const composit::SavedCapture& capture, const composit::LazyTensor& input);

}  // namespace flashlight::package
