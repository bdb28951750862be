// How each operator of StableHLO is written.
//
//   "stablehlo.slice" + " " + operands + own_form(node) + " : " + type
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "composit/ir/node.h"

namespace composit::stablehlo {

std::string joined(const std::vector<std::string>& items);    // by commas
std::string listed(const Node& node, std::string_view name);  // an attribute: "[1, 2]"

// What follows the operands, for an operator with a form of its own that ends in the type of a
// function.
std::optional<std::string> own_form(std::string_view op, const Node& node);
// The attributes of an operator that is written in the general form, with its name in quotes.
std::optional<std::string> general_form(std::string_view op, const Node& node);
std::string convolution_form(const Node& node);
// "FLOAT", "SIGNED", "UNSIGNED": how elements are compared.
std::string compare_kind(const Type& type);
// True for what StableHLO has in its second dialect.
bool is_chlo(std::string_view op);

}  // namespace composit::stablehlo
