// Checks the rules that every program of loops must keep, after each stage.
//
//   program = checked("fuse", fuse(std::move(program)));
//
// Rules
//   1. Every value and function that is named exists; callees come before their callers.
//   2. Inputs are arguments and weights, each once; results are distinct, and no inputs.
//   3. Constants have a constant of their type.
//   4. A value is written before it is read, unless it is an input or a constant; results are
//      written.
//   5. No step writes an argument, a weight or a constant.
//   6. A nest is sound over the values' types (fault_of in composit/op/loops.h).
//   7. A call gives as many arguments and takes as many results as its callee has, of the same
//      dtypes and numbers of elements.
//   8. A branch, loop or block has the functions that its kind needs.
//   9. A result that overwrites an input has its type.
//  10. A named size has a name of its own; its example was shown, or follows from sizes before it.
//  11. A size that the call gives is a size of an input of the last function.
//  12. A number that has a name is the example of that size; constants have none.
//  13. Expressions have no other parameters than named sizes, as int64.
//  14. The same holds where all sizes are the least, or the most, that the call may give.
//  15. What a nest keeps as `recognised` is about its current statement.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "flashlight/loops/program.h"

namespace flashlight::loops {

// The first rule that is broken, with function and step; nothing if all hold.
std::optional<std::string> fault_of(const Program& program);
// Returns a sound program; else throws an InternalError that names `stage`, says what is wrong and
// prints the program. Release builds check only if FLASHLIGHT_VERIFY is set.
Program checked(std::string_view stage, Program program);

}  // namespace flashlight::loops
