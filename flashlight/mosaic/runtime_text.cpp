#include "flashlight/mosaic/runtime_text.h"

namespace flashlight::mosaic {

const std::string& runtime_text() {
  static const std::string kText =
#include <flashlight_mosaic_runtime.inc>
      ;
  return kText;
}

const std::string& profile_text() {
  static const std::string kText =
#include <flashlight_mosaic_profile.inc>
      ;
  return kText;
}

}  // namespace flashlight::mosaic
