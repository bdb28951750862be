// Operations whose results are drawn from a generator of the program. They are effects, so no row
// defines their values; what is known of them is how gradients pass, and how compiled code draws.
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
#include "composit/op/rule.h"

namespace composit {

// Fields that a Row (composit/op/operation.h) has, too, mean the same.
struct DrawRow {
  std::string_view schema;
  std::string_view samples = {};
  std::string_view runtime = {};
  Rule<Attributes> runtime_options = {};
  size_t values = 0;      // the number of tensors, the first ones, of which it reads elements
  bool integers = false;  // also draws into tensors of integers
  // Draws in the place of this one into memory that is not row-major, from 16 numbers on: LibTorch
  // takes other numbers of its generator there. Empty: the same draw.
  std::string_view not_row_major = {};
  Rule<LazyTensors> opened = {};
};

// A row with its schema read.
struct Draw {
  DrawRow row;
  Schema schema;
};

// nullptr: no such draw.
const Draw* find_draw(Symbol name);
// In alphabetical order.
std::vector<const Draw*> all_draws();

}  // namespace composit
