// The functional name under which an in-place operator stands in the graph.
#pragma once

#include "tracer/recording.h"

namespace flashlight::tracer {

// `add` for a record of `add_`, where the twin gives the very type that was recorded (`eq_` on
// floats stays float, `eq` gives bool: no twin). nullptr where there is none: the in-place name
// then stands for its functional form.
const OpInfo* functional_twin(const Recording& recording, const Record& record);

}  // namespace flashlight::tracer
