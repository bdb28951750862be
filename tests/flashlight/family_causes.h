// Causes of the errors about families, for errors_test.cpp.
#pragma once

#include "tests/flashlight/foreign_causes.h"

namespace flashlight::test {

Causes with_family_causes(Causes others);
// Of those about their numbers and their state.
Causes with_number_causes(Causes others);

}  // namespace flashlight::test
