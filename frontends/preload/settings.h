// The settings that `flashlight capture` passes to the preloaded library in one environment
// variable.
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>

namespace flashlight::preload {

// The border between one step and the next.
enum class Cut {
  // `optimizer` where the first step computes with gradients (in Python: of a module in training),
  // else `forward`.
  automatic,
  // Python: a call of a module from outside of all modules. C++: from the operator that reads a
  // parameter first until that parameter is read for the next time.
  forward,
  // From the first operator that reads a parameter with gradients until that happens again after
  // parameters were written; in Python, calls of modules begin steps as well.
  optimizer,
  run,  // everything
};

struct Settings {
  std::filesystem::path folder;  // each process makes one of its own in it
  Cut cut = Cut::automatic;
  std::optional<int64_t> step;  // only this one, counted from 0
  int64_t steps = 10;           // number of steps captured at most; 0: all
  bool lines = true;            // source lines of the operators

  bool operator==(const Settings&) const = default;
};

constexpr const char* kVariable = "FLASHLIGHT_CAPTURE";

std::string print(const Settings& settings);
// The inverse; UserError for another text.
Settings parse_settings(const std::string& text);
// UserError for none of automatic, forward, optimizer, run.
Cut parse_cut(const std::string& name);
const char* name(Cut cut);

}  // namespace flashlight::preload
