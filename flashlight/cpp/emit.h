// A program as the text of one C++17 file.
//
//   const Source source = emit(std::move(program));
//   source.text;                       // functions, structs of weights; includes "flashlight.hpp"
//   source.entry_name;                 // extern "C", for whoever loads it
#pragma once

#include <string>
#include <vector>

#include "flashlight/loops/program.h"
#include "flashlight/package/program_folder.h"
#include "flashlight/package/source.h"
#include "flashlight/text/size_names.h"

namespace flashlight::cpp {

using namespace loops;
using loops::Program;

// Lines of the text, counted from 1, and the operations that they are for.
struct EmittedLines {
  int first, last;
  Origin origin;
};

struct Source : package::Source {
  // Parts of the text: what comes in the namespace before the functions, these, the last one's
  // head.
  std::string structs, functions, declaration;
  // const char* entry(const void* const* arguments, const void* const* weights,
  //                   void* const* results, void* arena, void* generator): nullptr, or what is
  //                   wrong. The generator is a fl::Generator, of a program that draws.
  std::string entry_name;
  int lines = 0;  // of `text`
  std::vector<EmittedLines> origins = {};
  // Of a text for several sizes: the names of its sizes. The entry's fourth argument is then a
  // pointer to as many int64_t.
  std::vector<std::string> sizes = {};
  // Of such a text: those of them that the last function takes behind its results; its arguments
  // and results; true if it takes an fl::Stack.
  std::vector<std::string> passed_sizes = {};
  std::vector<package::SizedPort> inputs = {}, results = {};
  bool takes_memory = false;
};

Source emit(Program program);
// The text with these names of sizes instead of the numbers that they stand for. UserError where
// something of the program has to be a constant.
Source emit(Program program, const text::SizeNames& names);

}  // namespace flashlight::cpp
