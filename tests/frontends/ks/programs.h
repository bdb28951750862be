// Programs of Knossos' language, and what they compute by hand.
#pragma once

#include <functional>

#include "tests/frontends/ks/run_program.h"

namespace flashlight::ks::test {

struct TestProgram {
  std::string name, text, function;
  std::vector<Input> inputs;
  Numbers expected;
};

const std::vector<TestProgram>& test_programs();

}  // namespace flashlight::ks::test
