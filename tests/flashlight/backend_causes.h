// Causes of the errors about backends, their options and plugins, for errors_test.cpp.
#pragma once

#include "tests/flashlight/foreign_causes.h"

namespace flashlight::test {

Causes with_backend_causes(Causes others);

}  // namespace flashlight::test
