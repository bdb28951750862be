// What every program of loops must be, checked behind each stage.
//
//   program = checked("fuse", fuse(std::move(program)));
//
// Rules
//   1. Numbers of values and functions exist; callees stand before their callers.
//   2. Inputs are arguments and weights, each once; results are distinct, and no inputs.
//   3. Constants have a constant of their type.
//   4. A value is written before it is read, unless it is an input or a constant; results are
//      written.
//   5. Nobody writes an argument, a weight or a constant.
//   6. A nest is sound over the values' types (fault_of in composit/op/loops.h).
//   7. A call gives as many arguments and takes as many results as its callee has, of the same
//      dtypes and numbers of elements.
//   8. A branch, loop or block has the functions that its kind needs.
//   9. A result that overwrites an input has its type.
//  10. A named size has a name of its own, and its example is one that was shown, or follows from
//      sizes before it.
//  11. What the call gives is a size of an argument of the last function.
//  12. A number that has a name is the example of that size; constants have none.
//  13. Expressions have no other parameters than named sizes, as int64.
//  14. The same holds where all sizes are the least, or the most, that the call may give.
//  15. What a nest keeps as recognised is of the statement that it has.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "flashlight/loops/program.h"

namespace flashlight::loops {

// What breaks a rule first, with function and step; nothing where all hold.
std::optional<std::string> fault_of(const Program& program);
// InternalError that names `stage`, says what is wrong and prints the function, unless `program` is
// sound. In release builds only where FLASHLIGHT_VERIFY is set.
Program checked(std::string_view stage, Program program);

}  // namespace flashlight::loops
