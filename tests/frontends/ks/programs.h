// Programs of Knossos' language, and what they compute by hand.
#pragma once

#include <ostream>

#include "tests/frontends/ks/run_program.h"

namespace flashlight::ks::test {

struct TestProgram {
  std::string name, text, function;
  std::vector<Input> inputs;
  Numbers expected;
};

inline void PrintTo(const TestProgram& program, std::ostream* out) { *out << program.name; }

const std::vector<TestProgram>& test_programs();

}  // namespace flashlight::ks::test
