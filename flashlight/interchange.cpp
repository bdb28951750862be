#include "flashlight/interchange.h"

namespace flashlight {

void save_pt2(const CaptureBase& capture, const std::filesystem::path& file,
              const composit::Pt2Options& options) {
  composit::save_pt2(capture.saved(), file, options);
}

}  // namespace flashlight
