// A program as the text of one C++17 file.
//
//   const Source source = emit(std::move(program));
//   source.text;                       // functions, structs of weights; includes "flashlight.hpp"
//   source.entry_name;                 // extern "C", for whoever loads it
#pragma once

#include <string>
#include <vector>

#include "flashlight/loops/program.h"
#include "flashlight/package/source.h"

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
};

Source emit(Program program);

}  // namespace flashlight::cpp
