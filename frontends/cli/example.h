// The run that a capture was saved with.
#pragma once

#include <vector>

#include "composit/io/saved_capture.h"

namespace cli {

// A value per input of the graph: the example's, or the weight's.
std::vector<composit::Array> example_of(const composit::SavedCapture& capture);

}  // namespace cli
