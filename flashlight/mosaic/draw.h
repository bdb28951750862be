// Pictures of a plan.
//
//   write_file("arena.svg", arena_svg(plan));       // who has which bytes, from when to when
//   write_file("plan.dot", kernels_dot(plan));      // for graphviz
//
// Both give a value the colour of its place: equal colours are the same memory at different times.
#pragma once

#include <string>

#include "flashlight/mosaic/plan.h"

namespace flashlight::mosaic {

// Kernels from left to right, bytes from the bottom up: a box per value of the arena, what is alive
// as a line of steps, the least there could be as a dashed one.
std::string arena_svg(const Plan& plan);

// A node per kernel, in boxes of modules; an edge per value, from who writes it to who reads it.
std::string kernels_dot(const Plan& plan);

}  // namespace flashlight::mosaic
