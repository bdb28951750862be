// All environment variables that this project reads, in one table; `flashlight env` prints it.
//
//   if (knob(Knob::print_passes) == "sizes") ...
//
// Knobs show internals or adapt to the machine. A choice that a program makes is an argument of a
// function instead.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace composit {

// The knobs there are, a row each of `knobs()`.
enum class Knob { print_passes, compiler, cache, cache_size, seen_once, progress, verify, plugins };

// A row of the table.
struct KnobInfo {
  std::string_view name;      // name of the environment variable
  std::string_view fallback;  // its text where the variable is not set
  std::string_view help;      // one line for people
};

// One row per Knob, in its order.
const std::vector<KnobInfo>& knobs();
// The variable's text, or the fallback where it is not set.
std::string knob(Knob which);

}  // namespace composit
