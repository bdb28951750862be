#include "flashlight/mosaic/runtime_text.h"

namespace flashlight::mosaic {

const std::string& runtime_text() {
  static const std::string kText =
#include <flashlight_mosaic_runtime.inc>
      ;
  return kText;
}

}  // namespace flashlight::mosaic
