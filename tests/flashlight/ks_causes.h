// Causes of the errors about programs in Knossos' language, for errors_test.cpp.
#pragma once

#include "tests/flashlight/foreign_causes.h"

namespace flashlight::test {

Causes with_ks_causes(Causes others);

}  // namespace flashlight::test
