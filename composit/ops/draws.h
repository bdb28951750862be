// Operations whose results are drawn from a generator of the program. They are effects, so no row
// defines their values; what is known of them is how gradients pass.
//
//   if (find_draw(node.op()) != nullptr) ...    // no gradient flows to an operand
//
// A draw uses its tensors for their types (randn_like), or as the numbers of a distribution
// (poisson), and has no derivative by either. What is random and has one, as aten::_standard_gamma
// and aten::native_dropout, is not here.
#pragma once

#include <string_view>
#include <vector>

#include "composit/ir/symbol.h"

namespace composit {

struct Draw {
  std::string_view schema;
  std::string_view samples = {};  // calls that must work, as those of a Row (composit/op/samples.h)
};

// nullptr: no such draw.
const Draw* find_draw(Symbol name);
// In alphabetical order.
std::vector<const Draw*> all_draws();

}  // namespace composit
