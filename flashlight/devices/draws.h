// Random draws in parts of a program.
#pragma once

#include "composit/ir/graph.h"

namespace flashlight::devices {

// The first node of the graph that draws random numbers, regions included; nullptr: none.
const composit::Node* find_draw_in(const composit::Graph& graph);

}  // namespace flashlight::devices
