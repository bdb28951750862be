// What composit knows of ATen's operators: rows, draws and guards.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "composit/interchange/pt2_read/graph_reader.h"

namespace composit::pt2_read {

// What a program of the training dialect needs.
inline constexpr std::string_view kAdvice =
    "save the program that `program.run_decompositions({})` gives";

struct GraphReader::Known {
  const Schema* schema = nullptr;
  const Operation* row = nullptr;  // nullptr: a draw, or a guard
  bool has_effect = false;         // draws, or asserts

  // True where the row does not say the types, since the call draws.
  bool draws(const Call& call) const;
  bool sizes_follow_values(const Call& call) const;
};

// "aten::add.Tensor" of "torch.ops.aten.add.Tensor". UserError for what is no operator.
Symbol operator_of(std::string_view target);
// True for Python's functions of numbers.
bool is_number_target(std::string_view target);
// Nothing for an operator that composit does not know.
std::optional<GraphReader::Known> known_operator(Symbol op);
// Why an operator that is not known cannot be read.
std::string reason_against(Symbol op);
// "aten::add.Tensor" of "aten::add_.Tensor"; nothing for what is not named so.
std::optional<Symbol> functional_twin(Symbol op);

}  // namespace composit::pt2_read
