// Prints and parses programs, for tests of stages and for readers.
//
//   parse_program(print(program))      // the same program
//
// One line for each value and step; a nest is followed by its loops (composit/op/loops.h):
//
//   function "relu3" {inputs=[0, 1], results=[2]}
//     %0: float32[2, 3] = argument "x" {}
//     %1: float32[3] = weight "w" {}
//     %2: float32[2, 3] = result "y" {}
//     nest %0 %1 to %2 {operation="aten::mul.Tensor"}
//       loops(x0: float32[2, 3], x1: float32[3]) -> (y0: float32[2, 3]) {
//         for i < 2, j < 3 {
//           y0[i, j] = x0[i, j] * x1[j]
//         }
//       }
//   end
//
// Other steps are `call 0 %1 to %2 {…}`, of function 0; `runtime "order::sort" %1 to %2 %3
// (descending=false) {…}`; `control "scan" {…}`, with all of its fields in the braces. Fields that
// have their default value are left out.
#pragma once

#include <string>
#include <string_view>

#include "flashlight/loops/program.h"

namespace flashlight::loops {

std::string print(const Program& program);
// UserError with line, column, expected and received, if the text is not of this form. Does not
// check whether the program is sound: verify.h does.
Program parse_program(std::string_view text);

}  // namespace flashlight::loops
