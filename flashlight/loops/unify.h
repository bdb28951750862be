// Programs of one form, lowered at several sizes, as one program with named sizes.
//
//   Program program = unify({lower(at_17_tokens), lower(at_24_tokens)}, {.names = {"tokens"}});
//   interpret(program, {ids_of_19_tokens, …});
//
// A size that differs and is one of an argument is given by the call; such as differ alike are one
// size, and have to be the same in each call. Every other integer that differs (of types, axes,
// lengths and expressions) must be one of those, or follow from them in exactly one of these ways:
// a multiple, a part, a sum with a number, a number minus it, a multiple of a product of two. Calls
// may give what lies between the least and the most that was shown: outside, the model may take
// another way.
#pragma once

#include <string>
#include <vector>

#include "flashlight/loops/program.h"

namespace flashlight::loops {

struct UnifyOptions {
  // Of the sizes that the call gives, in the order in which arguments have them; none: by argument
  // and axis, like "ids_1".
  std::vector<std::string> names = {};
};

// Two programs or more, by one and the same way of lowering. UserError that names the value or step
// where they differ in form, and where an integer follows in no way from sizes that were given, or
// in several ("one more program tells them apart"). What is for readers is that of the first.
Program unify(const std::vector<Program>& programs, const UnifyOptions& options = {});

}  // namespace flashlight::loops
