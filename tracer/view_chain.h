// View operators of a recording that can be undone (composit/ops/views.h): how a write through
// `x.select(0, 1)` becomes a new value of `x`.
#pragma once

#include <c10/util/SmallVector.h>

#include <optional>

#include "tracer/recording.h"

namespace flashlight::tracer {

// The operator that gives the parent of a view its new value, from the view's new value (and from
// the parent's old one where the view shows only a part).
struct Inverse {
  const OpInfo* op;  // nullptr: the new value itself
  bool takes_parent;
  c10::SmallVector<c10::IValue, 4> attributes;
};

// The inverse for output `output` of the view operator in `record`, whose operand has the geometry
// `parent`. Nothing if there is none.
std::optional<Inverse> inverse_of(const Recording& recording, const Record& record, uint32_t output,
                                  const Geometry& parent);
// Does the operator take one tensor and return views of it?
bool is_view_operator(const OpInfo& info);

}  // namespace flashlight::tracer
