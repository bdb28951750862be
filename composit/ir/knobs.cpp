#include "composit/ir/knobs.h"

#include <cstdlib>

namespace composit {

const std::vector<KnobInfo>& knobs() {
  static const std::vector<KnobInfo> table = {
      {"FLASHLIGHT_PRINT_PASSES", "",
       "on the error stream: 'sizes', the number of nodes after each pass; 'graphs', every graph; "
       "or the name of a pass, the graph after it"},
  };
  return table;
}

std::string knob(Knob which) {
  const KnobInfo& info = knobs().at(static_cast<size_t>(which));
  const char* set = std::getenv(std::string(info.name).c_str());
  return set == nullptr ? std::string(info.fallback) : set;
}

}  // namespace composit
