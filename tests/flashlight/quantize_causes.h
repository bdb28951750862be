// Causes of the errors about weights of few bits and about generated tokens, for errors_test.cpp.
#pragma once

#include "tests/flashlight/foreign_causes.h"

namespace flashlight::test {

Causes with_quantize_causes(Causes others);

}  // namespace flashlight::test
