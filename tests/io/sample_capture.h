// A small capture with a bit of everything that is saved.
#pragma once

#include "composit/io/saved_capture.h"

namespace composit::test {

// linear, a large constant, a strided and a tied weight, two composite nodes; `value` fills the
// bias.
SavedCapture sample_capture(float value = 1);

}  // namespace composit::test
