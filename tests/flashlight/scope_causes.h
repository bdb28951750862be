// Causes of the errors of scopes that become captures, for errors_test.cpp.
#pragma once

#include "tests/flashlight/foreign_causes.h"

namespace flashlight::test {

Causes with_scope_causes(Causes others);

}  // namespace flashlight::test
