// What tells one combination of arguments of an adaptive program from another. For adaptive.cpp
// only.
#pragma once

#include <string>

#include "composit/ir/hash.h"
#include "flashlight/trace.h"

namespace flashlight {

// What combinations that differ in sizes only have in common: types, modes, modules and parameters.
composit::Hash kind_key_of(const TracedProgram& program, const FlatValues& arguments,
                           const std::string& signature);
// One combination of a kind: with sizes and strides.
composit::Hash key_of(const composit::Hash& kind, const FlatValues& arguments);
// "int64[1, 128], float32[1]"
std::string text_of(const FlatValues& arguments);

}  // namespace flashlight
