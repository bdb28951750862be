// A program as the text of one C++17 file.
//
//   const Source source = emit(std::move(program));
//   source.text;                       // functions, structs of weights; includes "flashlight.hpp"
//   source.entry_name;                 // extern "C", for whoever loads it
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "flashlight/loops/program.h"
#include "flashlight/text/code.h"

namespace flashlight::cpp {

using namespace loops;
using loops::Program;

// What lines of the text, from 1, are for.
struct EmittedLines {
  int first, last;
  Origin origin;
};

struct Source {
  std::string name;  // namespace, and name of the last function
  std::string text;  // includes kRuntimeName
  // Parts of it: what comes in the namespace before the functions, these, the last one's head.
  std::string structs, functions, declaration;
  // const char* entry(const void* const* arguments, const void* const* weights,
  //                   void* const* results, void* arena, void* generator): nullptr, or what is
  //                   wrong. The generator is a fl::Generator, of a program that draws.
  std::string entry_name;
  std::vector<size_t> arguments;     // inputs of the program that are passed, in this order
  std::vector<size_t> weights;       // the same for weights
  std::vector<Array> constants;      // by place among `weights`: those that are no inputs
  std::vector<std::string> members;  // by place among `weights`: "encoder_layer[3].bias"
  int64_t arena_bytes = 0;
  int lines = 0;  // of `text`
  std::vector<EmittedLines> origins = {};
  std::vector<std::string> headers = {};  // beside kRuntimeName: those of its runtime calls
  std::vector<std::string> links = {};    // LibTorch's headers that it includes
  bool draws = false;                     // takes a fl::Generator
};

// The header that generated code includes, and its name.
inline constexpr const char* kRuntimeName = "flashlight.hpp";
const std::string& runtime_text();
inline constexpr const char* kArenaName = "flashlight_arena.hpp";  // of whoever calls it
// The text of another one, by its name: "flashlight_order.hpp".
const std::string& runtime_header(const std::string& name);

// `#include` of the headers that the text needs.
text::Code includes(const Source& source);

Source emit(Program program);

}  // namespace flashlight::cpp
