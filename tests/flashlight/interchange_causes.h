// Causes of the errors about files of other tools, for errors_test.cpp.
#pragma once

#include "tests/flashlight/foreign_causes.h"

namespace flashlight::test {

Causes with_interchange_causes(Causes others);

}  // namespace flashlight::test
