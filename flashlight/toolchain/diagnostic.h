// The message for a user whose generated code the compiler refuses.
//
//   throw UserError(explain_failure(sources, command, result));
//
// ```text
//   [compile] model.cpp:12:10: 'erff2' was not declared in this scope
//       12 |   return erff2(x);
//     emitted for aten::gelu at model.py:31 (encoder.layer.0)
//     sources and all of the compiler's output: ~/.cache/flashlight/builds/4CzpCL
//     command: cd ~/.cache/flashlight/builds/4CzpCL && g++ -O2 -c model.cpp
// ```
#pragma once

#include <string>

#include "flashlight/toolchain/process.h"
#include "flashlight/toolchain/sources.h"

namespace flashlight::toolchain {

// `command` ran in a folder that holds `sources`.
std::string explain_failure(const Sources& sources, const Command& command,
                            const ProcessResult& result);

}  // namespace flashlight::toolchain
