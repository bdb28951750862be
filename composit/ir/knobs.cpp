#include "composit/ir/knobs.h"

#include <cstdlib>

namespace composit {

const std::vector<KnobInfo>& knobs() {
  static const std::vector<KnobInfo> table = {
      {"FLASHLIGHT_PRINT_PASSES", "",
       "on the error stream: 'sizes', the number of nodes after each pass; 'graphs', every graph; "
       "or the name of a pass, the graph after it"},
      {"FLASHLIGHT_CXX", "",
       "the C++ compiler for generated code, as 'g++' or 'ccache g++'; by default $CXX, else the "
       "one "
       "that built Flashlight, else c++, g++ or clang++"},
      {"FLASHLIGHT_CACHE", "",
       "the folder that keeps compiled code; by default $XDG_CACHE_HOME/flashlight, else "
       "~/.cache/flashlight"},
      {"FLASHLIGHT_CACHE_SIZE", "2G",
       "how large that folder may grow before what was used longest ago is removed: bytes, or with "
       "K, M or G"},
      {"FLASHLIGHT_SEEN_ONCE", "",
       "where it is set, calls of a capture never run the program again to confirm it"},
      {"FLASHLIGHT_PROGRESS", "2",
       "after how many seconds saving, loading, drawing and checking report on the error stream; 0 "
       "reports on all of them"},
      {"FLASHLIGHT_VERIFY", "",
       "where it is set, programs are verified after each stage of compiling, also by release "
       "builds; 'text': and their text is read back"},
      {"FLASHLIGHT_PLUGINS", "",
       "shared libraries with backends (composit/op/plugin.h) to load, separated by ':'"},
  };
  return table;
}

std::string knob(Knob which) {
  const KnobInfo& info = knobs().at(static_cast<size_t>(which));
  const char* set = std::getenv(std::string(info.name).c_str());
  return set == nullptr ? std::string(info.fallback) : set;
}

}  // namespace composit
