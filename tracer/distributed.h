// Collective operators (c10d) return before their work is done. Recorder and replay wait for it, so
// that what they look at is final.
#pragma once

#include <ATen/core/ivalue.h>

#include <optional>

#include "tracer/op_info.h"

namespace flashlight::tracer {

// After a call of `op`, which may be any operator. What the work throws passes through.
void wait_for_work(const OpInfo& op, c10::ArrayRef<c10::IValue> results);

// Replaces objects that each call makes anew with equal content by one object, so that two captures
// compare equal. Returns other values unchanged.
c10::IValue same_object(const c10::IValue& value);

}  // namespace flashlight::tracer
