// Writes a program as a folder of C++ to build and ship: it needs a compiler, but neither
// Flashlight nor LibTorch. A backend gives the code; the files around it are the same for all.
//
//   write_program(capture, {.source = source, .functions = …}, "bert_cpp");
//   // cd bert_cpp && cmake -S . -B build && cmake --build build && ./build/bert_base_example
//
// The folder holds
//   model.hpp, model.cpp     the model as a function of C++, its structs of weights, load_weights()
//   model.h, model_c.cpp     the same for C: checks all it is given, and returns a status
//   main.cpp                 runs the saved example and compares with the saved results
//   weights.safetensors      the weights, under the model's names; mapped, never copied
//   example.safetensors      the example's inputs and results
//   CMakeLists.txt, flashlight.hpp, flashlight_arena.hpp, safetensors.hpp
#pragma once

#include <filesystem>
#include <map>
#include <string>
#include <vector>

#include "composit/io/saved_capture.h"
#include "composit/op/backend.h"
#include "flashlight/package/source.h"
#include "flashlight/toolchain/sources.h"

namespace flashlight::package {

// An input or result where sizes are data.
struct SizedPort {
  std::vector<std::string> sizes;  // of each axis: "768", "tokens", "2 * tokens"
  // What the function takes: "const float (*)[768]"; of a view, its elements: "const float"; empty:
  // a reference to an array.
  std::string parameter = {};
  bool is_view = false;
};

// The code of a program, as a backend wrote it.
struct ProgramCode {
  Source source;                 // without its text
  std::string structs = {};      // of weights, in model.hpp
  std::string declaration = {};  // of the last function, in model.hpp
  std::string functions = {};    // in model.cpp
  std::string includes = {};     // of model.hpp, besides those of the source
  std::string opening = {};      // of model.cpp, between its #include and its namespace
  std::vector<toolchain::SourceFile> units = {}, headers = {};  // besides those of all programs
  std::vector<std::string> flags = {};                          // with one -march
  std::string march = "native";                                 // unless the user gives another
  // Packed weights for the file and for the struct's member `prepared`, undefined if there are
  // none, and the name of their layout: a program reads only weights of its own layout.
  composit::Array prepared = {};
  std::string prepared_by = {};
  bool profiles = false;   // main.cpp has --profile
  text::Code loaded = {};  // statements of load_weights about `weights`, when they are there
  // By result, the argument in whose memory it may be written: the function works in place then.
  std::map<size_t, size_t> updates = {};
  // Of a program for several sizes: all of them, those that the function takes behind its results,
  // in order, and its ports. It takes an fl::Stack behind the sizes, if it takes memory.
  std::vector<composit::SizeRange> sizes = {};
  std::vector<std::string> passed_sizes = {};
  std::vector<SizedPort> inputs = {}, results = {};
  bool takes_memory = false;
};

// Calls the first outputs `output_names` ("loss", "grad_fc.weight"), all others "output.N".
// main.cpp compares only results that the example has. Replaces what an earlier call wrote.
// UserError for a graph without an example of its inputs, a weight without a value, and a folder
// that has files which Flashlight did not write.
void write_program(const composit::SavedCapture& capture, ProgramCode code,
                   const std::filesystem::path& folder,
                   const std::vector<std::string>& output_names = {});

// Throws the errors of write_program about the example and the folder, for callers that do long
// work before they call it.
void check_program(const composit::SavedCapture& capture, const std::filesystem::path& folder);

}  // namespace flashlight::package
