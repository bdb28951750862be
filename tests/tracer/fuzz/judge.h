// Does a capture of a random program, replayed on other inputs, do what the program does?
//
//   Verdict verdict = judge(program);
//   if (verdict.kind == Verdict::Kind::wrong) std::cout << verdict.text <<
//   to_cpp(minimised(program));
#pragma once

#include "tests/tracer/fuzz/program.h"

namespace flashlight::fuzz {

struct Verdict {
  enum class Kind {
    equal,      // all tensors and all inputs, bit for bit
    set_aside,  // nothing to compare: uninitialised memory, or another path was taken on the other
                // inputs
    wrong
  };
  Kind kind = Kind::equal;
  std::string text;
};

Verdict judge(const Program& program);
// The same fault with fewer calls.
Program minimised(Program program);

}  // namespace flashlight::fuzz
