// The kinds of operation that a picture tells apart by colour.
#pragma once

#include <cstdint>
#include <string_view>

#include "composit/ir/node.h"

namespace composit::drawing {

enum class OpKind : uint8_t {
  input,
  output,
  contraction,
  normalisation,
  elementwise,
  movement,
  reduction,
  random,
  effect,
  control,
  other,
  count_
};

OpKind kind_of(const Node& node);

struct Colours {
  std::string_view name;  // for the legend
  std::string_view fill;
  std::string_view line;
};
const Colours& colours(OpKind kind);

}  // namespace composit::drawing
