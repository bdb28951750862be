// Causes of the errors about threads and operators that are not LibTorch's own, for
// errors_test.cpp.
#pragma once

#include <map>
#include <string>

namespace flashlight::test {

using Causes = std::map<std::string, void (*)()>;  // by message
Causes with_foreign_causes(Causes others);

}  // namespace flashlight::test
