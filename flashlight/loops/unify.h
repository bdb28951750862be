// Merges programs of one form, lowered at several sizes, into one program with named sizes.
//
//   Program program = unify({lower(at_17_tokens), lower(at_24_tokens)}, {.names = {"tokens"}});
//   interpret(program, {ids_of_19_tokens, …});
//
// If a size of an argument differs between programs, each call gives it. Sizes with the same
// numbers in all programs are one size, and must be equal in each call. Every other integer that
// differs (of types, axes, lengths and expressions) must be one of those sizes, or follow from them
// in exactly one of these ways: a multiple, a fraction, a size plus a number, a number minus a
// size, a multiple of the product of two. A call may give sizes from the least to the most that was
// shown: outside, the model may take another path.
#pragma once

#include <string>
#include <vector>

#include "flashlight/loops/program.h"

namespace flashlight::loops {

struct UnifyOptions {
  // Names for the sizes that calls give, in the order of arguments and axes. If empty, sizes are
  // named by argument and axis, like "ids_1".
  std::vector<std::string> names = {};
  // For callers that compare each bound program with one that was lowered at its sizes: a number
  // that follows from sizes in no way is one more size, which numbers_in reads; of several ways the
  // first one is taken. Such sizes are none of an argument, and no numbers for all of them need be
  // those of a program, so the result is not verified.
  bool reads_numbers = false;
};

// Takes two programs or more, lowered in the same way. UserError that names the value or step where
// they differ in form, or where an integer follows from the given sizes in no way, or in several
// ("one more program tells them apart"). Names and sources are those of the first program.
Program unify(const std::vector<Program>& programs, const UnifyOptions& options = {});

}  // namespace flashlight::loops
